"""Where an agent is sent only if the final message alone does not do: who decides, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from karenina_agentic import parse_stage
from karenina_agentic.parse_stage import LOST, MALFORMED, _schema
from karenina_testing.adapters.replies import ServedRequest
from karenina_testing.fakes import example_of

from karenina_core import ModelConfig, Question, VerificationConfig, VerificationResult, run_single_model_verification
from karenina_core.errors import ConfigError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.testing import Reply, ScriptedServer, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.message import ToolUseBlock

INSTALLED = {
    *(
        "validate-template",
        "parse-template",
        "generate-answer",
        "recursion-limit-auto-fail",
        "trace-validation-auto-fail",
    ),
    *("verify-template", "primitives", "finalize-result", "declarative-runtime", "openai_endpoint"),
    *("deep-judgment", "deep-judgment-auto-fail"),
}
ONCE = RetryPolicy(**dict.fromkeys(("rate_limited", "timeout", "connection", "server"), AttemptPolicy(1)))
EXPECTED = "CANARY-7f"
FACT = {"name": "fact", "type": "str", "description": "What it is", "ground_truth": EXPECTED}
TEMPLATE = json.dumps({"class_name": "Answer", "fields": [{**FACT, "verify_with": {"type": "ExactMatch"}}]})
MESSAGE = "FINAL-MESSAGE: see results.txt."
DIRECT: dict[str, Any] = {"reasoning": "fact: it is given.", "sufficient": True, "answer": {"fact": EXPECTED}}
LOOK = Reply(tool_calls=[ToolUseBlock("look", "list_files", {})])
LACKING: dict[str, Any] = {"reasoning": "fact: only a file is named.", "sufficient": False, "answer": None}


@define(eq=False)
class Judge:
    """Decides, investigates and fills in as scripted. What it decides may also be a `Reply`."""

    decides: Any = field(factory=lambda: DIRECT)
    decisions: list[ServedRequest] = field(factory=list)
    investigations: list[ServedRequest] = field(factory=list)
    extractions: list[ServedRequest] = field(factory=list)

    def __call__(self, request: ServedRequest) -> Any:
        assert EXPECTED not in json.dumps(request.body), "a prompt holds the expected value"
        if "Decide whether this message alone" in request.text:
            self.decisions.append(request)
            return json.dumps(self.decides) if isinstance(self.decides, Mapping) else self.decides
        if "take values over from the report" in request.text:
            self.extractions.append(request)
            return json.dumps({"fact": EXPECTED})
        if request.body.get("tools") and request.messages[-1]["role"] != "tool":
            return LOOK
        self.investigations.append(request)
        return "It stands in results.txt."

    @property
    def asked(self) -> tuple[int, int, int]:
        return len(self.decisions), len(self.investigations), len(self.extractions)


def verified(
    judge: Judge,
    folder: Path,
    *,
    answer: str = MESSAGE,
    rows: Sequence[Mapping[str, Any]] = (),
    parsing: Mapping[str, Any] | None = None,
    **config: Any,
) -> VerificationResult:
    app = application(parse_stage, installed=INSTALLED)
    with ScriptedServer(judge) as server:
        facts: dict[str, Any] = {"model_name": "m", "interface": "openai_endpoint", "endpoint_base_url": server.url}
        model = ModelConfig(**facts, max_retries=2, retry_policy=ONCE, **(parsing or {}))
        settings = {"agentic_parsing": True, "agentic_parsing_trigger": "dynamic", **config}
        return run_single_model_verification(
            Question(
                id="q",
                question="What is it?",
                raw_answer=EXPECTED,
                answer_template=TEMPLATE,
                template_language="karenina-template",
            ),
            model,
            model,
            config=VerificationConfig(**settings),
            cached_answer_data=CachedAnswer(raw_llm_response=answer, trace_messages=tuple(rows), workspace=folder),
            app=app,
        )


def test_a_final_message_that_is_enough_needs_no_agent(tmp_path: Path) -> None:
    judge = Judge()
    result = verified(judge, tmp_path)
    part = result.template
    assert part is not None
    assert str(result.outcome) == "passed"
    assert judge.asked == (1, 0, 0)
    assert (part.dynamic_parsing_performed, part.dynamic_parse_decision) == (True, "direct")
    assert part.dynamic_decision_reasoning == DIRECT["reasoning"]
    assert (part.agentic_parsing_performed, part.investigation_trace) == (False, None)
    assert part.parsed_llm_response == {"fact": EXPECTED}
    assert part.judge_channel is not None
    assert result.evaluation_input == MESSAGE
    assert result.generation.usage_metadata["agentic_parsing_decision"]["calls"] == 1
    assert result.metadata.caveats == ()
    assert structure(unstructure(result), VerificationResult).template == part


def test_the_judge_is_shown_the_question_the_final_message_and_the_schema_and_nothing_before_it(tmp_path: Path) -> None:
    judge = Judge()
    rows = [
        {"role": "assistant", "content": "EARLIER-THOUGHT", "tool_calls": []},
        {"role": "assistant", "content": MESSAGE, "tool_calls": []},
    ]
    verified(judge, tmp_path, answer=f"EARLIER-THOUGHT\n{MESSAGE}", rows=rows)
    (request,) = judge.decisions
    assert "What is it?" in request.text
    assert "FINAL-MESSAGE" in request.text
    assert '"fact"' in request.text
    assert "EARLIER-THOUGHT" not in request.text
    assert "tools" not in request.body


def test_one_that_is_not_enough_sends_an_agent_which_is_shown_why(tmp_path: Path) -> None:
    judge = Judge(LACKING)
    result = verified(judge, tmp_path)
    part = result.template
    assert part is not None
    assert str(result.outcome) == "passed"
    assert judge.asked == (1, 1, 1)
    assert (part.dynamic_parsing_performed, part.dynamic_parse_decision) == (True, "escalated")
    assert part.dynamic_decision_reasoning == LACKING["reasoning"]
    assert part.agentic_parsing_performed
    assert "results.txt" in (part.investigation_trace or "")
    assert "only a file is named" in judge.investigations[0].text
    assert result.metadata.caveats == ()
    usage = result.generation.usage_metadata
    tasks = ("agentic_parsing_decision", "agentic_parsing_investigation", "agentic_parsing_extraction")
    assert [usage[task]["calls"] for task in tasks] == [1, 1, 1]


def test_an_answer_that_does_not_fit_the_template_sends_an_agent(tmp_path: Path) -> None:
    judge = Judge({**DIRECT, "answer": {"fact": ["ODD-VALUE"]}})
    result = verified(judge, tmp_path)
    part = result.template
    assert part is not None
    assert (part.dynamic_parse_decision, judge.asked) == ("escalated", (1, 1, 1))
    assert "does not fit the template" in (part.dynamic_decision_reasoning or "")
    assert DIRECT["reasoning"] in judge.investigations[0].text
    assert "ODD-VALUE" not in judge.investigations[0].text, "the agent is shown why, and no values"
    assert result.metadata.caveats == ()


@pytest.mark.parametrize(
    "decision",
    [
        "I would say yes.",
        "",
        {"sufficient": True},
        {"reasoning": "r", "sufficient": "yes", "answer": {"fact": "x"}},
        {"reasoning": "r", "sufficient": True},
        {"reasoning": "r", "sufficient": True, "answer": "x"},
    ],
    ids=["prose", "nothing", "no reasoning", "no boolean", "no answer", "no object"],
)
def test_a_decision_that_cannot_be_read_is_not_asked_for_again_and_is_a_caveat(decision: Any, tmp_path: Path) -> None:
    judge = Judge(decision)
    result = verified(judge, tmp_path)
    assert result.template is not None
    assert (result.template.dynamic_parse_decision, judge.asked) == ("escalated", (1, 1, 1))
    assert result.metadata.caveats == (MALFORMED,)
    assert any("could not be read" in warning for warning in result.metadata.warnings)
    assert "was read before" not in judge.investigations[0].text
    assert str(result.outcome) == "passed"
    assert structure(unstructure(result), VerificationResult).metadata.caveats == (MALFORMED,)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_judge_that_cannot_be_reached_for_now_sends_an_agent(status: int, tmp_path: Path) -> None:
    judge = Judge(Reply.error(status))
    result = verified(judge, tmp_path)
    assert result.template is not None
    assert (result.template.dynamic_parse_decision, judge.asked) == ("escalated", (1, 1, 1))
    assert "could not be asked" in (result.template.dynamic_decision_reasoning or "")
    assert result.metadata.caveats == ()


@pytest.mark.parametrize("status", [401, 403])
def test_a_judge_that_refuses_ends_the_item(status: int, tmp_path: Path) -> None:
    judge = Judge(Reply.error(status))
    result = verified(judge, tmp_path)
    assert (result.outcome.name, judge.asked) == ("error", (1, 0, 0))
    assert result.template is not None
    assert (result.template.dynamic_parsing_performed, result.template.dynamic_parse_decision) == (True, None)
    assert result.template.parsed_llm_response is None


def test_without_a_final_message_an_agent_is_sent_and_no_judge_is_asked(tmp_path: Path) -> None:
    judge = Judge()
    rows = [{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "run", "input": {}}]}]
    result = verified(judge, tmp_path, answer="a rendered trace", rows=rows)
    assert result.template is not None
    assert (result.template.dynamic_parse_decision, judge.asked) == ("escalated", (0, 1, 1))
    assert "no final message" in (result.template.dynamic_decision_reasoning or "")


ERRORS = (
    "API Error: Connection error.",
    "API Error (Connection error.)",
    "APIConnectionError: Connection error.",
    "API Error: Unable to connect to API (ECONNREFUSED)",
    "API Error: 503 connection refused",
    "[API error: connection reset by peer]",
    "API connection error",
)
ANSWERS = (
    "APIConnectionError",
    "The log says: API Error: Connection error.",
    "API Error: Connection refused is what the log shows; the port is 8080.",
    "API Error: Connection error.\n\nThe fact is 42.",
    "Connection error.",
    "It is 42.",
    "API",
)


@pytest.mark.parametrize("message", ERRORS)
def test_a_message_that_is_only_the_error_of_a_connection_answers_nothing(message: str, tmp_path: Path) -> None:
    judge = Judge()
    result = verified(judge, tmp_path, answer=message)
    part = result.template
    assert part is not None
    assert (part.dynamic_parse_decision, judge.asked) == ("answer_error_null", (0, 0, 0))
    assert part.parsed_llm_response == {"fact": None}
    assert part.field_results == {"fact": None}
    assert str(result.outcome) == "failed"


@pytest.mark.parametrize("message", ANSWERS)
def test_a_message_that_says_more_is_an_answer(message: str) -> None:
    assert LOST.fullmatch(message) is None


def test_the_reader_of_messages_is_fast_on_long_ones() -> None:
    assert LOST.fullmatch("API Error: connection " + "to the " * 20_000 + "!x") is None


def test_definitions_of_the_template_are_still_found_in_the_schema_of_a_decision() -> None:
    record = {
        "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Place"}},
        "required": ["at"],
    }
    assert example_of(_schema(record))["answer"] == {"at": {"x": 0}}


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"agentic_parsing": False}, "agentic_parsing_trigger"),
        ({"deep_judgment_enabled": True}, "deep_judgment_enabled"),
        ({"deep_judgment_mode": "reasoning_only"}, "deep_judgment_enabled"),
        ({"agentic_parsing_trigger": "always", "deep_judgment_enabled": True}, "deep_judgment_enabled"),
    ],
)
def test_what_contradicts_it_is_refused_before_any_call(config: dict[str, Any], where: str, tmp_path: Path) -> None:
    judge = Judge()
    with pytest.raises(ConfigError) as refused:
        verified(judge, tmp_path, **config)
    assert where in [problem.path for problem in refused.value.problems]
    assert judge.asked == (0, 0, 0)
    assert "off" in str(refused.value)


def test_an_unknown_trigger_is_refused() -> None:
    with pytest.raises(ConfigError, match="agentic_parsing_trigger: must be one of always, dynamic"):
        VerificationConfig(agentic_parsing_trigger="sometimes")  # type: ignore[arg-type]  # what is refused
