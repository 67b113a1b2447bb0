"""SufficiencyCheck: an answer that leaves out what the template needs is called that before it is parsed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, frozen
from karenina_calls.wire.strict_schema import outline
from karenina_judging.asking import ask_judge, check_reply, closed_object, presented, unable_judges
from karenina_judging.judgment import fillable, own_strategy
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.planned_calls import PlannedCall, asks_judge, size, template_size
from karenina_vocabulary.tasks import PromptTask

from karenina_core import (
    Category,
    Karenina,
    Question,
    Rubric,
    Skip,
    Stage,
    VerificationConfig,
    VerificationContext,
    feature,
    hookimpl,
)
from karenina_core.errors import ContradictionError, KareninaError, PortError, Problem, one_line
from karenina_core.pipeline.stage import in_mode

from .judge import examined, keep

SYSTEM = f"""\
You decide whether a response says enough to fill a record in. Whether what it says is correct is not your concern.

Go through the fields of the record one by one. For each, write down what the response says about it, and whether it \
was found:
- A field is found where the response says anything that could be turned into a value for it: approximately, with \
hedges, in other words, or as a number that one gets by counting what is listed.
- A field that may be null is found where the response says anything about its subject, also that there is none.
- A field that asks whether the response does or mentions something is always found: the response shows it.
- A field is not found where the response is silent about it, or only says that it is unknown.

The response is sufficient exactly when every field was found. Do not use knowledge of your own.

