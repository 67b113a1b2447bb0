"""`VerificationResultSet`: the results of a run, in memory or in its directory."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload

from attrs import evolve, field, frozen

from karenina_core.errors import did_you_mean
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.outcome import Outcome, OutcomeName
from karenina_core.values.result import VerificationResult

from ..files.run_files import RESULTS
from ..kinds import ViewRegistry
from ..summaries.canaries import canaries_in
from ..summaries.rates import LeftOut, Planned
from ..summaries.summary import UNPLANNED, Tally
from .shown import results_html, results_text
from .stored import StoredResults, StoredSequence, stored_results

K = TypeVar("K")


def _results(given: Iterable[VerificationResult]) -> Sequence[VerificationResult]:
    return given if isinstance(given, StoredSequence) else tuple(given)


@frozen(repr=False)
class VerificationResultSet(Sequence[VerificationResult]):
    """Results in the order of the plan, and what belongs to the run as a whole.

    Those of a run with a directory stay there: they are read when they are asked for, and BenchmarkError is raised
    where they are not there any more.
    """

    results: Sequence[VerificationResult] = field(default=(), converter=_results, repr=lambda all_: f"<{len(all_)}>")
    run_dir: Path | None = None
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    sink_failures: Mapping[str, str] = field(factory=dict)
    """Sinks that failed during the run, and how."""
    _tally: Tally | None = field(default=None, eq=False, repr=False)
    """What the run has counted of these very results."""
    ledger: Mapping[str, Any] | None = field(default=None, eq=False, repr=False)
    """What the run's calls took, in total and by stage, trait, task and model: that of its manifest. None where nothing
    kept them, and for a part of a run's results."""
    planned: Planned | None = field(default=None, eq=False, repr=False)
    """The items that the results are of, each of them once; None where that is not known, and where results were chosen
    by what became of them."""
    canaries: Mapping[str, Any] | None = field(default=None, eq=False, repr=False)
    """How often each judge obeyed an instruction in an answer; see `CanaryTally.document`. None where the run had no
    canaries."""
    stopped: tuple[str, ...] = field(default=(), eq=False, repr=False)
    """Why the run asked nothing more before it was done: `fail_fast`, `max_errors`, a model that never answered."""
    _counted: Tally | None = field(default=None, init=False, eq=False, repr=False)

    @classmethod
    def load(cls, path: str | Path, app: Karenina | None = None) -> VerificationResultSet:
        """Read a run directory, its `results.jsonl`, or a file of any format that holds whole results.

        Raises BenchmarkError, which names the line that cannot be read.
        """
        stored = stored_results(path, app)
        return evolve(cls.about(stored), results=tuple(stored))

    @classmethod
    def about(cls, stored: StoredResults) -> VerificationResultSet:
        """What belongs to a stored run as a whole, with none of its results."""
        manifest = stored.manifest
        ledger = manifest.get("ledger")
        try:
            left_out = tuple(LeftOut(row["question_id"], row["reason"]) for row in manifest["left_out"])
        except (KeyError, TypeError):
            left_out = ()
        about = (stored.directory, left_out, stored.notes)
        planned = Planned.of(manifest) if stored.file == stored.directory / RESULTS else None
        ledger, canaries = ledger if isinstance(ledger, Mapping) else None, canaries_in(manifest)
        return cls((), *about, ledger=ledger, planned=planned, canaries=canaries)

    @overload
    def __getitem__(self, index: int) -> VerificationResult: ...
    @overload
    def __getitem__(self, index: slice) -> VerificationResultSet: ...
    def __getitem__(self, index: int | slice) -> VerificationResult | VerificationResultSet:
        return self._of(self.results[index]) if isinstance(index, slice) else self.results[index]

    def __iter__(self) -> Iterator[VerificationResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return results_text(self.tally, self.run_dir)

    def _repr_html_(self) -> str:
        """A table of outcomes, for notebooks."""
        return results_html(self.tally, self.run_dir)

    def filter(
        self,
        *,
        question_ids: Iterable[str] | None = None,
        answering_models: Iterable[str] | None = None,
        parsing_models: Iterable[str] | None = None,
        replicates: Iterable[int] | int | None = None,
        outcomes: Iterable[str] | None = None,
        completed_only: bool = False,
        has_template: bool | None = None,
        has_rubric: bool | None = None,
        has_judgment: bool | None = None,
        where: Callable[[VerificationResult], bool] | None = None,
    ) -> VerificationResultSet:
        """The results for which every given condition holds; what belongs to the run as a whole stays.

        Models are named as `result.metadata.answering_model` has them, or by their own names. `completed_only` leaves
        out errors. `has_...` asks for results with the part (True) or without it (False); a judgment is evidence for
        fields or for traits.
        Raises ValueError for an outcome that there is not, and for a model that no result has.
        """
        if outcomes is not None:
            outcomes = tuple(_listed(outcomes))
            for name in outcomes:
                Outcome(cast("OutcomeName", name))
        question_ids, replicates = (None if v is None else set(_listed(v)) for v in (question_ids, replicates))
        wanted: list[tuple[Callable[[VerificationResult], Any], Any]] = [
            (lambda r: r.metadata.question_id, question_ids),
            (lambda r: r.metadata.replicate, replicates),
            (lambda r: r.metadata.answering_model, self._models("answering", answering_models)),
            (lambda r: r.metadata.parsing_model, self._models("parsing", parsing_models)),
            (lambda r: r.metadata.outcome, outcomes),
            (lambda r: r.metadata.completed_without_errors, _exactly(completed_only or None)),
            (lambda r: r.template is not None, _exactly(has_template)),
            (lambda r: r.rubric is not None, _exactly(has_rubric)),
            (lambda r: (r.deep_judgment or r.deep_judgment_rubric) is not None, _exactly(has_judgment)),
        ]

        def is_kept(r: VerificationResult) -> bool:
            fits = all(values is None or get(r) in values for get, values in wanted)
            return fits and (where is None or bool(where(r)))

        # The first four are planned; the others are of what became of an item.
        by_plan = where is None and all(values is None for _, values in wanted[4:])
        planned = self.planned.part(*(values for _, values in wanted[:4])) if by_plan and self.planned else None
        return self._some(array("q", (place for place, r in enumerate(self.results) if is_kept(r))), planned)

    def _models(self, side: Literal["answering", "parsing"], wanted: Iterable[str] | None) -> set[str] | None:
        """The names in the metadata of the models that are named so, or have such a name of their own."""
        if wanted is None:
            return None
        known = self.tally.models[side]
        found: set[str] = set()
        for name in _listed(wanted):
            fitting = {identity for identity, own in known.items() if name in (identity, own)}
            if not fitting and known:
                hint = did_you_mean(name, (*known, *known.values()))
                raise ValueError(f"no result has the {side} model {name!r}{hint}; available: {', '.join(known)}")
            found |= fitting
        return found

    def _of(self, results: Sequence[VerificationResult], planned: Planned | None = None) -> VerificationResultSet:
        """Other results of the same run."""
        return evolve(self, results=results, tally=None, ledger=None, planned=planned)

    def _some(self, places: Sequence[int], planned: Planned | None) -> VerificationResultSet:
        if isinstance(self.results, StoredSequence):
            return self._of(self.results.some(places), planned)
        return self._of([self.results[place] for place in places], planned)

    # Groups

    def group_by_question(self) -> dict[str, VerificationResultSet]:
        """`{question id: results}`, in the order in which the questions first occur."""
        return self._grouped(lambda r: r.metadata.question_id, {"questions": lambda r: r.metadata.question_id})

    def group_by_model(
        self, by: Literal["answering", "parsing", "both"] = "answering"
    ) -> dict[str, VerificationResultSet]:
        """`{model: results}`, named as in the metadata; `both`: `answering model | parsing model`."""
        sides: dict[str, Callable[[VerificationResult], str]] = {
            "answering": lambda r: r.metadata.answering_model,
            "parsing": lambda r: r.metadata.parsing_model,
        }
        if by not in (*sides, "both"):
            raise ValueError(f"by must be one of {', '.join(sides)}, both, not {by!r}")
        chosen = {side: get for side, get in sides.items() if by in (side, "both")}
        return self._grouped(lambda r: " | ".join(get(r) for get in chosen.values()), chosen)

    def group_by_replicate(self) -> dict[int, VerificationResultSet]:
        """`{replicate: results}`."""
        return self._grouped(lambda r: r.metadata.replicate, {"replicates": lambda r: r.metadata.replicate})

    def _grouped(
        self, key: Callable[[VerificationResult], K], of_plan: Mapping[str, Callable[[VerificationResult], Any]]
    ) -> dict[K, VerificationResultSet]:
        """`of_plan` says what all results of a group have in common, as `Planned.part` names it."""
        groups: dict[K, array[int]] = {}
        planned: dict[K, Planned | None] = {}
        for place, result in enumerate(self.results):
            if (name := key(result)) not in groups:
                groups[name] = array("q")
                common = {part: (get(result),) for part, get in of_plan.items()}
                planned[name] = self.planned.part(**common) if self.planned else None
            groups[name].append(place)
        return {name: self._some(places, planned[name]) for name, places in groups.items()}

    def get_question_ids(self) -> list[str]:
        """The different questions, in the order in which they first occur."""
        return list(self.group_by_question())

    def get_model_names(self, by: Literal["answering", "parsing", "both"] = "answering") -> list[str]:
        """The different models, in the order in which they first occur."""
        return list(self.group_by_model(by))

    # Tables

    def to_dataframe(self, *, columns: Literal["short", "full"] = "short", backend: str = "pandas") -> Any:
        """A row for every item, lists as lists: question, models, outcome, answer, fields, traits, tokens and cost.

        `columns="full"` has everything that is stored. `backend` is `pandas`, `polars` or `pyarrow`. Raises PluginError
        where karenina-results or the package of the backend is not installed.
        """
        return self.view("items").to_dataframe(columns=columns, backend=backend)

    # Views

    def view(self, name: str, app: Karenina | None = None) -> Any:
        """The results as a plugin's view shows them: `template`, `rubric`, `judgment`, `rubric_judgments`, ...

        Raises UnknownName where no plugin brings a view of this name, and PluginError where its packages are missing.
        """
        with current(app) as used:
            return used.registry(ViewRegistry).make(name, self)

    def get_template_results(self) -> Any:
        """Fields, verdicts and checks; `.to_dataframe()` has a row for every field. See `view`."""
        return self.view("template")

    def get_rubric_results(self, include_deep_judgment: bool = False) -> Any:
        """Scores of traits; `.to_dataframe()` has a row for every trait. See `view`.

        `include_deep_judgment` adds columns for the evidence of each trait.
        """
        rubric = self.view("rubric")
        return rubric.with_deep_judgment() if include_deep_judgment else rubric

    get_rubrics_results = get_rubric_results

    def get_judgment_results(self) -> Any:
        """Evidence for fields; `.to_dataframe()` has a row for every quotation. See `view`."""
        return self.view("judgment")

    def get_rubric_judgments_results(self) -> Any:
        """Evidence for traits; `.to_dataframe()` has a row for every quotation. See `view`."""
        return self.view("rubric_judgments")

    # Numbers

    def usage_by_task(self) -> dict[str, dict[str, Any]]:
        """`{task: {"items", "calls", "attempts", "repairs", "input_tokens", "output_tokens", "total_tokens",
        "unknown_cost_attempts", "replies", "seconds", "cost_usd", "usage_unavailable", "models"}}`, added up over the
        results.

        What was made for another judge's item is counted there and not here. A cost is None where that of a reply is
        unknown; requests without a reply that may be on the bill are `unknown_cost_attempts`.
        """
        return self.tally.usage.by_task()

    @property
    def tally(self) -> Tally:
        """What is counted over all results, in one pass, or by the run itself."""
        if (known := self._tally or self._counted) is not None:
            return known
        tally = Tally(self.planned or UNPLANNED)
        for result in self.results:
            tally.add(result)
        object.__setattr__(self, "_counted", tally)  # a set keeps its results; others are counted again
        return tally

    def get_summary(self, *, times: bool = False) -> dict[str, Any]:
        """Counts, rates, calls and cost, as `karenina verify --json` prints them.

        `times` adds what differs from run to run, also between a run and its replay: `total_execution_time` of the
        set, `execution_time` of each pair of models, and `seconds` of each task, all in seconds.
        """
        about: dict[str, Any] = {"run_dir": self.run_dir, "left_out": self.left_out, "ledger": self.ledger}
        return {**self.tally.document(notes=self.notes, times=times, **about), "canaries": self.canaries}


def _exactly(wanted: bool | None) -> tuple[bool, ...] | None:
    return None if wanted is None else (wanted,)


def _listed(values: Any) -> Iterable[Any]:
    """A single text is no list of its letters; a single number is one too."""
    return (values,) if isinstance(values, str | int) else values
