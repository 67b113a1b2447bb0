"""The spans of whole runs: which is whose parent, what they contain, and what they leave out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from opentelemetry.trace import SpanKind, StatusCode

from karenina_core import hookimpl

Traced = Callable[..., Any]


def test_every_span_hangs_beneath_its_own_item_with_many_items_at_once(traced: Traced) -> None:
    ids = [f"q{number}" for number in range(8)]
    run = traced(*ids, concurrency=8)
    assert [str(result.outcome) for result in run.results] == ["passed"] * 8
    root = run.one("run")
    assert root.parent is None
    assert len({span.context.trace_id for span in run.spans}) == 1
    items = run.of("item")
    assert sorted(item.attributes["karenina.question.id"] for item in items) == ids
    assert {run.parent(item).name for item in items} == {"run"}
    for item in items:
        stages = [span for span in run.of("stage") if run.parent(span) is item]
        assert {"stage GenerateAnswer", "stage ParseTemplate", "stage FinalizeResult"} <= {s.name for s in stages}
        calls = {run.parent(c).name: c.name for c in run.of("chat") if run.parent(run.parent(c)) is item}
        assert calls == {"stage GenerateAnswer": "chat plain", "stage ParseTemplate": "chat judge"}
    assert len(run.of("chat")) == 16
    assert root.attributes["karenina.run.items"] == 8
    assert root.attributes["karenina.outcomes.passed"] == 8
    for span in run.spans:
        if span.parent is not None:
            parent = run.parent(span)
            assert parent.start_time <= span.start_time <= span.end_time <= parent.end_time


def test_a_call_records_model_tokens_and_why_it_ended(traced: Traced) -> None:
    call = traced("q").one("chat plain")
    assert call.kind is SpanKind.CLIENT
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "plain",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.response.model": "plain",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 3,
        "server.address": "127.0.0.1",
        "karenina.task": "generation",
    }
    assert {name: call.attributes[name] for name in expected} == expected
    assert isinstance(call.attributes["server.port"], int)


def test_every_attempt_is_a_span_and_a_failed_one_says_of_which_kind(traced: Traced) -> None:
    run = traced("busy")
    first, second = sorted(run.of("chat plain"), key=lambda span: span.start_time)
    assert first.attributes["error.type"] == "rate_limited"
    assert first.status.status_code is StatusCode.ERROR
    assert "gen_ai.usage.input_tokens" not in first.attributes
    assert "error.type" not in second.attributes
    assert run.parent(first) is run.parent(second)
    assert run.one("item").status.status_code is StatusCode.UNSET


def test_an_error_marks_the_call_the_stage_and_the_item(traced: Traced) -> None:
    run = traced("broken", "q")
    failed = {span.name: span.attributes["error.type"] for span in run.spans if "error.type" in span.attributes}
    assert failed == {
        "chat plain": "invalid_request",
        "stage GenerateAnswer": "invalid_request",
        "item": "invalid_request",
    }
    (event,) = [item.events[0] for item in run.of("item") if item.attributes["karenina.outcome"] == "error"]
    assert dict(event.attributes) == {
        "gen_ai.evaluation.name": "karenina.verdict",
        "gen_ai.evaluation.score.label": "error",
        "error.type": "invalid_request",
    }
    assert run.one("run").attributes["karenina.run.status"] == "completed"


def test_an_agent_has_a_span_with_its_calls_and_tools(traced: Traced) -> None:
    run = traced("q", answering="agent")
    agent = run.one("invoke_agent agent")
    assert agent.attributes["gen_ai.agent.name"] == "agent"
    assert agent.kind is SpanKind.INTERNAL
    assert run.parent(agent).name == "stage GenerateAnswer"
    assert agent.attributes["gen_ai.usage.input_tokens"] == 30
    assert agent.attributes["karenina.agent.turns"] == 2
    assert [run.parent(call) is agent for call in run.of("chat agent")] == [True, True]
    tools = {span.name: span for span in run.of("execute_tool")}
    assert {name: run.parent(span) is agent for name, span in tools.items()} == {
        "execute_tool look": True,
        "execute_tool fail": True,
    }
    look, fail = tools["execute_tool look"], tools["execute_tool fail"]
    assert look.attributes["gen_ai.tool.name"] == "look"
    assert look.attributes["gen_ai.tool.call.id"] == "call_1"
    assert "error.type" not in look.attributes
    assert fail.attributes["gen_ai.tool.call.id"] == "call_2"
    assert fail.attributes["error.type"] == "tool_error"


def test_verdict_and_traits_are_evaluation_results(traced: Traced) -> None:
    events = traced("q", rubric=True).one("item").events
    assert {event.name for event in events} == {"gen_ai.evaluation.result"}
    evaluations = {event.attributes["gen_ai.evaluation.name"]: event.attributes for event in events}
    assert evaluations["karenina.verdict"]["gen_ai.evaluation.score.value"] == 1.0
    assert evaluations["karenina.verdict"]["gen_ai.evaluation.score.label"] == "passed"
    assert evaluations["neat"]["gen_ai.evaluation.score.value"] == 1.0
    assert evaluations["neat"]["gen_ai.evaluation.score.label"] == "true"


def test_no_content_is_in_a_span(traced: Traced, words: tuple[str, str]) -> None:
    for run in (traced("q", "broken", rubric=True), traced("busy", answering="agent")):
        assert len(run.spans) > 10
        assert [word for word in words if word in run.text] == []


def test_content_is_there_where_it_is_wanted_and_secrets_are_not(traced: Traced, words: tuple[str, str]) -> None:
    content, secret = words
    run = traced("q", answering="agent", content=True)
    assert secret not in run.text
    first, last = sorted(run.of("chat agent"), key=lambda span: span.start_time)
    asked = json.loads(first.attributes["gen_ai.input.messages"])
    assert [message["role"] for message in asked] == ["system", "user"]
    assert content in asked[1]["parts"][0]["content"]
    replied = json.loads(first.attributes["gen_ai.output.messages"])
    kinds = Counter(part["type"] for part in replied[0]["parts"])
    assert kinds == {"text": 1, "tool_call": 2}
    answers = [p for m in json.loads(last.attributes["gen_ai.input.messages"]) for p in m["parts"]]
    assert [p["id"] for p in answers if p["type"] == "tool_call_response"] == ["call_1", "call_2"]
    look = run.one("execute_tool look")
    assert json.loads(look.attributes["gen_ai.tool.call.arguments"]) == {"at": content}
    assert look.attributes["gen_ai.tool.call.result"] == f"{content} {content} [redacted]"


def test_an_id_made_of_the_question_does_not_reveal_the_question(traced: Traced) -> None:
    name = "urn:uuid:question-what-is-the-target-0123abcd"
    assert traced(name).one("item").attributes["karenina.question.id"] == "question-0123abcd"
    assert traced(name, content=True).one("item").attributes["karenina.question.id"] == name


def test_a_stage_that_notes_an_error_without_raising_has_failed_too(traced: Traced) -> None:
    class Notes:
        @hookimpl
        def karenina_wrap_stage(self, stage: Any) -> Any:
            async def around(context: Any, proceed: Any) -> None:
                await proceed()
                if stage.name == "GenerateAnswer":
                    context.mark_error("it was nonsense", kind="judge")

            return around

    inside = type("z_notes", (Notes,), {})
    stage = traced("q", plugins=[inside()]).one("stage GenerateAnswer")
    assert stage.attributes["error.type"] == "judge"
    assert stage.status.status_code is StatusCode.ERROR
