"""Comparisons of two runs, and of the models of one run."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations, islice
from types import MappingProxyType

from karenina_vocabulary.explanations import JUDGED_AGAINST_REFERENCE

from karenina_core.errors import ConfigError, plural
from karenina_core.values.result import VerificationResult

from ..headline import Headline
from ..measures import Item, Measure, Measures
from ..numbers import Planned, doubles, headline_of, planned_of
from ..question_groups import Cluster, Groups, Named, first_groups, group_notes, groups_named, groups_of
from .details import flipped, results_of, ties
from .rows import Facing, judged, row
from .sides import Models, Side, matched, paired, sides_of
from .values import Comparison, Correction, Flip, Pair, Row, Tie

Results = Iterable[VerificationResult]
ALPHA, LEVEL = 0.05, 0.95
"""What differences and intervals are judged by where nothing else is asked for; a convention of the field."""


def compare(
    a: Results,
    b: Results,
    *,
    metrics: Iterable[str] = (),
    models: Iterable[str] = (),
    judges: Iterable[str] = (),
    cluster: Cluster | None = None,
    correction: Correction = "holm",
    alpha: float = ALPHA,
    level: float = LEVEL,
    planned: tuple[Planned | None, Planned | None] = (None, None),
    unchanged: bool = False,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare the results B with the results A that were there before, paired by question and parsing model.

    Each answering model is compared with the same one of the other side, or with those that `models` says: texts such
    as `gpt=gpt-next`, a part of each name being enough; `judges` says the same of parsing models. Replicates are
    averaged by question. `metrics`: `pass_rate`, `answered_accuracy`, `trait:NAME`, `trait:*`; by default the pass
    rate, and all traits if no verdicts are due. All rows are one family for the correction. `cluster` and `planned` are
    as in `headline_numbers`, one `planned` a side. `unchanged` leaves out items that have changed.

    Raises ConfigError for such items without it, and for metrics and models that are not there."""
    planned = planned_of(a, planned[0]), planned_of(b, planned[1])
    items_a, items_b = ([Item.of(result) for result in own] for own in (a, b))
    first, second = results_of(items_a), results_of(items_b)
    measures = Measures.of([*items_a, *items_b])
    limited = measures.limited(chosen := measures.chosen(metrics))
    sides_a, sides_b = sides_of(items_a, limited, planned[0]), sides_of(items_b, limited, planned[1])
    mapping = _mapping(sides_a, sides_b, models, judges)
    pairs = paired(sides_a, sides_b, *mapping)
    if (changed := _changed(first, second)) and not unchanged:
        raise ConfigError(refusal(changed))
    groups = groups_of([*first, *second], cluster)
    facing = [_facing(p, measure, sides_a, sides_b, groups, level, changed) for p in pairs for measure in chosen]
    wanted_a = _wanted(sides_a, *(set(names) for names in mapping))
    wanted_b = _wanted(sides_b, *(set(names.values()) for names in mapping))
    ids_a, ids_b = ({result.metadata.question_id for result in own} for own in (first, second))
    rows, flips = _judged(facing, correction, alpha)
    return Comparison(
        name_a=names[0],
        name_b=names[1],
        rows=rows,
        flipped=flips,
        unpaired_a=_unpaired(wanted_a - {(p.answering, p.parsing) for p in pairs}),
        unpaired_b=_unpaired(wanted_b - {(p.answering_b, p.parsing_b) for p in pairs}),
        only_a=tuple(sorted(ids_a - ids_b)),
        only_b=tuple(sorted(ids_b - ids_a)),
        changed=changed,
        numbers_a=_numbers(items_a, wanted_a, cluster, planned[0], level),
        numbers_b=_numbers(items_b, wanted_b, cluster, planned[1], level),
        correction=correction,
        alpha=alpha,
        level=level,
        notes=_notes(measures, cluster, ("A: ", a, first), ("B: ", b, second)),
        nothing="" if rows else _nothing(chosen, pairs, _apart(sides_a, sides_b)),
    )


