"""`karenina init` writes a project that does at once what it says, and overwrites nothing."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from karenina_cli.root import karenina as command
from karenina_demo.project import FILES

from karenina_core import Benchmark
from karenina_core.testing import ScriptedServer

Run = Callable[..., subprocess.CompletedProcess[str]]
TYPED = re.compile(r"^ *(?:- run: )?(karenina .+)$", re.MULTILINE)


def typed(text: str) -> Iterator[list[str]]:
    """The commands of karenina's in a text, as words."""
    return (shlex.split(line)[1:] for line in TYPED.findall(text))


def written(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_it_prints_and_what_its_files_say_runs_without_a_key_and_a_network(karenina: Run, tmp_path: Path) -> None:
    begun = karenina("init")
    assert begun.returncode == 0, begun.stderr
    assert set(written(tmp_path)) == set(FILES)
    assert [line for line in begun.stdout.splitlines() if line in FILES] == list(FILES)
    assert " cd " not in begun.stdout
    verify, show = typed(begun.stdout)
    readme = list(typed((tmp_path / "README.md").read_text("utf-8")))
    assert [verify, show] == readme[:2]
    ran = karenina(*verify, "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["outcomes"] == {"passed": 3, "failed": 1}
    shown = karenina(*show)
    assert "wrong: gas (expected helium, extracted neon)" in shown.stdout
    commands = [*readme[3:], *typed((tmp_path / ".github/workflows/karenina.yml").read_text("utf-8"))]
    assert [words[0] for words in commands] == ["benchmark", "benchmark", "verify"]
    for words in commands:
        ran = karenina(*words)
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
        assert "NETWORK" not in ran.stderr
    ignored = (tmp_path / ".gitignore").read_text("utf-8").split()
    assert {f"{path.name}/" for path in tmp_path.iterdir() if path.is_dir()} - {".github/"} <= set(ignored)


def test_its_tables_of_models_are_asked(karenina: Run, tmp_path: Path) -> None:
    assert karenina("init").returncode == 0
    answers = json.loads((tmp_path / "answers.json").read_text("utf-8"))
    ids = {question.question: question.id for question in Benchmark.load(tmp_path / "questions.csv")}

    def script(request: Any) -> Any:
        entry = answers[next(name for question, name in ids.items() if question in request.text)]
        return entry["fields"] if request.schema else entry["answer"]

    live = next(words for words in typed((tmp_path / "README.md").read_text("utf-8")) if "candidate" in words)
    with ScriptedServer(script) as server:
        there = [
            word
            for name in ("candidate", "judge")
            for field, value in (("interface", "openai_endpoint"), ("endpoint_base_url", server.url))
            for word in ("--set", f"models.{name}.{field}={value}")
        ]
        without = karenina(*live, *there)
        assert without.returncode == 1
        assert "set the environment variable OPENAI_API_KEY" in without.stderr
        assert server.count == 0
        ran = karenina(*live, *there, "--json", OPENAI_API_KEY="sk-of-this-test-0123")
        assert ran.returncode == 0, ran.stderr
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-of-this-test-0123"}
    assert json.loads(ran.stdout)["outcomes"] == {"passed": 3, "failed": 1}


def test_a_new_folder_is_made_and_named(karenina: Run, tmp_path: Path) -> None:
    ran = karenina("init", "a b/c")
    assert ran.returncode == 0, ran.stderr
    assert "cd 'a b/c'" in ran.stdout
    assert set(written(tmp_path / "a b" / "c")) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_overwritten_and_nothing_is_written_beside_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine" / name).parent.mkdir(parents=True)
    (tmp_path / "mine" / name).write_text("kept")
    (tmp_path / "mine" / "other.txt").write_text("kept")
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(command, ["init", "mine"], prog_name="karenina")
    assert ran.exit_code == 1
    assert name in ran.stderr
    assert "karenina init FOLDER" in ran.stderr
    assert written(tmp_path / "mine") == {name: b"kept", "other.txt": b"kept"}


def test_a_place_that_cannot_be_written_is_an_error(karenina: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".github").write_text("a file")
    ran = karenina("init", "mine")
    assert (ran.returncode, "cannot be written" in ran.stderr) == (1, True)
    assert set(written(tmp_path)) == {"mine/.github"}
