"""`karenina trust`: what of a file is code, and whether it may run in karenina's own process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from karenina_runs.folder.status import read_status

from karenina_core import Benchmark, Question

Run = Callable[..., Result]
CODE = """\
from pathlib import Path
import json

Path("it-ran").write_text("yes")


class Answer(BaseAnswer):
    capital: str = VerifiedField(description="A capital", ground_truth="Paris", verify_with=ExactMatch())
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("KARENINA_DISABLE", "sandbox-runtime")  # where there is one, it runs what is not trusted
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(tmp_path)


def saved(text: str = CODE, language: str = "python") -> str:
    question = Question(
        id="fr", question="The capital of France?", raw_answer="Paris", answer_template=text, template_language=language
    )
    Benchmark.create("capitals").with_questions([question]).save("capitals.jsonld")
    Path("answers.json").write_text(json.dumps({"fr": {"answer": "Paris.", "fields": {"capital": "Paris"}}}), "utf-8")
    return "capitals.jsonld"


def verify(run: Run, file: str, *more: str) -> Result:
    return run("verify", file, "--answering-interface", "manual", "--manual-traces", "answers.json", *more)


def test_a_file_is_trusted_until_it_is_changed(run: Run) -> None:
    file = saved()
    refused = verify(run, file, "--out", "run0")
    assert refused.exit_code == 1
    assert f"karenina trust add {file}" in refused.stderr
    shown = run("trust", "show", file)
    assert "not trusted, SHA-256 " in shown.stdout
    assert "Imports: json, pathlib" in shown.stdout
    assert "1 template" in shown.stdout
    assert not Path("it-ran").exists()

    added = run("trust", "add", file)
    assert (added.exit_code, ": trusted, SHA-256 " in added.stdout) == (0, True)
    assert not Path("it-ran").exists()
    assert verify(run, file, "--out", "run1").exit_code == 0
    assert Path("it-ran").exists()
    assert not read_status(Path("run1")).trusted, "the line to continue it needs no --trust"
    assert run("resume", "run1", "--manual-traces", "answers.json").exit_code == 0

    saved(CODE.replace('"yes"', '"no"'))
    assert verify(run, file, "--out", "run2").exit_code == 1
    changed = run("trust", "show", file).stdout
    for line in (
        "not trusted",
        "Changes since",
        '-Path("it-ran").write_text("yes")',
        '+Path("it-ran").write_text("no")',
    ):
        assert line in changed


def test_what_is_removed_is_refused_again_also_when_a_run_is_resumed(run: Run) -> None:
    file = saved()
    run("trust", "add", file)
    assert verify(run, file, "--out", "run").exit_code == 0
    assert "no longer trusted" in run("trust", "remove", file).stdout
    assert "was not trusted" in run("trust", "remove", file).stdout
    assert verify(run, file, "--out", "other").exit_code == 1
    again = run("resume", "run", "--retry-failed", "--manual-traces", "answers.json")
    assert again.exit_code == 1, again.output
    assert "--trust" in again.stderr


def test_the_code_is_printed_without_what_a_terminal_obeys(run: Run) -> None:
    shown = run("trust", "show", saved(CODE + "# \x1b[2Jgone\n"), "--code").stdout
    assert "class Answer(BaseAnswer)" in shown
    assert "\x1b" not in shown


def test_a_file_that_is_not_there_any_more_can_be_removed(run: Run) -> None:
    file = saved()
    run("trust", "add", file)
    Path(file).unlink()
    assert "no longer trusted" in run("trust", "remove", file).stdout
    assert run("trust", "show", file).exit_code != 0


def test_a_file_without_code_needs_none(run: Run, tmp_path: Path) -> None:
    file = saved(json.dumps({"fields": []}), "karenina-template")
    for command in ("show", "add"):
        assert "contains no code" in run("trust", command, file).stdout
    assert not (tmp_path / "data").exists()
