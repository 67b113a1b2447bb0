"""The embedder `sentence_transformers` with a replacement of the library.

The real one is several gigabytes with what it needs, so a package of its name with its two calls
(`SentenceTransformer(name)`, `.encode(texts, show_progress_bar=...)`) is written into a folder. It is found and
imported as the real one would be, in a process of its own. What the real one computes is not tested here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from karenina_embedding.sentence_transformer import SentenceTransformers

REPLACEMENT = """
import time
made = []

class SentenceTransformer:
    def __init__(self, name):
        made.append(name)
        time.sleep(0.05)
        if name == "unknown":
            raise OSError("unknown is not a local folder and is not a valid model identifier")

    def encode(self, texts, show_progress_bar=None):
        assert show_progress_bar is False
        if "boom" in texts:
            raise RuntimeError("out of memory")
        return [[float(len(text)), 1.0] for text in texts]
"""
PROCESS = """
import asyncio, json, sys
from karenina_core.errors import KareninaError
from karenina_embedding.sentence_transformer import SentenceTransformers

async def embedded(embedder, texts):
    try:
        found = await embedder.aembed(texts)
    except KareninaError as error:
        return [type(error).__name__, error.kind, str(error)]
    return [found.vectors, found.model, found.usage.cost_usd]

async def main():
    small = SentenceTransformers("small")
    problem, light = small.problem(), "sentence_transformers" not in sys.modules
    both = await asyncio.gather(embedded(small, ["a", "bcd"]), embedded(small, []))
    return {
        "problem": problem, "light": light, "both": both, "boom": await embedded(small, ["boom"]),
        "unknown": await embedded(SentenceTransformers("unknown"), ["a"]),
        "made": getattr(sys.modules.get("sentence_transformers"), "made", None),
    }

print(json.dumps(asyncio.run(main())))
"""


def printed_by(folder: Path, replacement: str) -> Any:
    """What a process says in which this text is the library."""
    (folder / "sentence_transformers").mkdir()
    (folder / "sentence_transformers" / "__init__.py").write_text(replacement)
    code = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{PROCESS}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_it_loads_a_model_once_and_only_when_it_is_used(tmp_path: Path) -> None:
    printed = printed_by(tmp_path, REPLACEMENT)
    assert (printed["problem"], printed["light"]) == (None, True)
    assert printed["both"] == [[[[1.0, 1.0], [3.0, 1.0]], "small", 0.0], [[], "small", 0.0]]
    assert printed["made"] == ["small", "unknown"]


def test_its_failures_say_what_to_do(tmp_path: Path) -> None:
    printed = printed_by(tmp_path, REPLACEMENT)
    assert printed["boom"] == ["PortError", "plugin", "sentence-transformers failed: RuntimeError: out of memory"]
    assert printed["unknown"][:2] == ["PluginError", "plugin"]
    assert "check embedding_check_model" in printed["unknown"][2]


def test_a_broken_library_is_reported(tmp_path: Path) -> None:
    printed = printed_by(tmp_path, f"import no_such_module\n{REPLACEMENT}")
    assert "is broken (ModuleNotFoundError" in printed["unknown"][2]


def test_where_it_is_not_installed_the_error_has_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_embedding.sentence_transformer.PACKAGE", "no_such_package")
    assert SentenceTransformers("any").problem() == (
        'the package sentence-transformers is not installed: pip install "karenina-embedding[sentence-transformers]"'
    )


def test_it_needs_the_name_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_embedding.sentence_transformer.PACKAGE", "json")
    assert "must name a model" in str(SentenceTransformers(" ").problem())
    assert SentenceTransformers("any").problem() is None
