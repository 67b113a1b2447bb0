"""The packages of examples/plugins keep their promises and work together; without one, what is missing is said.

They are in environments with what is in wheels of them and of karenina.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from karenina_core.testing import ScriptedServer, ServedRequest

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml"))
BENCHMARK = EXAMPLES / "benchmark"
ANSWERS = {
    "EcoRI": "It cuts at GAATTC.",
    "T7": "Perhaps they are TATAGT, read on the other strand.",
    "oxygen": "Hemoglobin does.",
    "leukemia": "It is c-ABL.",
}
JUDGED: dict[str, Any] = {"site": "gaattc", "bases": "5'-TATAGT", "protein": "hemoglobin", "gene": "c-ABL"}
Run = Callable[..., subprocess.CompletedProcess[str]]
FEW = """
from hypothesis import settings
settings.register_profile("few", max_examples=15, deadline=None)
settings.load_profile("few")
"""
"""Without `--long` their tests draw as few examples as .ci/run does for other versions of what is needed."""


def script(request: ServedRequest) -> Any:
    """What the model says, and what the judge reads from it; the judge finds two spellings equivalent."""
    if request.channel == "text":
        return next(answer for word, answer in ANSWERS.items() if word in request.text)
    assert request.schema is not None
    found = {name: JUDGED.get(name, True) for name in request.schema["properties"]}
    asked = request.schema["properties"].get("protein", {})
    return {"protein": {"reasoning": "two spellings", "equivalent": True}} if "properties" in asked else found


@contextmanager
def acme() -> Iterator[ScriptedServer]:
    """A server that speaks the protocol of the example."""
    path = EXAMPLES / "acme" / "karenina_example_acme" / "checks.py"
    spec = importlib.util.spec_from_file_location("acme_checks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with ScriptedServer(script, wire=module.AcmeWire()) as server:
        yield server


@pytest.fixture(scope="module")
def venv(fresh: Callable[..., Path]) -> Path:
    """An environment with karenina and all examples."""
    examples = [f"karenina-example-{name}" for name in NAMES]
    return fresh(*examples, "karenina-embedding", "karenina-rubric")


def verify(server: ScriptedServer, out: Path) -> list[str | Path]:
    urls = ("--answering-base-url", server.url, "--parsing-base-url", server.url)
    options = ("--config", BENCHMARK / "run.toml", *urls, "--sink", "tables:results.sqlite", "--out", out)
    return ["verify", BENCHMARK / "benchmark.jsonld", *options]


def test_their_own_tests_pass(build: Callable[..., list[Path]], tmp_path: Path, long: bool) -> None:
    (tmp_path / "drawing_few.py").write_text(FEW, "utf-8")
    for folder in build(*(EXAMPLES / name for name in NAMES)):
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            wheel.extractall(tmp_path)
    tests = [EXAMPLES / name / "tests" for name in NAMES]
    names = ["no:cacheprovider", "no:langsmith_plugin", *([] if long else ["drawing_few"])]
    plugins = [word for name in names for word in ("-p", name)]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KARENINA_", "PYTEST"))}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *tests],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_one_benchmark_uses_all_of_them(venv: Path, run: Run, tmp_path: Path) -> None:
    karenina = venv / "bin" / "karenina"
    with acme() as server:
        run([karenina, *verify(server, tmp_path / "run")], tmp_path)
        asked = server.count
        run([karenina, *verify(server, tmp_path / "again")], tmp_path)
        assert server.count == asked  # karenina-example-cache
    lines = (tmp_path / "run" / "results.jsonl").read_text("utf-8").splitlines()
    results = {result["metadata"]["question_id"]: result for result in map(json.loads, lines)}
    assert {name: result["metadata"]["outcome"] for name, result in results.items()} == dict.fromkeys(
        ("ecori", "primer", "oxygen", "fusion"), "passed"
    )
    assert results["primer"]["extensions"]["guard"] == {"words": 9}
    assert results["oxygen"]["template"]["embedding_override_applied"] is True
    assert results["oxygen"]["template"]["embedding_model_used"] == "letters-3"
    scores = {name: result["rubric"]["extra_trait_scores"]["hedging"]["Certain"] for name, result in results.items()}
    assert scores == {"ecori": True, "primer": False, "oxygen": True, "fusion": True}
    with closing(sqlite3.connect(tmp_path / "results.sqlite")) as tables:
        rows = tables.execute("SELECT DISTINCT name, correct FROM fields ORDER BY name").fetchall()
        assert rows == [("bases", 1), ("gene", 1), ("protein", 1), ("site", 1)]
    assert len(run([karenina, "slowest", tmp_path / "run"], tmp_path).stdout.splitlines()) == 4


TABLE = "no installed package has this plugin"
PRIMITIVES = ("names", "primitive")
PLANNED = {"acme", "sink", *PRIMITIVES}
"""Without these a plan is tried: a run says the same in other words, or begins. Without the others, with `--long`."""
TOGETHER = [("acme",), ("command",), ("embedder",), ("guard", "cache"), ("sink", *PRIMITIVES), ("trait",)]
"""What is said of each of these is said, too, where all of a group are missing."""
OTHERS = "; to use another one, install its package"
MISSING = {
    "guard": f"plugins.example-guard: {TABLE}",
    "cache": f"plugins.example-cache: {TABLE}",
    "embedder": "embedding_check_embedder: no embedder is called 'trigrams'; available: "
    f"litellm, minilm, sentence_transformers{OTHERS}",
    "trait": "(trait 'Certain'): additionalType 'karenina:GlobalHedgingTrait' is unknown",
    "primitive": "unknown primitive 'DnaMatch' (did you mean 'DateMatch'?); install the package that provides it",
    "names": "unknown primitive 'GeneMatch'",
    "sink": "--sink: no sink is called 'tables'; available: ",
    "acme": f"models.anvil.interface: no adapter serves the interface 'acme'; available: manual{OTHERS}",
    "command": "no command is called 'slowest'; install the package that provides it",
}


@contextmanager
def uninstalled(name: str, venv: Path, aside: Path) -> Iterator[None]:
    """The package and its metadata are not in the environment."""
    module = f"karenina_example_{name.replace('-', '_')}"
    (packages,) = venv.glob("lib/python*/site-packages")
    parts = [packages / module, *packages.glob(f"{module}-*.dist-info")]
    assert len(parts) == 2
    for part in parts:
        part.rename(aside / part.name)
    try:
        yield
    finally:
        for part in parts:
            (aside / part.name).rename(part)


def test_without_some_of_them_it_says_what_is_missing(venv: Path, tmp_path: Path, long: bool) -> None:
    assert sorted(chain.from_iterable(TOGETHER)) == NAMES
    for number, gone in enumerate([(name,) for name in NAMES] if long else TOGETHER):
        (folder := tmp_path / str(number)).mkdir()
        _says_what_is_missing(gone, venv, folder, long)


def _says_what_is_missing(gone: tuple[str, ...], venv: Path, folder: Path, long: bool) -> None:
    def tried(words: list[Any]) -> subprocess.CompletedProcess[str]:
        command = [str(word) for word in (venv / "bin" / "karenina", *words)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)

    (aside := folder / "aside").mkdir()
    with ExitStack() as stack:
        for name in gone:
            stack.enter_context(uninstalled(name, venv, aside))
        plan = ["plan", BENCHMARK / "benchmark.jsonld", "--config", BENCHMARK / "run.toml", "--sink", "tables:x"]
        told = [tried(["slowest", folder])] if gone == ("command",) else []
        if PLANNED & {*gone} or (long and not told):
            told.append(tried(plan))
        with acme() as server:
            if {*gone} - {"command", *PRIMITIVES}:  # the first is no part of a run; the others cost their question
                ran = tried(verify(server, folder / "run"))
                assert ran.returncode == 1
                told.append(ran)
            assert server.count == 0, "something was paid for"
    said = " ".join((told[0].stdout + told[0].stderr).split())
    assert [name for name in gone if MISSING[name] not in said] == []
    assert all("Traceback" not in each.stderr for each in told)
    assert told[0].returncode != 0 or {*gone} <= {*PRIMITIVES}
