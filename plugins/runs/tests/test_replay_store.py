"""Answers of other runs: what is found, what is captured, what is kept in files."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_runs.answers.answers import ReplayEntry, ReplayKey, ReplayStore, answer_of, as_store, is_store
from karenina_runs.execute.runner import Destination
from karenina_testing.strategies.results import results as any_results
from karenina_vocabulary.evaluation_parts import TemplatePart

from karenina_core import ModelConfig, Question, VerificationResult
from karenina_core.errors import BenchmarkError, ConfigError, PortError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.testing import ScriptedLLM
from karenina_core.values.identity import ModelIdentity
from karenina_core.values.message import Message, ToolUseBlock
from karenina_core.values.result import GenerationPart, MetadataPart

Make = Callable[..., Any]
MODELS, QUESTIONS, REPLICATES = ("x:a", "x:b"), ("q0", "q1"), (1, 2, 3)
KEYS = st.builds(
    ReplayKey,
    question_id=st.sampled_from(QUESTIONS),
    answering_model=st.none() | st.sampled_from(MODELS),
    replicate=st.none() | st.sampled_from(REPLICATES),
)
ANSWERERS = [ModelConfig(model_name=name, interface="answering") for name in ("a1", "a2")]
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j1", "j2")]


def entry(text: str = "It is BCL2.", **facts: Any) -> ReplayEntry:
    return ReplayEntry(answer=CachedAnswer(raw_llm_response=text), **facts)


def result(text: str = "It is BCL2.", **facts: Any) -> VerificationResult:
    about = {"question_id": "q0", "template_id": "t", "result_id": "r", "question_text": "?", "outcome": "passed"}
    models = {"answering": ModelIdentity("x", "a"), "parsing": ModelIdentity("x", "j")}
    fields = facts.pop("fields", None)
    return VerificationResult(
        metadata=MetadataPart(**{**about, **models, **facts}),
        generation=GenerationPart(raw_llm_response=text),
        template=TemplatePart(parsed_llm_response=fields),
    )


# Looking up


@given(st.dictionaries(KEYS, st.text(min_size=1), max_size=12))
def test_what_was_registered_most_precisely_is_found(registered: dict[ReplayKey, str]) -> None:
    store = ReplayStore()
    for key, text in registered.items():
        store.register(key, entry(text))
    for question, model, number in product(QUESTIONS, MODELS, REPLICATES):
        ladder = ((model, number), (model, None), (None, number), (None, None))
        fitting = [registered[key] for rung in ladder if (key := ReplayKey(question, *rung)) in registered]
        found = store.lookup(question, model, number)
        assert (found.answer.raw_llm_response if found else None) == (fitting[0] if fitting else None)
    for question in QUESTIONS:
        assert store.has_any_for(question) is any(key.question_id == question for key in registered)
    assert len(store) == len(registered)


def test_another_answer_takes_the_place_of_the_first_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    store, key = ReplayStore(), ReplayKey("q0", "x:a", 1)
    store.register(key, entry("one"))
    store.register(key, entry("one"))
    assert store.overwritten == 0
    with caplog.at_level(logging.WARNING, "karenina"):
        store.register(key, entry("two"))
    assert store.overwritten == 1
    assert "another answer" in caplog.text
    assert store.lookup("q0", "x:a", 1) == entry("two")


def test_the_same_answer_of_two_judges_has_the_fields_of_both() -> None:
    store, key = ReplayStore(), ReplayKey("q0")
    store.register(key, entry(fields={"j1": {"target": "BCL2"}}))
    store.register(key, entry(fields={"j2": {"target": "BAX"}}))
    found = store.lookup("q0", "x:a", 1)
    assert found is not None
    assert found.fields == {"j1": {"target": "BCL2"}, "j2": {"target": "BAX"}}
    assert (len(store), store.overwritten) == (1, 0)


@pytest.mark.parametrize("policy", ["lenient", None, ""])
def test_a_policy_that_there_is_not_is_refused(policy: Any) -> None:
    with pytest.raises(ValueError, match="strict, fall_through"):
        ReplayStore(policy)


def test_a_large_store_is_filled_and_read_without_looking_through_it() -> None:
    """Sixteen times as many answers take about 16 times as long; looking through them would take 256 times that."""

    def seconds(count: int) -> float:
        begun = time.process_time()
        store = ReplayStore()
        for number in range(count):
            store.register(ReplayKey(f"q{number}", "x:a", 1), entry(f"answer {number}"))
        assert all(store.lookup(f"q{number}", "x:a", 1) is not None for number in range(count))
        return time.process_time() - begun

    seconds(1000)
    assert min(seconds(16_000) for _ in range(3)) < 80 * min(seconds(1_000) for _ in range(3))


# Recorded by hand


def asked(*ids: str) -> list[Question]:
    return [Question(id=name, question=f"What does {name} bind?", answer_template="") for name in ids]


def test_an_answer_recorded_by_hand_is_found_by_id_by_text_and_by_the_md5_of_the_text() -> None:
    digest = hashlib.md5(b"What does c bind?", usedforsecurity=False).hexdigest()
    traces = {"a": "by id", "What does a bind?": "by text", "What does b bind?": "by text", digest: "by digest"}
    store = ReplayStore.from_manual_traces(traces, asked("a", "b", "c", "d"))
    found = {key.question_id: entry.answer.raw_llm_response for key, entry in store}
    assert found == {"a": "by id", "b": "by text", "c": "by digest"}
    assert {key for key, _ in store} == {ReplayKey("a"), ReplayKey("b"), ReplayKey("c")}
    assert store.miss_policy == "strict"


def test_answers_recorded_by_hand_are_those_of_one_model_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    path.write_text(json.dumps({"a": {"answer": "BCL2", "fields": {"target": "BCL2"}}}), "utf-8")
    models = {"answering_model": "x:a", "parsing_model": "x:j"}
    store = ReplayStore.from_manual_traces(path, asked("a"), **models, miss_policy="fall_through")
    assert store.lookup("a", "x:b", 1) is None
    assert (found := store.lookup("a", "x:a", 3)) is not None
    assert (found.answering_model, found.fields) == ("x:a", {"x:j": {"target": "BCL2"}})
    assert store.miss_policy == "fall_through"
    (_, unjudged), *_ = ReplayStore.from_manual_traces(path, asked("a"))
    assert unjudged.fields == {}


def test_recorded_messages_are_the_trace_of_the_answer() -> None:
    calls = [Message("assistant", (ToolUseBlock("c1", "find", {"q": "x"}),)), Message.assistant("It is BCL2.")]
    traces = {"a": calls, "b": [Message.assistant("It is BAX.")], "c": "It is \ud800BAX."}
    store = ReplayStore.from_manual_traces(traces, asked("a", "b", "c"))
    answers = [entry.answer for _, entry in store]
    assert [len(answer.trace_messages) for answer in answers] == [2, 1, 1]
    assert answers[0].raw_llm_response.endswith("--- AI Message ---\nIt is BCL2.")
    assert answers[1].raw_llm_response == "It is BAX."
    assert "\ud800" not in answers[2].raw_llm_response
    assert answers[2].text_flags


def test_an_answer_to_no_question_is_told_and_what_is_no_answer_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "karenina"):
        ReplayStore.from_manual_traces({"a": "one", "z": "other"}, asked("a"))
    assert "recorded answers match none of the questions" in caplog.text
    with pytest.raises(ConfigError, match="'a' must be a text"):
        ReplayStore.from_manual_traces({"a": 7}, asked("a"))


# Files


@settings(max_examples=15, deadline=None)
@given(found=st.lists(any_results(), max_size=4), policy=st.sampled_from(["strict", "fall_through"]))
def test_a_store_comes_back_from_its_file(tmp_path_factory: Any, found: list[VerificationResult], policy: Any) -> None:
    path = tmp_path_factory.mktemp("answers") / "answers.json"
    store = ReplayStore.from_results(found, miss_policy=policy, parsed=True)
    store.save(path)
    again = ReplayStore.load(path)
    assert again.miss_policy == policy
    assert json.loads(path.read_bytes())["entries"] == _saved(again, path)
    assert [key for key, _ in again] == [key for key, _ in store]
    assert is_store(path)


def _saved(store: ReplayStore, path: Path) -> Any:
    store.save(path)
    return json.loads(path.read_bytes())["entries"]


def test_a_file_holds_everything_that_a_judge_needs(tmp_path: Path) -> None:
    answer = CachedAnswer(
        raw_llm_response="lone \ud800 and \u202e",
        trace_messages=({"role": "assistant", "content": "x", "block_index": 0},),
        recursion_limit_reached=True,
        answering_mcp_servers=("files",),
        usage_metadata={"generation": {"calls": 1, "cost_usd": None}},
        agent_metrics={"tool_calls": 2},
        conversation_context=({"role": "user", "content": []},),
        text_flags=("truncated",),
        usage_unavailable=True,
        few_shot_example_count=3,
    )
    given_ = ReplayEntry(answer=answer, answering_model="x:a", replicate=2, run_name="evening", timestamp="2026-01-01")
    store = ReplayStore("fall_through")
    store.register(ReplayKey("q0", "x:a", 2), evolve(given_, fields={"x:j": {"target": None}}))
    store.save(tmp_path / "a.json")
    assert list(ReplayStore.load(tmp_path / "a.json")) == list(store)


def test_secrets_are_not_written(tmp_path: Path) -> None:
    store = ReplayStore()
    store.register(ReplayKey("q0"), entry("the key is hunter22", fields={"j": {"it": ["hunter22"]}}))
    store.save(tmp_path / "a.json", redact=lambda text: text.replace("hunter22", "[redacted]"))
    assert "hunter22" not in (tmp_path / "a.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a file of answers"),
        ("[1]", "is not a file of answers"),
        ('{"q0": "BCL2"}', "is not a file of answers"),
        ('{"version": 2, "entries": []}', "version 2"),
        ('{"version": 1, "miss_policy": "x", "entries": []}', "miss_policy"),
        ('{"version": 1, "entries": [{}]}', "entry 1"),
        ('{"version": 1, "entries": [{"key": {"question_id": "q"}, "entry": {}}]}', "entry 1: has no answer"),
        ('{"version": 1, "entries": [{"key": {"question": "q"}, "entry": {"answer": {}}}]}', "entry 1: key"),
        (
            '{"version": 1, "entries": [{"key": {"question_id": "q"}, "entry": {"answer": '
            '{"raw_llm_response": "x", "workspace": "/etc"}}}]}',
            "entry 1: has no answer",
        ),
    ],
)
def test_a_file_that_is_none_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "answers.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        ReplayStore.load(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="check the path"):
        ReplayStore.load(tmp_path / "answers.json")
    with pytest.raises(BenchmarkError, match="cannot be read"):
        as_store(tmp_path)


# Capturing


def test_an_answer_that_is_wrong_is_an_answer_and_one_that_was_never_given_is_none() -> None:
    found = ReplayStore.from_results(
        [
            result(question_id="right"),
            result(question_id="wrong", outcome="failed"),
            result(question_id="misjudged", outcome="error", outcome_detail="judge"),
            result("", question_id="nothing", outcome="error", outcome_detail="timeout"),
        ]
    )
    assert [key.question_id for key, _ in found] == ["right", "wrong", "misjudged"]


def test_items_that_ended_in_an_error_can_be_left_out() -> None:
    rows = [result(question_id="wrong", outcome="failed"), result(question_id="misjudged", outcome="error")]
    found = ReplayStore.from_results(rows, only_successful=True)
    assert [key.question_id for key, _ in found] == ["wrong"]


def test_models_can_be_chosen() -> None:
    rows = [result(answering=ModelIdentity("x", name)) for name in ("a", "b")]
    found = ReplayStore.from_results(rows, answering_models=["x:b"])
    assert [key for key, _ in found] == [ReplayKey("q0", "x:b", 1)]


@given(order=st.permutations([1, 2, 3]), which=st.sampled_from(["first", "last"]))
def test_one_replicate_stands_for_all_in_whatever_order_they_come(order: list[int], which: Any) -> None:
    rows = [result(f"answer {number}", replicate=number) for number in order]
    found = ReplayStore.from_results(rows, replicates=which)
    assert [key for key, _ in found] == [ReplayKey("q0", "x:a")]
    for number in (1, 7):
        chosen = found.lookup("q0", "x:a", number)
        assert chosen is not None
        assert chosen.answer.raw_llm_response == ("answer 1" if which == "first" else "answer 3")
    assert found.overwritten == 0


def test_other_choices_of_replicates_are_refused() -> None:
    with pytest.raises(ValueError, match="all, first, last"):
        ReplayStore.from_results([], replicates="second")  # type: ignore[arg-type]  # what is tested


def test_fields_are_only_captured_where_that_is_asked_for() -> None:
    rows = [result(fields={"target": "BCL2"})]
    for parsed, fields in ((False, {}), (True, {"x:j": {"target": "BCL2"}})):
        found = ReplayStore.from_results(rows, parsed=parsed).lookup("q0", "x:a", 1)
        assert found is not None
        assert found.fields == fields


def test_judges_of_one_answer_are_captured_once(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    here.run(
        here.config(answering_models=ANSWERERS, parsing_models=JUDGES, replicate_count=2),
        Destination(run_dir=tmp_path / "run"),
    )
    store = ReplayStore.from_results(tmp_path / "run", parsed=True)
    assert (len(store), store.overwritten) == (12, 0)
    assert all(set(found.fields) == {"judging:j1", "judging:j2"} for _, found in store)
    assert all(found.replicate == key.replicate for key, found in store)


def test_different_answers_of_one_question_are_told(world: Make) -> None:
    rows = [*world(answerer=ScriptedLLM(lambda call: "BCL2")).run(), *world().run()]
    store = ReplayStore.from_results(rows)
    assert (len(store), store.overwritten) == (1, 1)


def test_an_answer_that_was_replayed_is_captured_with_where_it_is_from(world: Make) -> None:
    first = world().run(run_name="the first")
    here = world(answerer=ScriptedLLM(lambda call: PortError("asked", kind="auth")))
    second = here.run(answers=ReplayStore.from_results(first), run_name="the second")
    (_, found), *_ = ReplayStore.from_results(second)
    assert found.run_name == "the first"
    assert answer_of(second[0]) == evolve(answer_of(first[0]), **_told(second[0]))


def _told(found: VerificationResult) -> dict[str, Any]:
    generation = found.generation
    calls = {"generation": generation.usage_metadata["generation"]}
    return {"replayed_from": generation.replayed_from, "usage_metadata": calls}
