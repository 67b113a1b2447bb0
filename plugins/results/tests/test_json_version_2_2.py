"""Readers of the export format 2.2 find what they look for where that format has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_results.exporting import export
from karenina_results.formats.json_file import JsonFile
from karenina_runs.config.saved_config import rubric_definition
from karenina_runs.plan.prepare import prepare

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    CallableRubricTrait,
    LLMRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    VerificationConfig,
    VerificationResult,
)
from karenina_core.testing import ScriptedLLM, application

FIELD = {
    "name": "target",
    "type": "str",
    "description": "The protein",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
}
UNDER_TEMPLATE = (
    *("raw_llm_response", "trace_messages", "conversation_context", "answering_mcp_servers", "recursion_limit_reached"),
    *("usage_metadata", "usage_unavailable", "agent_metrics"),
    *("abstention_check_performed", "abstention_detected", "abstention_override_applied", "abstention_reasoning"),
    *("sufficiency_check_performed", "sufficiency_detected", "sufficiency_override_applied", "sufficiency_reasoning"),
)
"""Fields of 2.2's `template` that are not in ours."""
OTHER = ModelConfig(
    interface="openai_endpoint", model_name="other", endpoint_base_url="http://127.0.0.1:9/private-path/v1", id="third"
)
RUBRIC = Rubric(
    llm_traits=[LLMRubricTrait(name="clear", description="Is it clear?", kind="boolean", higher_is_better=True)],
    regex_traits=[RegexRubricTrait(name="cited", pattern=r"\[\d\]")],
    callable_traits=[CallableRubricTrait.from_callable("short", len, kind="score", min_score=0, max_score=9)],
    agentic_traits=[
        AgenticRubricTrait(
            name="checked", description="Is it?", kind="boolean", higher_is_better=True, model_override=OTHER
        )
    ],
)
TRAITS = ("clear", "cited", "short", "checked")


def begun(mode: Any = None, names: Sequence[str] | None = ("cited",)) -> tuple[Benchmark, VerificationConfig]:
    """A benchmark and a configuration with which no model is asked."""
    question = Question(
        id="q",
        question="Which?",
        raw_answer="BCL2",
        answer_template=json.dumps({"fields": [FIELD]}),
        template_language="karenina-template",
    )
    answers = {"q": {"answer": "It is BCL2 [1].", "fields": {"target": "BCL2"}}}
    recorded = ModelConfig(interface="manual", manual_traces=answers)
    config = VerificationConfig(
        answering_models=[recorded],
        parsing_models=[recorded],
        evaluation_mode=mode,
        rubric_trait_names=names,
    )
    return Benchmark.create("b").with_questions([question]).with_rubric(RUBRIC), config


def exported(tmp_path: Path, mode: Any = None) -> tuple[dict[str, Any], list[VerificationResult]]:
    """The document of a run, as `karenina export` writes it, and the results of the run."""
    app = application(installed=True)
    benchmark, config = begun(mode)
    results = benchmark.run_verification(config, app=app, run_dir=tmp_path / "run")
    file = export(tmp_path / "run", None, tmp_path / "results.json", app)
    return json.loads(file.read_text("utf-8")), list(results)


@pytest.mark.parametrize("mode", ["template_only", "template_and_rubric"])
def test_answer_usage_and_checks_are_under_the_template_too(tmp_path: Path, mode: str) -> None:
    document, results = exported(tmp_path, mode)
    (found,) = document["results"]
    assert set(UNDER_TEMPLATE) <= set(found["template"])
    for part in ("generation", "checks"):
        assert {name: found["template"][name] for name in found[part]} == found[part]
    assert found["template"]["raw_llm_response"] == "It is BCL2 [1]."
    assert found["template"]["verify_result"] is True
    assert list(JsonFile().read(tmp_path / "results.json")) == results
    line = json.loads((tmp_path / "run" / "results.jsonl").read_text("utf-8"))
    assert not set(UNDER_TEMPLATE) & set(line["template"]), "a run directory has every answer once"


def test_where_only_a_rubric_is_evaluated_the_answer_is_there_and_no_verification_is_claimed(tmp_path: Path) -> None:
    document, results = exported(tmp_path, "rubric_only")
    (found,) = document["results"]
    own = {
        name: value
        for name, value in found["template"].items()
        if name not in {**found["generation"], **found["checks"]}
    }
    assert own.pop("template_verification_performed") is False
    assert own == dict.fromkeys(own)
    assert own.keys() == {"parsed_gt_response", "parsed_llm_response", "verify_result", "verify_granular_result"}
    assert set(UNDER_TEMPLATE) <= set(found["template"])
    assert found["template"]["raw_llm_response"] == "It is BCL2 [1]."
    assert results[0].template is None
    assert list(JsonFile().read(tmp_path / "results.json")) == results


def test_copies_that_say_something_else_do_not_count(tmp_path: Path) -> None:
    _, results = exported(tmp_path)
    file, before = tmp_path / "results.json", '"template":{"raw_llm_response":"It is'
    assert before in file.read_text("utf-8")
    file.write_text(file.read_text("utf-8").replace(before, '"template":{"raw_llm_response":"It was'), "utf-8")
    (read,) = JsonFile().read(file)
    assert read.generation == results[0].generation


def test_the_rubric_of_all_questions_is_written(tmp_path: Path) -> None:
    document, _ = exported(tmp_path)
    rubric = document["shared_data"]["rubric_definition"]
    assert [trait["pattern"] for trait in rubric["regex_traits"]] == [r"\[\d\]"]
    assert rubric["llm_traits"] == rubric["callable_traits"] == []  # the run was to score one trait


def test_where_no_rubric_is_used_none_is_written(tmp_path: Path) -> None:
    assert exported(tmp_path, "template_only")[0]["shared_data"] == {"rubric_definition": None}


def test_functions_and_addresses_of_traits_are_left_out() -> None:
    benchmark, config = begun(names=None)
    judge = ModelConfig(model_name="j", interface="judging")
    config = evolve(config, parsing_models=[judge])
    app = application(ScriptedLLM().adapter("judging"), installed=True)
    defined = rubric_definition(prepare(benchmark, config, app=app))
    assert defined is not None
    by_name = {trait["name"]: trait for traits in defined.values() for trait in traits}
    assert set(by_name) == set(TRAITS)
    assert by_name["clear"]["description"] == "Is it clear?"
    assert "callable_code" not in by_name["short"]
    model = by_name["checked"]["model_override"]
    assert (model["interface"], model["model_name"]) == ("openai_endpoint", "other")
    assert "private-path" not in json.dumps(defined)
