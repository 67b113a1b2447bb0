"""What `karenina show` does: the results of a run, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from karenina_calls.usage_totals import replies_of
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.summaries.details import facts, remarks
from karenina_runs.summaries.item_rows import as_json, field_rows, pattern_rows
from karenina_runs.summaries.summary import summarize
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.explanations import why
from karenina_vocabulary.quotations import quotations

from karenina_core.errors import ConfigError, Problem, did_you_mean
from karenina_core.values.convert import unstructure
from karenina_core.values.fields import is_number
from karenina_core.values.result import VerificationResult

from ..output import Part, Table, inline, own_stdout, print_json, print_parts
from ..summary import replicates_text, shown_cost, shown_tokens
from .calls import call_parts, calls_of
from .conversation import (
    answer_parts,
    answer_text,
    indented,
    investigations,
    kept_workspace,
    sent_parts,
    trace_parts,
    work,
)
from .traits import checks, embedding, excerpts, trait_excerpts, trait_parts, trait_totals

MANY = 5
"""Ids that an error lists; chosen."""
LINE = 2000
"""Characters of a reason, an error or a warning; chosen."""
MARKS = {True: "right", False: "wrong", None: "not found"}


@frozen
class ShowRequest:
    """Which results. None means all of them."""

    question_id: str | None = None
    """An id, a position from 0 on, the beginning of exactly one id, or a part of exactly one question."""
    model: str | None = None
    """Part of the name of an answering or parsing model."""
    replicate: int | None = None
    calls: bool = False
    """With every request and reply."""


def show(path: Path, wanted: ShowRequest, *, as_json: bool = False) -> None:
    """Print the wanted results: a line each and what their traits come to, or everything about one question's."""
    with own_stdout() as out:
        loaded = VerificationResultSet.load(path)
        results = select_results(loaded, wanted)
        calls = calls_of(loaded.run_dir, results) if wanted.calls else [None] * len(results)
        if as_json:
            documents = [
                {
                    "question": {
                        "id": result.metadata.question_id,
                        "text": result.metadata.question_text,
                        "raw_answer": result.metadata.raw_answer,
                        "keywords": list(result.metadata.keywords),
                    },
                    **unstructure(result),
                    **({} if asked is None else {"calls": asked}),
                }
                for result, asked in zip(results, calls, strict=True)
            ]
            print_json(documents[0] if wanted.question_id and len(documents) == 1 else documents, out)
        elif wanted.question_id is None:
            print_parts(_listed(results), out)
        else:
            alike = [[result] for result in results] if wanted.calls else _same(results, _answered)
            for number, same in enumerate(alike):
                print_parts(["", "=" * 80, ""] if number else [], out)
                print_parts([*explained(same[0], loaded.run_dir), *_others(same)], out)
                asked = calls[number] if wanted.calls else None
                print_parts(call_parts(asked) if asked is not None else [], out)


def _ended(result: VerificationResult) -> tuple[str, ...]:
    about = result.metadata
    models = (about.answering_model, about.parsing_model)
    return about.question_id, *models, str(result.outcome), inline(why(result), LINE)


def _answered(result: VerificationResult) -> tuple[str, ...]:
    return *_ended(result), answer_text(result)


def _same(
    results: Iterable[VerificationResult], key: Callable[[VerificationResult], tuple[str, ...]]
) -> list[list[VerificationResult]]:
    """Replicates of a question that are alike, where the first of them is."""
    found: dict[tuple[str, ...], list[VerificationResult]] = {}
    for result in results:
        found.setdefault(key(result), []).append(result)
    return list(found.values())


def _others(same: Sequence[VerificationResult]) -> list[Part]:
    """Which replicates gave the same answer and ended in the same way, and are not shown."""
    if len(same) == 1:
        return []
    first, *others = (result.metadata.replicate for result in same)
    what = f"{'Replicate' if len(others) == 1 else 'Replicates'} {replicates_text(others)}"
    return ["", f"This is replicate {first}. {what}: the same answer and outcome (--replicate N shows one of them)."]


def _listed(results: Sequence[VerificationResult]) -> list[Part]:
    """A line for each result, or for replicates that ended in the same way, and what the traits of every pair of
    answering model and judge come to."""
    rows = [
        (
            *_ended(alike[0])[:3],
            replicates_text([r.metadata.replicate for r in alike]),
            str(alike[0].outcome),
            inline(why(alike[0])),
        )
        for alike in _same(results, _ended)
    ]
    parts: list[Part] = [Table(("question", "answering", "judge", "replicates", "outcome", "reason"), rows)]
    for row in summarize(results)["models"]:
        title = f"Traits of {row['answering']}, judged by {row['parsing']}"
        parts += trait_totals(row["traits"], row["items_without_scores"], most=None, title=title)
    return parts


def select_results(results: VerificationResultSet, wanted: ShowRequest) -> Sequence[VerificationResult]:
    """The wanted ones. Raises ConfigError that says what there is instead."""
    found: Sequence[VerificationResult] = results
    if wanted.question_id is not None:
        chosen = _question(wanted.question_id, {r.metadata.question_id: r.metadata.question_text for r in found})
        found = [r for r in found if r.metadata.question_id == chosen]
    if wanted.model is not None:
        names = sorted({name for r in found for name in (r.metadata.answering_model, r.metadata.parsing_model)})
        found = [
            r for r in found if wanted.model in r.metadata.answering_model or wanted.model in r.metadata.parsing_model
        ]
        _require(found, "--model", wanted.model, names)
    if wanted.replicate is not None:
        numbers = sorted({r.metadata.replicate for r in found})
        found = [r for r in found if r.metadata.replicate == wanted.replicate]
        _require(found, "--replicate", str(wanted.replicate), list(map(str, numbers)))
    return found


