"""The benchmark of a hundred items, and answers of eight models of different strength to it."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from karenina_vocabulary.evaluation_parts import TemplatePart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question
from karenina_core.values.result import MetadataPart

ITEMS = [json.loads(line) for line in (Path(__file__).parent / "audit" / "items.jsonl").read_text().splitlines()]
ABILITIES = (-1.5, -0.8, -0.2, 0.3, 0.8, 1.3, 1.9, 2.5)
"""In logits: the weakest passes about a quarter of the items, the strongest nine of ten."""


def primitive(short: str) -> dict[str, Any]:
    """`tol:0.02` as the primitive that it is short for."""
    name, _, rest = short.partition(":")
    if name == "syn":
        pairs = dict(pair.split("=") for pair in rest.split(";"))
        return {"type": "ExactMatch", "normalize": ["lowercase", "strip", {"type": "SynonymMap", "mapping": pairs}]}
    if name == "range":
        low, high = map(float, rest.split(":"))
        return {"type": "NumericRange", "min": low, "max": high}
    return {
        "exact": lambda: {"type": "ExactMatch"},
        "num": lambda: {"type": "NumericExact"},
        "bool": lambda: {"type": "BooleanMatch"},
        "lit": lambda: {"type": "LiteralMatch"},
        "set": lambda: {"type": "SetContainment", "mode": "exact"},
        "date": lambda: {"type": "DateMatch"},
        "tol": lambda: {"type": "NumericTolerance", "tolerance": float(rest), "mode": "relative"},
        "abs": lambda: {"type": "NumericTolerance", "tolerance": float(rest), "mode": "absolute"},
        "any": lambda: {"type": "ContainsAny", "substrings": rest.split("|"), "normalize": ["lowercase"]},
        "regex": lambda: {"type": "RegexMatch", "pattern": rest},
    }[name]()


def template(item: Mapping[str, Any]) -> str:
    fields = []
    for name, type_, expected, short, description, *options in item["f"]:
        one = {"name": name, "type": type_, "description": description, "ground_truth": expected}
        one |= {"verify_with": primitive(short)} | ({"literal_values": options[0]} if options else {})
        fields.append(one)
    spec: dict[str, Any] = {"fields": fields}
    if chosen := item.get("strategy"):
        checks = [{"type": "field_check", "field": name} for name in chosen]
        spec["verify_strategy"] = {"type": "all_of", "conditions": checks}
    return json.dumps(spec)


def question(item: Mapping[str, Any]) -> Question:
    return Question(
        question=item["q"],
        raw_answer=item["a"],
        id=item["id"],
        answer_template=template(item),
        template_language="karenina-template",
        finished=True,
    )


def benchmark() -> BenchmarkData:
    return BenchmarkData(name="a hundred items", questions=[question(item) for item in ITEMS])


def answers(seed: int = 1) -> Iterator[VerificationResult]:
    """What eight models answered, twice each, by the two-parameter model of item response: chance decides, and nothing
    of the checks is known here. Wrong answers are those that the items list, the first one more often."""
    drawn = random.Random(seed)
    difficulty = {item["id"]: drawn.gauss(0, 1.2) for item in ITEMS}
    slope = {item["id"]: drawn.uniform(0.8, 2.0) for item in ITEMS}
    for item in ITEMS:
        asked = question(item)
        name, _, expected, *_ = item["f"][0]
        for number, ability in enumerate(ABILITIES):
            power = -ability if item.get("weird") == "inverted" else ability
            knows = 1 / (1 + math.exp(-slope[item["id"]] * (power - difficulty[item["id"]])))
            for replicate in (1, 2):
                is_right = drawn.random() < knows and item.get("weird") != "never"
                truth = item.get("truth", expected)
                said = truth if is_right else item["w"][drawn.random() > 0.6]
                passed = said == expected or item.get("fault") == "always passed"
                yield result(asked, f"model-{number}", replicate, {name: said}, {name: passed}, passed=passed)


def result(
    asked: Question,
    model: str,
    replicate: int,
    said: Mapping[str, Any],
    right: Mapping[str, bool],
    *,
    passed: bool,
) -> VerificationResult:
    return VerificationResult(
        metadata=MetadataPart(
            question_id=asked.id,
            template_id=asked.template_id,
            result_id=hashlib.sha256(f"{asked.id}-{model}-{replicate}".encode()).hexdigest()[:16],
            item_digest=asked.digest,
            question_text=asked.question,
            raw_answer=asked.raw_answer,
            answering=ModelIdentity("x", model),
            parsing=ModelIdentity("x", "judge"),
            replicate=replicate,
            outcome="passed" if passed else "failed",
        ),
        template=TemplatePart(
            template_verification_performed=True,
            parsed_llm_response=said,
            field_results=right,
            verify_result=passed,
        ),
    )
