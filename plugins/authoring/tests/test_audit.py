"""The audit of items: planted faults among a hundred items, and what each check takes for a fault."""

from __future__ import annotations

import asyncio
import json
import string
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_authoring.audit.audit import Audit, audit
from karenina_authoring.audit.words import spelled

from karenina_core import Karenina, Question
from karenina_core.values.benchmark import BenchmarkData

from .audited import ITEMS, answers, benchmark, result
from .conftest import field

PLANTED = {item["id"]: item["fault"] for item in ITEMS if "fault" in item}
EXACT = {"type": "ExactMatch"}


def audited(app: Karenina, *questions: Question, results: Any = ()) -> Audit:
    return asyncio.run(audit(BenchmarkData(name="b", questions=questions), results, app=app))


def asked(text: str, answer: str, *fields: Any, id: str = "q", strategy: Any = None) -> Question:
    spec: dict[str, Any] = {"fields": [field(*one) for one in fields]}
    spec |= {"verify_strategy": strategy} if strategy else {}
    return Question(
        question=text,
        raw_answer=answer,
        id=id,
        answer_template=json.dumps(spec) if fields else None,
        template_language="karenina-template",
    )


def checks(found: Audit) -> dict[str, set[str]]:
    return {item.question_id: {finding.check for finding in item.findings} for item in found.items}


# Planted faults


@cache
def audit_of(app: Karenina, seed: int) -> Audit:
    """With what the models answered by this seed."""
    return asyncio.run(audit(benchmark(), answers(seed), app=app))


@pytest.mark.parametrize("seed", [1, 2])
def test_of_twenty_faults_in_a_hundred_items_at_least_eighteen_are_named(app: Karenina, seed: int) -> None:
    assert (len(ITEMS), len(PLANTED)) == (100, 20)
    found = audit_of(app, seed)
    alarms = {item.question_id for item in found.alarms}
    missed, false = PLANTED.keys() - alarms, alarms - PLANTED.keys()
    assert len(missed) <= 2, {name: PLANTED[name] for name in missed}
    assert len(false) <= 4, {name: checks(found)[name] for name in false}


def test_without_runs_no_sound_item_is_an_alarm_and_only_faults_of_keys_are_missed(app: Karenina) -> None:
    found = asyncio.run(audit(benchmark(), app=app))
    alarms = {item.question_id for item in found.alarms}
    assert alarms <= PLANTED.keys()
    missed = {PLANTED[name] for name in PLANTED.keys() - alarms}
    assert missed == {"agreement against", "negative item-rest", "always failed"}  # which only answers can show


def test_the_worst_come_first_and_notes_are_no_alarms(app: Karenina) -> None:
    found = audit_of(app, 1)
    order = [item.severity for item in found.items]
    assert order == sorted(order, key=["fault", "suspect", "note"].index)
    assert all(item.findings[0].severity == item.severity for item in found.items)
    assert {item.severity for item in found.alarms} == {"fault", "suspect"}


# One by one


@pytest.mark.parametrize(
    ("text", "answer", "fields", "check"),
    [
        ("How heavy is it?", "12 kg", ["kg", "float", "Mass in kg", 15.0, {"type": "NumericExact"}], "contradiction"),
        ("How heavy is it?", "12 kg", ["g", "float", "The mass in g", 12000.0, {"type": "NumericExact"}], None),
        ("How many?", "Twelve", ["n", "int", "The number", 12, {"type": "NumericExact"}], None),
        ("How many?", "About 3 million", ["n", "int", "The number", 3000000, {"type": "NumericExact"}], None),
        ("Is it?", "Yes.", ["is_it", "bool", "Whether it is", False, {"type": "BooleanMatch"}], "contradiction"),
        ("Is it?", "Yes.", ["is_it", "bool", "Whether it is", True, {"type": "BooleanMatch"}], None),
        ("Who?", "Ada Lovelace", ["who", "str", "The person", "Grace Hopper", EXACT], "contradiction"),
        ("Who?", "It was Ada Lovelace, in 1843", ["who", "str", "The person", "Ada Lovelace", EXACT], None),
        ("When?", "11 April 2016", ["on", "date", "The day", "2016-04-11", {"type": "DateMatch"}], None),
        ("When?", "11 April 2016", ["on", "date", "The day", "2017-05-12", {"type": "DateMatch"}], "contradiction"),
        ("Which?", "A and C", ["all", "list_str", "All", ["A", "B"], {"type": "SetContainment"}], "contradiction"),
        ("Which?", "B and A", ["all", "list_str", "All", ["A", "B"], {"type": "SetContainment"}], None),
        ("Which drug is aspirin?", "aspirin", ["drug", "str", "The drug", "aspirin", EXACT], "answer in question"),
        ("Is aspirin or ibuprofen stronger?", "aspirin", ["drug", "str", "The drug", "aspirin", EXACT], None),
    ],
)  # fmt: skip
def test_what_a_single_item_is_named_for(
    app: Karenina, text: str, answer: str, fields: list[Any], check: str | None
) -> None:
    found = audited(app, asked(text, answer, fields))
    assert checks(found) == ({"q": {check}} if check else {})


