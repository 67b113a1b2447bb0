"""Gates: what a run must come to. One that cannot be decided, because items have no verdict, fails and says so."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from karenina_core.errors import ConfigError, Problem, did_you_mean, plural
from karenina_core.values.fields import texts
from karenina_core.values.result import VerificationResult

from .rates import DECIDED, Planned, RateTally, is_due

KEYWORD = "keyword:"
MOST_NAMED = 5
"""Questions that a message names. Chosen: it stays readable."""
SLACK = 1e-9
"""Shares that differ by less are the same: sums of thirds are not exact."""


@frozen
class Gate:
    """One condition and what became of it."""

    name: str
    """Such as `coverage` or `pass rate`."""
    about: str
    """The models, or what else it is about."""
    passed: bool
    message: str
    warns: bool = False
    """Whether it passed although it could not be decided, as a setting allows, and this is to be said."""


@frozen(kw_only=True)
class RunLimits:
    """Which gates there are for a run; None and nothing ask for nothing."""

    pass_rate: float | None = None
    """The smallest pass rate of every pair of models, of all planned items: one without a verdict counts as one that
    fails."""
    coverage: float | None = None
    """The smallest share of right and wrong answers among all planned items of every pair of models."""
    must_pass: tuple[str, ...] = field(default=(), converter=texts)
    """Ids of questions, and `keyword:X` for those that have the keyword: all of their items pass."""
    per_question: tuple[int, int] | None = None
    """`(8, 10)`: of the ten replicates of a question, eight pass, with every pair of models."""
    errors: int | None = None
    """How many items may end in an error."""
    error_share: float | None = None
    """The same as a share of all planned items."""

    def most_errors(self, items: int) -> float | None:
        """How many of so many items may end in an error; None: any number."""
        shares = None if self.error_share is None else self.error_share * items
        return min((most for most in (self.errors, shares) if most is not None), default=None)


def must_pass_ids(
    limits: RunLimits, chosen: Mapping[str, Sequence[str]], replicates: int, mode: str
) -> dict[str, tuple[str, ...]]:
    """The questions that each entry of `must_pass` means, of those that are `chosen`: keywords by id.

    Raises ConfigError where a gate could never be decided, with what to type instead.
    """
    problems = [
        Problem("--must-pass", what) for text in limits.must_pass if (what := _unknown(text, chosen)) is not None
    ]
    if limits.per_question is not None and limits.per_question[1] != replicates:
        least, of = limits.per_question
        what = f"{least}/{of} is of {of} replicates, and the run has {replicates}; add --replicates {of}"
        problems.append(Problem("--min-pass-per-question", what))
    asked = {
        "--min-pass-rate": limits.pass_rate is not None,
        "--min-coverage": limits.coverage is not None,
        "--must-pass": bool(limits.must_pass),
        "--min-pass-per-question": limits.per_question is not None,
    }
    if mode == "rubric_only":
        what = "no item has a verdict in the mode rubric_only; leave it out"
        problems += [Problem(option, what) for option, given in asked.items() if given]
    if problems:
        raise ConfigError(problems)
    return {
        text: (text,)
        if text in chosen
        else tuple(name for name, known in chosen.items() if text[len(KEYWORD) :] in known)
        for text in limits.must_pass
    }


def keywords_in(results: Iterable[VerificationResult], planned: Planned) -> dict[str, Sequence[str]]:
    """The keywords of the questions of a run that is there; none are known of a question without any result."""
    of_results = {result.metadata.question_id: result.metadata.keywords for result in results}
    return {**dict.fromkeys(planned.questions, ()), **of_results}


def _unknown(text: str, chosen: Mapping[str, Sequence[str]]) -> str | None:
    if text in chosen:
        return None
    if not text.startswith(KEYWORD):
        return f"the run has no question {text!r}{did_you_mean(text, chosen)}"
    known = {keyword for keywords in chosen.values() for keyword in keywords}
    keyword = text.removeprefix(KEYWORD)
    return (
        None
        if keyword in known
        else f"no question of the run has the keyword {keyword!r}{did_you_mean(keyword, known)}"
    )


def run_gates(
    results: Iterable[VerificationResult],
    planned: Planned,
    limits: RunLimits,
    must_pass: Mapping[str, Sequence[str]] = {},
) -> tuple[Gate, ...]:
    """Every gate that `limits` asks for, in a fixed order. `must_pass` is what `must_pass_ids` gives."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    rates: defaultdict[tuple[str, str], RateTally] = defaultdict(RateTally)
    of_questions: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for result in results:
        about = result.metadata
        pair = (about.answering_model, about.parsing_model)
        outcome = about.outcome if is_due(about) or about.outcome == "error" else "no verdict"
        counts[pair][outcome] += 1
        if limits.pass_rate is not None:
            rates[pair].add(result)
        if must_pass or limits.per_question is not None:
            of_questions[*pair, about.question_id][outcome] += 1
    each = len(planned.questions) * len(planned.replicates)
    found: list[Gate] = []
    for pair in planned.pairs:
        name = f"{pair[0]}, judged by {pair[1]}"
        if limits.pass_rate is not None:
            found.append(Gate("pass rate", name, *_pass_rate(counts[pair], each, limits.pass_rate, rates[pair])))
        if limits.coverage is not None:
            found.append(Gate("coverage", name, *_coverage(counts[pair], each, limits.coverage)))
        if limits.per_question is not None:
            of_pair = {question: of_questions[*pair, question] for question in planned.questions}
            found.append(Gate("passes per question", name, *_per_question(of_pair, *limits.per_question)))
    for text, questions in must_pass.items():
        rows = {(*pair, question): of_questions[*pair, question] for question in questions for pair in planned.pairs}
        found.append(Gate("must pass", text, *_must_pass(rows, len(planned.replicates))))
    whole, items = sum(counts.values(), Counter()), each * len(planned.pairs)
    if limits.errors is not None:
        found.append(Gate("errors", "all items", *_errors(whole, items, limits.errors, str(limits.errors))))
    if limits.error_share is not None:
        share = limits.error_share
        found.append(Gate("errors", "all items", *_errors(whole, items, share * items, _percent(share))))
    return tuple(found)


