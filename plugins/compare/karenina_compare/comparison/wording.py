"""How numbers and names of a comparison are written, in every format alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import frozen
from karenina_cli.summary import percent
from karenina_runs.summaries.intervals import Interval

from karenina_core.errors import plural

from ..question_groups import some_of
from .values import Comparison, Flip, Pair, Row


def value(number: float | None, is_rate: bool) -> str:
    """A rate in percent, a score as it is."""
    if number is None:
        return "n/a"
    return percent(number) if is_rate else f"{number:.4g}"


def signed(number: float | None, row: Row) -> str:
    """A difference: of rates in percentage points."""
    if number is None:
        return "n/a"
    return f"{100 * number:+.1f} pp" if row.is_rate else f"{number:+.4g}"


def points(size: float, row: Row) -> str:
    """The size of a difference: of rates in percentage points."""
    return f"{100 * size:.1f} pp" if row.is_rate else f"{size:.4g}"


def sight(row: Row) -> str:
    """What such data could not have shown; empty where nothing is compared."""
    if row.detectable is not None:
        whole = row.scale is not None and row.detectable >= row.scale
        what = "even the largest difference" if whole else f"a difference below {points(row.detectable, row)}"
        return f"{what} would mostly go unnoticed"
    if row.noticeable is None:
        return ""
    units = "questions" if row.clusters is None else "groups of questions"
    return f"fewer than {row.noticeable} {units} that differ would go unnoticed"


def interval(found: Interval | None, row: Row) -> str:
    """The limits of a difference."""
    return "" if found is None else f"{signed(found.low, row)} to {signed(found.high, row)}"


def p_value(p: float | None) -> str:
    """Three digits, and never 0."""
    return "n/a" if p is None else "< 0.0001" if p < 0.0001 else f"{p:.3g}"


def models(pair: Pair) -> str:
    """Which models are compared; what is the same on both sides is named once."""
    answering = pair.answering if pair.answering == pair.answering_b else f"{pair.answering} → {pair.answering_b}"
    parsing = pair.parsing if pair.parsing == pair.parsing_b else f"{pair.parsing} → {pair.parsing_b}"
    return f"{answering}, judged by {parsing}"


def counts(found: Mapping[str, int]) -> str:
    """`failed 2, error 1`."""
    return ", ".join(f"{name} {number}" for name, number in found.items())


@frozen
class Line:
    """One row as texts."""

    models: str
    metric: str
    a: str
    b: str
    difference: str
    counts: str
    """Questions of which B is better, and worse."""
    p: str
    compared: str
    verdict: str


HEAD = ("models", "metric", "A", "B", "difference", "better / worse", "p (adjusted)", "compared", "verdict")


def line(row: Row) -> Line:
    """One row as every format shows it."""
    limits = f" ({interval(row.interval, row)})" if row.interval else ""
    return Line(
        models=models(row.pair),
        metric=row.metric,
        a=value(row.a, row.is_rate),
        b=value(row.b, row.is_rate),
        difference=f"{signed(row.difference, row)}{limits}",
        counts="" if row.better is None else f"{row.better} / {row.worse}",
        p=p_value(row.p_adjusted),
        compared=f"{row.compared} of {row.questions}",
        verdict=row.verdict,
    )


GATES = ("", "gate", "about", "why")
TIES = ("model", "rank", "metric", "judge")
TIED = "Ranks that the comparisons leave open"


def tied(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """A row for each model of each judge and metric, under `TIES`."""
    return [
        (name, f"{low}" if low == high else f"{low} to {high}", tie.metric, tie.parsing)
        for tie in comparison.ties
        for name, (low, high) in tie.ranks.items()
    ]


def notable(rows: Sequence[Row]) -> list[Row]:
    """The rows, those first that say most."""
    return sorted(rows, key=lambda row: ORDER.index(row.verdict))


def sides(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """What A and B are: `(label, name)`."""
    if comparison.within:
        return (("A and B: models of", comparison.name_a),)
    return ("A:", comparison.name_a), ("B:", comparison.name_b)


def headline(comparison: Comparison) -> str:
    """One sentence: how many comparisons were made, and what they came to."""
    verdicts = [row.verdict for row in comparison.rows]
    counts = [f"{verdicts.count(name)} {name}" for name in dict.fromkeys(sorted(verdicts, key=ORDER.index))]
    return f"{plural(len(verdicts), 'comparison')}: {', '.join(counts)}" if verdicts else NOTHING


NOT_FOUND = "not_found"
NOTHING = "nothing could be compared"
ORDER: Sequence[str] = ("worse", "better", "different", "no difference found", "too few pairs", "not compared")


def change(flip: Flip, is_rate: bool) -> str:
    """From one value to the other."""
    return f"{value(flip.a, is_rate)} → {value(flip.b, is_rate)}"


def changed(comparison: Comparison, most: int) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and `most` rows of the changed questions, some of each kind of change, without columns that always say
    the same."""
    rates = {row.metric: row.is_rate for row in comparison.rows}
    several = len({row.pair for row in comparison.rows}) > 1, len(rates) > 1
    optional = [name for name, shown in zip(("models", "metric"), several, strict=True) if shown]
    rows = [
        (
            flip.question_id,
            *([models(flip.pair)] if several[0] else []),
            *([flip.metric] if several[1] else []),
            flip.change,
            change(flip, rates[flip.metric]),
            flip.of_a.excerpt,
            flip.of_b.excerpt,
        )
        for flip in _some_of_each(comparison.flipped, most)
    ]
    return ("question", *optional, "change", "A → B", "answer of A", "answer of B"), rows


