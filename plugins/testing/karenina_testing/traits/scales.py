"""Is a score on the scale that its trait states, and what becomes of replies that are beside it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.trait_scale import misfit, scale_classes, scale_kind

from karenina_core.values.rubric import RubricTrait

from ..checks import Fault
from .cases import REPORT, Trial
from .judges import swapping

NO_SCALE = "keep to what scale() says, or give the score a state, a reason and no value"


def off_scale(trial: Trial, texts: Sequence[str]) -> Iterator[Fault]:
    """A score that is not on its scale, or that was made of a reply that is not on it."""
    for text, most in ((trial.text, False), (trial.text, True), *((text, False) for text in texts)):
        found = trial.scored(trial.judge(most=most), text)
        for trait in trial.traits:
            score = found.get(trait.name)
            if isinstance(score, TraitScore) and score.state == "ok" and (wrong := _misfit(score, trait)):
                yield trial.fault(f"{trait.name!r}: {wrong}", NO_SCALE)
    if not trial.asks_judge:
        return
    for trait in trial.traits:  # replies that a judge may well give, and that are no score
        for beside in _beside(trait.scale()):
            swap = _Swap(trait.scale(), beside)
            score = trial.alone(trait).scored(trial.judge(swapping(swap))).get(trait.name)
            if swap.hits and isinstance(score, TraitScore) and score.state == "ok":
                problem = f"the judge replied {beside!r}, and {trait.name!r} has the score {score.value!r}"
                yield trial.fault(problem, REPORT)


def _misfit(score: TraitScore, trait: RubricTrait) -> str:
    scale, value = trait.scale(), score.value
    kind, classes = scale_kind(scale), scale_classes(scale)
    wanted = misfit(kind, scale, value)
    validate = getattr(trait, "validate_score", None)
    if wanted or (validate is not None and not validate(value)):
        return f"its score {value!r} is not {wanted or 'on its scale'}; scale() says {dict(scale)}"
    if kind == "literal" and classes and score.label not in (None, classes[value]):
        return f"its score is {value}, and its label {score.label!r}, of the classes {classes}"
    return ""


def _beside(scale: Mapping[str, Any]) -> Iterator[Any]:
    kind, low, high = scale_kind(scale), scale.get("min"), scale.get("max")
    if kind == "score" and isinstance(low, int) and isinstance(high, int):
        near = min(low + 1, high)
        yield from (high + 1, low - 1, low + 0.6, high + 0.4, str(low + 0.6), f"{near} of {high}", f"{near}/{high}")
        yield from (True, None)
    elif kind == "boolean":
        yield from (2, "perhaps so", None)
    elif kind == "literal" and (classes := scale_classes(scale)):
        yield from (f"not {classes[0]}", f"{classes[0]} or {classes[-1]}", None)


@define(eq=False)
class _Swap:
    """Puts one value where a schema asks for a score of a scale."""

    scale: Mapping[str, Any]
    value: Any
    hits: int = 0

    def __call__(self, schema: Mapping[str, Any]) -> tuple[Any, ...]:
        if not self.fits(schema):
            return ()
        self.hits += 1
        return (self.value,)

    def fits(self, schema: Mapping[str, Any]) -> bool:
        """Whether the schema asks for a score of the scale."""
        kinds = schema.get("type", ())
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if self.value is None and ("null" in kinds or schema.get("nullable")):
            return False
        scale, bounds = self.scale, (schema.get("minimum"), schema.get("maximum"))
        if scale_kind(scale) == "boolean":
            return "boolean" in kinds
        if scale_kind(scale) == "literal":
            return list(schema.get("enum", ())) == scale_classes(scale)
        if bounds != (scale.get("min"), scale.get("max")):
            return False
        return "integer" in kinds or ("number" in kinds and not isinstance(self.value, float))