def _pass_rate(counts: Counter[str], items: int, least: float, rates: RateTally) -> tuple[bool, str]:
    passed, missing = counts["passed"], items - _decided(counts)
    details = (
        f"{passed} of {plural(items, 'item')} pass ({_percent(passed / items)}), at least {_percent(least)} required"
    )
    if (interval := rates.pass_rate.interval) is not None:
        details += (
            f"; the confidence interval of so few questions is {_percent(interval.low)} to {_percent(interval.high)}"
        )
    if missing:
        details += f"; {missing} without a verdict count as not passed"
    enough = passed >= least * items - SLACK
    possible = passed + missing >= least * items - SLACK
    return enough, f"cannot be decided: {details}" if possible and not enough else details


def _coverage(counts: Counter[str], items: int, least: float) -> tuple[bool, str]:
    answered = counts["passed"] + counts["failed"]
    share = _percent(answered / items)
    details = f"{answered} of {plural(items, 'item')} are right or wrong ({share}), at least {_percent(least)} required"
    return answered >= least * items - SLACK, details


def _per_question(of_questions: Mapping[str, Counter[str]], least: int, of: int) -> tuple[bool, str]:
    few = {name: counts for name, counts in of_questions.items() if counts["passed"] < least}
    if not few:
        return True, f"all {plural(len(of_questions), 'question')} pass at least {least} of {of} times"
    lost = {name: counts for name, counts in few.items() if counts["passed"] + of - _decided(counts) < least}
    rows = {**lost, **few}
    named = _listed([f"{name} ({counts['passed']})" for name, counts in rows.items()])
    details = f"{len(few)} of {plural(len(of_questions), 'question')} pass fewer than {least} of {of} times: {named}"
    return False, details if lost else f"cannot be decided: {details}; the others have no verdict"


def _must_pass(rows: Mapping[tuple[str, str, str], Counter[str]], replicates: int) -> tuple[bool, str]:
    items = len(rows) * replicates
    passed = sum(counts["passed"] for counts in rows.values())
    if items and passed == items:
        return True, f"{passed} of {plural(items, 'item')} pass"
    decided = sum(map(_decided, rows.values()))
    named = _listed([f"{name[2]} with {name[0]}" for name, counts in rows.items() if counts["passed"] < replicates])
    details = f"{passed} of {plural(items, 'item')} pass; not {named or 'any'}"
    return False, details if decided > passed else f"cannot be decided: {details}; they have no verdict"


def _errors(counts: Counter[str], items: int, most: float, wanted: str) -> tuple[bool, str]:
    errors, absent = counts["error"], items - counts.total()
    details = f"{plural(errors, 'error')} in {plural(items, 'item')}, at most {wanted} allowed"
    if absent:
        details += f"; {absent} without a result"
    undecided = errors <= most + SLACK < errors + absent
    return errors + absent <= most + SLACK, f"cannot be decided: {details}" if undecided else details


def _decided(counts: Counter[str]) -> int:
    return sum(counts[outcome] for outcome in DECIDED)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
