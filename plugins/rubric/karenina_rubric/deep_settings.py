"""Settings of deep judgment, of a run and of its traits, that reach no trait: notes before a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import fields_dict
from karenina_vocabulary.rubric_config import DeepJudgmentRubricSettings
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core import Rubric, VerificationConfig
from karenina_core.errors import Problem
from karenina_core.values.fields import changed

__all__ = ["DEEP", "notes"]

PREFIX = "deep_judgment_rubric_"
DEEP = tuple(name for name in fields_dict(DeepJudgmentRubricSettings))
WITHOUT_EFFECT = {
    "disabled": (
        *("global_excerpts", "config", "search_tool", "max_excerpts_default"),
        *("fuzzy_match_threshold_default", "excerpt_retry_attempts_default", "standard_scores"),
    ),
    "enable_all": ("config", "search_tool"),
    "use_checkpoint": ("global_excerpts", "config"),
    "custom": ("global_excerpts",),
}
"""By mode: the settings that it does not read."""


def notes(config: VerificationConfig, rubrics: Sequence[Rubric]) -> Iterator[Problem]:
    """What was configured and has no effect, and what a benchmark asks for that people should know of."""
    for text in (*_unread(config), *_unreached(config, rubrics)):
        yield Problem("", text, fatal=False)


def _unread(config: VerificationConfig) -> Iterator[str]:
    mode = config.deep_judgment_rubric_mode
    for name in changed(config, (f"{PREFIX}{name}" for name in WITHOUT_EFFECT[mode])):
        yield f"{name} has no effect with {PREFIX}mode {mode}"
    custom = config.deep_judgment_rubric_config
    if mode == "custom" and custom is not None:
        tables = [custom.global_traits, *custom.question_specific.values()]
        if not any(entry.enabled for table in tables for entry in table.values()):
            yield f"{PREFIX}config switches deep judgment on for no trait"


def _unreached(config: VerificationConfig, rubrics: Sequence[Rubric]) -> Iterator[str]:
    traits = {trait.name: trait for rubric in rubrics for trait in rubric if isinstance(trait, LLMRubricTrait)}
    marked = {name: trait for name, trait in traits.items() if trait.deep_judgment_enabled}
    able = [name for name, trait in marked.items() if trait.kind in ("boolean", "score")]
    mode = config.deep_judgment_rubric_mode
    if mode == "disabled" and able:
        yield f"{PREFIX}mode disabled: these traits ask for deep judgment and are judged without: {', '.join(able)}"
    if mode != "use_checkpoint":
        return
    searching = [name for name in able if marked[name].deep_judgment_search_enabled]
    if searched := [name for name in searching if marked[name].deep_judgment_excerpt_enabled]:
        yield f"quotations for these traits go to the search tool, as the benchmark asks: {', '.join(searched)}"
    if other := [name for name in marked if name not in able]:
        yield f"deep judgment is for boolean and score traits; judged without it are: {', '.join(other)}"
    if traits and not able:
        unread = {f"{PREFIX}{name}" for name in WITHOUT_EFFECT[mode]}
        for name in changed(config, (name for name in DEEP if name not in unread)):
            yield f"{name} has no effect: no trait has deep_judgment_enabled"
