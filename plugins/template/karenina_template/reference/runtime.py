"""Entry point `reference-judgment`: what stands in for the template of a question that has only a reference answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen
from karenina_vocabulary.explanations import JUDGED_AGAINST_REFERENCE
from karenina_vocabulary.handle import TemplateHandle

from karenina_core import hookimpl
from karenina_core.values.question import Question, TemplateSource

NAME, LANGUAGE = "reference", "karenina-reference"
TASK = "reference_judgment"
"""The task of the judge, as the ledger and the instructions for models name it."""
FIELD, RIGHT = "agreement", "agrees"
OPTIONS = (RIGHT, "contradicts", "incomplete", "unanswered")
TEXT = json.dumps(
    {
        "fields": [
            {
                "name": FIELD,
                "type": "literal",
                "literal_values": OPTIONS,
                "description": "How the response relates to the reference answer",
                "ground_truth": RIGHT,
                "verify_with": {"type": "LiteralMatch"},
            }
        ]
    }
)


@frozen
class ReferenceRuntime:
    """Makes one template for all questions. It holds nothing of a question: the strategy `reference` shows the judge
    the reference answer."""

    name: str = NAME
    languages: frozenset[str] = frozenset({LANGUAGE})
    executes_code: bool = False
    isolation: str = "no-code"
    strategy: str = NAME
    """What fills its templates; see `karenina_judging.judgment.own_strategy`."""
    judge_task: str = TASK
    """What the judge is asked for."""

    def template_for(self, question: Question) -> TemplateSource | None:
        """That of a question without a template; None where it has no reference answer either."""
        return TemplateSource(TEXT, LANGUAGE) if question.raw_answer.strip() else None

    async def load(self, text: str, primitives: Mapping[str, type]) -> TemplateHandle:
        """Raises TemplateError."""
        from ..declarative_templates import DeclarativeRuntime

        return evolve(
            await DeclarativeRuntime().load(text, primitives), strategy=self.strategy, caveat=JUDGED_AGAINST_REFERENCE
        )


@hookimpl
def karenina_register_template_runtimes(registry: Any) -> None:
    registry.add(ReferenceRuntime, name=NAME)


@hookimpl
def karenina_register_strategies(registry: Any) -> None:
    registry.add("karenina_template.reference.judgment:ReferenceJudgment", name=NAME)