def _question(given: str, texts: Mapping[str, str]) -> str:
    """The id of the question that is meant. `texts` has those of all questions, by id. Raises ConfigError."""
    ids = list(texts)
    if given in texts:
        return given
    if given.isascii() and given.isdecimal() and int(given) < len(ids):
        return ids[int(given)]
    fitting, how = [question for question in ids if question.startswith(given)], "is the beginning of {} ids"
    if not fitting and given.strip():
        fitting = [question for question, text in texts.items() if given.casefold() in text.casefold()]
        how = "is in {} questions"
    if not fitting:
        what = f"there are no results for the question {given!r}{did_you_mean(given, ids)}; leave it out to list them"
        raise ConfigError([Problem("QUESTION", what)])
    if len(fitting) > 1:
        more = ", ..." if len(fitting) > MANY else ""
        what = f"{given!r} {how.format(len(fitting))}: {', '.join(fitting[:MANY])}{more}"
        raise ConfigError([Problem("QUESTION", what)])
    return fitting[0]


def explained(result: VerificationResult, run_dir: Path | None = None) -> list[Part]:
    """Everything about one result, for people. `run_dir` is where it is kept, beside its workspace."""
    metadata, template, error = result.metadata, result.template, result.metadata.error
    reason, quoted = why(result), quotations(result, answer_text(result))
    parts: list[Part] = [
        f"Question {inline(metadata.question_id)}",
        indented(metadata.question_text),
        "",
        "Reference answer",
        indented(metadata.raw_answer or "(none)"),
        "",
        *answer_parts(result, quoted),
        f"Outcome: {result.outcome}{f': {inline(reason, LINE)}' if reason else ''}",
        *([f"Error: {inline(error, LINE)}"] if error and error != reason else []),
        f"Judge: {metadata.parsing_model}, mode {metadata.evaluation_mode}, {metadata.execution_time:.2f} s",
        *(f"Warning: {inline(remark, LINE)}" for remark in remarks(result)),
        "",
    ]
    parts += _fields(template) if template else []
    parts += checks(result.checks)
    parts += embedding(template) if template else []
    parts += excerpts(result.deep_judgment, quoted) if result.deep_judgment else []
    parts += trait_parts(result.rubric) if result.rubric else []
    parts += trait_excerpts(result.deep_judgment_rubric, quoted) if result.deep_judgment_rubric else []
    parts += [*work(result), *kept_workspace(result, run_dir), *investigations(result)]
    return [*parts, *_course(result)]


def _course(result: VerificationResult) -> list[Part]:
    """How it came about: the verdict, the stages, what was sent and replied, the calls, and what else is known."""
    ledger = [(entry.stage, as_json(entry.effect), entry.reason) for entry in result.ledger]
    trail = [(e.stage, e.status, f"{e.seconds:.3f}", inline(e.reason)) for e in result.trail]
    added = [
        (f"{plugin}.{key}", inline(as_json(value)))
        for plugin, values in result.added.items()
        for key, value in values.items()
    ]
    calls = []
    for task, row in result.generation.usage_metadata.items():
        if not isinstance(row, Mapping) or not row:
            continue
        replies, unknown = replies_of(row), bool(row.get("usage_unavailable"))
        attempts: Any = row.get("attempts")
        calls.append(
            (
                f"{task} (shared)" if row.get("cached") else task,
                str(row.get("model") or ""),
                str(replies),
                str(attempts - replies) if is_number(attempts) else "",
                *(shown_tokens(row.get(key, ""), unknown) for key in ("input_tokens", "output_tokens")),
                shown_cost(row.get("cost_usd")),
            )
        )
    return [
        Table(("stage", "effect", "reason"), ledger, "Verdict, effect by effect"),
        Table(("stage", "status", "seconds", "reason"), trail, "Stages"),
        *sent_parts(result),
        *trace_parts(result),
        Table(("task", "model", "calls", "failed", "tokens in", "tokens out", "cost"), calls, "Calls"),
        Table(("name", "value"), added, "Added by other packages"),
        Table(("", ""), [(name, inline(text)) for name, text in facts(result)], "Facts"),
    ]


def _require(found: Sequence[VerificationResult], option: str, given: str, there: Sequence[str]) -> None:
    if not found:
        raise ConfigError([Problem(option, f"no result of {given!r}; available: {', '.join(there) or 'nothing'}")])


def _fields(template: TemplatePart) -> list[Part]:
    """Expected against extracted, and patterns; partial credit only where there is some."""
    found = field_rows(template)
    partial = any(row.score not in (None, 0, 1) for row in found)
    rows = [
        (
            *(row.name, row.expected, row.extracted, MARKS[row.right] if row.compared else "not compared"),
            *([_credit(row.score)] if partial else []),
        )
        for row in found
    ]
    columns = ("field", "expected", "extracted", "comparison", *(["score"] if partial else []))
    granular = template.verify_granular_result
    more = [f"Granular score: {_credit(granular)}", ""] if granular not in (None, 0, 1) else []
    patterns = [(name, "passed" if met else "failed", *cells) for name, met, *cells in pattern_rows(template)]
    return [
        Table(columns, rows, "Fields"),
        *more,
        Table(("check", "result", "pattern", "expected", "found"), patterns, "Patterns on the whole answer"),
    ]


def _credit(score: float | None) -> str:
    return f"{score:.2f}" if is_number(score) else ""
