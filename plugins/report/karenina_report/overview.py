"""The first part of the page: what is true of the whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_compare.comparison.compare import ties_among
from karenina_compare.measures import PASS_RATE
from karenina_compare.numbers import Planned, headline_of, planned_of
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.summaries.canaries import canaries_in
from karenina_runs.summaries.item_rows import as_json
from markupsafe import Markup

from karenina_core.errors import plural

from . import plots
from .counts import Counts
from .outcomes import CAVEATS, GROUPS, KINDS, OutcomeKind
from .pairs import Pair, Ranks, TraitProfile, pairs_of, profiles
from .plots import as_svg
from .texts import usage_cells, without_secrets

MOST_RANKED = 12
"""Models of one judge that are compared with each other; the time that it takes grows with the square."""


@frozen
class Plot:
    """A drawing and what it is called."""

    svg: Markup
    caption: str


@frozen(kw_only=True)
class FailureRow:
    """One reason why items did not pass."""

    outcome: OutcomeKind
    group: str
    """The name of the group, as the column `failure_group` has it; empty for skipped items."""
    description: str
    """What the group is called."""
    reason: str
    counts: Sequence[int]
    """Items of each pair."""


@frozen
class QuestionRow:
    """A question that not every item passes."""

    id: str
    text: str
    passed: int
    items: int
    cells: Sequence[Sequence[tuple[str, OutcomeKind, int]]]
    """For each pair: anchor, outcome and replicate of every item."""


def overview_of(about: VerificationResultSet, counts: Counts, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Rates, failures, traits, cost, and how the run was made, as `overview.html` names them; `about` has what belongs
    to the run as a whole."""
    planned = planned_of(about)
    pairs_planned = about.planned.pairs if about.planned is not None else ()
    headline = headline_of(counts.items, named=counts.named, planned=planned, pairs=pairs_planned)
    # how many answering models the judge has that has most of them
    answering = max(Counter(parsing for _, parsing in counts.listing.pairs).values(), default=0)
    ranked = 1 < answering <= MOST_RANKED
    pairs = pairs_of(counts, headline, _ranks(counts, planned) if ranked else None)
    kinds, traits = counts.listing.outcomes, profiles(pairs)
    plain = without_secrets(manifest)
    listed = plain.get("plugins")
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    active = [row for row in rows if row.get("state") == "active"]
    names = dict.fromkeys(name for pair in pairs for name in sorted(pair.caveats))
    literal = [trait for trait in traits if trait.kind == "literal" and trait.classes]
    estimates = [part for pair in pairs for k in pair.numbers.repeated for part in (k.at_least_one, k.all_of_them)]
    return {
        "pairs": pairs,
        "notes": (*headline.notes, *counts.tally.failed_scores, *_unasked(counts)),
        "kinds": kinds,
        "failures": _failures(pairs),
        # name, meaning, and the number of items of each pair
        "caveats": [(name, CAVEATS.get(name, ""), [pair.caveats[name] for pair in pairs]) for name in names],
        # why numbers of several answers have no interval
        "unsure": list(
            dict.fromkeys(part.note.partition(";")[0] for part in estimates if part.interval is None and part.note)
        ),
        "unranked": answering > MOST_RANKED,
        "traits": traits,
        "questions": _questions(counts),
        "more_questions": counts.more_hard,
        "usage": _usage(counts),
        "plots": _plots(pairs, kinds, traits),
        "class_plots": [
            _plot(f"classes{place}", f"Classes of {trait.name}", plots.class_bars(trait))
            for place, trait in enumerate(literal)
        ],
        "canaries": canaries_in(plain),
        "run": _run(plain) | {"isolation": _isolation(counts)},
        "configuration": _flat(plain.get("config") or {}),
        "plugins": [[str(row.get(name) or "") for name in ("name", "distribution", "version")] for row in active],
    }


def _unasked(counts: Counts) -> list[str]:
    return [
        f"{answering}, judged by {parsing}: none of {plural(found.rates.absent, 'planned item')} has a result"
        for (answering, parsing), found in counts.tally.pairs.items()
        if not found.rates.items
    ]


