"""Properties of a context that come from the question, the task, the configuration and the trail."""

from __future__ import annotations

from ..model.config import AgenticRubricStrategy, EvaluationMode, VerificationConfig
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
    def abstention_enabled(self) -> bool:
        return self.config.abstention_enabled

    @property
    def sufficiency_enabled(self) -> bool:
        return self.config.sufficiency_enabled

    @property
    def deep_judgment_enabled(self) -> bool:
        return self.config.deep_judgment_enabled

    @property
    def embedding_check_enabled(self) -> bool:
        return self.config.embedding_check_enabled

    @property
    def agentic_parsing(self) -> bool:
        return self.config.agentic_parsing

    @property
    def agentic_rubric_strategy(self) -> AgenticRubricStrategy:
        return self.config.agentic_rubric_strategy

    @property
    def execution_time(self) -> float:
        """Seconds that the stages have taken so far, in sum."""
        return sum(entry.seconds for entry in self.trail)
