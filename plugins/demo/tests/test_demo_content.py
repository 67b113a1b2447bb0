"""Every recorded answer ends as its author meant, and the recording is what the script says."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from karenina_demo.bundle import ANSWERING, BENCHMARK, CALLS, DIGEST, FAILING, application, prepared
from karenina_runs.execute.runner import Destination, execute

from karenina_core import Benchmark, VerificationResult, VerificationResultSet
from karenina_core.plugin.discovery import discover

Script = Mapping[str, Mapping[str, Any]]
TOLERANCE = 1e-6
"""By how much numbers of vectors may differ from processor to processor; 3e-7 was the most that was measured."""
TIMES = ("seconds", "timestamp", "execution_time")


@pytest.fixture(scope="module")
def results() -> VerificationResultSet:
    return asyncio.run(execute(prepared(application(replay=str(CALLS)))))


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What the recording gives."""
    return _replayed(CALLS, tmp_path_factory.mktemp("replayed") / "run")


def _of(results: VerificationResultSet, question: str, model: str) -> VerificationResult:
    (found,) = (r for r in results if r.metadata.question_id == question and r.metadata.answering.model_name == model)
    return found


def test_the_script_has_every_question_and_every_model(script: Script) -> None:
    assert list(script) == [question.id for question in Benchmark.load(BENCHMARK)]
    assert {tuple(item) for item in script.values()} == {ANSWERING}


def test_every_item_ends_as_meant_and_for_the_reason_that_was_meant(
    script: Script, results: VerificationResultSet
) -> None:
    meant = {(q, m): (e["outcome"], e.get("reason", "")) for q, item in script.items() for m, e in item.items()}
    found = {}
    for question, model in meant:
        result = _of(results, question, model)
        found[question, model] = (str(result.outcome), result.ledger[-1].reason if result.ledger else "")
    assert found == meant


def test_every_question_has_a_right_answer_and_every_other_one_teaches_something(script: Script) -> None:
    for item in script.values():
        assert "passed" in {entry["outcome"] for entry in item.values()}
        assert all("lesson" in entry for entry in item.values() if entry["outcome"] != "passed")
    failing = {(q, m) for q, item in script.items() for m, e in item.items() if e["outcome"].startswith("error")}
    assert failing == FAILING


def test_the_judge_s_last_reply_is_what_was_extracted(script: Script, results: VerificationResultSet) -> None:
    for question, item in script.items():
        for model, entry in item.items():
            template = _of(results, question, model).template
            assert template is not None
            extracted = template.parsed_llm_response
            assert extracted == (entry["judge"][-1] if "judge" in entry else None)
            assert template.judge_repairs == len(entry.get("judge", [0])) - 1
    assert sum(result.template.judge_repairs for result in results if result.template) == 1


def test_checks_and_the_embedding_check_show_what_they_do(script: Script, results: VerificationResultSet) -> None:
    """A refusal, answers that say too little, a rescue by meaning, and a similar text that is not rescued."""
    declines = {(q, m) for q, item in script.items() for m, e in item.items() if "disclaimer" in e}
    too_little = {(q, m) for q, item in script.items() for m, e in item.items() if "missing" in e}
    found = {(r.metadata.question_id, r.metadata.answering.model_name): r for r in results}
    assert {key for key, r in found.items() if r.checks.abstention_override_applied} == declines != set()
    assert {key for key, r in found.items() if r.checks.sufficiency_override_applied} == too_little != set()
    compared = {key: r.template for key, r in found.items() if r.template and "equivalence" in script[key[0]][key[1]]}
    rescued = [key for key, part in compared.items() if part.embedding_override_applied]
    assert rescued == [("denosumab-jaw", "birch-small")]
    assert {part.embedding_model_used for part in compared.values()} == {"all-MiniLM-L6-v2"}
    assert all((part.embedding_similarity_score or 0) > 0.85 for part in compared.values())
    assert len(compared) == 2


def test_the_benchmark_shows_what_templates_can_do() -> None:
    benchmark = Benchmark.load(BENCHMARK)
    assert len(benchmark) >= 12
    assert not benchmark.warnings
    assert all(question.raw_answer and question.keywords and question.finished for question in benchmark)
    languages = Counter(question.template_language for question in benchmark)
    assert languages["karenina-template"] > languages["python"] == 3
    declared = [
        field
        for question in benchmark
        if question.template_language == "karenina-template"
        for field in json.loads(question.answer_template or "")["fields"]
    ]
    assert {field["type"] for field in declared} == {"str", "bool", "int", "float", "literal", "list_str"}
    assert {"RegexMatch", "NumericTolerance", "SetContainment"} <= {field["verify_with"]["type"] for field in declared}


