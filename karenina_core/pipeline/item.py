"""One item as a context shows it: its question, task and settings, and what it is given from before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ..errors import ErrorKind
from ..values.config import EvaluationMode, VerificationConfig, facts
from ..values.identity import TaskIdentity
from ..values.question import Question
from ..values.result import TrailEntry


@frozen(kw_only=True)
class CachedAnswer:
    """An answer that was generated before, to be judged again without asking the answering model."""

    raw_llm_response: str
    trace_messages: tuple[Mapping[str, Any], ...] = ()
    recursion_limit_reached: bool = False
    answering_mcp_servers: tuple[str, ...] = ()
    usage_metadata: Mapping[str, Any] = field(factory=dict)
    agent_metrics: Mapping[str, Any] | None = None
    conversation_context: tuple[Mapping[str, Any], ...] = ()
    text_flags: tuple[str, ...] = ()
    usage_unavailable: bool = False
    few_shot_example_count: int = 0
    workspace: Path | None = None
    """The folder that the answer was worked out in, as its model left it. It is looked at in copies."""
    replayed_from: Mapping[str, Any] | None = None
    """Where it was captured, if that was in another run; see `GenerationPart.replayed_from`."""
    fields: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """What judges have extracted from it before, by the judge's name: they are not asked for that again."""
    fields_must_fit: bool = False
    """Whether such fields that the template does not take are an error; else the judge is asked."""


@frozen
class ItemError:
    """The first error of an item: what happened, of which kind, in which stage."""

    message: str
    kind: ErrorKind
    stage: str | None


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
