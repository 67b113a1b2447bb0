"""Composition strategies: which of the verified fields must be right, as a tree.

    class Answer(BaseAnswer):
        drug: str = VerifiedField(...)
        brand: str = VerifiedField(...)

        class VerificationStrategy:
            verify_strategy = AnyOf([FieldCheck("drug"), FieldCheck("brand")])

Verdict and partial credit come from the same tree, so that an answer that passes with full scores has full credit.
As data, a node is an object with a `type`: `{"type": "at_least_n", "n": 2, "conditions": [...]}`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from attrs import frozen

from karenina_core.errors import TemplateError, did_you_mean

MAX_DEPTH = 40
"""Levels of a tree; every level costs a call when it is evaluated. Chosen, not measured: readers manage fewer."""


@frozen
class FieldCheck:
    """Passes when this field is right. A field without a value is not."""

    type: ClassVar[str] = "field_check"

    field: str

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.field, str):
            raise TypeError(f"FieldCheck takes the name of a field, not {self.field!r}")


@frozen(init=False)
class _Group:
    conditions: tuple[Condition, ...]

    def __init__(self, *given: Any, conditions: Any = None) -> None:
        self.__attrs_init__(_conditions(type(self).__name__, given, conditions))


@frozen(init=False)
class AllOf(_Group):
    """Passes when every condition does; without conditions it passes."""

    type: ClassVar[str] = "all_of"


@frozen(init=False)
class AnyOf(_Group):
    """Passes when at least one condition does; without conditions it fails."""

    type: ClassVar[str] = "any_of"


@frozen(init=False)
class AtLeastN:
    """Passes when at least `n` of the conditions do. `n` is a whole number from 0 to the number of conditions."""

    type: ClassVar[str] = "at_least_n"

    n: int
    conditions: tuple[Condition, ...]

    def __init__(self, n: int, *given: Any, conditions: Any = None) -> None:
        found = _conditions("AtLeastN", given, conditions)
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"AtLeastN needs a whole number first, AtLeastN(2, [...]), not {n!r}")
        if not 0 <= n <= len(found):
            raise ValueError(f"AtLeastN({n}) of {len(found)} conditions: write a number from 0 to {len(found)}")
        self.__attrs_init__(n, found)


Condition = AllOf | AnyOf | AtLeastN | FieldCheck
NODES: Mapping[str, Any] = {node.type: node for node in (AllOf, AnyOf, AtLeastN, FieldCheck)}


def _conditions(name: str, given: tuple[Any, ...], conditions: Any) -> tuple[Condition, ...]:
    """Conditions given as one list, one by one, or by keyword."""
    if given and conditions is not None:
        raise TypeError(f"{name} got its conditions twice; give them once, as a list")
    if len(given) == 1 and not isinstance(given[0], Condition):
        conditions, given = given[0], ()
    if conditions is not None and (isinstance(conditions, str | Mapping) or not isinstance(conditions, Iterable)):
        raise TypeError(f"{name} needs a list of conditions, such as [FieldCheck('drug')], not {conditions!r}")
    found: tuple[Any, ...] = given if conditions is None else tuple(conditions)
    for item in found:
        if not isinstance(item, Condition):
            hint = f"write FieldCheck({item!r})" if isinstance(item, str) else "use FieldCheck, AllOf, AnyOf, AtLeastN"
            raise TypeError(f"{item!r} in {name} is not a condition; {hint}")
    return found


def strategy_name(condition: Condition | None) -> str | None:
    """The root of a tree as results name it: `all_of`, `any_of`, `at_least_n(2)`, `field_check`; None without one."""
    if isinstance(condition, AtLeastN):
        return f"{condition.type}({condition.n})"
    return None if condition is None else condition.type


def fields_of(condition: Condition) -> frozenset[str]:
    """The names of all fields in a tree."""
    return frozenset(node.field for node, _ in _nodes(condition) if isinstance(node, FieldCheck))


def _nodes(condition: Condition) -> Iterator[tuple[Condition, int]]:
    """Every node of a tree and its level, from 1. Deeper ones than the limit are left out."""
    waiting = [(condition, 1)]
    while waiting:
        node, level = waiting.pop()
        yield node, level
        if not isinstance(node, FieldCheck) and level <= MAX_DEPTH:
            waiting += [(child, level + 1) for child in node.conditions]


def condition_problems(condition: Any, fields: Iterable[str]) -> list[str]:
    """What is wrong with a tree for a template whose verified fields are these."""
    known = list(fields)
    if not isinstance(condition, Condition):
        return [f"verify_strategy must be FieldCheck, AllOf, AnyOf or AtLeastN, not {condition!r}"]
    if not known:
        return ["verify_strategy has nothing to decide on: no field is a VerifiedField"]
    if any(level > MAX_DEPTH for _, level in _nodes(condition)):
        return [f"verify_strategy is nested deeper than {MAX_DEPTH} levels; flatten it"]
    names = fields_of(condition)
    unknown = [
        f"FieldCheck({name!r}) names no verified field{did_you_mean(name, known)}; available: {', '.join(known)}"
        for name in sorted(names - set(known))
    ]
    if unknown:
        return unknown
    # Right fields never do harm, so all wrong and all right are the extremes.
    weights = dict.fromkeys(names, 1.0)
    if evaluate(condition, dict.fromkeys(names, False), dict.fromkeys(names, 0.0), weights).passed:
        return [
            f"{_TOO} fail: it passes even with every field wrong; add FieldCheck('name') or raise the n of AtLeastN"
        ]
    if not evaluate(condition, dict.fromkeys(names, True), dict.fromkeys(names, 1.0), weights).passed:
        return [f"{_TOO} pass: it fails even with every field right; give its AnyOf conditions such as FieldCheck('x')"]
    return []


_TOO = "verify_strategy is one that no answer can"


@frozen
class Evaluated:
    """The state of a node of the tree: its verdict, its partial credit from 0 to 1, and how much it weighs."""

    passed: bool
    score: float
    weight: float
    """Sum of the weights of the fields below it, each as often as it occurs; always finite."""
    fields: bool
    """Whether there is any field below it."""


def evaluate(
    condition: Condition,
    results: Mapping[str, bool | None],
    scores: Mapping[str, float | None],
    weights: Mapping[str, float],
) -> Evaluated:
    """Decide on a tree. A field without a value is not right and scores 0.

    `FieldCheck` has the score and the weight of its field. `AllOf` scores the weighted mean of its conditions, `AnyOf`
    the largest of their scores, `AtLeastN` the weighted mean of the n best. Where the weights sum to 0, a mean is 0,
    and so is the score of the whole tree.
    """
    found = _evaluate(condition, results, scores, weights)
    if found.fields and found.weight == 0:
        return Evaluated(found.passed, 0.0, 0.0, True)
    return found


def _evaluate(
    node: Condition,
    results: Mapping[str, bool | None],
    scores: Mapping[str, float | None],
    weights: Mapping[str, float],
) -> Evaluated:
    if isinstance(node, FieldCheck):
        return Evaluated(results[node.field] is True, scores[node.field] or 0.0, weights[node.field], True)
    below = [_evaluate(child, results, scores, weights) for child in node.conditions]
    passing = sum([child.passed for child in below])
    if isinstance(node, AllOf):
        passed, score = passing == len(below), _mean(below)
    elif isinstance(node, AnyOf):
        passed, score = passing > 0, max((child.score for child in below), default=0.0)
    else:
        best = sorted(below, key=lambda child: (child.score, child.weight), reverse=True)[: node.n]
        passed, score = passing >= node.n, _mean(best)
    weight = min(sum([child.weight for child in below]), sys.float_info.max)
    return Evaluated(passed, score, weight, bool([child for child in below if child.fields]))


def _mean(parts: list[Evaluated]) -> float:
    """Weighted mean. Weights are taken relative to the largest, because the sum of large ones may be infinite."""
    largest = max([found.weight for found in parts], default=0.0)
    if largest == 0:
        fields = any(found.fields for found in parts)
        return 0.0 if fields else min((found.score for found in parts), default=1.0)
    shares = [(found.weight / largest, found.score) for found in parts]
    return min(sum([share * score for share, score in shares]) / sum([share for share, _ in shares]), 1.0)


def condition_spec(condition: Condition) -> dict[str, Any]:
    """The plain data that `condition_from_spec` turns into an equal tree."""
    if isinstance(condition, FieldCheck):
        return {"type": condition.type, "field": condition.field}
    children = {"conditions": [condition_spec(child) for child in condition.conditions]}
    number = {"n": condition.n} if isinstance(condition, AtLeastN) else {}
    return {"type": condition.type, **number, **children}


def condition_from_spec(spec: Any, level: int = 1) -> Condition:
    """Make the tree that `spec` describes, at this level of a larger one. Raises TemplateError for what is no tree."""
    form = '{"type": "any_of", "conditions": [{"type": "field_check", "field": "drug"}]}'
    if not isinstance(spec, Mapping) or not isinstance(kind := spec.get("type"), str):
        raise TemplateError(f"a condition is written {form}, not {spec!r:.200}")
    if kind not in NODES:
        raise TemplateError(f"unknown condition {kind!r}{did_you_mean(kind, NODES)}; available: {', '.join(NODES)}")
    if level > MAX_DEPTH:
        raise TemplateError(f"conditions are nested deeper than {MAX_DEPTH} levels; flatten them")
    given = {("field" if key == "field_name" else key): value for key, value in spec.items() if key != "type"}
    wanted = {"field_check": ("field",), "at_least_n": ("n", "conditions")}.get(kind, ("conditions",))
    # What a builder writes for the parameters of other nodes is empty and means nothing.
    given = {key: value for key, value in given.items() if key in wanted or value not in (None, [])}
    for key in [key for key in given if key not in wanted]:
        hint = did_you_mean(str(key), wanted)
        raise TemplateError(f"{kind}: unknown parameter {key!r}{hint}; it takes {', '.join(wanted)}")
    for key in wanted:
        if key not in given:
            raise TemplateError(f"{kind}: parameter {key!r} is missing")
    if "conditions" in given:
        if not isinstance(given["conditions"], list | tuple):
            raise TemplateError(f"{kind}: conditions must be a list, not {given['conditions']!r:.200}")
        given["conditions"] = [condition_from_spec(part, level + 1) for part in given["conditions"]]
    try:
        made: Condition = NODES[kind](**given)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"{kind}: {error}") from None
    return made
