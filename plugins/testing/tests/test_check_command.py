"""`karenina plugins check`: verdicts on installed plugins, also on those that hang and crash."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from karenina_testing.authoring.verdict_pages import print_verdicts
from karenina_testing.authoring.verdicts import Request, Verdict

STAGE = """\
import os, sys, time
from karenina_core import ArtifactKeys, Key, Stage, hookimpl

class Counted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (Key("planted.words", int),)

    def execute(self, context):
        words = len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).split())
        print("counting")
        {fault}
        context.set_artifact("planted.words", words)

@hookimpl
def karenina_register_stages(registry):
    registry.add(Counted)
"""
PRIMITIVE = """\
import os, time
from attrs import frozen
from karenina_core import hookimpl
from karenina_core.templates import VerificationPrimitive

@frozen
class Planted(VerificationPrimitive):
    def check(self, extracted, expected):
        {fault}
        return extracted == expected

@frozen
class Hangs(VerificationPrimitive):
    def check(self, extracted, expected):
        return extracted == expected

    def check_ground_truth(self, expected):
        while True: time.sleep(0.01)

@frozen
class Crashes(Hangs):
    def check_ground_truth(self, expected):
        os._exit(3)

@hookimpl
def karenina_register_primitives(registry):
    for kind in (Crashes, Hangs, Planted):
        registry.add(kind)
