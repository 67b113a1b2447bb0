"""Properties of a context that come from the question, the task, the configuration and the trail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..model.config import EvaluationMode, VerificationConfig, facts
from ..model.identity import TaskIdentity
from ..model.question import Question
from ..model.result import TrailEntry

__all__ = ["ReadThrough"]


class ReadThrough:
    """Base of `VerificationContext`."""

    question: Question
    task: TaskIdentity
    config: VerificationConfig
    mode: EvaluationMode
    trail: list[TrailEntry]

    @property
    def question_id(self) -> str:
        return self.question.id

    @property
    def question_text(self) -> str:
        return self.question.question

    @property
    def template_id(self) -> str:
        return self.task.template_id

    @property
    def template_code(self) -> str | None:
        return self.question.answer_template

    @property
    def replicate(self) -> int:
        return self.task.replicate

    @property
    def evaluates_template(self) -> bool:
        return self.mode != "rubric_only"

    @property
    def execution_time(self) -> float:
        """Seconds that the stages have taken so far, in sum."""
        return sum(entry.seconds for entry in self.trail)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A setting of the run, such as a switch of a feature."""
            if name in facts():
                return getattr(self.config, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
