"""A judge that takes every answer for a refusal: short refusals are abstentions, short answers are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from karenina_core.errors import PortError
from karenina_core.pipeline.item import CachedAnswer

Verify = Callable[..., Any]
KINDS: dict[str, dict[str, Any]] = {
    "str": {"ground_truth": "x", "verify_with": {"type": "ExactMatch"}},
    "int": {"ground_truth": 1, "verify_with": {"type": "NumericExact"}},
    "float": {"ground_truth": 1.0, "verify_with": {"type": "NumericExact"}},
    "date": {"ground_truth": "2000-01-01", "verify_with": {"type": "DateMatch"}},
    "list_str": {"ground_truth": ["x"], "verify_with": {"type": "SetContainment", "mode": "exact"}},
    "bool": {"ground_truth": True, "verify_with": {"type": "BooleanMatch"}},
    "literal": {
        "ground_truth": "benign",
        "literal_values": ["benign", "malignant"],
        "verify_with": {"type": "LiteralMatch"},
    },
}

ANSWERS = [
    ("BCL2", "str", "BCL2"),
    ("Paris.", "str", "Paris"),
    ("It is BCL2.", "str", "BCL2"),
    ("The answer to this classic math problem is 4.", "int", 4),
    ("960 mg by mouth once daily", "float", 960),
    ("100.0 degrees Celsius", "float", 100.0),
    ("Forty-two.", "int", 42),
    ("It can only be DNA gyrase.", "str", "DNA gyrase"),
    ("Nobody knew it then, but it was Rosalind Franklin.", "str", "Rosalind Franklin"),
    ("No drug but imatinib.", "str", "imatinib"),
    ("Sorry, I should have said so at once: osmium.", "str", "osmium"),
    ("I would not hesitate: warfarin and heparin.", "list_str", ["warfarin", "heparin"]),
    ("On 14 July 1789.", "date", "1789-07-14"),
    ("Malignant.", "literal", "malignant"),
    ("Au", "str", "Au"),
    ("Acetylcholinesterase, irreversibly.", "str", "acetylcholinesterase"),
    ("東京", "str", "東京"),
    ("La capitale est Paris.", "str", "Paris"),
    ("About 2.5 million.", "int", 2_500_000),
]
REFUSALS = [
    ("I cannot answer that.", "str", None),
    ("I don't know", "str", None),
    ("I don't know.", "str", "unknown"),
    ("As an AI I can't give medical advice.", "str", ""),
    ("As an AI I can't give medical advice.", "float", 0),
    ("No comment.", "int", -1),
    ("Sorry, no.", "str", "N/A"),
    ("That is beyond what I can discuss here.", "str", "BCL2"),
    ("I'd rather not say.", "literal", "benign"),
    ("Unable to help with this request.", "bool", True),
    ("I must decline.", "bool", False),
    ("Please ask a doctor.", "list_str", []),
    ("Please ask a doctor.", "list_str", ["paracetamol"]),
    ("Ich kann dazu nichts sagen.", "str", "nicht angegeben"),
    ("Je ne peux pas répondre.", "str", None),
    ("申し訳ありませんが、お答えできません。", "str", None),
    ("I have no information about that.", "date", "1970-01-01"),
    ("This question is not one that I answer.", "int", 42),
    ("I'm sorry, but I can't assist with that.", "str", "   "),
]


def claimed(verify: Verify, text: str, declared: str, value: Any, **facts: Any) -> Any:
    """What comes of a response that the judge, whatever it is shown, takes for a refusal in its own words."""
    claim = {"answer": None, "disclaimer": text, "reasoning": "it declines", "abstention_detected": True}
    filled = value if isinstance(value, dict) else {"target": value}
    replies = {"generation": text, "abstention_detection": claim, "stated": filled, "parsing": filled}
    field = {"name": "target", "type": declared, "description": "What is asked for", **KINDS[declared]}
    given = {"template": json.dumps({"fields": [field]}), "features": ("abstention",), **facts}
    return verify(**{**given, "replies": {**replies, **facts.get("replies", {})}})


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize(("text", "declared", "value"), ANSWERS)
def test_an_answer_that_the_judge_quotes_as_a_refusal_is_no_abstention(
    verify: Verify, text: str, declared: str, value: Any, retries: int
) -> None:
    done = claimed(verify, text, declared, value, model={"max_retries": retries})
    assert done.outcome in ("passed", "failed"), "it is parsed and compared"
    assert done.finding("abstention") == (True, None, False, "it declines")
    assert done.result.metadata.caveats[0] == "contradictory_abstention"
    assert "takes values from it that answer the question" in done.result.metadata.warnings[0]
    asked = done.llm.asked("abstention_detection")
    assert len(asked) == 3, "the question, the values, and the contradiction that is shown once"
    assert "you took these from the response" in asked[2].text


@pytest.mark.parametrize(("text", "declared", "value"), REFUSALS)
def test_a_short_refusal_is_one(verify: Verify, text: str, declared: str, value: Any) -> None:
    done = claimed(verify, text, declared, value)
    assert (done.outcome, done.result.metadata.caveats) == ("abstained", ())
    assert done.finding("abstention") == (True, True, True, "it declines")
    assert len(done.llm.asked("abstention_detection")) == 2


def test_a_judge_that_takes_the_claim_back_is_believed(verify: Verify) -> None:
    claim = {"answer": None, "disclaimer": "960 mg", "reasoning": "it declines", "abstention_detected": True}
    back = {"answer": "960 mg", "disclaimer": None, "reasoning": "a dose", "abstention_detected": False}
    done = claimed(verify, "960 mg", "int", 960, replies={"abstention_detection": [claim, back]})
    assert done.finding("abstention") == (True, False, False, "a dose")
    assert done.result.metadata.caveats == ()


RESTATED = "I can't tell which protein venetoclax binds."


def two(*declared: str) -> dict[str, Any]:
    fields = [{"name": name, "type": "str", "description": name, **KINDS["str"]} for name in declared]
    return {"template": json.dumps({"fields": fields}), "question": "What does venetoclax bind, BCL2 or MCL1?"}


@pytest.mark.parametrize(
    ("text", "values", "outcome"),
    [
        (RESTATED, {"drug": "venetoclax", "target": None}, "abstained"),
        (RESTATED, {"drug": "venetoclax", "target": "unknown"}, "abstained"),
        ("MCL1", {"drug": None, "target": "MCL1"}, "abstained"),
        ("Venetoclax binds MCL1", {"drug": "venetoclax", "target": "MCL1"}, "failed"),
        ("It binds to BAX", {"drug": None, "target": "BAX"}, "failed"),
    ],
)
def test_what_the_question_says_itself_is_an_answer_only_where_nothing_is_missing(
    verify: Verify, text: str, values: dict[str, Any], outcome: str
) -> None:
    assert claimed(verify, text, "str", values, **two("drug", "target")).outcome == outcome


def test_one_of_the_choices_of_a_question_is_an_answer(verify: Verify) -> None:
    assert claimed(verify, "MCL1", "str", {"target": "MCL1"}, **two("target")).outcome == "failed"


def test_a_judge_that_cannot_fill_the_template_is_believed_with_a_warning(verify: Verify) -> None:
    done = claimed(verify, "960 mg", "int", None, replies={"stated": "I cannot."})
    assert done.outcome == "abstained"
    assert "could not be compared with the values of the template" in done.result.metadata.warnings[0]


def test_a_judge_that_cannot_be_reached_for_the_values_decides_nothing(verify: Verify) -> None:
    done = claimed(verify, "960 mg", "int", 960, replies={"stated": PortError("who are you", kind="auth")})
    assert done.finding("abstention") == (False, False, False, None)
    assert "the abstention check was not performed: PortError: who are you" in done.result.metadata.warnings[0]


def test_values_that_a_tool_returned_are_no_answer_of_the_model(verify: Verify) -> None:
    rows = ({"role": "tool", "content": "dose: 960 mg"}, {"role": "assistant", "content": "I cannot say."})
    for full in (True, False):
        given = CachedAnswer(raw_llm_response="dose: 960 mg\n\nI cannot say.", trace_messages=rows)
        config = {"use_full_trace_for_template": full}
        done = claimed(verify, "I cannot say.", "int", 960, cached_answer_data=given, config=config)
        assert done.outcome == "abstained"


def test_the_judge_is_asked_for_the_values_without_what_is_expected(verify: Verify) -> None:
    done = claimed(verify, "It is BCL2.", "str", "BCL2", template=declared_with("canary-expected"))
    assert "canary-expected" not in "".join(call.text for call in done.llm.calls)
    asked = done.llm.asked("abstention_detection")[1]
    assert (asked.temperature, list(asked.output.schema["properties"])) == (0.0, ["target"])


def declared_with(expected: str) -> str:
    field = {"name": "target", "type": "str", "description": "The target", "ground_truth": expected}
    return json.dumps({"fields": [{**field, "verify_with": {"type": "ExactMatch"}}]})
