"""Whether a response that a judge takes for a refusal answers all the same: it gives values of the template."""

from __future__ import annotations

from typing import Any

from karenina_judging.asking import ask_judge
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_template.language.grounding import standing
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.tasks import PromptTask

from karenina_core import VerificationContext
from karenina_core.errors import ParseError, TemplateError, one_line

__all__ = ["stated"]

SYSTEM = f"""\
You take values from a response that another model gave to a question. Whether they are correct is not your concern.

- Take a value only where the response gives it as its answer or as a part of it. What the response repeats from the \
question, and what it says about why it does not answer, is no value.
- Every value that the response does not give is null. Do not infer or fill in anything.

{UNTRUSTED_NOTE}"""


async def stated(context: VerificationContext, user: str, own_words: str) -> dict[str, Any]:
    """The values by which the response answers, as the judge takes them from it; empty where it gives none.

    Code decides what counts: a value that occurs in `own_words`, which the answering model wrote, and not in the
    question; or one that the question offers, where every other value occurs too. Truth values are not written out, and
    count for nothing. Empty without a template too, and where the judge's replies cannot be read,
    with a warning. Raises PortError where the judge could not be reached.
    """
    handle = context.get_artifact(ArtifactKeys.ANSWER, None)
    if handle is None or not handle.fields():
        return {}
    try:
        task, texts = PromptTask.ABSTENTION_DETECTION, (SYSTEM, user)
        asked = await ask_judge(context, task, texts, handle.schema(), validate=handle.build, temperature=0.0)
    except (ParseError, TemplateError) as error:
        context.warn(f"the abstention could not be compared with the values of the template: {one_line(error)}")
        return {}
    values = asked.parsed.values()
    fields = [field for field in handle.fields() if field.verified] or handle.fields()
    there = standing(fields, values, own_words)
    asked_for = standing(fields, values, context.question_text)
    whole = all(field.name in there or type(values.get(field.name)) is bool for field in fields)
    return {name: values[name] for name in there if whole or name not in asked_for}
