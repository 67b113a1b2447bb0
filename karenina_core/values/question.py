"""A question and what belongs to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import PurePath
from typing import Any

from attrs import Factory, field, frozen

from ..errors import ConfigError, Problem
from .fields import texts
from .identity import question_urn, template_id
from .rubric import DynamicRubric, Rubric


@frozen
class TemplateSource:
    """The text of an answer template and the language it is written in. Text only: nothing is executed."""

    text: str
    language: str = "python"
    """`python` (a pydantic class) or `karenina-template` (a JSON description without code)."""

    @property
    def id(self) -> str:
        return template_id(self.text)


def _template_text(value: Any) -> str | None:
    """The source of a template that was given as a class, as data or as text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        try:
            return json.dumps(value, ensure_ascii=False, default=_as_data)
        except (TypeError, ValueError) as error:
            raise ConfigError([Problem("answer_template", f"the data cannot be written as JSON: {error}")]) from None
    if isinstance(value, type):
        from .. import templates

        return templates.template_source(value)
    what = "must be a template class, a dict with its fields, or the source of one"
    raise ConfigError([Problem("answer_template", f"{what}, not {value!r:.80}")])


def _as_data(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Collection):
        return list(value)
    raise TypeError(f"{value!r:.80} is not plain data")


def _posix(value: str | PurePath | None) -> str | None:
    return value.as_posix() if isinstance(value, PurePath) else value


def _language(question: Any) -> str:
    text: str = question.answer_template or ""
    return "karenina-template" if text.lstrip("\ufeff \t\r\n").startswith("{") else "python"


def _id(question: Any) -> str:
    return question_urn(question.question)


@frozen(kw_only=True)
class Question:
    """One question with its reference answer, its template and its own rubric."""

    question: str = field()
    raw_answer: str = ""
    """The reference answer as an expert wrote it."""
    id: str = field(default=Factory(_id, takes_self=True))
    answer_template: str | None = field(default=None, converter=_template_text)
    """Source of the answer template; it can be given as a template class or a dict, too."""
    template_language: str = field(default=Factory(_language, takes_self=True))
    """By default that of the source: `karenina-template` for a JSON object, else `python`."""
    finished: bool | None = None
    """Whether the author calls it finished; None where the author says nothing."""
    placeholder_template: bool = False
    """Whether the template is one that an authoring tool filled in and no author edited."""
    keywords: tuple[str, ...] = field(default=(), converter=texts)
    question_rubric: Rubric | None = None
    question_dynamic_rubric: DynamicRubric | None = None
    """Traits of this question that are evaluated only where the answer speaks of what they are about."""
    few_shot_examples: Sequence[Mapping[str, Any]] = ()
    answer_notes: str | None = None
    author: Mapping[str, Any] | str | None = None
    sources: Sequence[Any] | str | None = None
    custom_metadata: Mapping[str, Any] = field(factory=dict)
    workspace_path: str | None = field(default=None, converter=_posix)
    """The folder of its files beneath the benchmark's workspace root: names with `/` between them."""
    date_created: str | None = None
    date_modified: str | None = None

    @question.validator
    def _check_question(self, _: object, value: str) -> None:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("a question needs a text")

    @workspace_path.validator
    def _check_workspace_path(self, _: object, value: object) -> None:
        if value is not None and not isinstance(value, str):
            raise ConfigError([Problem("workspace_path", f"must be a path, not {value!r}")])

    @property
    def template(self) -> TemplateSource | None:
        """The template, unless there is none or only a placeholder."""
        if self.placeholder_template or not (self.answer_template or "").strip():
            return None
        return TemplateSource(self.answer_template or "", self.template_language)

    @property
    def digest(self) -> str:
        """What is asked and what is right, as sixteen hexadecimal digits: text, reference answer, template, examples
        and workspace. Traits are not part of it, and notes, keywords and the like change no answer."""
        template = " ".join((self.answer_template or "").split())  # however it is set out, as `template_id` has it
        language = self.template_language if template else ""
        examples = [dict(example) for example in self.few_shot_examples] if self.few_shot_examples else []
        parts = (self.question, self.raw_answer, language, template, examples, self.workspace_path)
        return hashlib.sha256(ascii(parts).encode("ascii")).hexdigest()[:16]

    @property
    def template_id(self) -> str:
        return template_id(self.answer_template)
