"""Labels beside what a judge says, as the estimators take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from karenina_core.values.fields import is_number

from ..estimators import Sample
from ..labels.answers import FIELD, Answer, judged_value
from ..labels.file import LabelFile
from ..labels.plan import strata_of

__all__ = ["Beside", "beside", "subjects"]

Value = float | str | None
Check = Callable[[Answer, str, str, Any], float]
"""`check(answer, judge, field, reading)`: 1 where the reading passes the template's check."""


@frozen(kw_only=True)
class Beside:
    """What a judge and people say about one target, of all answers of a model, or of all models."""

    target: str
    judge: str
    model: str | None
    """None: of all models."""
    ids: tuple[str, ...]
    said: tuple[float | str, ...]
    """By the judge, of each answer."""
    people: tuple[Mapping[str, float | str], ...]
    """Of each answer: `{annotator: value}`."""
    questions: tuple[str, ...]
    strata: tuple[str, ...]

    @property
    def annotators(self) -> list[str]:
        return sorted({name for own in self.people for name in own})

    @property
    def labelled(self) -> list[int]:
        """The places of the answers with a label."""
        return [place for place, own in enumerate(self.people) if own]

    @property
    def numeric(self) -> bool:
        return all(is_number(value) for value in (*self.said, *(v for own in self.people for v in own.values())))

    def mean(self, place: int) -> float | None:
        """What people say of an answer, on average: half right where two people are of two minds."""
        values = [float(value) for value in self.people[place].values()]
        return sum(values) / len(values) if values else None

    def sample(self) -> Sample:
        """Raises StatisticsError where a stratum has no label."""
        people = [self.mean(place) for place in range(len(self.ids))]
        return Sample.of([float(value) for value in self.said], people, self.questions, self.strata)

    def of_model(self, model: str, models: Sequence[str]) -> Beside:
        """The same of one model; `models` are those of the answers, in their order."""
        places = [place for place, own in enumerate(models) if own == model]
        names = ("ids", "said", "people", "questions", "strata")
        parts = {name: tuple(getattr(self, name)[place] for place in places) for name in names}
        return Beside(target=self.target, judge=self.judge, model=model, **parts)


def subjects(file: LabelFile, answers: Sequence[Answer]) -> list[tuple[str, str]]:
    """The targets that have labels, with each judge that says something of them."""
    judges = sorted({judge for answer in answers for judge in answer.judged})
    return [
        (target, judge)
        for target in file.targets
        for judge in judges
        if any(judged_value(a.judged[judge], target) is not None for a in answers if judge in a.judged)
    ]


def beside(
    file: LabelFile, answers: Sequence[Answer], target: str, judge: str, check: Check
) -> tuple[Beside, list[str]]:
    """The answers that a judge says something of, with the labels; and the model of each answer."""
    labels, strata = file.by_target(target), strata_of(answers, file.plan.by, file.judges)
    rows: list[tuple[str, float | str, dict[str, float | str], str, str]] = []
    models = []
    for answer in answers:
        said = judged_value(answer.judged[judge], target) if judge in answer.judged else None
        if said is None:
            continue
        own = {name: _value(answer, judge, target, value, check) for name, value in labels.get(answer.id, {}).items()}
        rows.append((answer.id, said, own, answer.question_id, strata[answer.id]))
        models.append(answer.model)
    ids, values, people, questions, names = (tuple(column) for column in zip(*rows, strict=True)) if rows else [()] * 5
    return Beside(
        target=target,
        judge=judge,
        model=None,
        ids=ids,
        said=values,
        people=people,
        questions=questions,
        strata=names,
    ), models


def _value(answer: Answer, judge: str, target: str, value: Any, check: Check) -> float | str:
    if target.startswith(FIELD):
        return check(answer, judge, target.removeprefix(FIELD), value["reading"])
    return value if isinstance(value, str) else float(value)
