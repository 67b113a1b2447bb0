"""Configuration files and manifests of runs, changed in any place: read or refused, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_runs.config.config_file import Flags, load_config
from karenina_runs.config.saved_config import rebuilt
from karenina_runs.folder.directory import read_manifest
from karenina_runs.folder.status import read_status

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.errors import KareninaError
from karenina_core.testing import ScriptedLLM, application

LAW = settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
CONFIG = b"""\
disable = ["embedding-check"]

[run]
answering_models = ["fast"]
parsing_models = ["fast"]
replicate_count = 2
features = ["abstention"]

[models.fast]
interface = "openai_endpoint"
model_name = "m"
endpoint_base_url = "http://127.0.0.1:9/v1"
temperature = 0.5

[models.fast.extra_kwargs]
seed = 1

[plugins.trait-regex]
seconds = 0.5
"""
PIECES = [
    b"[",
    b"]",
    b"=",
    b'"',
    b"\n",
    b"\xff",
    b"\0",
    b"[[",
    b"run",
    b"1e999",
    b"nan",
    b"true",
    b"[" * 5000,
    b"{a=" * 2000,
]
VALUES = st.recursive(
    st.sampled_from([None, True, -1, 0, 10**400, 1e308, "", "x", "\ud800", "../..", "trusted"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "config"]), inner, max_size=2),
    max_leaves=3,
)


@pytest.fixture(autouse=True)
def made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An application of the same lists and tables is made once: most of the work is to make it."""
    made: dict[str, Karenina] = {}
    make = Karenina.installed

    def installed(**asked: Any) -> Karenina:
        return made.get(repr(asked)) or made.setdefault(repr(asked), make(**asked))

    monkeypatch.setattr(Karenina, "installed", installed)


@LAW
@given(st.lists(st.tuples(st.integers(0, len(CONFIG)), st.integers(0, 30), st.sampled_from(PIECES)), max_size=3))
def test_any_configuration_file_is_read_or_refused(tmp_path: Path, changes: list[tuple[int, int, bytes]]) -> None:
    data = bytearray(CONFIG)
    for start, length, piece in changes:
        data[start : start + length] = piece
    file = tmp_path / "karenina.toml"
    file.write_bytes(data)
    try:
        load_config(file)
    except KareninaError as error:
        refused = str(error)
    else:
        return
    assert refused


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """That of a run that has ended."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    fields = [
        {"name": "a", "type": "str", "description": "x", "ground_truth": "A", "verify_with": {"type": "ExactMatch"}}
    ]
    question = Question(
        id="q", question="q?", answer_template=json.dumps({"fields": fields}), template_language="karenina-template"
    )
    model = ModelConfig(model_name="m", interface="scripted")
    llm = ScriptedLLM(lambda call: {"a": "A"} if call.task == "parsing" else "A")
    config = VerificationConfig(answering_models=[model], parsing_models=[model])
    benchmark = Benchmark.create("b").with_questions([question])
    benchmark.run_verification(config, app=application(llm, installed=True), run_dir=folder)
    return read_manifest(folder)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


READERS: tuple[Callable[[Path], Any], ...] = (
    read_manifest,
    read_status,
    lambda folder: rebuilt(read_manifest(folder), None, (), Flags()),
)


def test_any_manifest_is_read_or_refused(tmp_path: Path, manifest: dict[str, Any]) -> None:
    @LAW
    @given(st.sampled_from(places(manifest)[1:]), st.booleans(), VALUES)
    def law(place: tuple[Any, ...], changed: bool, value: Any) -> None:
        document: Any = deepcopy(manifest)
        *path, last = place
        holder = document
        for key in path:
            holder = holder[key]
        if changed:
            holder[last] = value
        else:
            del holder[last]
        (tmp_path / "manifest.json").write_text(json.dumps(document), "utf-8")
        refused = []
        for read in READERS:
            try:
                read(tmp_path)
            except KareninaError as error:
                refused.append(str(error))
        assert all(refused)

    law()
