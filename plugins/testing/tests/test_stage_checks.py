"""Stages that keep their promises pass every check; a planted fault is found by its own check, with the line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from karenina_testing.checks import BrokenPromise, Check
from karenina_testing.stages.examples import MADE
from karenina_testing.stages.inputs import StageInput
from karenina_testing.strategies.values import ODD_TEXTS

from karenina_core import ArtifactKeys, Key, Question, Stage, VerificationConfig, VerificationContext
from karenina_core.testing import check_stage, run_checks, stage_checks

FEW = 6
"""Examples for what does not depend on chance: odd texts and empty artifacts are among the items of any number."""


def failures(checks: list[Check], *names: str) -> dict[str, str]:
    """`{check: message}` of those that fail, of all or of these only."""
    found = {}
    for check in checks if not names else [check for check in checks if check.name in names]:
        try:
            check.run()
        except BrokenPromise as broken:
            found[check.name] = str(broken)
    return found


@pytest.mark.parametrize("name", ["undeclared_write", "heavy_import"])
def test_one_fault_is_one_failure(name: str, planted: Callable[[str], ModuleType]) -> None:
    """Faults that leave the rest of the stage intact are not reported under other names."""
    assert len(failures(stage_checks(planted(name).Planted, max_examples=FEW))) == 1


def test_the_simplest_item_is_shown(planted: Callable[[str], ModuleType]) -> None:
    message = failures(stage_checks(planted("crashes").Planted, max_examples=FEW), "odd_input")["odd_input"]
    assert "execute raised IndexError" in message
    assert "with artifacts={'raw_llm_response': ''}, result_fields={'raw_llm_response': ''}\n" in message


def test_what_to_add_is_said(planted: Callable[[str], ModuleType]) -> None:
    message = failures(stage_checks(planted("undeclared_read").Planted, max_examples=FEW), "declared_reads")[
        "declared_reads"
    ]
    assert "add it to Planted.reads" in message


def test_check_stage_raises_everything_at_once(planted: Callable[[str], ModuleType]) -> None:
    with pytest.raises(ExceptionGroup, match=r"stage Planted: 1 of 16 checks failed") as failed:
        check_stage(planted("writes_verdict").Planted, max_examples=FEW)
    assert any("breaks verdict_recorded" in str(error) for error in failed.value.exceptions)


def test_an_expected_failure_is_none_and_an_unexpected_success_is_one(planted: Callable[[str], ModuleType]) -> None:
    options: dict[str, Any] = {"max_examples": FEW}
    check_stage(planted("mutates_input").Planted, expected_failures={"inputs_untouched": "known"}, **options)
    options["expected_failures"] = {"inputs_untouched": "", "repeatable": "flaky"}
    checks = stage_checks(planted("mutates_input").Planted, **options)
    with pytest.raises(ExceptionGroup) as failed:
        run_checks([check for check in checks if check.name in options["expected_failures"]])
    assert [str(error) for error in failed.value.exceptions] == [
        "stage Planted keeps repeatable, which was expected to fail (flaky); remove 'repeatable' from expected_failures"
    ]
    with pytest.raises(ValueError, match="did you mean 'repeatable'"):
        stage_checks(planted("crashes").Planted, expected_failures={"repeatible": "?"})


class Doubled(Stage):
    """Needs an artifact of another package in a form of its own."""

    requires = (Key("other.pairs", object),)
    produces = (Key("planted.sum", int),)

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact("planted.sum", sum(a * b for a, b in context.get_artifact("other.pairs")))


def test_strategies_say_what_an_artifact_looks_like() -> None:
    assert failures(stage_checks(Doubled, max_examples=FEW), "odd_input")
    pairs = st.lists(st.tuples(st.integers(), st.integers()), max_size=3)
    check_stage(Doubled, strategies={"other.pairs": pairs}, max_examples=FEW)
    with pytest.raises(ValueError, match=r"does not read 'other\.pears'.*did you mean 'other\.pairs'"):
        stage_checks(Doubled, strategies={"other.pears": pairs})


class Rare(Stage):
    """Runs for one item in a few, and breaks a promise then."""

    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (Key("planted.rare", bool),)

    def should_run(self, context: VerificationContext) -> bool:
        return len(context.question.keywords) > 0

    def execute(self, context: VerificationContext) -> None:
        raise OSError("too rare")


def test_where_few_examples_do_not_reach_a_stage_more_are_drawn() -> None:
    found = failures(stage_checks(Rare, max_examples=1), "reached", "odd_input")
    assert found.keys() == {"odd_input"}
    assert "too rare" in found["odd_input"]


class Configured(Stage):
    """Depends on what contexts are made with."""

    produces = (Key("planted.seen", str),)

    def execute(self, context: VerificationContext) -> None:
        assert context.config.request_timeout == 7.0
        context.set_artifact("planted.seen", context.run_name)


def test_contexts_can_be_made_to_suit_a_stage() -> None:
    def made(given: StageInput) -> VerificationContext:
        return given.context(run_name="named")

    assert failures(stage_checks(Configured, max_examples=FEW), "odd_input")
    config = VerificationConfig(request_timeout=7.0)
    check_stage(Configured, config=config, make_context=made, max_examples=FEW)
    with pytest.raises(TypeError, match=r"given\.context"):
        stage_checks(Configured, make_context=lambda given: VerificationContext(question=given.question))[3].run()


class Settled(Stage):
    """A stage with settings: the kit is given an instance."""

    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (Key("planted.long", bool),)
    blocking = True

    def __init__(self, most: int) -> None:
        self.most = most

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact("planted.long", len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)) > self.most)


def test_an_instance_can_be_checked_and_may_block() -> None:
    check_stage(Settled(10), max_examples=FEW)
    with pytest.raises(TypeError, match="Settled cannot be made without arguments"):
        stage_checks(Settled)


def test_a_program_is_not_run_again_to_see_what_it_imports(tmp_path: Path, stranger_file: Path) -> None:
    program = tmp_path / "program.py"
    ask = (
        "from karenina_core.testing import run_checks, stage_checks\nprint('started')\n"
        "run_checks([check for check in stage_checks(WordCount) if check.name == 'light_import'])\n"
    )
    program.write_text(f"{stranger_file.read_text('utf-8')}\n{ask}", "utf-8")
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (0, "started\n"), ran.stderr


def test_a_strangers_stage_in_three_lines(stranger: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is run a few times for each item: twice, cancelled, after that, and not once for every check."""
    ran = []
    execute = stranger.WordCount.execute
    monkeypatch.setattr(stranger.WordCount, "execute", lambda self, context: ran.append(1) or execute(self, context))
    for check in stage_checks(stranger.WordCount, max_examples=FEW):
        check.run()
    assert FEW < len(ran) <= 4 * (FEW + len(ODD_TEXTS) + 1)