def test_fields_that_no_verdict_depends_on_and_templates_that_cannot_be_loaded(app: Karenina) -> None:
    fields = [["who", "str", "The person", "Ada", EXACT], ["year", "int", "The year", 1843, {"type": "NumericExact"}]]
    only = {"type": "all_of", "conditions": [{"type": "field_check", "field": "who"}]}
    either = {"type": "any_of", "conditions": [{"type": "field_check", "field": name} for name in ("who", "year")]}
    broken = evolve(asked("Broken?", "Ada", fields[0], id="broken"), answer_template="{")
    found = audited(
        app,
        asked("Who, and when?", "Ada, in 1843", *fields, id="one", strategy=only),
        asked("Who or when was it?", "Ada, in 1843", *fields, id="other", strategy=either),
        broken,
    )
    (one,) = [item for item in found.items if item.question_id == "one"]
    assert [finding.check for finding in one.findings] == ["unreachable"]
    assert "'year'" in one.findings[0].message
    assert "other" not in {item.question_id for item in found.items if item.findings[0].check == "unreachable"}
    assert checks(found)["broken"] == {"unreachable"}


def test_python_templates_are_looked_at_in_the_sandbox_or_left_out_with_a_note(app: Karenina) -> None:
    source = (
        "from karenina_core.templates import BaseAnswer, ExactMatch, VerifiedField\n\n\n"
        "class Answer(BaseAnswer):\n"
        "    who: str = VerifiedField('The person', 'Grace Hopper', ExactMatch())\n"
    )
    question = Question(question="Who?", raw_answer="Ada Lovelace", id="q", answer_template=source)
    found = asyncio.run(audit(BenchmarkData(name="b", questions=[question]), app=app, policy="refuse"))
    assert found.items == ()
    assert "1 template not checked" in found.notes[0]
    found = asyncio.run(audit(BenchmarkData(name="b", questions=[question]), app=app, policy="trusted"))
    assert checks(found) == {"q": {"contradiction"}}


@settings(max_examples=settings().max_examples // 2, deadline=None, derandomize=True)
@given(
    words=st.lists(st.text(string.ascii_lowercase, min_size=3, max_size=8), min_size=3, max_size=8, unique=True),
    mark=st.sampled_from(["?", " ?", "...", ""]),
)
def test_the_same_question_in_other_cases_and_marks_is_a_duplicate(app: Karenina, words: list[str], mark: str) -> None:
    first, second = (Question(question=text, id=name, raw_answer="x") for name, text in
                     (("a", " ".join(words)), ("b", " ".join(words).upper() + mark)))  # fmt: skip
    found = audited(app, first, second)
    assert checks(found)["b"] == {"duplicate"}
    assert "a" not in checks(found)


@given(st.lists(st.text(max_size=5), max_size=5), st.randoms(use_true_random=False))
def test_lists_are_spelled_alike_in_any_order(items: list[str], order: Any) -> None:
    shuffled = list(items)
    order.shuffle(shuffled)
    assert spelled(items) == spelled(shuffled)


NUMBERS = st.from_regex(
    r"-?[0-9]{1,30}([.,/][0-9]{1,30})?(e[0-9]{1,3}| x 10\^-?[0-9]{1,3}| million| kg| %)?", fullmatch=True
)
FIELDS = (
    ["n", "int", "The number", 12, {"type": "NumericExact"}],
    ["m", "float", "The mass in g", 1.5e12, {"type": "NumericTolerance", "tolerance": 0.1}],
    ["w", "str", "The word", "twelve", EXACT],
    ["d", "date", "The day", "2016-04-11", {"type": "DateMatch"}],
    ["l", "list_str", "The list", ["a", "b"], {"type": "SetContainment"}],
    ["b", "bool", "Whether", True, {"type": "BooleanMatch"}],
)


@settings(deadline=None, derandomize=True)
@given(answer=st.lists(NUMBERS | st.text(max_size=20), max_size=4).map(" ".join), one=st.sampled_from(FIELDS))
def test_any_reference_answer_can_be_looked_at(app: Karenina, answer: str, one: list[Any]) -> None:
    found = audited(app, asked("Which?", answer, one))
    assert {finding.severity for item in found.items for finding in item.findings} <= {"fault", "suspect", "note"}


# Answers


def run_of(question: Question, passed: Mapping[str, bool], said: Any = None) -> list[Any]:
    return [
        result(question, model, 1, {"x": said}, {"x": right}, passed=right) for model, right in passed.items()
    ]  # fmt: skip


def test_results_of_items_that_have_changed_are_left_out_and_counted(app: Karenina) -> None:
    question = asked("What?", "", ["x", "str", "The thing", "a", EXACT])
    before = evolve(question, question="What was it?")
    found = audited(app, question, results=run_of(before, {"m1": False, "m2": False}))
    assert found.items == ()
    assert found.notes == ("2 results left out: the benchmark does not have their items",)


def test_strong_models_that_agree_on_another_value_count_and_weak_ones_do_not(app: Karenina) -> None:
    questions = [
        asked(f"{name}?", "", ["x", "str", "It", "a", EXACT], id=name) for name in ("one", "two", "three", "key")
    ]
    strength = {"m1": 3, "m2": 3, "m3": 0, "m4": 0}
    results = [
        result(question, model, 1, {"x": "a"}, {"x": number < passes}, passed=number < passes)
        for number, question in enumerate(questions[:3])
        for model, passes in strength.items()
    ]
    for model, passes in strength.items():
        value = "b" if passes else "a"
        results.append(result(questions[3], model, 1, {"x": value}, {"x": value == "a"}, passed=value == "a"))
    found = checks(audited(app, *questions, results=results))["key"]
    assert "agreement against it" in found
    swapped = [evolve(one, metadata=evolve(one.metadata, answering=results[-1 - place].metadata.answering))
               if place >= 12 else one for place, one in enumerate(results)]  # fmt: skip
    assert "agreement against it" not in checks(audited(app, *questions, results=swapped)).get("key", set())