"""
"""Less has to be drawn for its checks than for those of a stage."""
Site = Callable[..., Mapping[str, str]]
Ran = subprocess.CompletedProcess[str]
Typed = Callable[..., Ran]


@pytest.fixture
def typed(forking: Any, tmp_path: Path) -> Typed:
    """`typed(environment, "planted", ...)`: `karenina plugins check` in a process of its own."""

    def done(environment: Mapping[str, str], *words: str, command: tuple[str, ...] = ("plugins", "check")) -> Ran:
        started = forking.start(*command, *words, folder=tmp_path, environment=environment)
        return subprocess.CompletedProcess(words, started.wait(), started.stdout, started.stderr)

    return done


def verdicts(ran: Ran) -> dict[str, dict[str, Any]]:
    return {verdict["name"]: verdict for verdict in json.loads(ran.stdout)["promises"]}


def test_a_plugin_that_keeps_its_promises(site: Site, tmp_path: Path) -> None:
    """By the console script."""
    command = [str(Path(sys.executable).with_name("karenina")), "plugins", "check"]
    words = ("planted", "--json", "--examples", "5")
    environment = site("planted", STAGE.format(fault="pass"))
    ran = subprocess.run([*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    found = verdicts(ran)
    assert (ran.returncode, json.loads(ran.stdout)["broken"]) == (0, 0)
    assert {"loads", "Counted.repeatable", "Counted.odd_input"} <= found.keys()
    assert all(verdict["kept"] and verdict["promise"] for verdict in found.values())


def test_a_broken_promise_has_input_line_and_remedy(
    site: Site, typed: Typed, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = site("planted", PRIMITIVE.format(fault="1 / len(str(extracted))"))
    ran = typed(environment, "planted", "--json", "-k", "Planted.errors")
    verdict = verdicts(ran)["Planted.errors"]
    assert ran.returncode == 1
    assert "ZeroDivisionError" in verdict["problem"]
    assert "extracted=''" in verdict["input"]
    assert "karenina_planted.py:9: 1 / len(str(extracted))" in verdict["line"]
    assert "TypeError" in verdict["change"]
    request = Request(name="planted", text="errors", seed=7, examples=9)
    print_verdicts(request, [Verdict(**verdict)], as_json=False)
    text = capsys.readouterr().out
    assert "BROKEN" in text
    assert "karenina plugins check planted -k Planted.errors --seed 7 --examples 9" in text


def test_checks_that_hang_or_crash_cost_no_other(site: Site, typed: Typed) -> None:
    words = ("planted", "--json", "--timeout", "20", "--examples", "5", "-k", "th")
    ran = typed(site("planted", PRIMITIVE.format(fault="pass")), *words)
    found = verdicts(ran)
    assert ran.returncode == 1
    names = ["beside_others", "Crashes.ground_truth", "Hangs.ground_truth", "Planted.ground_truth"]
    assert [(name, verdict["kept"]) for name, verdict in found.items()] == list(
        zip(names, (True, False, False, True), strict=True)
    )
    assert "it took longer than 20 s" in found["Hangs.ground_truth"]["problem"]
    assert "karenina_planted.py:18" in found["Hangs.ground_truth"]["line"]
    assert "it ended the process" in found["Crashes.ground_truth"]["problem"]


def test_a_plugin_that_hangs_when_it_is_imported(site: Site, typed: Typed) -> None:
    environment = site("planted", "import time\nwhile True: time.sleep(0.01)\n")
    ran = typed(environment, "planted", "--json", "--timeout", "2")
    assert "it took longer than 12 s" in verdicts(ran)["loads"]["problem"]
    assert "karenina_planted.py:2" in verdicts(ran)["loads"]["line"]


def test_a_wrong_group_of_entry_points_is_named_here_and_by_the_doctor(site: Site, typed: Typed) -> None:
    environment = site("planted", STAGE.format(fault="pass"), "karenina.plugin")
    ran = typed(environment, "planted")
    assert ran.returncode == 2
    assert "in the group 'karenina.plugin' of entry points, which nothing reads" in ran.stderr
    assert "did you mean 'karenina.plugins'?" in ran.stderr
    ran = typed(environment, "--json", command=("doctor",))
    assert (
        "karenina-planted declares 'planted' in the group 'karenina.plugin' of entry points, which nothing reads "
        "(did you mean 'karenina.plugins'?); correct its pyproject.toml and install it again"
    ) in json.loads(ran.stdout)["problems"]


def test_a_misspelt_name_is_wrong_usage(site: Site, typed: Typed) -> None:
    ran = typed(site("planted", STAGE.format(fault="pass")), "plantde")
    assert ran.returncode == 2
    assert "no installed plugin or command is called 'plantde' (did you mean 'planted'?)" in ran.stderr


def test_declared_options_are_used(site: Site, typed: Typed, tmp_path: Path) -> None:
    environment = site("planted", PRIMITIVE.format(fault="pass"))
    info = tmp_path / "site" / "karenina_planted-1.0.dist-info" / "entry_points.txt"
    declared = "\n[karenina.checks]\nplanted = karenina_planted_checks:options\n"
    info.write_text(info.read_text("utf-8") + declared, "utf-8")
    options = "def options(): return {'Planted': {'expected_failures': {'errors': 'to see'}}}\n"
    (tmp_path / "site" / "karenina_planted_checks.py").write_text(options, "utf-8")
    ran = typed(environment, "planted", "--json", "-k", "Planted.errors")
    assert "remove 'Planted.errors' from expected_failures" in verdicts(ran)["Planted.errors"]["change"]


def test_seeds_give_other_examples_and_the_same_ones_again(site: Site, typed: Typed, tmp_path: Path) -> None:
    """Of a primitive, and of the items of a stage."""
    notes = {"primitive": tmp_path / "values", "stage": tmp_path / "items"}
    seen = {"primitive": "ascii(extracted)", "stage": "ascii(words)"}
    faults = {kind: f"open({str(notes[kind])!r}, 'a').write({seen[kind]} + ' ')" for kind in notes}
    source = STAGE.format(fault=faults["stage"]) + PRIMITIVE.format(fault=faults["primitive"])
    environment = site("planted", source)
    drawn = []
    for seed in ("1", "2", "1"):
        for file in notes.values():
            file.write_text("", "utf-8")
        ran = typed(environment, "planted", "-k", "ted.repeatable", "--seed", seed, "--examples", "9")
        assert f"2 promises, 0 broken (--seed {seed}, --examples 9)" in ran.stdout
        drawn.append({kind: file.read_text("utf-8") for kind, file in notes.items()})
    assert drawn[0] == drawn[2]
    assert [kind for kind in notes if drawn[0][kind] == drawn[1][kind]] == []
