"""A comparison as JUnit XML: one suite of gates, and one for each row with a test case for each question.

A question that got worse is a failure, one that ended in an error in B alone an error, and one without a value on some
other ground skipped. The gates alone decide how the command ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from karenina_cli.output import printable

from .gates import Gate
from .values import Comparison, Flip, Question, Row
from .wording import change, models

NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(comparison: Comparison, gates: Sequence[Gate]) -> str:
    """The document, with its declaration."""
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
    for key in ("tests", "failures", "errors"):  # schemas know `skipped` of suites alone
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(root: ElementTree.Element, name: str, cases: Sequence[ElementTree.Element]) -> None:
    counts = {key: sum(case.find(tag) is not None for case in cases) for key, tag in TAGS.items()}
    facts = {"name": _text(name), "tests": str(len(cases)), **{key: str(count) for key, count in counts.items()}}
    suite = ElementTree.SubElement(root, "testsuite", facts)
    suite.extend(cases)


TAGS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


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
