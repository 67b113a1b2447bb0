"""From what a judge found for each instruction to counts and metrics. No model is called here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_judging.asking import closed_object
from karenina_vocabulary.traits import MetricRubricTrait

__all__ = [
    "Finding",
    "Found",
    "Instruction",
    "confusion",
    "contradictions",
    "findings_in",
    "findings_schema",
    "instructions_of",
    "metrics_of",
    "with_lists",
]

BUCKETS = ("tp", "fn", "fp", "tn")
MOST_QUOTATIONS = 32
"""Of one list. A weak model can repeat itself until its tokens are used up, and a schema that a server enforces ends
that; answers rarely say one thing more than a few times."""
QUOTATIONS = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_QUOTATIONS}
Found = Callable[[str], bool]
"""Whether a quotation is in the text."""


@frozen
class Instruction:
    """One thing that the judge looks for."""

    key: str
    """`tp_1`, `tp_2`, ..., `tn_1`, ...: what it is called in prompt and reply."""
    text: str

    @property
    def is_wanted(self) -> bool:
        """Whether a good answer has it; False for what a good answer does not have."""
        return self.key.startswith("tp_")


@frozen
class Finding:
    """What the judge found about one instruction."""

    instruction: Instruction
    holds: bool
    """Whether the answer has it."""
    excerpts: tuple[str, ...]
    wrong_attempts: tuple[str, ...] = ()

    @property
    def bucket(self) -> str:
        if self.instruction.is_wanted:
            return "tp" if self.holds else "fn"
        return "fp" if self.holds else "tn"

    def shown(self, found: Found) -> str:
        """Its entry in the list of its bucket: the passage of the answer, or the instruction."""
        return next(filter(found, self.excerpts), self.instruction.text) if self.holds else self.instruction.text

    def is_unfounded(self, found: Found) -> bool:
        """Whether the judge says that the answer has it and cannot quote it."""
        return self.holds and not any(map(found, self.excerpts))


def instructions_of(trait: MetricRubricTrait) -> tuple[Instruction, ...]:
    """The instructions that are asked about, in order; equal ones once where the trait removes repeats."""
    lists = {"tp": trait.tp_instructions, "tn": trait.tn_instructions if _full(trait) else ()}
    return tuple(
        Instruction(f"{name}_{number}", text)
        for name, texts in lists.items()
        for number, text in enumerate(_kept(texts, once=trait.repeated_extraction), 1)
    )


def findings_schema(trait: MetricRubricTrait, instructions: Iterable[Instruction]) -> dict[str, Any]:
    """The JSON Schema of the reply: quotations first, and then the verdict, for every instruction."""
    wrong = {} if _full(trait) else {"wrong_attempts": QUOTATIONS}
    wanted = closed_object({"excerpts": QUOTATIONS, **wrong, "covered": {"type": "boolean"}})
    unwanted = closed_object({"excerpts": QUOTATIONS, "present": {"type": "boolean"}})
    return closed_object({one.key: wanted if one.is_wanted else unwanted for one in instructions})


def with_lists(data: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The reply with an empty list for every list of quotations that it left out or gave as null."""
    completed = dict(data)
    for key, part in schema["properties"].items():
        given = data.get(key)
        if isinstance(given, Mapping):
            lists = [name for name, kind in part["properties"].items() if kind is QUOTATIONS]
            completed[key] = {**given, **{name: [] for name in lists if given.get(name) is None}}
    return completed


def findings_in(
    data: Mapping[str, Any], instructions: Iterable[Instruction], schema: Mapping[str, Any]
) -> tuple[Finding, ...]:
    """The findings in a reply that fits the schema; what was not asked for is left out."""
    asked = {key: part["properties"] for key, part in schema["properties"].items()}
    findings = []
    for one in instructions:
        found = {name: value for name, value in data[one.key].items() if name in asked[one.key]}
        holds = found["covered" if one.is_wanted else "present"]
        wrong = _kept(found.get("wrong_attempts", ()), once=False)
        findings.append(Finding(one, holds, _kept(found["excerpts"], once=True), wrong))
    return tuple(findings)


def contradictions(findings: Iterable[Finding], found: Found) -> list[str]:
    """Verdicts that do not fit their own quotations, and quotations that are not there, in words for the judge."""
    return [f"{finding.instruction.key}: {doubt}" for finding in findings for doubt in _doubts(finding, found)]


def _doubts(finding: Finding, found: Found) -> Iterator[str]:
    verdict = "covered" if finding.instruction.is_wanted else "present"
    if finding.holds and not finding.excerpts:
        yield f"{verdict} is true, but excerpts quotes nothing; quote the passage, or say false"
    elif not finding.holds and finding.excerpts:
        yield f"{verdict} is false, but excerpts quotes passages; say true, or leave it empty"
    for quotation in finding.excerpts if finding.holds else ():
        if not found(quotation):
            yield f"{quotation!r:.200} is not in the text; copy passages character by character, or say false"
    for attempt in finding.wrong_attempts:
        if not found(attempt):
            yield f"{attempt!r:.200} in wrong_attempts is not in the text; copy it as it is there, or leave it out"
    wrong = {_plain(attempt) for attempt in finding.wrong_attempts}
    for quotation in finding.excerpts:
        if _plain(quotation) in wrong:
            yield f"{quotation!r:.200} is in excerpts and in wrong_attempts; it is either right or wrong"


def confusion(findings: Sequence[Finding], found: Found, *, once: bool) -> dict[str, list[str]]:
    """The four buckets, one entry for everything that is counted. `once` counts equal wrong attempts once; those that
    are not in the text never count."""
    buckets: dict[str, list[str]] = {name: [] for name in BUCKETS}
    for finding in findings:
        buckets[finding.bucket].append(finding.shown(found))
    attempts = [text for finding in findings for text in finding.wrong_attempts if found(text)]
    buckets["fp"] += _kept(attempts, once=once)
    return buckets


def metrics_of(counts: Mapping[str, int], names: Iterable[str]) -> dict[str, float]:
    """The metrics of these names. A ratio of nothing to nothing is 0.

    precision = tp / (tp + fp), recall = tp / (tp + fn), specificity = tn / (tn + fp),
    accuracy = (tp + tn) / (tp + tn + fp + fn), f1 = the harmonic mean of precision and recall.
    """
    tp, fn, fp, tn = (counts.get(name, 0) for name in BUCKETS)
    precision, recall = _ratio(tp, tp + fp), _ratio(tp, tp + fn)
    known = {
        "precision": precision,
        "recall": recall,
        "f1": _ratio(2 * precision * recall, precision + recall),
        "specificity": _ratio(tn, tn + fp),
        "accuracy": _ratio(tp + tn, tp + tn + fp + fn),
    }
    return {name: known[name] for name in names}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _full(trait: MetricRubricTrait) -> bool:
    return trait.evaluation_mode == "full_matrix"


def _kept(texts: Iterable[str], *, once: bool) -> tuple[str, ...]:
    """The texts without white space around them and without blank ones; of equal ones the first, where `once`.

    Case does not count.
    """
    trimmed = [text.strip() for text in texts if text.strip()]
    if not once:
        return tuple(trimmed)
    first: dict[str, str] = {}
    for text in trimmed:
        first.setdefault(text.casefold(), text)
    return tuple(first.values())


def _plain(text: str) -> str:
    """A text for comparisons, in which case and the kind of white space do not count."""
    return " ".join(text.split()).casefold()
