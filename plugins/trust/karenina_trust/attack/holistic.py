"""Entry point `holistic-judgment`: the plain judge that attacks are tried on beside that of the templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen
from karenina_vocabulary.explanations import JUDGED_AGAINST_REFERENCE
from karenina_vocabulary.handle import TemplateHandle

from karenina_core import hookimpl
from karenina_core.values.question import Question, TemplateSource

NAME, LANGUAGE = "holistic", "karenina-holistic"
TASK = "holistic_judgment"
"""The task of the judge, as the ledger and the instructions for models name it."""
FIELD = "is_correct"
TEXT = json.dumps(
    {
        "fields": [
            {
                "name": FIELD,
                "type": "bool",
                "description": "Whether the response is correct",
                "ground_truth": True,
                "verify_with": {"type": "BooleanMatch"},
            }
        ]
    }
)


@frozen
class HolisticRuntime:
    """Makes one template for all questions, which is filled in with the judge's opinion of the whole response."""

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
        from karenina_template.declarative_templates import DeclarativeRuntime

        return evolve(
            await DeclarativeRuntime().load(text, primitives), strategy=self.strategy, caveat=JUDGED_AGAINST_REFERENCE
        )


@hookimpl
def karenina_register_template_runtimes(registry: Any) -> None:
    registry.add(HolisticRuntime, name=NAME)


@hookimpl
def karenina_register_strategies(registry: Any) -> None:
    registry.add("karenina_trust.attack.holistic_judgment:HolisticJudgment", name=NAME)
