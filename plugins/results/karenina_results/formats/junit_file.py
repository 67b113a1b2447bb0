"""The format junit: XML that CI servers show, a suite for each pair of models and a test for each question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from karenina_cli.output import printable
from karenina_runs.summaries.rates import DECIDED, Planned
from karenina_vocabulary.explanations import why

from karenina_core import VerificationResult

NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no document of XML 1.0 may hold."""
LONGEST = 2_000
"""Characters of a reason. Chosen: what a page of a CI server shows."""
ABSENT = "no result"


class _Item(NamedTuple):
    """What became of one replicate."""

    replicate: int
    outcome: str
    why: str
    seconds: float


class JunitFile:
    """A test fails where a replicate of its question did not pass, and is an error where one ended in an error or has
    no result; it is skipped where no verdict was due. Replicates are properties of it.
    """

    name = "junit"
    suffixes = (".xml",)

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        found: dict[tuple[str, str], dict[str, list[_Item]]] = {}
        for result in results:
            about = result.metadata
            pair = (about.answering_model, about.parsing_model)
            reason = why(result)[:LONGEST]
            item = _Item(about.replicate or 1, about.outcome, reason, about.execution_time or 0.0)
            found.setdefault(pair, {}).setdefault(about.question_id, []).append(item)
        planned = Planned.of(manifest) or Planned(())
        for pair in planned.pairs:
            for question in planned.questions:
                items = found.setdefault(pair, {}).setdefault(question, [])
                there = {item.replicate for item in items}
                items += [_Item(n, "error", ABSENT, 0.0) for n in planned.replicates if n not in there]
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {_counts(_cases(found.values()))}>\n')
            for (answering, parsing), questions in found.items():
                name = _attribute(f"{answering}, judged by {parsing}")
                file.write(f"  <testsuite name={name} {_counts(questions.values(), skipped=True)}>\n")
                for question, items in questions.items():
                    file.writelines(_case(question, name, items))
                file.write("  </testsuite>\n")
            file.write("</testsuites>\n")


def _cases(suites: Iterable[Mapping[str, list[_Item]]]) -> list[list[_Item]]:
    return [items for questions in suites for items in questions.values()]


def _state(items: Iterable[_Item]) -> str:
    outcomes = {item.outcome for item in items}
    if outcomes & {*DECIDED} - {"passed"}:
        return "failure"
    if "error" in outcomes:
        return "error"
    return "" if "passed" in outcomes else "skipped"


def _counts(cases: Iterable[list[_Item]], *, skipped: bool = False) -> str:
    """Of the tests of a suite, or of all; schemas know `skipped` of suites alone."""
    listed = list(cases)
    states = [_state(items) for items in listed]
    counts = {"tests": len(states), "failures": states.count("failure"), "errors": states.count("error")}
    counts |= {"skipped": states.count("skipped")} if skipped else {}
    seconds = sum(item.seconds for items in listed for item in items)
    return " ".join([*(f'{name}="{count}"' for name, count in counts.items()), f'time="{seconds:.3f}"'])


def _case(question: str, suite: str, items: list[_Item]) -> Iterator[str]:
    """Lines of XML."""
    items.sort(key=lambda item: item.replicate)
    state, seconds = _state(items), sum(item.seconds for item in items)
    yield f'    <testcase classname={suite} name={_attribute(question)} time="{seconds:.3f}">\n'
    if len(items) > 1:
        yield "      <properties>\n"
        for item in items:
            yield f'        <property name="replicate {item.replicate}" value={_attribute(_said(item))}/>\n'
        yield "      </properties>\n"
    if state:
        bad = [item for item in items if item.outcome != "passed"]
        first = next((item for item in bad if state != "failure" or item.outcome in DECIDED), bad[0])
        passed = f"{len(items) - len(bad)} of {len(items)} replicates passed; " if len(items) > 1 else ""
        kind = "" if state == "skipped" else f" type={_attribute(first.outcome)}"
        yield f"      <{state}{kind} message={_attribute(passed + _said(first))}/>\n"
    yield "    </testcase>\n"


def _said(item: _Item) -> str:
    return f"{item.outcome}: {item.why}" if item.why else item.outcome


def _attribute(text: str) -> str:
    return quoteattr(NO_XML.sub("\ufffd", printable(text)))
