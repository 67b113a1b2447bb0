"""What both checks do with the judge: show it an answer, read its reply strictly, keep what it found."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from html import unescape
from typing import Any

from karenina_judging.asking import ask_judge
from karenina_judging.judgment import own_strategy
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_template.language.grounding import fields_in
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import EvaluationInput, evaluation_input

from karenina_core import Stage, VerificationContext
from karenina_core.errors import ParseError, TemplateError, one_line

SYSTEM = f"""\
You take values from a response that another model gave to a question. Whether they are correct is not your concern.

- Take a value only where the response gives it as its answer or as a part of it. What the response repeats from the \
question, and what it says about why it does not answer, is no value.
- Every value that the response does not give is null. Do not infer or fill in anything.

{UNTRUSTED_NOTE}"""
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
"""Thai, Lao, Burmese, Khmer, kana and ideographs: no spaces between words, so every character counts as one."""
APOSTROPHES = re.compile(r"(?<=[^\W_])[’‘ʼ´`′＇'](?=[^\W_])")
INLINE_TAG = re.compile(r"</?(?:a|abbr|b|code|em|font|i|kbd|mark|q|s|small|span|strong|sub|sup|u)\b[^<>]*>", re.I)
TAG = re.compile(r"<[/!]?[A-Za-z-][^<>]*>")
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
MARKS = re.compile(r"[*`]+|~~|\\(?=[^\w\s])|(?<![^\W_])_+|_+(?![^\W_])")
LEAST = 4
"""What a quotation must weigh: a word of a script with spaces weighs 2, a character of one without spaces 1."""


@cache
def _spaced() -> re.Pattern[str]:
    """A letter or digit of a script with spaces. Compiled when it is needed, as `_word`: both take 10 ms."""
    return re.compile(rf"[^\W_{UNSPACED}]")


@cache
def _word() -> re.Pattern[str]:
    return re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")


def examined(context: VerificationContext) -> EvaluationInput:
    """The text that the judge of the template reads too: the final message, or the whole trace on request."""
    rows = context.get_result_field("trace_messages", [])
    raw = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    return evaluation_input(rows, raw, full_trace=context.config.use_full_trace_for_template)


def keep(
    stage: Stage,
    context: VerificationContext,
    *,
    performed: bool,
    detected: bool | None,
    override_applied: bool = False,
    reasoning: str | None = None,
) -> None:
    """Write what a check has found into its four artifacts, in their order, and the result fields of the same names."""
    for key, value in zip(stage.produces, (performed, detected, override_applied, reasoning), strict=True):
        context.set_artifact_and_result(key, value)


async def stated(context: VerificationContext, user: str, own_words: str) -> dict[str, Any]:
    """The values by which the response answers, as the judge takes them from it; empty where it gives none.

    Code decides what counts: a value that occurs in `own_words`, which the answering model wrote, and not in the
    question; or one that the question offers, where every other value occurs too. Truth values are not written out, and
    count for nothing. Empty without a template too, and where the judge's replies cannot be read,
    with a warning. Raises PortError where the judge could not be reached.
    """
    handle = context.get_artifact(ArtifactKeys.ANSWER, None)
    if handle is None or not handle.fields() or own_strategy(handle):
        return {}
    try:
        task, texts = PromptTask.ABSTENTION_DETECTION, (SYSTEM, user)
        asked = await ask_judge(context, task, texts, handle.schema(), validate=handle.build, temperature=0.0)
    except (ParseError, TemplateError) as error:
        context.warn(f"the abstention could not be compared with the values of the template: {one_line(error)}")
        return {}
    values = asked.parsed.values()
    fields = [field for field in handle.fields() if field.verified] or handle.fields()
    there = fields_in(fields, values, own_words)
    asked_for = fields_in(fields, values, context.question_text)
    whole = all(field.name in there or type(values.get(field.name)) is bool for field in fields)
    return {name: values[name] for name in there if whole or name not in asked_for}


def occurs(quotation: str, text: str, least: int = LEAST) -> bool:
    """Whether the quotation is a passage of the text: the same whole words in a row.

    Case, accents, ligatures, apostrophes, punctuation, HTML tags and markdown marks do not count, for judges change
    them when they copy. A single word (or fewer than four characters of a script without spaces) is found in any text:
    it counts only where it is the whole text, unless `least` (see `LEAST`) is lower. So does a quotation without any
    letter or digit, which must be the text as it is. An empty one occurs nowhere.
    """
    if not _word().search(quotation):
        return bool(quotation.strip()) and quotation.strip() == text.strip()
    for form in (str, _unmarked):
        wanted, words = _words(form(quotation)), _words(form(text))
        weight = sum(2 if _spaced().match(word) else 1 for word in wanted)
        if (wanted and wanted == words) or (weight >= least and f" {' '.join(wanted)} " in f" {' '.join(words)} "):
            return True
    return False


def _words(text: str) -> list[str]:
    # Apostrophes first, because some of them decompose into a blank. Then twice, because folding the case of a
    # character may leave one that can be decomposed again.
    folded = unicodedata.normalize("NFKD", APOSTROPHES.sub("", text))
    folded = APOSTROPHES.sub("", unicodedata.normalize("NFKD", folded.casefold()))
    return _word().findall("".join(c for c in folded if unicodedata.category(c) not in ("Mn", "Mc", "Me", "Cf")))


def _unmarked(text: str) -> str:
    """The text as it looks where HTML and markdown are shown."""
    text = unescape(TAG.sub(" ", INLINE_TAG.sub("", text)))
    return MARKS.sub("", LINK.sub(r"\1", text))
