"""Questions about targets of drugs, and models that know them all. Loaded by path; no test is in here."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from karenina_core import Benchmark, LLMRubricTrait, Question
from karenina_core.testing import Reply, ServedRequest

FIELD = {
    "name": "target",
    "type": "str",
    "description": "The protein that the response names as the target",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
}


def said(request: ServedRequest, who: str = "") -> Reply:
    """The judge finds everything; the answer is another one for every question, and for everybody `who` gives it."""
    if request.schema is None:
        return Reply(f"{who}: the target is BCL2 ({request.text.splitlines()[-1]})", usage=(100, 20))
    values = {name: "BCL2" if name == "target" else True for name in request.schema["properties"]}
    return Reply(values, usage=(50, 10))


def template(**facts: Any) -> str:
    return json.dumps({"class_name": "Answer", "fields": [{**FIELD, **facts}]})


def question(number: int, **facts: Any) -> Question:
    told = {"answer_template": template(), "template_language": "karenina-template", "raw_answer": "BCL2", **facts}
    return Question(id=f"q{number}", question=f"What is the target of drug {number}?", **told)


def questions(count: int, **facts: Any) -> Benchmark:
    return Benchmark(name="targets", questions=[question(number, **facts) for number in range(count)])


def trait(number: int, description: str = "") -> LLMRubricTrait:
    told = description or f"Whether the answer has quality {number}."
    return LLMRubricTrait(name=f"quality {number}", kind="boolean", description=told)


def bare(value: Any, left_out: Collection[str]) -> Any:
    """Plain data without these names, at any depth."""
    if isinstance(value, Mapping):
        return {key: bare(item, left_out) for key, item in value.items() if key not in left_out}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [bare(item, left_out) for item in value]
    return value
