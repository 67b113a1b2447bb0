"""The comparison of a template's fields with their ground truth: metadata of a field, results, partial credit.

Most fields are decided from the extracted value alone. Two kinds need more: a trace primitive looks at the text of the
trace, and a semantic one at a similarity that its caller measured. What they need is the `Evidence`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from attrs import field, frozen

from karenina_core.errors import TemplateError, one_line

from .primitives.base import VerificationPrimitive, derives
from .primitives.text import SemanticMatch, TracePrimitive
from .strategies import AllOf, Condition, FieldCheck, evaluate

_IMMUTABLE = (str, int, float, bool, bytes, frozenset, type(None))
_ATOMS = frozenset(_IMMUTABLE) - {frozenset}


@frozen(eq=False)
class Verification:
    """How one field is verified. It travels beside the field, never inside a schema, and keeps the value's own type."""

    # Not in the repr: pydantic prints a field's metadata in error messages, and some of those are read by a judge.
    ground_truth: Any = field(repr=False)
    primitive: VerificationPrimitive = field(repr=False)
    weight: float = 1.0
    hint: str | None = None
    kind: Literal["value", "trace", "semantic"] = field(init=False, repr=False)
    """What decides: the extracted value, the text of the trace, or the value's similarity."""

    @kind.default
    def _kind(self) -> str:
        if derives(type(self.primitive), TracePrimitive):
            return "trace"
        return "semantic" if derives(type(self.primitive), SemanticMatch) else "value"

    def expected(self) -> Any:
        """The ground truth, as a copy where it could be changed in place: no item can spoil it for the next."""
        value = self.ground_truth
        if isinstance(value, _IMMUTABLE):
            return value
        flat = type(value) is list and _ATOMS.issuperset(map(type, value))  # as most of the others are
        return value.copy() if flat else copy.deepcopy(value)


@frozen
class Evidence:
    """What a verdict rests on beside the extracted values."""

    trace: str | None = None
    """The raw trace with everything in it."""
    said: str | None = None
    """What the answering model itself wrote; the whole trace where that is not known."""
    similarities: Mapping[str, float] = field(factory=dict)
    """Per semantic field: how similar value and ground truth are, from 0 to 1."""
    accepted: frozenset[str] = frozenset()
    """Fields that count as right, whatever was extracted."""


Finding = tuple[bool | None, float | None]
"""Whether a field is right, and its score; both None where the answer does not say."""
NOTHING: Finding = (None, None)
ACCEPTED: Finding = (True, 1.0)


@frozen
class Comparison:
    """Results and scores per verified field, and what follows from them."""

    results: Mapping[str, bool | None]
    scores: Mapping[str, float | None]
    passed: bool
    granular: float
    """Partial credit from 0 to 1; a field without a value counts 0."""


def compare(
    verified: Mapping[str, Verification],
    values: Mapping[str, Any],
    tree: Condition | None = None,
    evidence: Evidence | None = None,
) -> Comparison:
    """Compare all verified fields and decide by `tree`; without one all of them must be right.

    Raises TemplateError where a primitive cannot compare a value, or where the evidence that it needs is not there.
    """
    evidence = evidence or Evidence()
    findings = check_values(verified, values, evidence) | check_evidence(verified, values, evidence)
    return conclude(verified, tree or AllOf(map(FieldCheck, verified)), findings)


def check_values(
    verified: Mapping[str, Verification], values: Mapping[str, Any], evidence: Evidence
) -> dict[str, Finding]:
    """The findings of all fields that are decided from their extracted value alone."""
    own = {name: found for name, found in verified.items() if found.kind == "value"}
    return {name: _finding(name, found, values.get(name), evidence) for name, found in own.items()}


def check_evidence(
    verified: Mapping[str, Verification], values: Mapping[str, Any], evidence: Evidence
) -> dict[str, Finding]:
    """The findings of all other fields."""
    others = {name: found for name, found in verified.items() if found.kind != "value"}
    return {name: _finding(name, found, values.get(name), evidence) for name, found in others.items()}