def compare_models(
    results: Results,
    *,
    metrics: Iterable[str] = (),
    models: Sequence[str] = (),
    cluster: Cluster | None = None,
    correction: Correction = "holm",
    alpha: float = ALPHA,
    level: float = LEVEL,
    planned: Planned | None = None,
    name: str = "",
) -> Comparison:
    """Compare the answering models of one set with each other, for each parsing model; else like `compare`.

    `models` are those to compare, a part of each name being enough; by default all.
    """
    planned, listed = planned_of(results, planned), list(results)
    items = [Item.of(result) for result in listed]
    measures = Measures.of(items)
    chosen = measures.chosen(metrics)
    sides = sides_of(items, measures.limited(chosen), planned)
    names = sorted({answering for answering, _ in sides})
    named = matched(models, names, names)
    wanted = {*named, *named.values()} or set(names)
    sides = {pair: side for pair, side in sides.items() if pair[0] in wanted}
    facing = _within(sides, chosen, groups_of(listed, cluster), level)
    rows, flips = _judged(facing, correction, alpha)
    numbers = _numbers(items, set(sides), cluster, planned, level)
    return Comparison(
        name_a=name,
        name_b=name,
        rows=rows,
        flipped=flips,
        within=True,
        ties=ties(sides, rows, chosen, alpha),
        numbers_a=numbers,
        numbers_b=numbers,
        correction=correction,
        alpha=alpha,
        level=level,
        notes=_notes(measures, cluster, ("", results, listed)),
        nothing="" if rows else _nothing(chosen, facing, ALONE),
    )


def ties_among(
    items: Sequence[Item], *, named: Named = MappingProxyType({}), planned: Planned | None = None
) -> tuple[Tie, ...]:
    """The `ties` that `compare_models` finds by default, in items that have been read and the groups that they name,
    for those who need nothing else of it."""
    measures = Measures.of(items)
    chosen = measures.chosen(())
    sides = sides_of(items, measures.limited(chosen), planned)
    facing = _within(sides, chosen, first_groups(named), LEVEL)
    return ties(sides, _rows(facing, "holm", ALPHA), chosen, ALPHA)


def _within(sides: Sides, chosen: Sequence[Measure], groups: Groups, level: float) -> list[Facing]:
    """Every two answering models of one judge, in every measure."""
    return [
        _facing(Pair(one, judge, other, judge), measure, sides, sides, groups, level)
        for judge in sorted({parsing for _, parsing in sides})
        for one, other in combinations([answering for answering, parsing in sides if parsing == judge], 2)
        for measure in chosen
    ]


ALONE = "no two models have the same parsing model; give a second run"
APART = (
    "no model of A is also in B with the same parsing model; name those that belong together (--models A=B, "
    "--judges A=B)"
)
UNMEASURED = "nothing is measured that could be compared; name another metric (--metric)"


def _apart(a: Collection[Models], b: Collection[Models]) -> str:
    """Why nothing belongs together, and what to type."""
    if len(a) != 1 or len(b) != 1:
        return APART
    named = zip(("models", "judges"), *a, *b, strict=True)
    pairs = {name: shlex.quote(f"{one}={other}") for name, one, other in named if one != other}
    options = " ".join(f"--{name} {pair}" for name, pair in pairs.items())
    return f"the {' and the '.join(pairs)} of A and B differ; to compare them, type: {options}"


def _nothing(chosen: Sequence[Measure], pairs: Sequence[object], unpaired: str) -> str:
    return UNMEASURED if not chosen or pairs else unpaired


Sides = Mapping[Models, Side]


def _mapping(a: Sides, b: Sides, models: Iterable[str], judges: Iterable[str]) -> list[dict[str, str]]:
    """Which answering, and which parsing, models belong together, as the user says."""
    names = ([sorted({pair[at] for pair in sides}) for sides in (a, b)] for at in (0, 1))
    return [matched(asked, *both) for asked, both in zip((models, judges), names, strict=True)]


