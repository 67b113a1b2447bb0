"""Template kinds before the judge: one call for each trait, whose reply is a record of the trait's own fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define
from karenina_judging.asking import ask_judge
from karenina_vocabulary.evaluators import TraitCase, TraitScore
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.template_kind import TemplateKind, read_record, record_schema
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core.errors import FillError, ParseError, shortened

from .llm_calls import LONGEST_REASON
from .llm_prompts import RECORD, record_text, system_text

__all__ = ["recorded"]


async def recorded(trait: LLMRubricTrait, kind: TemplateKind, case: TraitCase, reference: str) -> TraitScore:
    """The record that the judge fills in, as the value of the score. Raises PortError where it cannot be reached.

    Every field is asked for. The judge is asked once for those that it left out; then those that have a default get it.
    Of the reason why there is no record the first 1,000 characters are kept.
    """
    reader = _Reader(kind)
    texts = (system_text(RECORD, case), record_text(trait, case, reference))
    task, schema = PromptTask.RUBRIC_LLM_TRAIT_TEMPLATE, record_schema(kind)
    try:
        await case.in_turn(lambda: ask_judge(case.context, task, texts, schema, validate=reader.read))
    except ParseError as error:
        return reader.without_more(error)
    return TraitScore(value=reader.record)


@define
class _Reader:
    """Reads the replies of one call. Remembers the last record, and what was wrong with the last of other replies."""

    kind: TemplateKind
    record: dict[str, Any] | None = None
    problem: str = ""
    replies: int = 0

    async def read(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The record. Raises FillError, in words for the judge; for fields that have a default, the first time only."""
        self.replies += 1
        fields = self.kind.schema["properties"]
        if not fields.keys() & data.keys():
            raise FillError(f"the reply has none of the fields: {', '.join(fields)}")
        is_first = self.record is None
        try:
            self.record = read_record(self.kind, data)
        except FillError as error:
            self.problem = str(error)
            raise
        if is_first and (left_out := [name for name in fields if name not in data]):
            raise FillError("\n".join(f"{name} is missing; reply with every field" for name in left_out))
        return self.record

    def without_more(self, error: ParseError) -> TraitScore:
        """What the replies come to when the judge's repairs are used up."""
        if self.record is not None:
            return TraitScore(value=self.record)
        if self.problem:
            return TraitScore(state="invalid", reason=shortened(self.problem, LONGEST_REASON))
        reason = "the judge gave no value for it" if self.replies else f"the judge's reply could not be read: {error}"
        return TraitScore(state="missing", reason=shortened(reason, LONGEST_REASON))
