"""Which answers people are asked about: drawn by chance, by a plan that is recorded."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from random import Random
from typing import Any

from attrs import evolve, frozen

from karenina_core.errors import ConfigError

from .answers import LENGTH, Answer

__all__ = ["BY_HAND", "FEATURES", "Drawn", "Plan", "draw", "strata_of"]

BY_HAND = "by hand"
"""The kind of a plan that is none: somebody chose the answers."""
EVERYTHING = "all answers"


def _outcome(answer: Answer) -> str:
    passes = answer.passes
    return "no verdict" if passes is None else "passed" if passes > 0.5 else "not passed"


def _wrong_field(answer: Answer) -> str:
    wrong = sorted(
        name
        for result in answer.judged.values()
        if result.template is not None
        for name, right in (result.template.field_results or {}).items()
        if right is not True
    )
    return wrong[0] if wrong else "no wrong field"


FEATURES: Mapping[str, Callable[[Answer], str]] = {
    "outcome": _outcome,
    "model": lambda answer: answer.model,
    "field": _wrong_field,
    "disagreement": lambda answer: "agree" if answer.passes in (None, 0.0, 1.0) else "disagree",
}
"""What strata are made of: the outcome by most judges, the model, the first wrong field, whether judges agree."""


@frozen(kw_only=True)
class Drawn:
    """An answer that was drawn, and how likely that was."""

    item: str
    stratum: str
    probability: float


@frozen(kw_only=True)
class Plan:
    """How answers were drawn. Within a stratum each was as likely as the others, in an order that the seed gives, so
    that a larger sample begins with a smaller one."""

    kind: str
    """`random`, `stratified` or `by hand`."""
    seed: int = 0
    by: tuple[str, ...] = ()
    """Features that make the strata."""
    strata: Mapping[str, int]
    """How many answers there are in each."""
    population: str
    """A digest of the ids of all answers that could be drawn."""
    items: tuple[Drawn, ...] = ()
    """In the order in which people are asked, the strata in turns."""


def strata_of(answers: Iterable[Answer], by: Sequence[str], judges: Collection[str] | None = None) -> dict[str, str]:
    """`{answer: stratum}`, by what these judges say, or all. Raises ConfigError for a feature that there is not."""
    if unknown := [name for name in by if name not in FEATURES]:
        raise ConfigError(f"{unknown[0]!r} makes no strata; available: {', '.join(FEATURES)}")
    if judges is not None:
        answers = [
            evolve(answer, judged={name: own for name, own in answer.judged.items() if name in judges})
            for answer in answers
        ]
    return {
        answer.id: ", ".join(f"{name}: {FEATURES[name](answer)}" for name in by) or EVERYTHING for answer in answers
    }


def population_of(answers: Iterable[Answer]) -> str:
    return hashlib.sha256("\n".join(sorted(answer.id for answer in answers)).encode("ascii")).hexdigest()[:LENGTH]


def draw(
    answers: Sequence[Answer],
    size: int,
    by: Sequence[str] = (),
    seed: int = 0,
    judges: Collection[str] | None = None,
) -> Plan:
    """Draw answers, from each stratum as many as from the others as far as it has them.

    Raises ConfigError where there are no answers, or fewer asked for than there are strata: each needs two labels, or
    nothing is known of how much its answers vary.
    """
    if not answers:
        raise ConfigError("the run has no answer that a judge has judged, so there is nothing to label")
    stratum = strata_of(answers, by, judges)
    sizes = Counter(stratum.values())
    if size < 2 * len(sizes) and size < len(answers) and by:
        raise ConfigError(
            f"{len(sizes)} strata need {2 * len(sizes)} labels at least; draw more (--n "
            f"{2 * len(sizes)}), or make fewer strata (--stratify)"
        )
    orders = []
    for name in sorted(sizes):
        members = sorted(item for item, own in stratum.items() if own == name)
        Random(f"{seed}/{name}").shuffle(members)
        orders.append(members)
    turns = [item for item in chain.from_iterable(zip_longest(*orders)) if item is not None][:size]
    taken = Counter(stratum[item] for item in turns)
    return Plan(
        kind="stratified" if by else "random",
        seed=seed,
        by=tuple(by),
        strata=dict(sorted(sizes.items())),
        population=population_of(answers),
        items=tuple(
            Drawn(item=item, stratum=stratum[item], probability=taken[stratum[item]] / sizes[stratum[item]])
            for item in turns
        ),
    )


def plan_of(document: Mapping[str, Any]) -> Plan:
    """What a file of labels says. Raises KeyError and TypeError for what is no plan."""
    items = tuple(Drawn(**row) for row in document["items"])
    return Plan(**{**document, "by": tuple(document["by"]), "items": items})
