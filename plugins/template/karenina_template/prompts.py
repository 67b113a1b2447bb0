"""What the judge is asked for the fields of a template."""

from __future__ import annotations

from karenina_judging.judgment import extraction_hints
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import VerificationContext

SYSTEM = f"""\
You extract facts from a response that another model gave to a question. You do not judge whether they are correct.

- Later statements of the response replace earlier ones.
- Follow the description of each field to the letter.
- Take values as the response states them. Do not complete, correct or infer anything from knowledge of your own.
- Where the response does not say what a field asks for, use null if the field allows it, and never a placeholder.

{UNTRUSTED_NOTE}"""


def extraction_prompt(context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> tuple[str, str]:
    """The system prompt and the user's prompt."""
    system = "\n\n".join([SYSTEM, *extraction_hints(context, handle)])
    what = "trace" if given.used_full_trace else "response"
    return system, f"Question:\n{context.question_text}\n\nThe {what}:\n{untrusted(given.text, what)}"
