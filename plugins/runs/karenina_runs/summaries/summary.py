"""Counts and rates over results. Errors are in no rate's denominator, and always in the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from attrs import asdict, define, field
from karenina_calls.secrets.incoming import SECRET_REMOVED, sources_noted
from karenina_vocabulary.explanations import caveats_of, failure_kind
from karenina_vocabulary.rubric_part import TraitOutcome, read_traits

from karenina_core.errors import plural
from karenina_core.values.fields import is_number
from karenina_core.values.result import VerificationResult

from .exact import ExactSum
from .rates import LeftOut, Planned, RateTally, credit
from .trait_summary import TraitTally, has_no_scores
from .usage import TOKENS, TOTAL, CallTotals, UsageTally, tokens

UNPLANNED = Planned((), ())
"""Where it is not known which items are to come."""
OF_AGENTS = ("tool_calls", "iterations", "suspect_failed_tool_calls")


def summarize(results: Iterable[VerificationResult]) -> dict[str, Any]:
    """See `Tally.document`."""
    tally = Tally()
    for result in results:
        tally.add(result)
    return tally.document()


@define(eq=False)
class _Pair:
    """An answering model and a judge."""

    rates: RateTally
    outcomes: Counter[str] = field(factory=Counter)
    errors: Counter[str] = field(factory=Counter)
    failures: Counter[str] = field(factory=Counter)
    caveats: Counter[str] = field(factory=Counter)
    traits: TraitTally = field(factory=TraitTally)
    tokens: Counter[str] = field(factory=Counter)
    seconds: ExactSum = field(factory=ExactSum)
    completed: int = 0
    without_scores: int = 0

    def add(
        self, result: VerificationResult, earned: float | None, traits: Sequence[TraitOutcome], position: int | None
    ) -> None:
        about = result.metadata
        self.rates.count(about, earned)
        self.outcomes[about.outcome] += 1
        if about.outcome == "error":
            self.errors[about.outcome_detail or "unknown"] += 1
        if how := failure_kind(result):
            self.failures[how] += 1
        for caveat in caveats_of(result):
            self.caveats[caveat] += 1
        self.traits.add(traits, position)
        for name, count in tokens(result).items():
            self.tokens[name] += count
        self.seconds.add(about.execution_time)
        self.completed += about.completed_without_errors
        due = {trait.state for trait in traits} - {"skipped"}
        self.without_scores += "ok" not in due if due else has_no_scores(result)

    def row(self, names: tuple[str, str], *, times: bool) -> dict[str, Any]:
        absent = self.rates.absent
        return {
            "answering": names[0],
            "parsing": names[1],
            "items": self.outcomes.total(),
            "absent": absent,
            **self.rates.rates(absent),
            "outcomes": dict(self.outcomes),
            "failures": dict(self.failures),
            "errors": dict(self.errors),
            "caveats": dict(self.caveats),
            "traits": self.traits.lines(),
            "items_without_scores": self.without_scores,
            "completed": self.completed,
            "tokens": {name: self.tokens[name] for name in TOKENS},
            **({"execution_time": self.seconds.total} if times else {}),
        }


@define(eq=False)
class Tally:
    """Everything that is counted over results, while they come: none of them is kept."""

    planned: Planned = UNPLANNED
    """No item of it is to be added twice."""
    outcomes: Counter[str] = field(factory=Counter)
    pairs: dict[tuple[str, str], _Pair] = field(init=False)
    """By the names of the answering model and the judge: first those that are planned, also without any result."""
    replicates: dict[int, tuple[Counter[str], RateTally]] = field(init=False)
    """Outcomes and rates by the number of the replicate, those that are planned too."""
    models: Mapping[str, dict[str, str]] = field(factory=lambda: {"answering": {}, "parsing": {}})
    """Answering and parsing models: the models' own names by those of the metadata."""
    parts: Counter[str] = field(factory=Counter)
    """Results that have each of the parts."""
    usage: UsageTally = field(factory=UsageTally)
    seconds: ExactSum = field(factory=ExactSum)
    traits: dict[str, set[str]] = field(factory=dict)
    agents: Counter[str] = field(factory=Counter)
    """What the answering agents did. An answer that several judges share is counted once for each of them."""
    tool_calls: Counter[str] = field(factory=Counter)
    lengths: Counter[int] = field(factory=Counter)
    """Of traces, in messages."""
    complete: int = 0
    """Questions that have all their planned items."""
    _begun: dict[str, int] = field(factory=dict)
    """Items of each of the other questions."""
    calls: CallTotals = field(factory=CallTotals)
    """Those of all tasks; of results that share an answer, each has its calls."""
    failed_attempts: int = 0
    unknown_cost_attempts: int = 0
    removed: Counter[str] = field(factory=Counter)
    """Results that something was removed from, by the variable or the setting that it was the value of."""

    def __attrs_post_init__(self) -> None:
        self.pairs = {pair: self._pair() for pair in self.planned.pairs}
        self.replicates = {number: self._replicate() for number in self.planned.replicates}

    def _pair(self) -> _Pair:
        return _Pair(RateTally(len(self.planned.replicates), self.planned.questions))

    def _replicate(self) -> tuple[Counter[str], RateTally]:
        return Counter(), RateTally(len(self.planned.pairs), self.planned.questions)

    def add(
        self, result: VerificationResult, position: int | None = None, traits: Sequence[TraitOutcome] | None = None
    ) -> None:
        """`position` is the result's place among all; by default they come in their order. `traits` are its own, where
        they have been read."""
        about = result.metadata
        self._begun[about.question_id] = there = self._begun.get(about.question_id, 0) + 1
        if there == len(self.planned.replicates) * len(self.planned.pairs):
            del self._begun[about.question_id]
            self.complete += 1
        self.outcomes[about.outcome] += 1
        if (replicate := self.replicates.get(about.replicate)) is None:
            replicate = self.replicates[about.replicate] = self._replicate()
        replicate[0][about.outcome] += 1
        replicate[1].count(about, earned := credit(result))
        pair = (about.answering_model, about.parsing_model)
        self.models["answering"][pair[0]] = about.answering.model_name
        self.models["parsing"][pair[1]] = about.parsing.model_name
        if (found := self.pairs.get(pair)) is None:
            found = self.pairs[pair] = self._pair()
        if traits is None:
            traits = read_traits(result.rubric)
        found.add(result, earned, traits, position)
        self._add_parts(result, traits)
        for source in sources_noted(about.warnings) if about.warnings else ():
            self.removed[source] += 1
        if total := result.generation.usage_metadata.get(TOTAL):
            replies, attempts, unknown = self.calls.add(total), *map(total.get, ("attempts", "unknown_cost_attempts"))
            self.failed_attempts += attempts - replies if is_number(attempts) else 0
            self.unknown_cost_attempts += unknown if is_number(unknown) else 0

    def _add_parts(self, result: VerificationResult, traits: Iterable[TraitOutcome]) -> None:
        self.parts["template"] += result.template is not None
        self.parts["rubric"] += result.rubric is not None
        self.parts["judgment"] += (result.deep_judgment or result.deep_judgment_rubric) is not None
        self.usage.add(result)
        self.seconds.add(result.metadata.execution_time)
        for trait in traits:
            self.traits.setdefault(trait.type or "null", set()).add(trait.name)
        if agent := result.generation.agent_metrics:
            self.agents.update({name: agent[name] for name in OF_AGENTS if is_number(agent.get(name))}, items=1)
            calls = agent.get("tool_call_counts")
            for name, count in calls.items() if isinstance(calls, Mapping) else ():
                self.tool_calls[str(name)] += count if is_number(count) else 0
        self.lengths[len(result.generation.trace_messages)] += 1

    @property
    def failed_scores(self) -> list[str]:
        """Notes on types of traits of which a pair of models has no score at all, although scores were due."""
        return [
            f"every score of the {type_} traits failed ({plural(failed, 'score')}): {names[0]}, judged by {names[1]}"
            for names, found in self.pairs.items()
            for type_, failed in found.traits.failed_types().items()
        ]

    @property
    def removals(self) -> list[str]:
        """Notes on secrets that were removed from texts, without the secrets."""
        return [
            f"the value of {source} was removed from the texts of {plural(count, 'item')} (caveat "
            f"{SECRET_REMOVED}); if it is not a secret, unset the variable or choose another value, and run again"
            for source, count in sorted(self.removed.items())
        ]

    @property
    def absent(self) -> int:
        """How many planned items have no result."""
        return sum(found.rates.absent for found in self.pairs.values())

    def document(
        self,
        *,
        run_dir: Path | None = None,
        left_out: Sequence[LeftOut] = (),
        notes: Sequence[str] = (),
        ledger: Mapping[str, Any] | None = None,
        times: bool = False,
    ) -> dict[str, Any]:
        """The JSON document of `karenina verify`. `calls` are replies, `failed_attempts` requests without one.
        `cost_usd` is None where the cost of some reply is unknown; beside it, `unknown_cost_attempts` of the failed
        ones may be on the provider's bill. `usage_unavailable`: the tokens of some reply are unknown. All these say
        what the results took, whichever run paid for it; `spent` says what this run paid for. `times` adds how long
        items, pairs of models and tasks took.

        Each of the `models` has rates as `RateTally.rates` gives them; `absent`, the planned items that have no result;
        `failures`, the failed ones by what was wrong (see `failure_kind`); `errors` by kind; `caveats`, the number of
        items of each, which is also there for all models together; and `items_without_scores`, items of which a rubric
        was due and no trait has a score.
        `num_results` and `num_completed` count results, `num_with_...` those with the part, `num_questions` and its
        like the different ones that have results. `cached_input_tokens`, a part of the input `tokens`, are those that
        providers read from a cache of prompts, None where no reply says so. `usage` is as in `usage_by_task`.
        `rubric_traits`: names of traits by type (`null`: not known). `tool_usage_stats` is None where no answer was
        made with tools. `replicate_stats` has the rates and `absent` items of each replicate. Pairs of models and
        replicates that are planned are there without any result too.
        """
        replicates = [
            {"replicate": number, "items": found.items, "absent": found.absent}
            | found.rates(found.absent)
            | {"outcomes": dict(outcomes)}
            for number, (outcomes, found) in sorted(self.replicates.items())
        ]
        return {
            "run_dir": str(run_dir) if run_dir else None,
            "outcomes": dict(self.outcomes),
            "caveats": dict(sum((found.caveats for found in self.pairs.values()), Counter[str]())),
            "models": [found.row(names, times=times) for names, found in self.pairs.items()],
            "left_out": [asdict(left) for left in left_out],
            "notes": [*notes, *self.failed_scores, *self.removals],
            "calls": self.calls.replies,
            "failed_attempts": self.failed_attempts,
            "unknown_cost_attempts": self.unknown_cost_attempts,
            "cost_usd": None if self.calls.cost_unknown else self.calls.cost.total,
            "usage_unavailable": self.calls.unavailable,
            **spent(ledger),
            "replicate_stats": replicates,
            **self._parts_of_all(times=times),
            "num_questions": self.complete + len(self._begun),
            "num_models": len(self.models["answering"]),
            "num_parsing_models": len(self.models["parsing"]),
            "num_replicates": sum(found.items > 0 for _, found in self.replicates.values()),
        }

    def _parts_of_all(self, *, times: bool) -> dict[str, Any]:
        usage, tasks, lengths = self.usage.by_task(), self.usage.tasks.values(), list(self.lengths.elements())
        cached = [task.cached for task in tasks if task.cached is not None]
        if not times:
            usage = {task: {k: v for k, v in row.items() if k != "seconds"} for task, row in usage.items()}
        agents = {name: self.agents[name] for name in ("items", *OF_AGENTS)}
        return {
            "num_results": self.outcomes.total(),
            "num_completed": sum(found.completed for found in self.pairs.values()),
            **{f"num_with_{part}": self.parts[part] for part in ("template", "rubric", "judgment")},
            **({"total_execution_time": self.seconds.total} if times else {}),
            "tokens": {name: sum(task.counts[key] for task in tasks) for name, key in TOKENS.items()},
            "cached_input_tokens": sum(cached) if cached else None,
            "usage": usage,
            "rubric_traits": {type_: sorted(names) for type_, names in self.traits.items()},
            "tool_usage_stats": {**agents, "calls_by_tool": dict(self.tool_calls)} if agents["items"] else None,
            "trace_length_stats": (
                {"min": min(lengths), "mean": fmean(lengths), "median": median(lengths), "max": max(lengths)}
                if lengths
                else None
            ),
        }


def spent(ledger: Mapping[str, Any] | None) -> dict[str, Any]:
    """`{"reused_calls", "reused_cost_usd", "paid"}` of a run: its calls that other runs had paid for, what they cost
    there, and `{"calls", "failed_attempts", "unknown_cost_attempts", "cost_usd", "tokens"}` of those that were made in
    this run.

    A reply that several items share is one call. Costs are None where one is unknown. All three are None where nothing
    kept the calls, as in a run without a directory.
    """
    total = (ledger or {}).get("total")
    if not isinstance(total, Mapping):
        return {"reused_calls": None, "reused_cost_usd": None, "paid": None}
    return {
        "reused_calls": total["reused"],
        "reused_cost_usd": total.get("reused_cost_usd"),
        "paid": {
            "calls": total["calls"],
            "failed_attempts": total["failed"],
            "unknown_cost_attempts": total["unknown_cost_attempts"],
            "cost_usd": total["cost_usd"],
            "tokens": {name: total[f"{name}_tokens"] for name in ("input", "output", "total")},
        },
    }