def test_no_template_shows_the_judge_what_is_expected(results: VerificationResultSet) -> None:
    warnings = [warning for result in results for warning in result.metadata.warnings if "expected value" in warning]
    assert warnings == []


def test_the_digest_is_that_of_the_benchmark() -> None:
    """Change DIGEST in bundle.py when you change the benchmark on purpose, and record again."""
    assert hashlib.sha256(BENCHMARK.read_bytes()).hexdigest() == DIGEST


def test_recording_again_gives_the_same_calls_and_the_same_results(
    project: Path, tmp_path: Path, replayed: list[Any], long: bool
) -> None:
    """Fails where a prompt, a schema, the benchmark or the script has changed: `python plugins/demo/record.py`.

    As an old processor does, and with `--long` as this one does, too: every processor that numpy runs on has the
    instructions of OpenBLAS's kernels for Nehalem.
    """
    for number, kernels in enumerate(({"OPENBLAS_CORETYPE": "Nehalem"}, {})[: 2 if long else 1]):
        again = tmp_path / f"calls{number}.jsonl"
        command = [sys.executable, project / "record.py", "--out", again]
        around = os.environ | kernels
        subprocess.run(command, cwd=tmp_path, env=around, check=True, timeout=60, stdin=subprocess.DEVNULL)
        (calls, vectors), (known_calls, known_vectors) = _calls(again), _calls(CALLS)
        assert calls == known_calls
        assert len(vectors) == len(known_vectors) > 0
        for vector, known in zip(vectors, known_vectors, strict=True):
            assert vector == pytest.approx(known, abs=TOLERANCE)
        assert _replayed(again, tmp_path / f"new{number}") == replayed


def _calls(recording: Path) -> tuple[list[Any], list[Any]]:
    """The recorded calls without vectors, and the vectors."""
    calls = [json.loads(line) for line in recording.read_text("utf-8").splitlines()]
    vectors = [vector for call in calls if call["kind"] == "embedder" for vector in call["reply"].pop("vectors")]
    return calls, vectors


def test_vectors_with_other_last_bits_give_the_same_results(tmp_path: Path, replayed: list[Any]) -> None:
    spread = random.Random(0)
    lines = [json.loads(line) for line in CALLS.read_text("utf-8").splitlines()]
    for line in lines:
        for vector in line.get("reply", {}).get("vectors", ()):
            vector[:] = [number + spread.uniform(-TOLERANCE, TOLERANCE) for number in vector]
    moved = tmp_path / "calls.jsonl"
    moved.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    assert _calls(moved)[1] != _calls(CALLS)[1]
    assert _replayed(moved, tmp_path / "new") == replayed


def _replayed(recording: Path, directory: Path) -> list[Any]:
    """The results file without times, in the order of the results' ids."""
    asyncio.run(execute(prepared(application(replay=str(recording))), Destination(run_dir=directory)))
    lines = (directory / "results.jsonl").read_text("utf-8").splitlines()
    return sorted((_timeless(json.loads(line)) for line in lines), key=lambda row: str(row["metadata"]["result_id"]))


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in TIMES}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def test_the_plugins_of_the_demo_are_those_that_it_depends_on(project: Path) -> None:
    declared = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert len(requires("karenina-demo") or ()) == len(declared)  # else install it again
    active = {plugin.distribution for plugin in application().plugins if plugin.state == "active"}
    with_plugins = {source.distribution for source in discover()}
    assert active == {line.partition(">")[0] for line in declared} & with_plugins


def test_the_wheel_holds_the_benchmark_and_the_recording_and_not_how_it_was_made(project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flit_core.wheel", "--outdir", tmp_path]
    subprocess.run(command, cwd=project, check=True, timeout=60, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert hashlib.sha256(archive.read("karenina_demo/data/demo.jsonld")).hexdigest() == DIGEST
        assert archive.read("karenina_demo/data/demo-calls.jsonl") == CALLS.read_bytes()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"karenina_demo"}
    assert not [name for name in names if name.endswith(("record.py", "script.json"))]
