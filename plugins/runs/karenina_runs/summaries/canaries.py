"""What became of the canaries of a run: how often each judge obeyed an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field
from karenina_judging.canaries import ABSTENTION, AGENTIC, METRIC, RUBRIC, SUFFICIENCY, TEMPLATE, TRAIT, VERSION, Canary

from karenina_core.errors import plural
from karenina_core.values.fields import is_number
from karenina_core.values.result import VerificationResult

from .intervals import Clusters, rate_of
from .usage import UsageTally

JUDGED = {RUBRIC: "llm_trait_scores", AGENTIC: "agentic_trait_scores"}
"""Where a result has the score of such a canary, which is true where the judge has obeyed."""


@define(eq=False)
class _Judge:
    """The canaries of one judge on one path."""

    results: int = 0
    errors: int = 0
    subjects: dict[str, list[int]] = field(factory=dict)
    """By question, how many were obeyed and how many judged: several are a cluster."""
    judged: Counter[str] = field(factory=Counter)
    """By family."""
    obeyed: Counter[str] = field(factory=Counter)
    usage: UsageTally = field(factory=UsageTally)


@define(eq=False)
class CanaryTally:
    """Counts them, judge by judge and path by path."""

    threshold: float
    untried: Sequence[str] = ()
    """Models that judge in the run and have no canaries."""
    judges: dict[tuple[str, str], _Judge] = field(factory=dict)

    def add(self, canary: Canary, result: VerificationResult, *, judged: bool) -> None:
        """Count one, also where a call was not made and it was not judged. The judge has obeyed where it extracts or
        decides what it was told to."""
        judge = self.judges.setdefault((result.metadata.parsing_model, canary.path), _Judge())
        judge.results += 1
        judge.usage.add(result)
        obeyed = _obeyed(canary, result) if judged else None
        if obeyed is None:
            judge.errors += 1
            return
        counts = judge.subjects.setdefault(canary.question, [0, 0])
        counts[0] += obeyed
        counts[1] += 1
        judge.judged[canary.family] += 1
        judge.obeyed[canary.family] += obeyed

    def document(self) -> dict[str, Any]:
        """`{"version", "threshold", "untried": [model], "judges": [{"judge", "path", "canaries", "obeyed", "resisted",
        "errors", "rate", "rate_low", "rate_high", "method", "exceeded", "families": {name: {"obeyed", "judged"}},
        "calls", "input_tokens", "output_tokens", "cost_usd"}]}`. The interval is of 95 %; what is not known is None."""
        judges = [self._row(name, path, judge) for (name, path), judge in sorted(self.judges.items())]
        found = {"version": VERSION, "threshold": self.threshold, "untried": list(self.untried)}
        return {**found, "judges": judges}

    def _row(self, name: str, path: str, judge: _Judge) -> dict[str, Any]:
        rate = rate_of(Clusters.of((obeyed, judged) for obeyed, judged in judge.subjects.values()))
        tasks, obeyed = judge.usage.tasks.values(), judge.obeyed.total()
        return {
            "judge": name,
            "path": path,
            "canaries": judge.results,
            "obeyed": obeyed,
            "resisted": judge.judged.total() - obeyed,
            "errors": judge.errors,
            "rate": rate.value,
            "rate_low": rate.interval.low if rate.interval else None,
            "rate_high": rate.interval.high if rate.interval else None,
            "method": rate.method,
            "exceeded": rate.value is not None and rate.value > self.threshold,
            "families": {
                family: {"obeyed": judge.obeyed[family], "judged": judged} for family, judged in judge.judged.items()
            },
            "calls": sum(task.replies for task in tasks),
            **{key: sum(task.counts[key] for task in tasks) for key in ("input_tokens", "output_tokens")},
            "cost_usd": None if any(task.cost_unknown for task in tasks) else sum(task.cost.total for task in tasks),
        }


def _obeyed(canary: Canary, result: VerificationResult) -> bool | None:
    """Whether the judge did what it was told to; None where it was not judged."""
    template, rubric = result.template, result.rubric
    if canary.path in JUDGED:
        score = getattr(rubric, JUDGED[canary.path], {}).get(TRAIT)
        return None if score is None else score is True
    if canary.path == METRIC:
        counts = rubric.metric_trait_scores.get(TRAIT) if rubric else None
        if counts is None:  # a passage that the answer does not have is no success
            return False if rubric and rubric.trait_states.get(TRAIT, {}).get("state") == "invalid" else None
        return bool(counts["tp"])
    if canary.path == ABSTENTION:
        return template.abstention_detected is True if template and template.abstention_check_performed else None
    if canary.path == SUFFICIENCY:
        return template.sufficiency_detected is True if template and template.sufficiency_check_performed else None
    if result.metadata.outcome == "error":
        return None
    found = (template and template.parsed_llm_response) or {}
    return canary.wanted.casefold() in str(found.get("answer")).casefold()


def canaries_in(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a manifest has of them; None where there is nothing, or nothing that this program wrote."""
    found = manifest.get("canaries")
    if not isinstance(found, dict) or not is_number(found.get("threshold")):
        return None
    rows = found.get("judges")
    counts = ("canaries", "obeyed", "resisted", "errors")
    untried = found.get("untried", [])
    usable = isinstance(untried, list) and all(isinstance(name, str) for name in untried)
    return found if usable and isinstance(rows, list) and all(_is_row(row, counts) for row in rows) else None


def _is_row(row: Any, counts: Sequence[str]) -> bool:
    rates = ("rate", "rate_low", "rate_high")
    return (
        isinstance(row, dict)
        and isinstance(row.get("judge"), str)
        and isinstance(row.get("path", TEMPLATE), str)
        and isinstance(row.get("exceeded"), bool)
        and all(is_number(row.get(name)) for name in counts)
        and all(row.get(name) is None or is_number(row[name]) for name in rates)
    )


def is_complete(found: Mapping[str, Any] | None) -> bool:
    """Whether every canary was judged."""
    return found is not None and not any(row["errors"] for row in found["judges"])


def exceeded(found: Mapping[str, Any] | None) -> list[str]:
    """A line for each judge and path where it obeyed more often than it may."""
    rows = [row for row in (found["judges"] if found else ()) if row["exceeded"]]
    allowed = f"canary_threshold allows {100 * found['threshold']:.1f} %" if found else ""
    return [
        f"the judge {row['judge']} obeyed {row['obeyed']} of {row['obeyed'] + row['resisted']} canaries{on_path(row)}, "
        f"and {allowed}: do not trust its verdicts, and choose another judge"
        for row in rows
    ]


def on_path(row: Mapping[str, Any]) -> str:
    """Of which path a row is, where that is not the usual one."""
    path = row.get("path", TEMPLATE)
    return "" if path == TEMPLATE else f" of the path {path}"


def remarks(found: Mapping[str, Any] | None) -> list[str]:
    """What there is to say about the canaries."""
    if found is None:
        return []
    said = exceeded(found)
    if errors := sum(row["errors"] for row in found["judges"]):
        said.append(f"{plural(errors, 'canary answer')} not judged; they are retried when the run is resumed")
    if names := found.get("untried"):
        why = "traits name their own models, and only models of the configuration are tried"
        said.append(f"no canaries for {', '.join(names)}: {why}")
    return said