def _finding(name: str, verification: Verification, value: Any, evidence: Evidence) -> Finding:
    if name in evidence.accepted:
        return ACCEPTED
    primitive: Any = verification.primitive
    if verification.kind == "trace":
        text = evidence.trace if primitive.scope == "trace" or evidence.said is None else evidence.said
        if text is None:
            raise TemplateError(
                f"field {name!r}: {type(primitive).__name__} looks at the trace, and there is none yet; "
                "fill the template through its handle and call verify(trace) first"
            )
        holds = _asked(name, primitive, "check_trace", lambda: primitive.check_trace(text))
        return holds is verification.ground_truth, float(holds is verification.ground_truth)
    if value is None:
        return NOTHING
    if verification.kind == "semantic":
        return _similar(name, verification, value, evidence)
    result = _asked(name, primitive, "check", lambda: primitive.check(value, verification.expected()))
    score = float(result)  # counts where the primitive has no score of its own within 0 and 1
    if type(primitive).score is not VerificationPrimitive.score:
        with suppress(Exception):  # the verdict does not depend on it
            own = float(primitive.score(value, verification.expected()))
            score = score if math.isnan(own) else min(max(own, 0.0), 1.0)
    return result, score


def remarks_on(
    verified: Mapping[str, Verification], values: Mapping[str, Any], findings: Mapping[str, Finding]
) -> tuple[str, ...]:
    """What the primitives have to say about the values that they found wrong."""
    found = []
    for name, (result, _) in findings.items():
        primitive = verified[name].primitive
        is_silent = type(primitive).remark is VerificationPrimitive.remark
        if result is not False or verified[name].kind != "value" or is_silent:
            continue
        with suppress(Exception):  # the verdict does not depend on it
            if remark := primitive.remark(values[name], verified[name].expected()):
                found.append(f"field {name!r}: {remark}")
    return tuple(found)


def conclude(verified: Mapping[str, Verification], tree: Condition, findings: Mapping[str, Finding]) -> Comparison:
    """Verdict and partial credit of these findings, one for every verified field."""
    results = {name: findings[name][0] for name in verified}
    scores = {name: findings[name][1] for name in verified}
    weights = {name: verification.weight for name, verification in verified.items()}
    found = evaluate(tree, results, scores, weights)
    return Comparison(results, scores, found.passed, found.score)


def _asked(name: str, primitive: VerificationPrimitive, method: str, call: Callable[[], object]) -> bool:
    """What a method of the primitive of a field returns. Raises TemplateError where it raises or gives no bool."""
    try:
        result = call()
    except Exception as error:  # primitives may come from anywhere
        raise TemplateError(f"field {name!r}: {type(primitive).__name__} raised {one_line(error)}") from error
    if result is True or result is False:
        return bool(result)
    what = f"{type(primitive).__name__}.{method} returned {result!r}"
    raise TemplateError(f"field {name!r}: {what}; it must return True or False")


def _similar(name: str, verification: Verification, value: Any, evidence: Evidence) -> Finding:
    primitive: Any = verification.primitive
    expected = verification.ground_truth
    if not isinstance(value, str) or not isinstance(expected, str):
        raise TemplateError(
            f"field {name!r}: SemanticMatch compares two texts, not {value!r:.80} with {expected!r:.80}"
        )
    similarity = 1.0 if value.strip() == expected.strip() else evidence.similarities.get(name)
    if similarity is None:
        raise TemplateError(
            f"field {name!r}: SemanticMatch needs an embedder, which says how similar the two texts are; verify it in "
            f"a run with one, or give verify(trace, similarities={{{name!r}: ...}})"
        )
    if not 0 <= similarity <= 1:
        raise TemplateError(f"field {name!r}: a similarity is a number from 0 to 1, not {similarity!r}")
    result = _asked(name, primitive, "accepts", lambda: primitive.accepts(similarity))
    return result, float(result)
