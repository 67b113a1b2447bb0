"""What becomes of one item's verdict where some of its fields are accepted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import field, frozen
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.handle import FieldVerdict, FilledTemplate, TemplateHandle
from karenina_vocabulary.traces import model_text

from karenina_core import VerificationContext
from karenina_core.errors import TemplateError

from .candidates import Candidate, Pair, candidates

__all__ = ["Accepted", "Wrong", "granular_of"]


@frozen(eq=False)
class Accepted:
    """The template as it is with these fields accepted, and what it says then."""

    filled: FilledTemplate
    verdict: FieldVerdict


@frozen(eq=False, kw_only=True)
class Wrong:
    """A filled template whose fields were found to be wrong, and all that it was verified with."""

    handle: TemplateHandle | None
    filled: FilledTemplate
    candidates: tuple[Candidate, ...]
    trace: str = field(repr=False)
    said: str = field(repr=False)
    semantic: Mapping[str, float]
    """For semantic fields: 1 where they were found to be right, 0 where not. That decides them as before, without
    another call of the embedder."""

    @classmethod
    def of(cls, context: VerificationContext) -> Wrong:
        filled = context.get_artifact(ArtifactKeys.PARSED_ANSWER)
        handle = context.get_artifact(ArtifactKeys.ANSWER, None)
        trace = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE, "")
        results = context.get_result_field("field_results", None) or {}
        fields = handle.fields() if handle is not None else ()
        return cls(
            handle=handle,
            filled=filled,
            candidates=candidates(handle, filled, results) if handle is not None else (),
            trace=trace,
            said=model_text(context.get_result_field("trace_messages", ()), trace),
            semantic={item.name: float(results.get(item.name) is True) for item in fields if item.semantic},
        )

    async def accepting(self, names: Collection[str]) -> Accepted:
        """Verify a copy in which these fields count as right. Raises TemplateError as `verify` does."""
        filled = self.filled.accepting(names)
        return Accepted(filled, await filled.verify(self.trace, said=self.said, similarities=self.semantic))

    async def settled(self, candidate: Candidate, same: Collection[Pair]) -> bool:
        """Whether the field is right where these pairs mean the same.

        In a list the expected texts take the places of those that mean the same, and the template compares it as ever:
        so it decides itself about the order, repetitions, and texts that are missing or too many.
        """
        if not same or self.handle is None or not candidate.is_list:
            return bool(same)
        values = dict(self.filled.values())
        listed = list(values[candidate.name])
        for pair in same:
            if pair.place is not None:
                listed[pair.place] = pair.expected
        filled = await self.handle.build({**values, candidate.name: listed})
        verdict = await filled.verify(self.trace, said=self.said, similarities=self.semantic)
        return verdict.field_results.get(candidate.name, verdict.result) is True


async def granular_of(context: VerificationContext, accepted: Accepted) -> float | None:
    """Partial credit is extra: where it fails, the verdict is kept and a warning says so."""
    try:
        return await accepted.filled.granular()
    except TemplateError as error:
        context.warn(f"verify_granular failed: {error}")
        return None
