"""Field by field: whether the model was wrong, or the judge misread what it says."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from karenina_core import VerificationResult
from karenina_core.values.fields import is_number

from ..labels.answers import FIELD, Answer
from ..labels.file import LabelFile
from ..labels.templates import Templates

__all__ = ["CAUSES", "FieldCheck", "Finding", "findings", "same_reading"]

Cause = Literal["both right", "judge misread", "model wrong", "both wrong"]
CAUSES: Mapping[tuple[bool, bool], Cause] = {
    (True, True): "both right",
    (True, False): "judge misread",
    (False, True): "model wrong",
    (False, False): "both wrong",
}
"""By whether the model, and whether the judge, is right: what the answer really says passes the template's check, and
the judge extracted what it says."""


@frozen(kw_only=True)
class Finding:
    """What became of one field of one labelled answer, as one person reads it."""

    item: str
    question_id: str
    model: str
    judge: str
    field: str
    annotator: str
    reading: Any
    extracted: Any
    cause: Cause


def same_reading(one: Any, other: Any) -> bool:
    """Whether two values say the same, letters' case, spaces, the order of a list and the kind of a number aside."""
    return bool(_folded(one) == _folded(other))


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        text = " ".join(unicodedata.normalize("NFKC", value).casefold().split())
        try:
            return float(text)
        except ValueError:
            return text or None
    if is_number(value) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list | tuple):
        return sorted((_folded(part) for part in value), key=repr) or None
    return value


def _extracted(result: VerificationResult, name: str) -> tuple[Any, bool]:
    """What the judge read, and whether the template found it right."""
    template = result.template
    if template is None:
        return None, False
    return (template.parsed_llm_response or {}).get(name), (template.field_results or {}).get(name) is True


class FieldCheck:
    """`check(answer, judge, field, reading)`: 1 where the template finds the reading right. It is asked once for each
    reading, and not at all where the judge read the same."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates
        self._known: dict[tuple[str, str, str, str], float] = {}

    def __call__(self, answer: Answer, judge: str, name: str, reading: Any) -> float:
        key = answer.id, judge, name, repr(reading)
        if key not in self._known:
            result = answer.judged[judge]
            extracted, right = _extracted(result, name)
            passes = right if same_reading(extracted, reading) else self._asked(result, name, reading)
            self._known[key] = float(passes)
        return self._known[key]

    def _asked(self, result: VerificationResult, name: str, reading: Any) -> bool:
        return reading is not None and self._templates.passes(result, name, reading)


def findings(file: LabelFile, answers: Sequence[Answer], check: FieldCheck) -> list[Finding]:
    """Every field of a labelled answer, of every judge and as every person reads it. A judge that put the same in other
    words, so that the template accepts both, has not misread."""
    found = []
    for target in (target for target in file.targets if target.startswith(FIELD)):
        name, labels = target.removeprefix(FIELD), file.by_target(target)
        for answer in answers:
            for annotator, value in sorted(labels.get(answer.id, {}).items()):
                for judge, result in sorted(answer.judged.items()):
                    if result.template is None or name not in (result.template.field_results or {}):
                        continue
                    extracted, accepted = _extracted(result, name)
                    reading = value["reading"]
                    right = check(answer, judge, name, reading) == 1.0
                    read = same_reading(extracted, reading) or (right and accepted)
                    found.append(
                        Finding(
                            item=answer.id,
                            question_id=answer.question_id,
                            model=answer.model,
                            judge=judge,
                            field=name,
                            annotator=annotator,
                            reading=reading,
                            extracted=extracted,
                            cause=CAUSES[right, read],
                        )
                    )
    return found
