"""A benchmark: questions, a rubric for all of them, and where it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import converters, field, frozen

from .fields import texts
from .question import Question
from .rubric import DynamicRubric, Rubric


def _questions(value: Iterable[Question]) -> tuple[Question, ...]:
    return tuple(value)


@frozen(kw_only=True)
class MissingTrait:
    """A trait of a file that no installed package can read."""

    name: str
    question_id: str | None = None
    """The question that has it; None where it applies to all."""
    reason: str = ""
    """Where it is and what to install."""


def _missing(value: Iterable[MissingTrait]) -> tuple[MissingTrait, ...]:
    return tuple(value)


@frozen(kw_only=True)
class BenchmarkData:
    """What a benchmark file says. Loaders make it, writers read it; it executes nothing."""

    name: str = field()
    description: str = ""
    version: str = "0.1.0"
    creator: Any = None
    id: str | None = None
    questions: tuple[Question, ...] = field(default=(), converter=_questions)
    rubric: Rubric | None = None
    """Traits that apply to every question."""
    dynamic_rubric: DynamicRubric | None = None
    """Traits that apply to every question whose answer speaks of what they are about."""
    metadata: Mapping[str, Any] = field(factory=dict)
    date_created: str | None = None
    date_modified: str | None = None
    document: Any = field(default=None, eq=False, repr=False)
    """The loader's own record of the file, so that what karenina does not know survives a save."""
    warnings: tuple[str, ...] = field(default=(), converter=texts, eq=False)
    """What the loader noticed and could not use."""
    missing_traits: tuple[MissingTrait, ...] = field(default=(), converter=_missing, eq=False)
    """Traits that stay in the file and in no rubric. A run that would evaluate them is refused."""
    workspace_root: Path | None = field(default=None, converter=converters.optional(Path), eq=False)
    """The folder that the questions' `workspace_path` are in. It is of this machine and never written to a file."""

    @name.validator
    def _check_name(self, _: object, value: str) -> None:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("a benchmark needs a name")

    @questions.validator
    def _check_ids(self, _: object, value: tuple[Question, ...]) -> None:
        seen: set[str] = set()
        for question in value:
            if question.id in seen:
                raise ValueError(f"two questions have the id {question.id!r}")
            seen.add(question.id)

    @property
    def digest(self) -> str:
        """The digest of all items, in any order; see `Question.digest`."""
        text = "\n".join(sorted(f"{question.id} {question.digest}" for question in self.questions))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def __len__(self) -> int:
        return len(self.questions)

    def __contains__(self, question_id: object) -> bool:
        return any(question.id == question_id for question in self.questions)

    def question(self, question_id: str) -> Question:
        """The question of this id; KeyError where there is none."""
        for question in self.questions:
            if question.id == question_id:
                return question
        raise KeyError(question_id)
