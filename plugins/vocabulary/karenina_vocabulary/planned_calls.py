"""The calls that a stage makes for an item, as it says before a run: what estimates are made of.

A stage says so in `calls`, which is called once for each question and pair of models:

    def calls(self, question, rubric, config, app) -> Iterable[PlannedCall]

`rubric` is what is evaluated for the question, or None; `config` holds the one answering model and the one parsing
model of the pair. It must be quick, call no model and run no code of a benchmark. A stage that asks no model says
`calls = ()` in its class; of one that has no `calls`, an estimate says that it is not known how often it asks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from attrs import evolve, frozen

from karenina_core.values.config import ModelConfig
from karenina_core.values.question import Question, TemplateSource

ANNOTATED = re.compile(r"^[ \t]+\w+[ \t]*:(?!=)", re.MULTILINE)
"""An annotation in the body of a class: a field of a template, perhaps."""


@frozen(kw_only=True)
class PlannedCall:
    """The calls of one task, where none fails. Repairs of replies and attempts that fail are not among them."""

    task: str
    least: int = 1
    most: int | None = 1
    """Other than `least` where it depends on what models say; None: any number."""
    role: Literal["answering", "parsing"] = "parsing"
    """Which model of the item is asked. The answering one is asked once for all judges of its answer."""
    model: ModelConfig | str | None = None
    """What is asked in place of it; of an embedder or a search tool the name."""
    sends: int = 0
    """Bytes of the texts, known beforehand, that one call sends: its question, a system prompt. Instructions of
    karenina, schemas and the answer come on top."""
    may_send: int = 0
    """Bytes that it sends beside them at most: of a template, whose schema is shown without the right answers."""
    reads_answer: bool = True
    turns: int = 1
    """Replies that one call may take: more than one where an agent works."""
    decides: bool = False
    """Whether its reply may settle the verdict, so that calls after it with `unless_decided` are not made."""
    unless_decided: bool = False
    unless_captured: bool = False
    """Whether it is not made where the run was given what this judge has extracted from the answer."""


def size(*texts: str | None) -> int:
    """Bytes of texts."""
    return sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts if text)


def template_size(question: Question) -> int:
    """Bytes of the template: at most those of its schema."""
    return size(question.template.text) if question.template is not None else 0


def asks_judge(template: TemplateSource | None) -> tuple[int, int]:
    """The least and the most calls that one question to a judge about a template takes: `(0, 0)` where it has no
    fields for one, `(0, 1)` where its text, which is read and not executed, does not show it."""
    if template is None:
        return 0, 0
    text = template.text
    if template.language == "karenina-template":
        try:
            fields = json.loads(text)["fields"] if '"is_trace"' in text else None
            judged = fields is None or any(not field.get("is_trace") for field in fields)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            judged = False  # it cannot be loaded, and its items end before a judge is asked
        return int(judged), int(judged)
    if template.language != "python":
        return 0, 1
    if not ANNOTATED.search(text):
        return 0, 0
    return int("Trace" not in text), 1


def spanned(certain: Iterable[PlannedCall], possible: Iterable[PlannedCall]) -> list[PlannedCall]:
    """The calls where there are at least those and at most these, task by task: of two ways in which a stage may go."""
    sums: list[Counter[tuple[str, str]]] = []
    for side in (certain, possible := list(possible)):
        counted: Counter[tuple[str, str]] = Counter()
        for call in side:
            counted[_kind(call)] += call.least
        sums.append(counted)
    found = []
    for kind, call in {_kind(call): call for call in (*certain, *possible)}.items():
        counts, own = [counted[kind] for counted in sums], [other.most for other in possible if _kind(other) == kind]
        most = None if None in own else max(*counts, sum(most or 0 for most in own))
        found.append(evolve(call, least=min(counts), most=most))
    return found


def _kind(call: PlannedCall) -> tuple[str, str]:
    model = call.model
    return call.task, model if isinstance(model, str) else "" if model is None else str(model.identity)