def test_nothing_is_drawn_for_checks_that_draw_nothing(stranger: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(name: str) -> Any:
        raise LookupError(f"{name} are drawn")

    monkeypatch.setattr("karenina_testing.stages.examples._pool", drawn)
    checks = {check.name: check for check in stage_checks(stranger.WordCount)}
    checks["declaration"].prepare()
    checks["declaration"].run()
    with pytest.raises(LookupError, match="questions are drawn"):
        checks["reached"].prepare()


def test_a_strangers_fault_is_named_with_its_line(
    stranger: ModuleType, stranger_file: Path, tmp_path: Path, load: Any
) -> None:
    source = stranger_file.read_text("utf-8")
    faulty = source.replace("requires = (ArtifactKeys.RAW_LLM_RESPONSE,)", "after = ('GenerateAnswer',)")
    twin = tmp_path / "faulty_wordcount.py"
    twin.write_text(faulty, "utf-8")
    line = next(n for n, text in enumerate(faulty.splitlines(), 1) if "get_artifact" in text)
    message = failures(stage_checks(load(twin).WordCount, max_examples=FEW), "declared_reads")["declared_reads"]
    assert f"{twin}:{line}: answer = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)" in message
    assert "add it to WordCount.reads" in message


def test_most_random_questions_have_a_template_to_judge_by() -> None:
    found = []

    @seed(2)  # with which one in twenty had
    @settings(max_examples=60, database=None, deadline=None)
    @given(MADE["questions"])
    def draw(question: Question) -> None:
        found.append(bool(question.template))

    draw()
    assert sum(found) > len(found) / 3
