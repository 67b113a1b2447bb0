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
from attrs import frozen
from karenina_core import hookimpl
from karenina_core.templates import VerificationPrimitive

@frozen
class Planted(VerificationPrimitive):
    def check(self, extracted, expected):
        {fault}
        return extracted == expected

@hookimpl
def karenina_register_primitives(registry):
    registry.add(Planted)
"""
Site = Callable[..., Mapping[str, str]]


def typed(environment: Mapping[str, str], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`karenina plugins check` in a process of its own."""
    command = [str(Path(sys.executable).with_name("karenina")), "plugins", "check", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


def verdicts(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {verdict["name"]: verdict for verdict in json.loads(ran.stdout)["promises"]}


def test_a_plugin_that_keeps_its_promises(site: Site, tmp_path: Path) -> None:
    ran = typed(site("planted", STAGE.format(fault="pass")), "planted", "--json", "--examples", "9", cwd=tmp_path)
    found = verdicts(ran)
    assert (ran.returncode, json.loads(ran.stdout)["broken"]) == (0, 0)
    assert {"loads", "Counted.repeatable", "Counted.odd_input"} <= found.keys()
    assert all(verdict["kept"] and verdict["promise"] for verdict in found.values())


def test_a_broken_promise_has_input_line_and_remedy(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = site("planted", STAGE.format(fault="1 / words"))
    ran = typed(environment, "planted", "--json", "-k", "odd_input", cwd=tmp_path)
    verdict = verdicts(ran)["Counted.odd_input"]
    assert ran.returncode == 1
    assert "ZeroDivisionError" in verdict["problem"]
    assert "'raw_llm_response': ''" in verdict["input"]
    assert "karenina_planted.py:11: 1 / words" in verdict["line"]
    assert "mark_error" in verdict["change"]
    request = Request(name="planted", text="odd_input", seed=7, examples=9)
    print_verdicts(request, [Verdict(**verdict)], as_json=False)
    text = capsys.readouterr().out
    assert "BROKEN" in text
    assert "karenina plugins check planted -k Counted.odd_input --seed 7 --examples 9" in text


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("while not words: time.sleep(0.01)", "it took longer than 8 s"),
        ("words or os._exit(3)", "it ended the process"),
    ],
)
def test_a_check_that_hangs_or_crashes_costs_no_other(fault: str, said: str, site: Site, tmp_path: Path) -> None:
    words = ("planted", "--json", "--timeout", "8", "--examples", "5", "-k", "in")
    ran = typed(site("planted", STAGE.format(fault=fault)), *words, cwd=tmp_path)
    found = verdicts(ran)
    assert ran.returncode == 1
    assert said in found["Counted.odd_input"]["problem"]
    assert found["kinds"]["kept"]
    assert found["Counted.included_when"]["kept"]
    if "longer" in said:
        assert "karenina_planted.py:11" in found["Counted.odd_input"]["line"]


def test_a_plugin_that_hangs_when_it_is_imported(site: Site, tmp_path: Path) -> None:
    environment = site("planted", "import time\nwhile True: time.sleep(0.01)\n")
    ran = typed(environment, "planted", "--json", "--timeout", "2", cwd=tmp_path)
    assert "it took longer than 12 s" in verdicts(ran)["loads"]["problem"]
    assert "karenina_planted.py:2" in verdicts(ran)["loads"]["line"]


def test_a_wrong_group_of_entry_points_is_named(site: Site, tmp_path: Path) -> None:
    ran = typed(site("planted", STAGE.format(fault="pass"), "karenina.plugin"), "planted", cwd=tmp_path)
    assert ran.returncode == 2
    assert "in the group 'karenina.plugin' of entry points, which nothing reads" in ran.stderr
    assert "did you mean 'karenina.plugins'?" in ran.stderr


def test_the_doctor_names_a_wrong_group_of_entry_points(site: Site, tmp_path: Path) -> None:
    environment = site("planted", STAGE.format(fault="pass"), "karenina.plugin")
    ran = subprocess.run(
        [str(Path(sys.executable).with_name("karenina")), "doctor", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (
        "karenina-planted declares 'planted' in the group 'karenina.plugin' of entry points, which nothing reads "
        "(did you mean 'karenina.plugins'?); correct its pyproject.toml and install it again"
    ) in json.loads(ran.stdout)["problems"]


def test_a_misspelt_name_is_wrong_usage(site: Site, tmp_path: Path) -> None:
    ran = typed(site("planted", STAGE.format(fault="pass")), "plantde", cwd=tmp_path)
    assert ran.returncode == 2
    assert "no installed plugin or command is called 'plantde' (did you mean 'planted'?)" in ran.stderr


def test_declared_options_are_used(site: Site, tmp_path: Path) -> None:
    environment = site("planted", STAGE.format(fault="time.time() % 1 and print()"), "karenina.plugins")
    info = tmp_path / "site" / "karenina_planted-1.0.dist-info" / "entry_points.txt"
    declared = "\n[karenina.checks]\nplanted = karenina_planted_checks:options\n"
    info.write_text(info.read_text("utf-8") + declared, "utf-8")
    options = "def options(): return {'Counted': {'expected_failures': {'odd_input': 'to see'}}}\n"
    (tmp_path / "site" / "karenina_planted_checks.py").write_text(options, "utf-8")
    ran = typed(environment, "planted", "--json", "-k", "odd_input", cwd=tmp_path)
    assert "remove 'Counted.odd_input' from expected_failures" in verdicts(ran)["Counted.odd_input"]["change"]


@pytest.mark.parametrize(
    ("source", "seen", "check"),
    [(PRIMITIVE, "ascii(extracted)", "Planted.errors"), (STAGE, "ascii(words)", "Counted.typed_output")],
    ids=["a primitive", "items of a stage"],
)
def test_seeds_give_other_examples_and_the_same_ones_again(
    source: str, seen: str, check: str, site: Site, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    environment = site("planted", source.format(fault=f"open({str(notes)!r}, 'a').write({seen} + ' ')"))
    drawn = []
    for seed in ("1", "2", "1"):
        notes.write_text("", "utf-8")
        ran = typed(environment, "planted", "-k", check, "--seed", seed, "--examples", "9", cwd=tmp_path)
        assert f"0 broken (--seed {seed}, --examples 9)" in ran.stdout
        drawn.append(notes.read_text("utf-8"))
    assert drawn[0] == drawn[2] != drawn[1]