def _facing(
    pair: Pair, measure: Measure, a: Sides, b: Sides, groups: Groups, level: float, changed: Collection[str] = ()
) -> Facing:
    of_a, of_b = a[pair.answering, pair.parsing], b[pair.answering_b, pair.parsing_b]
    return Facing(pair=pair, measure=measure, a=of_a, b=of_b, groups=groups, level=level, changed=changed)


def _judged(facing: Sequence[Facing], correction: Correction, alpha: float) -> tuple[tuple[Row, ...], tuple[Flip, ...]]:
    """The rows, and the questions that changed, the worst first."""
    flips = (flip for one in facing for flip in flipped(one))
    places = {"worse": 0, "different": 1, "better": 2}
    order = sorted(flips, key=lambda f: (places[f.change], -abs(f.b - f.a), f.metric, f.question_id, f.pair))
    return _rows(facing, correction, alpha), tuple(order)


def _rows(facing: Sequence[Facing], correction: Correction, alpha: float) -> tuple[Row, ...]:
    """One for each measure that is due in items of either side."""
    return judged([row(one) for one in facing if one.seen(one.a)], correction, alpha)


def _numbers(
    items: Iterable[Item], taken: set[Models], cluster: Cluster | None, planned: Planned | None, level: float
) -> Headline:
    own = [item for item in items if item.models in taken]
    return headline_of(own, named=groups_named(results_of(own), cluster), planned=planned, level=level)


def _wanted(sides: Iterable[Models], models: set[str], judges: set[str]) -> set[Models]:
    """Those that the user named; all where none are named."""
    return {
        (answering, parsing)
        for answering, parsing in sides
        if (not models or answering in models) and (not judges or parsing in judges)
    }


def _unpaired(models: Iterable[Models]) -> tuple[str, ...]:
    return tuple(f"{answering}, judged by {parsing}" for answering, parsing in sorted(models))


PARTS = {"question_text": "another text", "template_id": "another template", "item_digest": "another reference answer, "
         "examples or workspace"}  # fmt: skip
"""Fields of the metadata that are the same where an item is, and what it means where they are not."""


def _changed(a: Results, b: Results) -> dict[str, str]:
    """Questions of both sides that have no value of such a field in common, and what is another one there. Results
    without a digest say nothing of it."""
    found: dict[str, str] = {}
    for name, what in PARTS.items():
        old, new = _values(a, name), _values(b, name)
        for question in sorted(old.keys() & new.keys()):
            if old[question].isdisjoint(new[question]):
                found.setdefault(question, what)
    return dict(sorted(found.items()))


def _values(results: Results, name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for result in results:
        if value := getattr(result.metadata, name):
            found.setdefault(result.metadata.question_id, set()).add(value)
    return found


def refusal(changed: Mapping[str, str]) -> str:
    """Why these items are not compared, and what to do."""
    listed = [f"{question} ({what})" for question, what in islice(changed.items(), 10)]
    more = [f"{len(changed) - 10} more"] if len(changed) > 10 else []
    return (
        f"{plural(len(changed), 'item')} changed between the two runs: {', '.join([*listed, *more])}; "
        "compare the others (--unchanged), or run both on the same version of the benchmark"
    )


def _notes(measures: Measures, cluster: Cluster | None, *sets: tuple[str, Results, Results]) -> tuple[str, ...]:
    """What a reader must know of sets of results: `(label, the set as it was given, its results)`."""
    notes = [f"{name}: {why}" for name, why in measures.conflicts.items()]
    for label, _, results in sets:
        if weaker := sum(JUDGED_AGAINST_REFERENCE in result.metadata.caveats for result in results):
            notes.append(f"{label}{plural(weaker, 'item')} judged against a reference answer (weaker evidence)")
    for _, given, _ in sets:
        notes += getattr(given, "notes", ())
    every = [result for _, _, results in sets for result in results]
    repeated = [
        f"{label}{text}" for label, _, results in sets for text in doubles(result.metadata for result in results)
    ]
    return tuple(dict.fromkeys((*notes, *group_notes(groups_named(every, cluster)), *repeated)))
