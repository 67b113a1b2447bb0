"""What drafting will take, before anything is asked: the work is done up to the first reply that is not there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen
from karenina_calls.ports.stored_calls import StoredCall
from karenina_calls.records.call_facts import Place
from karenina_calls.records.prices import cost_of

from karenina_core.errors import PortError, plural
from karenina_core.values.config import ModelConfig
from karenina_core.values.question import Question

from .drafting import DESCRIBING, PLANNING, Draft
from .prompts import DESCRIBE_SYSTEM, PLAN_SYSTEM, plan_prompt
from .replies import PLAN

CALLS: Mapping[tuple[str, bool], tuple[int, int]] = {
    (PLANNING, False): (2, 4),
    (DESCRIBING, False): (1, 3),
    (PLANNING, True): (2, 2),
    (DESCRIBING, True): (1, 1),
}
"""The least and the most calls that are left, by the first one that is missing and whether it is of a repair."""
BYTES_PER_TOKEN = (5, 3)
"""Of a cheap and of a dear text: English has some 4.5 with current tokenizers, other scripts and JSON about 3."""
REPLY_TOKENS = (40, 1500)
"""Of a reply: one field in few words, and eight with reasons and aliases. Models that think first write more."""


@define
class Unasked:
    """A port that asks no model: it notes which call would be the next of each question."""

    calls: list[StoredCall] = field(factory=list)

    def lane(self, model: ModelConfig) -> Unasked:
        return self

    async def enter(self, call: StoredCall) -> Place:
        self.calls.append(call)
        raise PortError("an estimate makes no calls", kind="budget", final=True)


@frozen(kw_only=True)
class Estimate:
    """The least and the most of everything."""

    questions: int
    calls: tuple[int, int]
    """Corrections of replies that cannot be read are not among them."""
    input_tokens: tuple[int, int]
    output_tokens: tuple[int, int]
    cost_usd: tuple[float, float] | None
    """None: the prices of the model are unknown."""

    def document(self) -> dict[str, Any]:
        names = ("calls", "input_tokens", "output_tokens", "cost_usd")
        ends = {name: None if (pair := getattr(self, name)) is None else dict(zip(("least", "most"), pair, strict=True))
                for name in names}  # fmt: skip
        return {"questions": self.questions, **ends}

    @property
    def lines(self) -> list[str]:
        least, most = self.calls
        cost = "unknown cost: give the model input_cost_per_token and output_cost_per_token"
        if self.cost_usd is not None:
            cost = f"{self.cost_usd[0]:.4f} to {self.cost_usd[1]:.4f} US dollars"
        repairs = f", and up to {most - least} more if templates are not proven at once" if most > least else ""
        return [
            f"{plural(self.questions, 'question')} to draft: {plural(least, 'call')}{repairs}",
            f"{_range(self.input_tokens)} tokens in, {_range(self.output_tokens)} tokens out",
            cost,
            "No model was asked.",
        ]


def _range(pair: tuple[int, int]) -> str:
    return f"{pair[0]:,} to {pair[1]:,}"


def estimate(drafts: Iterable[Draft], unasked: Unasked, model: ModelConfig) -> Estimate:
    """Of what is left of these drafts, which were made with `unasked` in place of the model."""
    repairing = {draft.question.id: draft.proof is not None for draft in drafts}
    questions = {draft.question.id: draft.question for draft in drafts}
    calls, sent, written = [0, 0], [0, 0], [0, 0]
    for call in unasked.calls:
        name = call.question_id
        counts = CALLS[call.request.task, repairing[name]]
        for end, count in enumerate(counts):
            calls[end] += count
            sent[end] += count * _sent(questions[name], end)
            written[end] += count * min(REPLY_TOKENS[end], model.max_tokens or REPLY_TOKENS[end])
    costs = [cost_of(model, sent[end], written[end]) for end in (0, 1)]
    least, most = costs
    return Estimate(
        questions=len(unasked.calls),
        calls=(calls[0], calls[1]),
        input_tokens=(sent[0], sent[1]),
        output_tokens=(written[0], written[1]),
        cost_usd=None if least is None or most is None else (least, most),
    )


def _sent(question: Question, end: int) -> int:
    """The tokens of a prompt about a question: at least those of a description, at most those of a plan that is
    corrected, with the plan before and what is wrong with it."""
    if end == 0:
        return len(f"{DESCRIBE_SYSTEM}{question.question}".encode()) // BYTES_PER_TOKEN[0]
    text = f"{PLAN_SYSTEM}{plan_prompt(question)}{json.dumps(PLAN)}"
    return len(text.encode()) // BYTES_PER_TOKEN[1] + REPLY_TOKENS[1]
