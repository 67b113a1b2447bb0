"""What the judge is asked for the fields of a template."""

from __future__ import annotations

from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import VerificationContext

SYSTEM = f"""\
You extract facts from a response that another model gave to a question. You do not judge whether they are correct.

- Work with what the response finally says: later statements replace earlier ones.
- The description of each field says exactly what belongs into it; follow it to the letter.
- Take values as the response states them. Do not complete, correct or infer anything from knowledge of your own.
- Where the response does not say what a field asks for, use null if the field allows it. Never fill in a placeholder.
- Keep to the types of the schema.

{UNTRUSTED_NOTE}"""


def extraction_prompt(context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> tuple[str, str]:
    """The system prompt and the user's prompt."""
    system = SYSTEM
    hints = [f"- {field.name}: {field.hint}" for field in handle.fields() if field.hint]
    if context.config.include_extraction_hints and hints:
        system = "\n".join([f"{SYSTEM}\n\nHints for single fields:", *hints])
    what = "trace" if given.used_full_trace else "response"
    question = (
        f"Question:\n{context.question_text}\n\nThe {what} to extract from:\n{untrusted(given.text, what)}\n\n"
        f"Extract the fields from this {what}. Reply with the JSON object only."
    )
    return system, question
