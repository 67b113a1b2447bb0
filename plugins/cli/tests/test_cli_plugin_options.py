"""Options and sections of `karenina doctor` that packages bring: one from a wheel, and broken ones."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from karenina_runs.journal.journal import Journal

Run = Callable[..., Result]
Files = Callable[..., Path]
PACKAGE = Path(__file__).parents[3] / "tests" / "packages" / "distinct"
GROUP = "karenina.options"
OPTION = "from karenina_core.plugin.command_line import PluginOption\nOPTIONS = (PluginOption({}),)\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("distinct")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, timeout=60)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def karenina(site: Path, forking: Any, tmp_path: Path) -> Callable[..., Any]:
    """`karenina("doctor", ...)` in a process where the package is installed."""

    def ran(*words: str | Path, code: int = 0, **environment: str) -> Any:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KARENINA_", "PYTHON"))}
        done = forking.start(*words, folder=tmp_path, environment={**kept, "PYTHONPATH": str(site), **environment})
        assert done.wait() == code, done.stdout + done.stderr
        return done

    return ran


def words_of(folder: Path) -> list[Any]:
    lines = (folder / "results.jsonl").read_text("utf-8").splitlines()
    results = [json.loads(line) for line in lines if "metadata" in json.loads(line)]
    return [result["extensions"]["vocabulary"]["words"] for result in results]


def test_an_option_from_elsewhere_reaches_its_stage(
    karenina: Callable[..., Any],
    write_benchmark: Callable[..., Path],
    write_answers: Callable[..., Path],
    tmp_path: Path,
) -> None:
    path, answers = write_benchmark("q0"), write_answers(q0="The The The")
    typed = ("verify", path, "--answering-interface", "manual", "--manual-traces", answers, "--quiet", "--out")
    karenina(*typed, tmp_path / "all", code=0)
    karenina(*typed, tmp_path / "distinct", "--distinct-words", code=0)
    assert (words_of(tmp_path / "all"), words_of(tmp_path / "distinct")) == ([6], [4])


def test_a_note_from_elsewhere_is_in_the_plan_and_kept_with_the_run(
    karenina: Callable[..., Any], write_benchmark: Callable[..., Path], write_answers: Callable[..., Path]
) -> None:
    note = "The and the are two words"
    path, answers = write_benchmark("q0"), write_answers(q0="The the")
    config = path.with_name("karenina.toml")
    config.write_text("[plugins.vocabulary]\ndistinct = true\n", "utf-8")
    assert note in karenina("plan", path, "--config", config).stdout
    assert note not in karenina("plan", path).stdout
    typed = ("verify", path, "--answering-interface", "manual", "--manual-traces", answers, "--distinct-words", "--out")
    assert note in karenina(*typed, path.with_name("run")).stdout


def test_an_option_from_elsewhere_is_listed_where_it_belongs(karenina: Callable[..., Any]) -> None:
    assert "--distinct-words  " in karenina("verify", "--help").stdout
    assert "--manual-traces FILE" in karenina("verify", "--help").stdout
    later = karenina("resume", "--help").stdout
    assert "--manual-traces FILE" in later
    assert "--distinct-words" not in later
    assert "--record" not in later


def test_an_option_of_a_plugin_that_does_not_run_is_refused(
    karenina: Callable[..., Any], write_benchmark: Callable[..., Path]
) -> None:
    ran = karenina("verify", write_benchmark("q0"), "--distinct-words", code=1, KARENINA_DISABLE="vocabulary")
    assert "--distinct-words: the plugin vocabulary is blocked" in ran.stderr


def test_doctor_has_the_section_from_elsewhere(karenina: Callable[..., Any]) -> None:
    document = json.loads(karenina("doctor", "--json").stdout)
    assert document["vocabulary"] == [{"unit": "word", "distinct": False}]
    assert {"embedders", "search_tools", "template_runtimes", "tool_servers"} <= document.keys()
    lines = [line.split() for line in karenina("doctor").stdout.splitlines()]
    assert ["Counted"] in lines
    assert ["word", "False"] in lines


def test_an_option_that_is_there_already_is_not_taken(run: Run, install: Files) -> None:
    source = OPTION.format("'--quiet', 'Another one.', 'quiet', bool")
    install("karenina-loud", {"loud": "loud_options:OPTIONS"}, group=GROUP, loud_options=source)
    result = run("verify", "--help")
    assert result.exit_code == 0
    assert "--quiet of karenina-loud already exists" in result.stderr
    assert "Another one." not in result.stdout


def test_options_that_cannot_be_imported_stop_nothing(run: Run, install: Files) -> None:
    install("karenina-bad", {"bad": "bad_options:OPTIONS"}, group=GROUP, bad_options="raise SystemExit(3)")
    result = run("verify", "--help")
    assert (result.exit_code, "--record FILE" in result.stdout) == (0, True)
    assert "the options 'bad' of karenina-bad cannot be imported" in result.stderr


def test_a_section_that_fails_is_a_problem_and_the_others_are_shown(run: Run, install: Files) -> None:
    source = "def examine(app):\n    return 1 / 0\n"
    install("karenina-zero", {"zero": "zero_section:examine"}, group="karenina.doctor", zero_section=source)
    result = run("doctor", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["usable"]) == (1, False)
    assert any("section 'zero' of karenina-zero failed: ZeroDivisionError" in what for what in document["problems"])
    assert document["template_runtimes"]


def test_a_section_about_a_run_is_shown_beside_the_journal_s(run: Run, install: Files, tmp_path: Path) -> None:
    async def work() -> None:
        await Journal.open(tmp_path / "here", run_id="r").aclose()

    (tmp_path / "here").mkdir()
    asyncio.run(work())
    source = (
        "from karenina_core.plugin.command_line import Section\n"
        "def examine(folder, *, replace):\n"
        "    return Section({'folder': folder.name, 'sound': 7}, before=[f'Looked at {folder.name}'])\n"
    )
    install("karenina-looks", {"looks": "looks_at:examine"}, group="karenina.doctor.run", looks_at=source)
    document = json.loads(run("doctor", str(tmp_path / "here"), "--json").stdout)
    assert (document["folder"], document["sound"]) == ("here", True)
    assert "Looked at here" in run("doctor", str(tmp_path / "here")).stdout


def test_what_packages_find_in_a_benchmark_is_shown_and_fails_a_strict_check(
    run: Run, install: Files, write_benchmark: Callable[..., Path]
) -> None:
    source = (
        "from karenina_core.plugin.command_line import Section\n"
        "def look(app, benchmark, ids, policy):\n"
        "    found = {'long': [name for name in ids if len(benchmark.question(name).question) > 3], 'policy': policy}\n"
        "    return Section(found, 'Long questions', ('question',), [[name] for name in found['long']], usable=False)\n"
        "def fail(app, benchmark, ids, policy):\n"
        "    return 1 / 0\n"
    )
    points = {"long": "long_questions:look", "zero": "long_questions:fail"}
    install("karenina-long", points, group="karenina.validate", long_questions=source)
    path = write_benchmark("q0", "q1")
    shown = run("benchmark", "validate", path, "--questions", "q1", "--json")
    document = json.loads(shown.stdout)
    assert (shown.exit_code, document["long"], document["policy"]) == (0, ["q1"], "sandbox")
    assert "Error: the section 'zero' of karenina-long failed: ZeroDivisionError" in shown.stderr
    strict = run("benchmark", "validate", path, "--strict")
    assert strict.exit_code == 4
    assert "Long questions" in strict.stdout
