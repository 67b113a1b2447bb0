"""What can be measured of an item: verdicts and trait scores as numbers, and why there is none where one is due.

Three things are kept apart: a value, a value that is due and missing (with the reason), and nothing that is due.
Nothing is ever read as a failure that is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from attrs import define, evolve, field, frozen
from karenina_runs.summaries.rates import DECIDED, credit, is_due
from karenina_runs.summaries.trait_summary import has_no_scores
from karenina_vocabulary.explanations import failure_kind
from karenina_vocabulary.rubric_part import TraitOutcome, read_traits
from karenina_vocabulary.trait_scale import scale_classes

from karenina_core.errors import ConfigError, did_you_mean
from karenina_core.values.fields import is_number
from karenina_core.values.outcome import Outcome, OutcomeName
from karenina_core.values.result import VerificationResult

from .statistics.inputs import LARGEST

TRAIT = "trait:"
TRAITS = "trait:*"
ABSENT = "absent"
"""Why a planned item has no value that is not among the results."""
SEVERAL = "its scores have several scales or directions, and are not put together"
TWICE = "an item has two traits of this name"
MOST_SHARED = 4096
"""Different scores of traits that items share. Chosen: scales have few, and what is counted may have any number."""
SHARES = frozenset({"precision", "recall", "specificity", "accuracy", "f1"})
"""Metrics that lie between 0 and 1."""


@frozen(kw_only=True)
class Measure:
    """One thing that is measured."""

    name: str
    """`pass_rate`, `partial_credit`, `answered_accuracy` or `trait:NAME`; of metric traits and template kinds
    `trait:NAME.PART`, of one class of a literal trait `trait:NAME=CLASS`."""
    is_rate: bool
    """Whether every value is 0 or 1."""
    lowest: float | None = None
    """The smallest value that there can be; None where it is unknown."""
    highest: float | None = None
    higher_is_better: bool | None = True
    owner: str | None = None
    """The trait; None for verdicts."""
    silent: bool = False
    """Whether no item has a score that would show what it is."""


@frozen
class Reading:
    """What one item says of one measure."""

    value: float | None
    reason: str = ""
    """Why there is no value: `error(timeout)`, `skipped`, `trait missing`, `absent`, ..."""


@frozen(kw_only=True)
class Item:
    """What is measured of one result, which is read once for all that is asked of it. What is also in the metadata of a
    result is named as it is there."""

    question_id: str
    answering_model: str
    parsing_model: str
    replicate: int
    result_id: str
    outcome: OutcomeName
    outcome_detail: str | None
    evaluation_mode: str
    keywords: tuple[str, ...]
    credit: float | None
    """See `credit`."""
    failure: str | None
    """See `failure_kind`."""
    unscored: bool
    """See `has_no_scores`."""
    traits: Sequence[TraitOutcome]
    result: VerificationResult | None = field(default=None, repr=False)
    """Only where answers are to be shown."""

    @classmethod
    def of(
        cls,
        result: VerificationResult,
        traits: Sequence[TraitOutcome] | None = None,
        *,
        keep: bool = True,
        once: Callable[[Any], Any] = lambda value: value,
    ) -> Item:
        """`traits` are those of the result where they have been read. `keep` says whether the result stays, and `once`
        gives the same object for equal values."""
        if traits is None:
            traits = read_traits(result.rubric)
        about = result.metadata
        return cls(
            question_id=once(about.question_id),
            answering_model=once(about.answering_model),
            parsing_model=once(about.parsing_model),
            replicate=about.replicate,
            result_id=about.result_id,
            outcome=once(about.outcome),
            outcome_detail=once(about.outcome_detail),
            evaluation_mode=once(about.evaluation_mode),
            keywords=once(about.keywords),
            credit=credit(result),
            failure=failure_kind(result),
            unscored=not traits and has_no_scores(result),
            traits=traits,
            result=result if keep else None,
        )

    @property
    def models(self) -> tuple[str, str]:
        """The answering model and the judge."""
        return self.answering_model, self.parsing_model


@define(eq=False)
class ItemMaker:
    """Makes items without their results that share what they have alike, so that many of them can be kept."""

    _known: dict[Hashable, Any] = field(factory=dict)
    _scales: dict[str, Mapping[str, Any]] = field(factory=dict)
    """The last scale of each trait."""
    _traits: dict[Hashable, TraitOutcome] = field(factory=dict)

    def item(self, result: VerificationResult, traits: Sequence[TraitOutcome]) -> Item:
        return Item.of(result, tuple(map(self._trait, traits)), keep=False, once=self._once)

    def _once(self, value: Any) -> Any:
        return self._known.setdefault(value, value)

    def _trait(self, trait: TraitOutcome) -> TraitOutcome:
        """Of a trait, what is measured: no text of it is."""
        value, scale = trait.value, self._scales.get(trait.name)
        if scale != trait.scale or scale is None:
            scale = self._scales[trait.name] = trait.scale
        if isinstance(value, str):
            value = ""
        elif isinstance(value, Mapping):
            value = {name: part for name, part in value.items() if _numeric(part) is not None}
        whole = value is None or isinstance(value, str | int)
        key = (trait.name, trait.kind, trait.state, type(value), value, id(scale)) if whole else ()
        if (known := self._traits.get(key)) is not None:
            return known
        name, kind, state = map(self._once, (trait.name, trait.kind, trait.state))
        made = TraitOutcome(name=name, type=None, kind=kind, value=value, state=state, scale=scale)
        if whole and len(self._traits) < MOST_SHARED:
            self._traits[key] = made  # which keeps its scale, whose id is in the key
        return made


PASS_RATE = Measure(name="pass_rate", is_rate=True, lowest=0, highest=1)
ANSWERED = Measure(name="answered_accuracy", is_rate=True, lowest=0, highest=1)
PARTIAL_CREDIT = Measure(name="partial_credit", is_rate=False, lowest=0, highest=1)
VERDICTS = (PASS_RATE, PARTIAL_CREDIT, ANSWERED)


@frozen
class Measures:
    """Every measure of some results, by name, and how to read an item."""

    known: Mapping[str, Measure]
    conflicts: Mapping[str, str] = field(factory=dict)
    """Traits that are no one thing, and why: their scores are not put together."""
    owners: Mapping[str, frozenset[str]] = field(factory=dict, repr=False)
    """The traits that some item of a question speaks of, by question."""
    _owned: Mapping[str, Sequence[Measure]] = field(init=False, eq=False, repr=False)
    """The measures of each trait."""

    @_owned.default
    def _by_owner(self) -> Mapping[str, Sequence[Measure]]:
        found: dict[str, list[Measure]] = {}
        for measure in self.known.values():
            if measure.owner is not None:
                found.setdefault(measure.owner, []).append(measure)
        return found

    @classmethod
    def of(cls, items: Iterable[Item]) -> Measures:
        """All that is measured in these items. Give those of both runs that are compared."""
        found: dict[str, set[Measure]] = {}
        verdicts: set[str] = set()
        twice: set[str] = set()
        owners: dict[str, set[str]] = {}
        for item in items:
            traits = item.traits
            verdicts.update(measure.name for measure in VERDICTS if _verdict(item, measure) is not None)
            owners.setdefault(item.question_id, set()).update(trait.name for trait in traits)
            twice.update(name for name, often in Counter(trait.name for trait in traits).items() if often > 1)
            for trait in traits:
                for measure in _measures(trait):
                    found.setdefault(measure.name, set()).add(measure)
        # measures of items without a score count only where no item has one
        found = {name: {m for m in of_name if not m.silent} or of_name for name, of_name in sorted(found.items())}
        conflicts = {
            name: TWICE if any(measure.owner in twice for measure in of_name) else SEVERAL
            for name, of_name in found.items()
            if len(of_name) > 1 or any(measure.owner in twice for measure in of_name)
        }
        known = {measure.name: measure for measure in VERDICTS if measure.name in verdicts}
        single = {name: next(iter(of_name)) for name, of_name in found.items() if name not in conflicts}
        # without measures of traits of which parts are known
        parted = {measure.owner for measure in single.values() if not measure.silent}
        known |= {name: measure for name, measure in single.items() if not (measure.silent and measure.owner in parted)}
        due = {question: frozenset(names) for question, names in owners.items()}
        return cls(known, conflicts, due)

    def limited(self, chosen: Sequence[Measure]) -> Measures:
        """The same, of which only these measures are read."""
        return evolve(self, known={measure.name: measure for measure in chosen})

    def read(self, item: Item) -> dict[str, Reading]:
        """What an item says of every measure that is due in it."""
        verdicts = {measure.name: _verdict(item, measure) for measure in VERDICTS if measure.name in self.known}
        readings = {name: reading for name, reading in verdicts.items() if reading is not None}
        if item.unscored:
            # as other items of the question know them; where none does, all
            due = self.owners.get(item.question_id) or self._owned
            return readings | {m.name: _lost(item) for owner in due for m in self._owned.get(owner, ())}
        for trait in item.traits:
            for measure in self._owned.get(trait.name, ()):
                if (reading := _score(trait, measure)) is not None:
                    readings[measure.name] = reading
        return readings

    def chosen(self, names: Iterable[str]) -> list[Measure]:
        """The measures of these names, `trait:*` being all traits. None given: pass rates, or traits without verdicts.

        Raises ConfigError that says what there is.
        """
        traits = [measure for measure in self.known.values() if measure.owner is not None]
        asked = list(dict.fromkeys(names))
        if not asked:
            return [PASS_RATE] if "pass_rate" in self.known else traits
        chosen: dict[str, Measure] = {}
        for name in asked:
            for measure in traits if name == TRAITS else [self._named(name)]:
                chosen[measure.name] = measure
        return list(chosen.values())

    def _named(self, name: str) -> Measure:
        if name in self.known:
            return self.known[name]
        if name in self.conflicts:
            raise ConfigError(f"{name} cannot be compared: {self.conflicts[name]}; rename the traits that differ")
        raise ConfigError(
            f"there is no metric {name!r}{did_you_mean(name, self.known)}; "
            f"available: {', '.join(self.known) or 'nothing'}"
        )


def mean(values: Sequence[float]) -> float | None:
    """None without values."""
    return sum(values) / len(values) if values else None


def _verdict(item: Item, measure: Measure) -> Reading | None:
    """None where no verdict is due."""
    outcome = item.outcome
    if not is_due(item):
        return None
    if measure is PARTIAL_CREDIT and item.credit is not None:
        return _reading(item.credit)
    if outcome in (("passed", "failed") if measure is ANSWERED else DECIDED):
        return _reading(float(outcome == "passed"))
    return _lost(item)


@lru_cache(maxsize=4096)
def _reading(value: float | None, reason: str = "") -> Reading:
    """Those that are alike are one object: there is one for every measure of every item."""
    return Reading(value, reason)


def _lost(item: Item) -> Reading:
    return _reading(None, str(Outcome(item.outcome, item.outcome_detail)))


def _measures(trait: TraitOutcome) -> Iterator[Measure]:
    """What a trait measures, as far as this item shows."""
    better = trait.higher_is_better
    if trait.state == "skipped":
        return
    if trait.kind == "literal" and (classes := scale_classes(trait.scale)):
        for name in classes:
            yield Measure(**_named(trait, f"={name}"), is_rate=True, lowest=0, highest=1, higher_is_better=None)
        if better is not None:
            yield Measure(**_named(trait), is_rate=False, lowest=0, highest=len(classes) - 1, higher_is_better=better)
    elif trait.kind in ("metric", "template"):
        for name, value in _parts(trait).items():
            if (is_rate := _numeric(value)) is not None:
                share = isinstance(value, bool) or (trait.kind == "metric" and name in SHARES)
                bounds: dict[str, Any] = {"lowest": 0, "highest": 1} if share else {}
                yield Measure(**_named(trait, f".{name}"), is_rate=is_rate, **bounds, higher_is_better=better)
    elif trait.kind == "score":
        low, high = trait.scale.get("min"), trait.scale.get("max")
        known: dict[str, Any] = {"lowest": low, "highest": high} if is_number(low) and is_number(high) else {}
        yield Measure(**_named(trait), is_rate=False, **known, higher_is_better=better)
    elif trait.kind == "boolean" or isinstance(trait.value, bool):
        yield Measure(**_named(trait), is_rate=True, lowest=0, highest=1, higher_is_better=better)
    elif _numeric(trait.value) is False:
        yield Measure(**_named(trait), is_rate=False, higher_is_better=better)
    if trait.state != "ok" and trait.kind not in ("boolean", "score", "literal"):
        yield Measure(**_named(trait), is_rate=False, higher_is_better=better, silent=True)


def _named(trait: TraitOutcome, part: str = "") -> dict[str, Any]:
    return {"name": f"{TRAIT}{trait.name}{part}", "owner": trait.name}


def _parts(trait: TraitOutcome) -> Mapping[str, Any]:
    if trait.kind == "metric":
        return trait.metrics
    return trait.value if isinstance(trait.value, Mapping) else {}


def _numeric(value: Any) -> bool | None:
    """True for booleans, False for other numbers that can be computed with, None for what is neither."""
    if isinstance(value, bool):
        return True
    return False if is_number(value) and abs(value) <= LARGEST else None


def _score(trait: TraitOutcome, measure: Measure) -> Reading | None:
    """None where the trait was not due."""
    if trait.state == "skipped":
        return None
    if trait.state != "ok":
        return _reading(None, f"trait {trait.state}")
    part = measure.name.removeprefix(f"{TRAIT}{trait.name}")
    value = trait.value
    if part.startswith("="):
        classes = scale_classes(trait.scale)
        value = bool(classes) and classes[trait.value] == part[1:]
    elif part:
        value = _parts(trait).get(part[1:])
    if _numeric(value) is None:
        return _reading(None, "trait without a number")
    return _reading(float(value))
