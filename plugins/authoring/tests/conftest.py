"""What the tests of authoring share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from karenina_core import Karenina, Question

HELD = Path(__file__).parent / "held"


@pytest.fixture(scope="session")
def app() -> Karenina:
    return Karenina.installed()


def rows(name: str) -> list[dict[str, Any]]:
    """The held templates of a file, numbered in their order."""
    lines = (HELD / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) | {"id": f"{name}-{number}"} for number, line in enumerate(lines)]


def field(
    name: str, kind: str, description: str, expected: Any, primitive: Mapping[str, Any], options: Any = None
) -> dict[str, Any]:
    """A field of a template of data."""
    found = {"name": name, "type": kind, "description": description, "ground_truth": expected}
    return found | {"verify_with": primitive} | ({"literal_values": options} if options else {})


def question(row: Mapping[str, Any]) -> Question:
    """The question of a held row, with its template."""
    if "python" in row:
        text, language = row["python"], "python"
    else:
        text, language = json.dumps({"fields": [field(*item) for item in row["fields"]]}), "karenina-template"
    return Question(
        id=row["id"],
        question=row["question"],
        raw_answer=row.get("answer", ""),
        answer_template=text,
        template_language=language,
    )
