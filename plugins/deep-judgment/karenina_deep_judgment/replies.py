"""One question to the judge, and what it replies in each step: JSON Schemas, and replies read against them.

Whatever a schema says is checked here too: not every model is held to it by its server. Reasons come before verdicts,
so that a model which writes from left to right has thought before it decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import frozen
from karenina_judging.asking import ask_judge, closed_object

from karenina_core import VerificationContext
from karenina_core.errors import FillError, shortened
from karenina_core.ports import ParsePortResult

CONFIDENCES = ("high", "medium", "low", "none")
"""`high`: stated directly; `medium`: implied; `low`: weak or ambiguous; `none`: there is no quotation."""
RISKS = ("none", "low", "medium", "high")
"""How likely a statement is made up, from the lowest to the highest."""
REASONING_PARTS = {
    "evidence": "What speaks for the trait, and what against it.",
    "interpretation": "What that means by the criteria, and which of it weighs more.",
    "conclusion": "To what degree the trait is there, in words and without a score.",
}
"""The parts of the reasoning about a trait, in their order."""
MOST_PROBLEMS = 20  # chosen: a reply with more is wrong throughout
T = TypeVar("T")
Read = Callable[[Mapping[str, Any]], T]
"""Makes something of a reply. Raises FillError with what is wrong with it, in words for the judge."""


@frozen
class Offered:
    """A quotation as the judge gave it, not looked for yet. Without a text it says why there is none."""

    text: str
    explanation: str
    confidence: str


@frozen
class Assessment:
    """What a search says about one quotation."""

    justification: str
    risk: str


def excerpts_schema(names: Sequence[str], most: int) -> dict[str, Any]:
    """Per name a list of at most `most` quotations."""
    offered = {
        "text": {"type": "string"},
        "explanation": {"type": ["string", "null"], "description": "Why there is no quotation, else null"},
        "confidence": {"type": "string", "enum": list(CONFIDENCES)},
    }
    return {
        **closed_object(
            {name: {"type": "array", "items": {"$ref": "#/$defs/Excerpt"}, "maxItems": most} for name in names}
        ),
        "$defs": {"Excerpt": closed_object(offered)},
    }


def texts_schema(names: Sequence[str], description: str) -> dict[str, Any]:
    """Per name one text."""
    return closed_object({name: {"type": "string", "description": description} for name in names})


def assessments_schema(names: Sequence[str]) -> dict[str, Any]:
    """Per name a justification and a risk."""
    assessed = {
        "justification": {"type": "string", "description": "What the search results say about it."},
        "hallucination_risk": {"type": "string", "enum": list(RISKS)},
    }
    return {
        **closed_object({name: {"$ref": "#/$defs/Assessment"} for name in names}),
        "$defs": {"Assessment": closed_object(assessed)},
    }


def reasoning_schema() -> dict[str, Any]:
    """One text for each part of the reasoning about a trait."""
    return closed_object(
        {name: {"type": "string", "description": description} for name, description in REASONING_PARTS.items()}
    )


def read_excerpts(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, tuple[Offered, ...]]:
    """The reply to `excerpts_schema`. Raises FillError with everything that is wrong, in words for the judge.

    The confidence `none` beside a quotation is read as `low`: whether the quotation counts is decided by looking it up,
    and weak judges repeat the slip however often they are corrected. The schema cannot say it: providers that are
    strict refuse alternatives (`anyOf`) whose objects begin with the same property.
    """
    problems: list[str] = []
    found = {name: _offers(name, data.get(name), problems) for name in names}
    _refuse(problems)
    return found


def _offers(name: str, rows: Any, problems: list[str]) -> tuple[Offered, ...]:
    if not isinstance(rows, list):
        problems.append(f"{name}: expected a list of excerpts (empty where there is none), got {_shown(rows)}")
        return ()
    found = []
    for number, row in enumerate(rows):
        where = f"{name}[{number}]"
        if not isinstance(row, Mapping):
            problems.append(f"{where}: expected an object with text, explanation and confidence, got {_shown(row)}")
            continue
        text, explanation, confidence = row.get("text"), row.get("explanation"), row.get("confidence")
        if not isinstance(text, str):
            problems.append(f"{where}.text: expected a text, got {_shown(text)}")
        elif not isinstance(explanation, str | None):
            problems.append(f"{where}.explanation: expected a text or null, got {_shown(explanation)}")
        elif confidence not in CONFIDENCES:
            problems.append(f"{where}.confidence: expected one of {', '.join(CONFIDENCES)}, got {_shown(confidence)}")
        else:
            sureness = "low" if text.strip() and confidence == "none" else str(confidence)
            found.append(Offered(text.strip(), (explanation or "").strip(), sureness))
    return tuple(found)


def read_texts(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """The reply to `texts_schema`. Raises FillError as above."""
    problems = [
        f"{name}: expected a text, got {_shown(data.get(name))}"
        for name in names
        if not isinstance(data.get(name), str)
    ]
    _refuse(problems)
    return {name: str(data[name]).strip() for name in names}


def read_reasoning(data: Mapping[str, Any]) -> dict[str, str]:
    """The reply to `reasoning_schema`; no part may be blank. Raises FillError as above."""
    parts = read_texts(data, tuple(REASONING_PARTS))
    _refuse([f"{name}: expected a text, which may not be blank" for name, text in parts.items() if not text])
    return parts


def read_assessments(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, Assessment]:
    """The reply to `assessments_schema`. Raises FillError as above."""
    problems = []
    found = {}
    for name in names:
        row = data.get(name)
        risk = row.get("hallucination_risk") if isinstance(row, Mapping) else None
        justification = row.get("justification") if isinstance(row, Mapping) else None
        if risk not in RISKS or not isinstance(justification, str):
            problems.append(
                f"{name}: expected a justification and a hallucination_risk of {', '.join(RISKS)}, got {_shown(row)}"
            )
        else:
            found[name] = Assessment(justification.strip(), str(risk))
    _refuse(problems)
    return found


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        more = [f"and {len(problems) - MOST_PROBLEMS} more"] if len(problems) > MOST_PROBLEMS else []
        raise FillError("\n".join(f"- {line}" for line in [*problems[:MOST_PROBLEMS], *more]))


def _shown(value: Any) -> str:
    return shortened("nothing" if value is None else repr(value), 80)


async def replied(
    context: VerificationContext, task: str, texts: Sequence[str], schema: Mapping[str, Any], read: Read[Any]
) -> ParsePortResult:
    """The judge's reply, `parsed` by `read`. `texts` are those of `ask_judge`.

    Raises ParseError where no reply could be used, PortError where the judge could not be reached.
    """

    async def validate(data: Mapping[str, Any]) -> Any:
        return read(data)

    return await ask_judge(context, task, texts, schema, validate=validate)
