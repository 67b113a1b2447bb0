"""The prompts about `llm` traits. The port adds the shape of the reply, with the schema."""

from __future__ import annotations

from collections.abc import Mapping

from karenina_judging.asking import presented
from karenina_judging.scoring import scale_words
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_vocabulary.evaluators import TraitCase
from karenina_vocabulary.traits import LLMRubricTrait

__all__ = ["CLASSES", "RECORD", "SCORES", "record_text", "system_text", "traits_text"]

EVIDENCE = """\
- The {label} is your only evidence: what it says, shows or does. Do not complete it from knowledge of your own, and \
do not judge whether it is correct unless a trait asks for that.
- The criteria say what counts. Where their words leave room, take them in their plain meaning, and keep to that \
reading."""
ALONE = "- Every trait is assessed by itself: what you find for one says nothing about another."
SCORES = f"""\
You assess qualities of a text, called traits. Each is described by its criteria and has a scale.

- Reply with one value for every key that is listed, under exactly that key, and with nothing else. A trait that is \
true or false gets true or false. A trait with a numeric scale gets one whole number of that scale, ends included: no \
fraction, no text, no number outside.
{ALONE}
{EVIDENCE}
- Use the whole scale. A value in the middle is for evidence of middling strength, not for doubt.

{UNTRUSTED_NOTE}"""
CLASSES = f"""\
You classify a text. Each trait below has a list of classes of its own, and you say which of them the text belongs to.

- Reply with one class for every key that is listed, under exactly that key, and with nothing else. Copy the name of \
the class as it is listed. Never name several classes, a new one, or none.
- Where the text has something of several classes, choose the one that prevails.
{ALONE}
{EVIDENCE}

{UNTRUSTED_NOTE}"""
RECORD = f"""\
You fill in a record that describes a quality of a text. The criteria say what the record is about, the description of \
each field what belongs into it.

- Fill in every field of the record, under exactly its name, and no others. Keep to the types, the limits and the \
allowed values of the schema.
{EVIDENCE}
- Where there is no evidence for a field, give the value that claims least: null where it is allowed, else false, the \
lowest number allowed, an empty list, or of the allowed values the one that says least.

{UNTRUSTED_NOTE}"""
REFERENCE = """\
Reference answer, written by an expert. Use it where the criteria call for a comparison; it is no part of the {label}, \
and the {label} need not share its wording.
<reference-answer>
{text}
</reference-answer>"""


def traits_text(traits: Mapping[str, LLMRubricTrait], case: TraitCase, reference: str) -> str:
    """The question, the answer, the traits by their keys, and the reference answer where there is one to show."""
    listed = "\n\n".join(f"{key}: {trait.name}\n{_criteria(trait)}\n{_scale(trait)}" for key, trait in traits.items())
    return "\n\n".join([*_case(case, reference), f"The traits:\n\n{listed}"])


def record_text(trait: LLMRubricTrait, case: TraitCase, reference: str) -> str:
    """The same for one trait whose score is a record."""
    return "\n\n".join([*_case(case, reference), f"The record: {trait.name}\n{_criteria(trait)}"])


def system_text(text: str, case: TraitCase) -> str:
    """One of the system texts above for a case."""
    return text.replace("{label}", case.label)


def _case(case: TraitCase, reference: str) -> list[str]:
    shown = [presented(case.context.question_text, case.given)]
    if reference:
        shown.append(REFERENCE.replace("{label}", case.label).replace("{text}", reference))
    return shown


def _criteria(trait: LLMRubricTrait) -> str:
    criteria = (trait.description or "").strip()
    return f"Criteria: {criteria}" if criteria else "Criteria: none beyond the name"


def _scale(trait: LLMRubricTrait) -> str:
    return f"Reply with {scale_words(trait)}"