def _some_of_each(flips: Sequence[Flip], most: int) -> list[Flip]:
    """The first of each kind of change, as many of each as there is room for; the others in their order."""
    kinds = Counter(flip.change for flip in flips)
    room: dict[str, int] = {}
    for left, kind in zip(range(len(kinds), 0, -1), sorted(kinds, key=kinds.__getitem__), strict=True):
        room[kind] = min(kinds[kind], (most - sum(room.values())) // left)
    found: list[Flip] = []
    for flip in flips:
        room[flip.change] -= 1
        found += [flip] if room[flip.change] >= 0 else []
    return found


def changes(comparison: Comparison) -> str:
    """How many questions changed, and how: `3 (2 worse, 1 better)`."""
    kinds = Counter(flip.change for flip in comparison.flipped)
    return f"{len(comparison.flipped)} ({', '.join(f'{number} {kind}' for kind, number in kinds.items())})"


def notes_on(comparison: Comparison) -> list[str]:
    """What a reader must know besides the rows: what is missing, what could have been found, what has changed."""
    several = len(comparison.rows) > 1
    notes = [f"{NOTHING[:1].upper()}{NOTHING[1:]}: {comparison.nothing}"] if comparison.nothing else []
    notes += [
        f"{models(row.pair)}, {row.metric}: {text}" if several else f"{text[:1].upper()}{text[1:]}"
        for row in comparison.rows
        for text in _of_row(row, comparison.alpha)
    ]
    numbers = {"A": comparison.numbers_a, "B": comparison.numbers_b}
    for name, found in [("All models", comparison.numbers_a)] if comparison.within else numbers.items():
        failures = found.overall.failures
        if failures.get(NOT_FOUND):
            what = f"{plural(sum(failures.values()), 'failed answer')}, {failures[NOT_FOUND]}"
            notes.append(f"{name}: of {what} miss something that was expected and have nothing wrong")
    notes += [f"Only in A: {name}" for name in comparison.unpaired_a]
    notes += [f"Only in B: {name}" for name in comparison.unpaired_b]
    notes += _questions("only in A", comparison.only_a)
    notes += _questions("only in B", comparison.only_b)
    for what in dict.fromkeys(comparison.changed.values()):
        changed = [question for question, part in comparison.changed.items() if part == what]
        notes += _questions(f"with {what} in B, not compared", changed)
    return [*notes, *comparison.notes]


def _of_row(row: Row, alpha: float) -> list[str]:
    details = []
    if row.missing_a or row.missing_b:
        sides = [
            f"{name} {counts(missing)}" for name, missing in (("A", row.missing_a), ("B", row.missing_b)) if missing
        ]
        bounds = f"; with them the difference is from {signed(row.worst, row)} to {signed(row.best, row)}"
        bounds = "" if row.worst is None else bounds
        details.append(f"items without a value: {'; '.join(sides)}{bounds}")
    if row.lost_p <= alpha and row.lost:
        details.append(
            f"{'B' if row.lost > 0 else 'A'} has significantly more answers without a value (adjusted p = "
            f"{p_value(row.lost_p)})"
        )
    if row.verdict == "no difference found" and (unseen := sight(row)):
        details.append(unseen)
    if row.clusters is not None:
        details.append(f"{plural(row.compared, 'question')} in {plural(row.clusters, 'group')}")
    return details


def _questions(what: str, ids: Sequence[str]) -> list[str]:
    return [f"Questions {what}: {len(ids)} ({some_of(ids)})"] if ids else []