{UNTRUSTED_NOTE}"""

AGREE = "Look again and make the two agree: sufficient is true exactly when found is true for every field."
CONTRADICTORY_SUFFICIENCY = "contradictory_sufficiency"
"""The caveat of a result whose judge contradicts its own findings, also when it is shown that."""
FINDING = closed_object(
    {
        "evidence": {
            "type": ["string", "null"],
            "description": "What in the response a value can be made of; null: nothing",
        },
        "found": {"type": "boolean"},
    }
)


class SufficiencyCheck(Stage):
    """Asks the judge whether the answer says something about every field that the judge's schema requires.

    `sufficiency_detected` is True for an answer that says enough. An answer that does not gets the outcome
    `insufficient`. The judge sees the schema and never the ground truth. It has to name what is missing: a verdict that
    contradicts its own findings, or evidence for a field that it calls not found, is shown to it once. Where it
    contradicts itself again `sufficiency_detected` is None, with a warning and a caveat, and the answer is parsed. A
    judge that fails decides nothing either: the answer is treated as sufficient.
    """

    category = Category.PRE_PARSE_CHECK
    requires = (ArtifactKeys.RAW_LLM_RESPONSE, ArtifactKeys.ANSWER)
    reads = (
        ArtifactKeys.RECURSION_LIMIT_REACHED,
        ArtifactKeys.TRACE_VALIDATION_FAILED,
        ArtifactKeys.ABSTENTION_DETECTED,
    )
    produces = (
        ArtifactKeys.SUFFICIENCY_CHECK_PERFORMED,
        ArtifactKeys.SUFFICIENCY_DETECTED,
        ArtifactKeys.SUFFICIENCY_OVERRIDE_APPLIED,
        ArtifactKeys.SUFFICIENCY_REASONING,
    )
    result_fields = produces
    extends = ("caveats",)
    included_when = in_mode("template_only", "template_and_rubric") & feature("sufficiency")

    def check_config(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        task = PromptTask.SUFFICIENCY_DETECTION
        return unable_judges(app, config.parsing_models, task, "leave the check out (--without sufficiency)")

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        least, most = asks_judge(question.template)
        sends = size(question.question, *(model.system_prompt for model in config.parsing_models))
        call = PlannedCall(
            task=PromptTask.SUFFICIENCY_DETECTION,
            least=least,
            most=most,
            sends=sends,
            may_send=template_size(question),
            decides=True,
            unless_decided=True,
        )
        return [call] if most else []

    def should_run(self, context: VerificationContext) -> bool | Skip:
        allowed = super().should_run(context) and fillable(context)
        if allowed and not context.get_artifact(ArtifactKeys.ANSWER).fields():
            return Skip("the template asks a judge for nothing")
        if allowed and own_strategy(context.get_artifact(ArtifactKeys.ANSWER)):
            return Skip("its judge decides this by itself")
        return allowed

    async def execute(self, context: VerificationContext) -> None:
        given = examined(context)
        schema, required, unusable = _wanted(context.get_artifact(ArtifactKeys.ANSWER))
        problem = given.error or unusable
        if problem is not None:
            context.warn(f"the sufficiency check was not performed: {problem}")
            keep(self, context, performed=False, detected=None)
            return
        findings = closed_object(
            {
                "fields": closed_object(dict.fromkeys(required, FINDING)),
                "reasoning": {"type": "string", "description": "What is missing, and why it counts as missing"},
                "sufficient": {"type": "boolean"},
            }
        )
        user = (
            f"{presented(context.question_text, given)}\n\nThe fields of the record:\n{_listed(schema, required)}\n\n"
            "Do not fill the record in. Say for each field what you found, and then whether it is enough."
        )
        reader = _Reader(findings)
        try:
            task = PromptTask.SUFFICIENCY_DETECTION
            asked = await ask_judge(context, task, (SYSTEM, user), findings, validate=reader.read, temperature=0.0)
        except PortError as error:
            context.warn(
                f"the sufficiency check was not performed, the answer is treated as sufficient: {one_line(error)}"
            )
            keep(self, context, performed=False, detected=True)
            return
        judged: _Judged = asked.parsed
        if judged.contradiction:
            warning = "the judge of sufficiency contradicts itself, also when it is shown that; nothing is decided"
            context.warn(f"{warning}: {judged.contradiction}")
            context.extend_result_field("caveats", [CONTRADICTORY_SUFFICIENCY])
            keep(self, context, performed=True, detected=None, reasoning=judged.reasoning)
            return
        sufficient, why = not judged.missing, judged.reasoning
        keep(self, context, performed=True, detected=sufficient, override_applied=not sufficient, reasoning=why)
        if not sufficient:
            reason = f"the answer says nothing about: {', '.join(judged.missing)}"
            context.record(verdict=False, reason=reason, outcome="insufficient")


@frozen
class _Judged:
    missing: tuple[str, ...]
    reasoning: str
    contradiction: str
    """What of it cannot be true together; empty where all of it can."""


def _wanted(handle: Any) -> tuple[dict[str, Any], list[str], str | None]:
    """The schema of the record, its required fields, and why it cannot be used, if so.

    Whether a field has a default is no matter: what counts is whether the judge of the template has to fill it in.
    """
    try:
        schema = handle.schema()
    except KareninaError as error:
        return {}, [], f"the template gives no schema: {one_line(error)}"
    required = [name for name in schema.get("required", ()) if name in schema.get("properties", {})]
    return schema, required, None if required else "the template requires no field"


def _listed(schema: Mapping[str, Any], required: Sequence[str]) -> str:
    """What has to be found, for the judge: in words, or as the schema where that says more than words can."""
    asked = {**schema, "properties": {name: schema["properties"][name] for name in required}}
    return outline(asked) or json.dumps(asked, ensure_ascii=False)


@define
class _Reader:
    """Reads the judge's findings, and shows it a contradiction between them once."""

    schema: Mapping[str, Any]
    contradicted: bool = False

    async def read(self, data: Mapping[str, Any]) -> _Judged:
        """Raises FillError, in words for the judge, where the reply does not fit, or contradicts itself."""
        check_reply(data, self.schema)
        found = {name: data["fields"][name] for name in self.schema["properties"]["fields"]["required"]}
        missing = tuple(name for name, finding in found.items() if not finding["found"])
        contradiction = _contradiction(found, missing, sufficient=data["sufficient"])
        if contradiction and not self.contradicted:
            self.contradicted = True
            raise ContradictionError(contradiction)
        return _Judged(missing, data["reasoning"], contradiction)


def _contradiction(found: Mapping[str, Any], missing: Sequence[str], *, sufficient: bool) -> str:
    """In words for the judge."""
    shown = [name for name in missing if (found[name]["evidence"] or "").strip()]
    if shown:
        what = f"there is evidence for fields that were not found: {', '.join(shown)}"
        return f"{what}. Where a value can be made of it, found is true; where none can, evidence is null."
    if sufficient and missing:
        return f"sufficient is true, but these fields were not found: {', '.join(missing)}. {AGREE}"
    if not sufficient and not missing:
        return f"sufficient is false, but every field was found. {AGREE}"
    return ""


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(SufficiencyCheck)
