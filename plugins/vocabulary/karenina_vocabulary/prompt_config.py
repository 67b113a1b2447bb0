"""What a prompt has beside karenina's own words: instructions of the user, worked examples, and what judges read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal, TypeVar

from attrs import field, fields_dict, frozen, validators
from attrs.converters import optional

from karenina_core.values.fields import instance_of, texts
from karenina_core.values.sections import Section, flag, setting, whole

FAMILIES = {"rubric_": "rubric_evaluation", "agentic_parsing_": "agentic_parsing", "dj_": "deep_judgment"}
"""How the names of tasks begin that share instructions."""


@frozen(kw_only=True)
class PromptConfig:
    """Instructions of the user's own, added to karenina's prompts by task."""

    generation: str | None = None
    parsing: str | None = None
    abstention_detection: str | None = None
    sufficiency_detection: str | None = None
    rubric_evaluation: str | None = None
    agentic_parsing: str | None = None
    deep_judgment: str | None = None
    embedding_equivalence: str | None = None

    def get_for_task(self, task: str) -> str | None:
        """The instructions for a task: by its own name, else by its family."""
        own = getattr(self, task) if task in TASKS else None
        if own is not None:
            return str(own)
        family = _family(task)
        return None if family is None else getattr(self, family) or None


@lru_cache(maxsize=256)
def _family(task: str) -> str | None:
    return next((name for prefix, name in FAMILIES.items() if task.startswith(prefix)), None)


TASKS = frozenset(fields_dict(PromptConfig))
T = TypeVar("T")


def _tuple(value: Iterable[T]) -> tuple[T, ...]:
    return tuple(value)


@frozen(kw_only=True)
class FewShotQuestion:
    """Which examples one question gets."""

    mode: Literal["all", "k-shot", "custom", "inherit"] = "inherit"
    k: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    selected_examples: tuple[int | str, ...] = field(default=(), converter=_tuple)
    """Positions in the question's pool, or MD5s of an example's question text."""
    excluded_examples: tuple[int | str, ...] = field(default=(), converter=_tuple)


@frozen(kw_only=True)
class FewShotConfig:
    """Worked examples that are put before the question."""

    source: Literal["disabled", "question_pool", "global", "both"] = "both"
    pool_mode: Literal["all", "k-shot", "custom"] = "all"
    pool_k: int = field(default=3, validator=validators.ge(1))
    question_configs: Mapping[str, FewShotQuestion] = field(factory=dict)
    global_examples: tuple[Mapping[str, str], ...] = field(default=(), converter=_tuple)
    """Each `{"question": ..., "answer": ...}`; added after those of the question's pool."""


@frozen(kw_only=True, slots=False)
class PromptSettings(Section):
    """The user's part of prompts."""

    prompt_config: PromptConfig = field(factory=PromptConfig, validator=instance_of(PromptConfig))


@frozen(kw_only=True, slots=False)
class JudgeSettings(Section):
    """What judges read, and what they are asked about."""

    use_full_trace_for_template: bool = flag(False)
    """Whether the judge reads the whole trace instead of the final message."""
    judge_with: str | None = setting(None, validators.optional(validators.instance_of(str)))
    """How questions without a template are judged: the name of a template runtime that makes one, such as `reference`.
    None: they are left out."""
    include_extraction_hints: bool = flag(True)
    use_full_trace_for_rubric: bool = flag(True)
    """Whether traits are scored on the whole trace instead of the final message."""
    rubric_trait_names: tuple[str, ...] | None = setting(None, converter=optional(texts), environment=False)
    """Evaluate these traits only; None: all."""
    rubric_concurrency: int = whole(6, least=1, neutral=True)
    """Calls about traits of one item that are in flight at the same time."""