def _usage(counts: Counts) -> list[tuple[str, ...]]:
    counted = ("items", "calls", "attempts")
    return [
        (task.replace("_", " "), ", ".join(map(str, row["models"])), *usage_cells(row, counted))
        for task, row in counts.tally.usage.by_task().items()
    ]


def _ranks(counts: Counts, planned: Planned | None) -> Ranks:
    """As `karenina compare` has them: where two models are tied, either may be the better one."""
    return {
        (answering, tie.parsing): ranks
        for tie in ties_among(counts.items, planned=planned, named=counts.named)
        if tie.metric == PASS_RATE.name
        for answering, ranks in tie.ranks.items()
    }


def _failures(pairs: Sequence[Pair]) -> list[FailureRow]:
    order = list(KINDS)
    found = dict.fromkeys(key for pair in pairs for key in pair.failures)
    total = {key: sum(pair.failures[key] for pair in pairs) for key in found}
    keys = sorted(found, key=lambda key: (order.index(key[0]), -total[key], key))
    return [
        FailureRow(
            outcome=KINDS[key[0]],
            group=key[1],
            description=GROUPS.get(key[1], key[1]),
            reason=key[2],
            counts=[pair.failures[key] for pair in pairs],
        )
        for key in keys
    ]


def _questions(counts: Counts) -> list[QuestionRow]:
    rows = []
    for question, places in counts.hard.items():
        passed = sum(counts.listing.outcome(place).name == "passed" for place in places)
        cells = counts.listing.cells(places)
        rows.append(QuestionRow(question, counts.texts[question], passed, len(places), cells))
    return rows


def _run(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest says, as far as it can be read. Everything is text for people."""
    benchmark = _mapping(manifest.get("benchmark"))
    warnings = benchmark.get("warnings")
    texts = {name: str(manifest.get(name) or "") for name in ("run_name", "status", "created_at", "evaluation_mode")}
    return {
        **texts,
        "known": bool(manifest),
        "created_at": texts["created_at"][:16].replace("T", " "),
        "mode": texts["evaluation_mode"].replace("_", " "),
        "items": str(manifest.get("items") or 0),
        "benchmark": ", version ".join(str(benchmark[key]) for key in ("name", "version") if benchmark.get(key)),
        "sha256": str(benchmark.get("sha256") or ""),
        "warnings": list(map(str, warnings)) if isinstance(warnings, list) else [],
        "versions": [(str(name), str(version)) for name, version in _mapping(manifest.get("versions")).items()],
    }


def _isolation(counts: Counts) -> str:
    """How the code of templates was kept apart, with the number of items."""
    return ", ".join(f"{name} {count}" for name, count in sorted((n, c) for n, c in counts.isolation.items() if n))


def _plots(pairs: Sequence[Pair], kinds: Sequence[OutcomeKind], traits: Sequence[TraitProfile]) -> dict[str, Plot]:
    found: dict[str, Plot] = {}
    rated = [pair for pair in pairs if pair.numbers.pass_rate.value is not None]
    placed = [trait for trait in traits if any(cell.position is not None for cell in trait.cells)]
    if rated:
        found["rates"] = _plot("rates", "Pass rate of every model with its 95 % interval", plots.interval_plot(rated))
    if pairs:
        found["outcomes"] = _plot("outcomes", "How the items ended", plots.outcome_bars(pairs, kinds))
        found["seconds"] = _plot("seconds", "Time of every item", plots.seconds_plot(pairs))
    if placed:
        caption = "Rubric profile: rates and means of traits"
        found["traits"] = _plot("traits", caption, plots.trait_plot(placed, pairs))
    return found


def _plot(name: str, caption: str, figure: Any) -> Plot:
    return Plot(as_svg(figure, name, caption), caption)


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _flat(settings: Any, path: str = "") -> list[tuple[str, str]]:
    """`(key.path, value)` of everything that is set."""
    if isinstance(settings, Mapping) and settings:
        return [row for key, item in settings.items() for row in _flat(item, f"{path}.{key}" if path else str(key))]
    if isinstance(settings, list) and any(isinstance(item, Mapping) for item in settings):
        return [row for place, item in enumerate(settings, 1) for row in _flat(item, f"{path}.{place}")]
    if settings is None or settings in ("", {}, []):
        return []
    return [(path, settings if isinstance(settings, str) else as_json(settings))]
