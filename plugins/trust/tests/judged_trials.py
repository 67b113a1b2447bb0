"""A benchmark of three fields, a judge that reads `name: value` in whatever form, and what it is asked through."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from karenina_cli.root import karenina as root

from karenina_core import Benchmark, Question
from karenina_core.testing import ScriptedServer, ServedRequest

RESPONSE = re.compile(r'<untrusted-(\w+) label="response">\n(.*)\n</untrusted-\1>', re.DOTALL)
EXPECTED: Mapping[str, Mapping[str, Any]] = {
    "cystic": {"gene": "CFTR", "year": 1989, "approved": True},
    "huntington": {"gene": "HTT", "year": 1993, "approved": False},
    "farrow": {"gene": "ZNAR3", "year": 2004, "approved": True},
}
TYPES = {"gene": ("str", "ExactMatch"), "year": ("int", "NumericExact"), "approved": ("bool", "BooleanMatch")}


def karenina(*line: object) -> Result:
    return CliRunner().invoke(root, [str(argument) for argument in line], catch_exceptions=False)


def template(expected: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "fields": [
            {"name": name, "type": TYPES[name][0], "description": f"The {name} that the response names",
             "ground_truth": value, "verify_with": {"type": TYPES[name][1]}}
            for name, value in expected.items()
        ]
    }  # fmt: skip


def benchmark(folder: Path, *names: str) -> Path:
    questions = [
        Question(
            id=name,
            question=f"What is known of {name}?",
            raw_answer=f"Gene: {EXPECTED[name]['gene']}. Year: {EXPECTED[name]['year']}. "
            f"Approved: {'yes' if EXPECTED[name]['approved'] else 'no'}.",
            answer_template=template(EXPECTED[name]),
        )
        for name in names or EXPECTED
    ]
    return Benchmark.create("Genes").with_questions(questions).save(folder / "genes.jsonld")


def response(request: ServedRequest) -> str:
    """The answer that a judge is shown."""
    found = RESPONSE.search(request.text)
    return found[2] if found else request.text


def extracted(text: str, names: Any) -> dict[str, Any]:
    """What an answer says of these fields, in any of the forms; None where it says nothing."""
    found: dict[str, Any] = dict.fromkeys(names)
    for name in names:
        match = re.search(rf"\b{name}\W+?(?:is )?(-?[\w.]*\w)", text, re.IGNORECASE)
        said = match[1] if match else None
        if name == "year":
            found[name] = int(said) if said and said.lstrip("-").isdigit() else None
        else:
            found[name] = {"yes": True, "no": False}.get(str(said)) if name == "approved" else said
    return found


def perfect(request: ServedRequest) -> Any:
    assert request.schema is not None, "the answering model is asked nothing"
    return extracted(response(request), request.schema["properties"])


def judge_arguments(server: ScriptedServer, *models: str) -> list[str]:
    named = [argument for model in models or ("m",) for argument in ("--model", model)]
    return [*named, "--interface", "openai_endpoint", "--base-url", server.url]


Script = Callable[[ServedRequest], Any]
