"""A comparison for machines: one JSON document, with the keys that `karenina compare --json` promises, JUnit XML, and
annotations of GitHub Actions (workflow commands, one a line, that a step prints)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from attrs import asdict
from karenina_cli.annotations import MOST, annotation, gate_annotations
from karenina_cli.output import printable
from karenina_runs.summaries.gates import Gate
from karenina_runs.summaries.intervals import Interval

from karenina_core.plugin.command_line import Section

from .values import Answers, Comparison, Flip, Question, Row
from .wording import change, headline, line, models, notable

FACTS = ("within", "pairs", "unasked_b", "correction", "alpha", "level")
LISTS = ("unpaired_a", "unpaired_b", "only_a", "only_b", "notes")
OF_ROW = (
    *("metric", "a", "b", "difference", "p_value", "p_adjusted", "verdict", "compared", "questions", "coverage"),
    *("better", "worse", "lost_a", "lost_b", "lost", "lost_p", "worst", "best", "worst_p", "detectable", "smallest_p"),
    *("clusters", "higher_is_better"),
)
"""What the document has under the names of the attributes."""
NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""
TAGS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def document(comparison: Comparison, gates: Sequence[Gate] = ()) -> dict[str, Any]:
    """Rates and their differences are fractions; a difference is B - A; None is what could not be computed."""
    return {
        "a": comparison.name_a,
        "b": comparison.name_b,
        "rows": [_row(row) for row in comparison.rows],
        "flipped": [
            {
                **asdict(flip.pair),
                **{name: getattr(flip, name) for name in ("question_id", "question", "metric", "a", "b", "change")},
                **_answers("a", flip.of_a),
                **_answers("b", flip.of_b),
            }
            for flip in comparison.flipped
        ],
        "ties": [asdict(tie) for tie in comparison.ties],
        "gates": [asdict(gate) for gate in gates],
        "passed": all(gate.passed for gate in gates) if gates else None,
        **{name: getattr(comparison, name) for name in FACTS},
        **{name: list(getattr(comparison, name)) for name in LISTS},
        "changed": dict(comparison.changed),
        "numbers_a": comparison.numbers_a.to_dict(),
        "numbers_b": comparison.numbers_b.to_dict(),
        "nothing": comparison.nothing or None,
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        **asdict(row.pair),
        **{name: getattr(row, name) for name in OF_ROW},
        **_limits(row.interval),
        "interval_method": row.interval.method if row.interval else None,
        "test": row.test or None,
        "missing_a": dict(row.missing_a),
        "missing_b": dict(row.missing_b),
        "replicates_a": row.replicates[0],
        "replicates_b": row.replicates[1],
        "tests": [{"name": test.name, "p_value": test.p_value, **_limits(test.interval)} for test in row.tests],
    }


def _limits(interval: Interval | None) -> dict[str, float | None]:
    return {"low": interval.low, "high": interval.high} if interval else {"low": None, "high": None}


def _answers(side: str, answers: Answers) -> dict[str, Any]:
    columns = {"outcomes": dict(answers.outcomes), "answer": answers.excerpt, "why": answers.why}
    return {f"{name}_{side}": value for name, value in columns.items()}


def junit(comparison: Comparison, gates: Sequence[Gate], sections: Sequence[Section] = ()) -> str:
    """One suite of gates, one for each row with a test case for each question, and one for each section of another
    package with a passed test case for each row of it; the XML has its declaration.

    A question that got worse is a failure, one that ended in an error in B alone an error, and one without a value on
    some other ground skipped. The gates alone decide how the command ends.
    """
    root = ElementTree.Element("testsuites", name=_text(f"{comparison.name_a} and {comparison.name_b}"))
    if gates:
        checked = []
        for gate in gates:
            case = _case("gates", f"{gate.name}: {gate.about}")
            if gate.passed:
                ElementTree.SubElement(case, "system-out").text = _text(gate.message)
            else:
                ElementTree.SubElement(case, "failure", type="gate", message=_text(gate.message))
            checked.append(case)
        _suite(root, "gates", checked)
    flips = {(flip.pair, flip.metric, flip.question_id): flip for flip in comparison.flipped}
    for row in comparison.rows:
        name = f"{models(row.pair)}: {row.metric}"
        cases = [_question(q, flips.get((row.pair, row.metric, q.id)), row, name) for q in row.by_question]
        _suite(root, name, cases)
    for section in sections:
        cases = [_case(section.title, ", ".join(cells[:2])) for cells in section.rows]
        for case, cells in zip(cases, section.rows, strict=True):
            ElementTree.SubElement(case, "system-out").text = _text(_named(section, cells))
        _suite(root, section.title, cases)
    return _document(root)


def _named(section: Section, cells: Sequence[str]) -> str:
    return "; ".join(f"{name}: {cell}" for name, cell in zip(section.columns, cells, strict=True) if cell)


def joined(one: str, other: str) -> str:
    """Two documents of JUnit XML as one: the suites of both."""
    root = ElementTree.fromstring(one)
    root.extend(ElementTree.fromstring(other))
    return _document(root)


def _document(root: ElementTree.Element) -> str:
    for key in ("tests", "failures", "errors"):  # schemas know `skipped` of suites alone
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(root: ElementTree.Element, name: str, cases: Sequence[ElementTree.Element]) -> None:
    counts = {key: sum(case.find(tag) is not None for case in cases) for key, tag in TAGS.items()}
    facts = {"name": _text(name), "tests": str(len(cases)), **{key: str(count) for key, count in counts.items()}}
    suite = ElementTree.SubElement(root, "testsuite", facts)
    suite.extend(cases)


def _case(suite: str, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=_text(suite), name=_text(name), time="0")


def _question(question: Question, flip: Flip | None, row: Row, suite: str) -> ElementTree.Element:
    case = _case(suite, question.id)
    if question.a is None or question.b is None:
        error = question.a is not None and any(reason.startswith("error") for reason in question.missing_b)
        reasons_a, reasons_b = (", ".join(q) or "has a value" for q in (question.missing_a, question.missing_b))
        missing = f"A: {reasons_a}; B: {reasons_b}"
        ElementTree.SubElement(case, "error" if error else "skipped", type="missing", message=_text(missing))
    elif flip is not None and flip.change == "worse":
        failure = ElementTree.SubElement(case, "failure", type="worse", message=_text(change(flip, row.is_rate)))
        failure.text = _text(_side_by_side(flip))
    elif flip is not None:
        ElementTree.SubElement(case, "system-out").text = _text(f"{flip.change}\n{_side_by_side(flip)}")
    return case


def _side_by_side(flip: Flip) -> str:
    return f"Question: {flip.question}\nA: {flip.of_a.excerpt}\nB: {flip.of_b.excerpt}\nWhy: {flip.of_b.why}"


def _text(text: str) -> str:
    return NO_XML.sub("\ufffd", printable(text))


def github(comparison: Comparison, gates: Sequence[Gate], sections: Sequence[Section] = ()) -> str:
    """Failed gates are errors, questions that got worse warnings, and the rows notices, also those of sections of other
    packages."""
    lines = gate_annotations(gates)
    rates = {row.metric: row.is_rate for row in comparison.rows}
    worse = [flip for flip in comparison.flipped if flip.change == "worse"]
    listed = worse if len(worse) <= MOST else worse[: MOST - 1]
    for flip in listed:
        message = f"{change(flip, rates[flip.metric])}. {flip.of_b.why}"
        lines.append(
            annotation("warning", f"worse: {flip.question_id}", f"{models(flip.pair)}, {flip.metric}: {message}")
        )
    if len(worse) > len(listed):
        lines.append(
            annotation("warning", "worse", f"{len(worse)} questions got worse, {len(listed)} of them are shown")
        )
    for row in notable(comparison.rows)[: MOST - 1]:
        cells = line(row)
        message = f"{cells.verdict}: {cells.difference}, adjusted p = {cells.p}"
        lines.append(annotation("notice", f"{cells.models}: {cells.metric}", message))
    for section in sections:
        said = [*section.before, *(_named(section, cells) for cells in section.rows), *section.after]
        lines += [annotation("notice", section.title or "comparison", text) for text in said[:MOST]]
    lines.append(annotation("notice", "comparison", headline(comparison)))
    return "".join(f"{text}\n" for text in lines)
