"""`karenina demo` shows the same thing everywhere, needs nothing, and trusts nothing but its own file."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import karenina_demo
from karenina_demo.bundle import ADDRESS, ANSWERING, BENCHMARK, CALLS, FEATURES, JUDGE

Run = Callable[..., subprocess.CompletedProcess[str]]
Demo = tuple[Path, subprocess.CompletedProcess[str]]
MARKED = re.compile(r"<!-- demo:begin -->\n+```\w*[^\n]*\n(.*?)```\n+<!-- demo:end -->", re.DOTALL)
MEDDLER = """
from karenina_core import hookimpl
from karenina_core.prompts import AdapterInstruction

@hookimpl
def karenina_register_instructions(registry):
    registry.add(lambda task, interface, context: AdapterInstruction(system_addition="Answer in rhymes."))
"""


def _comparable(text: str) -> str:
    """Without what differs from run to run and from machine to machine."""
    text = re.sub(r"karenina-runs/demo-(?:\w+|\.\.\.)", "karenina-runs/demo-TIME", text)
    text = re.sub(r"\S+/karenina_demo/data/", ".../karenina_demo/data/", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _copy_of_the_package(folder: Path) -> Path:
    """The folder for PYTHONPATH."""
    source = Path(karenina_demo.__file__).parent
    shutil.copytree(source, folder / "karenina_demo", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_it_prints_what_is_documented(demo: Demo, project: Path) -> None:
    folder, ran = demo
    assert (ran.returncode, "NETWORK" in ran.stderr) == (0, False), ran.stderr
    expected = (project / "tests" / "data" / "output.txt").read_text("utf-8")
    assert _comparable(ran.stdout) == _comparable(expected)
    readme = (project.parents[1] / "README.md").read_text("utf-8")
    for shown in MARKED.findall(readme):
        assert _comparable(ran.stdout) == _comparable(shown)
    (directory,) = (folder / "karenina-runs").iterdir()
    assert str(directory.relative_to(folder)) in ran.stdout
    assert "38/38 items" in ran.stderr
    assert json.loads((directory / "manifest.json").read_text("utf-8"))["status"] == "completed"


def test_the_network_guard_of_these_tests_works(karenina: Run, site: Callable[..., Path]) -> None:
    source = "import socket\nsocket.getaddrinfo('models.invalid', 443)"
    ran = karenina("plugins", PYTHONPATH=site("caller", {"caller": "caller"}, caller=source))
    assert ran.returncode == 86
    assert "NETWORK socket.getaddrinfo" in ran.stderr


def test_the_item_that_it_points_at_is_explained_and_quiet_says_nothing_on_stderr(karenina: Run) -> None:
    quiet = karenina("demo", "--quiet", "--out", "a b")
    assert quiet.stderr == ""
    lines = quiet.stdout.splitlines()
    shown = next(line for line in lines if "karenina show" in line)
    ran = karenina(*shlex.split(shown)[1:])
    assert ran.returncode == 0
    answer = ran.stdout.partition("Answer of")[2].partition("Outcome:")[0]
    assert "C797S" in answer
    assert re.search(r'"C797S" +"T790M" +wrong', ran.stdout)


def test_verify_replays_the_recording_to_the_same_document(karenina: Run) -> None:
    """The demo is nothing but a run; its file and its recording serve `karenina verify` too."""
    demo = karenina("demo", "--json", "--quiet", "--out", "demo")
    assert demo.returncode == 0
    assert demo.stderr == ""
    addresses = [
        word
        for role in ("answering", "parsing")
        for word in (f"--{role}-interface", "openai_endpoint", f"--{role}-base-url", ADDRESS)
    ]
    models = [word for name in ANSWERING for word in ("--answering-model", name)] + ["--parsing-model", JUDGE]
    replay = ("--set", f"plugins.replay.replay={CALLS}", "--set", "run.deep_judgment_rubric_mode=use_checkpoint")
    features = [word for feature in FEATURES for word in ("--with", feature)]
    verify = karenina(
        "verify", BENCHMARK, "--trust", *models, *addresses, *features, *replay, "--json", "--out", "verify"
    )
    assert verify.returncode == 3, verify.stderr  # for verify, an error is an error
    assert _by_model(demo.stdout, "demo") == _by_model(verify.stdout, "verify")


def _by_model(text: str, run_dir: str) -> Mapping[str, Any]:
    document = json.loads(text)
    assert document.pop("run_dir") == run_dir
    return {**document, "models": {row["answering"]: row for row in document["models"]}}


def test_the_live_line_is_one_that_verify_understands(demo: Demo, karenina: Run) -> None:
    lines = demo[1].stdout.splitlines()
    words = shlex.split(next(line for line in lines if "karenina verify" in line and "--trust" in line))
    assert Path(words[2]) == BENCHMARK
    ran = karenina(*words[1:], "--questions", "no-such-question")
    assert ran.returncode == 1
    assert "no-such-question" in ran.stderr
    assert "NETWORK" not in ran.stderr


def test_it_trusts_only_the_file_that_it_came_with(karenina: Run, tmp_path: Path) -> None:
    folder = _copy_of_the_package(tmp_path / "changed")
    file = folder / "karenina_demo" / "data" / "demo.jsonld"
    assert karenina("demo", "--quiet", PYTHONPATH=folder).returncode == 0  # a copy is as good as the original
    shutil.rmtree(tmp_path / "karenina-runs")
    data = bytearray(file.read_bytes())
    place = data.index(b"self.correct = ")
    data[place + len(b"self.correct ")] ^= 1
    file.write_bytes(data)
    ran = karenina("demo", "--quiet", PYTHONPATH=folder)
    assert ran.returncode == 1
    assert "has been changed" in ran.stderr
    assert "install karenina-demo again" in ran.stderr
    assert not (tmp_path / "karenina-runs").exists()


def test_an_error_that_was_not_recorded_is_not_passed_over(karenina: Run, tmp_path: Path) -> None:
    folder = _copy_of_the_package(tmp_path / "changed")
    file = folder / "karenina_demo" / "data" / "demo-calls.jsonl"
    file.write_text("".join(file.read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")
    ran = karenina("demo", "--quiet", PYTHONPATH=folder)
    assert ran.returncode == 3
    assert "1 item ended in an error that was not recorded" in ran.stderr
    assert "install the same version" in ran.stderr


def test_neither_the_environment_nor_other_plugins_change_it(karenina: Run, site: Callable[..., Path]) -> None:
    folder = site("meddler", {"meddler": "meddler"}, meddler=MEDDLER)
    ran = karenina("demo", "--json", PYTHONPATH=folder, KARENINA_REPLICATE_COUNT=3, KARENINA_CONCURRENCY=1)
    assert ran.returncode == 0, ran.stderr
    assert sum(json.loads(ran.stdout)["outcomes"].values()) == 38


def test_without_the_recording_no_model_is_asked(karenina: Run, tmp_path: Path) -> None:
    ran = karenina("demo", KARENINA_DISABLE="replay")
    assert ran.returncode == 1
    assert "needs the plugin replay" in ran.stderr
    assert "KARENINA_DISABLE" in ran.stderr
    assert not (tmp_path / "karenina-runs").exists()


def test_a_folder_that_holds_something_is_refused(karenina: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("kept")
    ran = karenina("demo", "--out", "mine")
    assert ran.returncode == 74
    assert "--out DIR" in ran.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
