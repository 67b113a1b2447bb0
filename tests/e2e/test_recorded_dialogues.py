"""Recorded conversations: what the user says in them is judged too, and only what is known of them is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.records.manual import load_manual_traces
from karenina_runs.summaries.details import facts

from karenina_core import Benchmark, ModelConfig, Question, ReplayStore, VerificationConfig, VerificationResult
from karenina_core.errors import ConfigError
from karenina_core.ports import Message
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.message import read_messages, trace_dicts

DIALOGUE = [
    {"role": "system", "content": "You book trains."},
    {"role": "user", "content": "I need a ticket."},
    {"role": "assistant", "content": "Which city?"},
    {"role": "user", "content": "Paris"},
    {"role": "assistant", "content": "Booked."},
    {"role": "user", "content": "Thanks, bye."},
]
FIELD = {
    "name": "city",
    "type": "str",
    "description": "The city",
    "ground_truth": "Paris",
    "verify_with": {"type": "ExactMatch"},
}

OF_DATA = {"answer_template": json.dumps({"fields": [FIELD]}), "template_language": "karenina-template"}


def judged(model: dict[str, Any], store: ReplayStore | None = None, **facts: Any) -> tuple[VerificationResult, str]:
    """The result of one recorded conversation, and what the judge was shown."""
    judge = ScriptedLLM({"city": "Paris"})
    question = Question(id="q", question="Book it", raw_answer="Paris", **OF_DATA)
    config = VerificationConfig(
        answering_models=[ModelConfig(**model)],
        parsing_models=[ModelConfig(model_name="j", interface="judging")],
        **facts,
    )
    app = application(judge.adapter("judging"), ScriptedLLM().adapter("answering"), installed=True)
    (result,) = Benchmark.create("b").with_questions([question]).run_verification(config, app=app, answers=store)
    return result, "\n".join(message.text for call in judge.calls for message in call.messages)


def given(form: str, folder: Path) -> Any:
    """The conversation as users may give it."""
    file = folder / "answers.json"
    file.write_text(json.dumps({"q": DIALOGUE}), "utf-8")
    forms = {
        "data": {"q": DIALOGUE},
        "messages": {"q": [Message.from_dict(row) for row in DIALOGUE]},
        "with fields": {"q": {"answer": DIALOGUE, "fields": {"city": "Paris"}}},
        "file": load_manual_traces(file),
    }
    return forms[form]


@pytest.mark.parametrize("form", ["data", "messages", "with fields", "file"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_judge_of_the_whole_trace_reads_what_the_user_says_later(form: str, stored: bool, tmp_path: Path) -> None:
    model: dict[str, Any] = {"model_name": "a", "interface": "answering"}
    store = None
    if stored:
        question = Question(id="q", question="Book it")
        store = ReplayStore.from_manual_traces(given(form, tmp_path), [question])
    else:
        model = {"interface": "manual", "manual_traces": given(form, tmp_path)}
    result, shown = judged(model, store, use_full_trace_for_template=True)
    assert result.metadata.outcome == "passed", result.metadata.error
    conversation = (
        "--- AI Message ---\nWhich city?\n\n--- User Message ---\nParis\n\n--- AI Message ---\nBooked.\n\n"
        "--- User Message ---\nThanks, bye."
    )
    assert conversation in shown
    assert "I need a ticket" not in shown
    assert "You book trains" not in shown
    assert result.generation.raw_llm_response == conversation
    rows = [(row["role"], row["content"]) for row in result.generation.trace_messages]
    assert rows == [(row["role"], row["content"]) for row in DIALOGUE[2:]]


def test_a_judge_of_the_final_message_reads_the_last_words_of_the_model() -> None:
    result, shown = judged({"interface": "manual", "manual_traces": {"q": DIALOGUE}})
    assert result.evaluation_input == "Booked."
    assert "Thanks" not in shown


def test_an_answer_after_its_recorded_question_is_a_text_like_any_other() -> None:
    result, _ = judged({"interface": "manual", "manual_traces": {"q": DIALOGUE[:3]}})
    assert result.generation.raw_llm_response == "Which city?"


# As a chat completion has them


CALL = {"id": "c1", "type": "function", "function": {"name": "fares", "arguments": '{"to": "Paris"}'}}
COMPLETION = [
    {"role": "developer", "content": "You book trains."},
    {"role": "user", "content": [{"type": "text", "text": "I need a ticket."}], "name": "Ada"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None, "function_call": None, "audio": None},
    {"role": "tool", "tool_call_id": "c1", "name": "fares", "content": "12 euros"},
    {"role": "assistant", "content": "Booked to Paris.", "tool_calls": None, "annotations": []},
]


@pytest.mark.parametrize("form", ["data", "with fields", "file"])
@pytest.mark.parametrize("stored", [False, True])
def test_messages_of_chat_completions_are_read(form: str, stored: bool, tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({"q": {"answer": COMPLETION, "fields": {"city": "Paris"}}}), "utf-8")
    forms: dict[str, Any] = {"data": {"q": COMPLETION}, "with fields": {"q": {"answer": COMPLETION}}}
    traces = forms.get(form) or load_manual_traces(file)
    model: dict[str, Any] = {"interface": "manual", "manual_traces": traces}
    store = None
    if stored:
        store = ReplayStore.from_manual_traces(traces, [Question(id="q", question="Book it")])
        model = {"model_name": "a", "interface": "answering"}
    result, shown = judged(model, store, use_full_trace_for_template=True)
    assert result.metadata.outcome == "passed", result.metadata.error
    assert told(result) == ("You book trains.", [("system", "You book trains."), ("user", "I need a ticket.")])
    called, answered, said = result.generation.trace_messages
    assert called["tool_calls"] == [{"id": "c1", "name": "fares", "input": {"to": "Paris"}}]
    assert (answered["role"], answered["content"]) == ("tool", "12 euros")
    assert answered["tool_result"] == {"tool_use_id": "c1", "is_error": False}
    assert said["content"] == "Booked to Paris."
    assert "fares" in shown
    assert "12 euros" in shown


OWN = {"id": "c1", "name": "fares", "input": {"to": "Paris"}}
TEXTS = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ({"content": "Let me see.", "tool_calls": [CALL]}, {"content": "Let me see.", "tool_calls": [OWN]}),
        ({"content": TEXTS, "tool_calls": [CALL]}, {"content": "one\ntwo", "tool_calls": [OWN]}),
        ({"content": "", "tool_calls": [OWN]}, {"content": "", "tool_calls": [OWN]}),
        ({"content": None, "refusal": "I cannot."}, {"content": "I cannot."}),
        (
            {"content": "So.", "reasoning_content": "Hm."},
            {"content": "So.", "thinking": {"thinking": "Hm.", "signature": None}},
        ),
        *(
            (
                {"content": None, "tool_calls": [CALL | {"function": {"name": "fares", "arguments": text}}]},
                {"content": "", "tool_calls": [OWN | {"input": {"arguments": text} if text else {}}]},
            )
            for text in ("", "{oops", "[1]", "3")
        ),
    ],
)
def test_what_such_a_message_says_is_kept(given: dict[str, Any], row: dict[str, Any]) -> None:
    messages = read_messages([{"role": "assistant", **given}])
    assert trace_dicts(messages) == [{"role": "assistant", "block_index": 0, **row}]
    assert trace_dicts(read_messages(trace_dicts(messages))) == trace_dicts(messages)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tool_calls": [{"id": "c1", "function": {"arguments": "{}"}}]}, 'a tool call is {"id", "function"'),
        ({"tool_calls": ["fares"]}, "a tool call is an object, not 'fares'"),
        ({"content": [{"type": "image_url"}], "tool_calls": [CALL]}, "content is a text or a list of texts"),
        ({"content": "x", "function_call": {"name": "fares"}}, "unknown keys function_call"),
        ({"content": None}, "its content is a text or a list of blocks"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match="message 2 cannot be read") as caught:
        read_messages([DIALOGUE[1], {"role": "assistant", **given}])
    assert said in str(caught.value)


# What is known of an answer that karenina did not ask for


def told(result: VerificationResult) -> tuple[str | None, list[tuple[str, str]]]:
    sent = [(row["role"], row["content"][0]["text"]) for row in result.generation.conversation_context]
    return result.metadata.answering_system_prompt, sent


def test_of_a_recorded_text_nothing_else_is_known() -> None:
    result, _ = judged({"interface": "manual", "manual_traces": {"q": "It is Paris."}})
    assert told(result) == (None, [])
    assert "system prompt of the model" not in dict(facts(result))


def test_a_system_prompt_that_is_configured_for_recorded_answers_is_theirs() -> None:
    stated = {"interface": "manual", "manual_traces": {"q": "It is Paris."}, "system_prompt": "Five examples of 2022."}
    assert told(judged(stated)[0]) == ("Five examples of 2022.", [])


@pytest.mark.parametrize("stored", [False, True])
def test_of_a_recorded_conversation_its_beginning_is_known(stored: bool) -> None:
    store = ReplayStore.from_manual_traces({"q": DIALOGUE}, [Question(id="q", question="Book it")]) if stored else None
    model = (
        {"model_name": "a", "interface": "answering", "system_prompt": "Not that of the recording."}
        if stored
        else {"interface": "manual", "manual_traces": {"q": DIALOGUE}}
    )
    result, _ = judged(model, store)
    assert told(result) == ("You book trains.", [("system", "You book trains."), ("user", "I need a ticket.")])


def test_of_a_replayed_answer_the_prompt_of_its_own_run_is_known() -> None:
    asked = ScriptedLLM("It is Paris.")
    question = Question(id="q", question="Book it", raw_answer="Paris", **OF_DATA)
    config = VerificationConfig(
        answering_models=[ModelConfig(model_name="a", interface="answering", system_prompt="The first prompt.")],
        parsing_models=[ModelConfig(model_name="j", interface="judging")],
    )
    app = application(asked.adapter("answering"), ScriptedLLM({"city": "Paris"}).adapter("judging"), installed=True)
    first = Benchmark.create("b").with_questions([question]).run_verification(config, app=app)
    model = {"model_name": "a", "interface": "answering", "system_prompt": "Another one."}
    result, _ = judged(model, ReplayStore.from_results(first))
    assert told(result)[0] == "The first prompt."
    by_hand = ReplayStore.from_manual_traces({"q": "It is Paris."}, [question])
    assert told(judged(model, by_hand)[0]) == (None, [])


def test_a_conversation_without_the_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"manual_traces: 'q': there is no message of the model \(role assistant\)"):
        ModelConfig(interface="manual", manual_traces={"q": DIALOGUE[:2]})
    with pytest.raises((ConfigError, ValueError), match="message 1 cannot be read"):
        ModelConfig(interface="manual", manual_traces={"q": [{"role": "assistant", "content": None}]})
