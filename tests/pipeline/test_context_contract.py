"""What a stage may read and write: what it declared, once, of the declared type; else the line to add is named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from karenina_judging.services import LOAD_TEMPLATE

from karenina_core import ArtifactKeys, Key, Question, Stage, VerificationConfig, VerificationContext
from karenina_core.errors import ContractError
from karenina_core.pipeline.context import MAX_WARNINGS
from karenina_core.values.question import TemplateSource
from karenina_core.values.result import TrailEntry

Make = Callable[..., VerificationContext]
NUMBER = Key("sample.number", int)
TEXT = Key("sample.text", str)


class Sample(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    reads = (ArtifactKeys.MCP_ENABLED,)
    produces = (NUMBER, "sample.plain")
    result_fields = ("judge_repairs", "sample.number")

    def execute(self, context: object) -> None:
        """Does nothing."""


@pytest.fixture
def inside(context: Make) -> Any:
    about = context()
    about.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, "BCL2")
    about.set_artifact(TEXT, "not for everyone")
    with about.acting(Sample()):
        yield about


def test_declared_keys_are_read(inside: VerificationContext) -> None:
    assert inside.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE) == "BCL2"
    assert inside.get_artifact("raw_llm_response") == "BCL2"
    assert inside.get_artifact(ArtifactKeys.MCP_ENABLED, True) is True
    assert not inside.has_artifact(ArtifactKeys.MCP_ENABLED)


def test_undeclared_reads_name_the_line_to_add(inside: VerificationContext) -> None:
    for read in (inside.get_artifact, inside.has_artifact):
        with pytest.raises(ContractError) as caught:
            read(TEXT)
        assert str(caught.value) == (
            "Sample reads 'sample.text' without declaring it; "
            "add it to Sample.reads (or .requires, where it must exist)"
        )


def test_a_misspelt_key_is_met_with_a_suggestion(inside: VerificationContext) -> None:
    with pytest.raises(ContractError, match=r"did you mean 'raw_llm_response'\?"):
        inside.get_artifact("raw_llm_respons")
    with pytest.raises(ContractError, match=r"did you mean 'sample.number'\?"):
        inside.set_artifact("sample.numbr", 1)


def test_declared_keys_are_written_once(inside: VerificationContext) -> None:
    inside.set_artifact(NUMBER, 1)
    assert inside.get_artifact(NUMBER) == 1
    with pytest.raises(ContractError, match=r"Sample writes 'sample\.number', which already exists"):
        inside.set_artifact(NUMBER, 2)
    assert inside.get_artifact(NUMBER) == 1


def test_another_stage_cannot_write_it_again(context: Make) -> None:
    about = context()
    for times in range(2):
        with about.acting(Sample()):
            if times == 0:
                about.set_artifact(NUMBER, 1)
            else:
                with pytest.raises(ContractError, match="written once"):
                    about.set_artifact(NUMBER, 1)


def test_undeclared_writes_name_the_line_to_add(inside: VerificationContext) -> None:
    with pytest.raises(ContractError, match=r"Sample writes 'sample\.text' .*; add it to Sample\.produces"):
        inside.set_artifact(TEXT, "x")
    with pytest.raises(ContractError, match=r"'judge_channel' .*add it to Sample\.result_fields"):
        inside.set_result_field("judge_channel", "text")


def test_values_have_the_declared_type_whatever_the_key_is_given_as(inside: VerificationContext) -> None:
    for key in (NUMBER, "sample.number"):
        with pytest.raises(ContractError, match=r"'sample\.number' must be int, not str"):
            inside.set_artifact(key, "1")
    inside.set_artifact("sample.plain", object())


def test_result_fields_are_set_once_and_read_by_all(inside: VerificationContext) -> None:
    inside.set_result_field("judge_repairs", 2)
    with pytest.raises(ContractError, match="set already"):
        inside.set_result_field("judge_repairs", 3)
    other: Stage = type("Other", (Stage,), {"execute": lambda self, context: None})()
    with inside.acting(other):
        assert inside.get_result_field("judge_repairs") == 2
        assert inside.get_result_field("judge_channel", "none") == "none"


def test_both_at_once_needs_both_declarations(inside: VerificationContext) -> None:
    inside.set_artifact_and_result(NUMBER, 5)
    assert (inside.get_artifact(NUMBER), inside.get_result_field("sample.number")) == (5, 5)
    with pytest.raises(ContractError, match="result_fields"):
        inside.set_artifact_and_result("sample.plain", 1)


def test_a_final_stage_sees_everything(context: Make) -> None:
    about = context()
    about.set_artifact(TEXT, "seen")
    final: Stage = type("Final", (Stage,), {"final": True, "execute": lambda self, context: None})()
    with about.acting(final):
        assert about.get_artifact(TEXT) == "seen"
        with pytest.raises(ContractError, match=r"Final\.produces"):
            about.set_artifact(NUMBER, 1)


def test_outside_of_stages_everything_may_be_prepared(context: Make) -> None:
    about = context()
    about.set_artifact(NUMBER, 1)
    about.set_result_field("judge_channel", "text")
    assert about.get_artifact(NUMBER) == 1


def test_the_first_error_stays_the_cause(context: Make) -> None:
    about = context()
    assert about.completed_without_errors
    about.mark_error("first", kind="timeout", stage="A")
    about.mark_error("second", kind="judge", stage="B")
    assert (about.error, about.error_kind, about.error_stage) == ("first", "timeout", "A")
    assert about.warnings == ["second"]
    assert not about.completed_without_errors
    assert str(about.outcome) == "error(timeout)"


def test_an_error_is_attributed_to_the_running_stage(context: Make) -> None:
    about = context()
    with about.acting(Sample()):
        about.mark_error("gone wrong")
    assert about.error_stage == "Sample"
    skip = Sample().should_run(about)
    assert not skip
    assert skip.reason == "an error was set by Sample"  # type: ignore[union-attr]


def test_warnings_are_bounded(context: Make) -> None:
    about = context()
    for number in range(2 * MAX_WARNINGS):
        about.warn(str(number))
    assert len(about.warnings) == MAX_WARNINGS


@pytest.mark.parametrize("what", ["app", "answering", "parsing", "answering_model", "parsing_model"])
def test_what_a_context_was_made_without_is_named(context: Make, what: str) -> None:
    with pytest.raises(ContractError, match=r"this context was made without an? "):
        getattr(context(), what)


def test_the_names_of_the_published_context(context: Make) -> None:
    about = context(mode="rubric_only")
    assert about.question_text == "What is the putative target of venetoclax?"
    assert about.question_id == about.question.id
    assert (about.template_id, about.template_code, about.replicate) == ("no_template", None, 1)
    assert about.cached_answer_data is None
    assert not about.evaluates_template
    assert about.system_prompt("answering")
    assert about.system_prompt("parsing") is None


def test_a_service_that_the_run_does_not_offer_is_named(context: Make) -> None:
    assert context().service(LOAD_TEMPLATE, None) is None
    with pytest.raises(ContractError, match="template runtimes"):
        asyncio.run(context().service(LOAD_TEMPLATE)(TemplateSource("{}")))


class Reviser(Stage):
    revises = ("judge_repairs", "sample.number")

    def execute(self, context: object) -> None:
        """Does nothing."""


def test_a_field_that_was_set_is_revised_by_a_stage_that_declares_it(context: Make) -> None:
    about = context()
    about.set_result_field("judge_repairs", 1)
    with about.acting(Reviser()):
        about.revise_result_field("judge_repairs", 2)
        about.revise_result_field("judge_repairs", 3)
        with pytest.raises(ContractError, match=r"Reviser revises 'sample\.number', which no stage has set"):
            about.revise_result_field("sample.number", 4)
        with pytest.raises(ContractError, match=r"add it to Reviser\.revises"):
            about.revise_result_field("judge_channel", "text")
        with pytest.raises(ContractError, match="'judge_repairs' must be int, not str"):
            about.revise_result_field("judge_repairs", "many")
        with pytest.raises(ContractError, match=r"add it to Reviser\.result_fields"):
            about.set_result_field("judge_repairs", 4)
        with pytest.raises(ContractError, match="a view of the ledger"):
            about.revise_result_field("verify_result", True)
    assert about.get_result_field("judge_repairs") == 3


def test_setting_and_revising_the_same_field_is_refused() -> None:
    with pytest.raises(ContractError, match="Both both sets and revises 'judge_repairs'"):
        type(
            "Both",
            (Stage,),
            {"result_fields": ("judge_repairs",), "revises": ("judge_repairs",), "execute": lambda self, context: None},
        )


def test_switches_and_time_can_be_read_from_the_context() -> None:
    config = VerificationConfig(
        abstention_enabled=True, embedding_check_enabled=True, agentic_rubric_strategy="shared", agentic_parsing=True
    )
    context = VerificationContext(question=Question(question="?"), config=config)
    assert (context.abstention_enabled, context.embedding_check_enabled, context.agentic_parsing) == (True, True, True)
    assert (context.sufficiency_enabled, context.deep_judgment_enabled) == (False, False)
    assert context.agentic_rubric_strategy == "shared"
    assert context.execution_time == 0.0
    context.trail += [TrailEntry("A", "ran", seconds=1.5), TrailEntry("B", "failed", seconds=0.25)]
    assert context.execution_time == 1.75
