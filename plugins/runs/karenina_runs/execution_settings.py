"""Settings of a run for how it is carried out: how often each question is asked, in which order, how many at once."""

from __future__ import annotations

from typing import Literal

from attrs import frozen, validators

from karenina_core.values.fields import number, optional
from karenina_core.values.sections import Section, flag, fraction, setting, toml_or_text, whole, word, words

TaskOrdering = Literal["auto", "prefix_cache", "distribute_answerers", "generation_order", "random"]


@frozen(kw_only=True, slots=False)
class ExecutionSettings(Section):
    """How a run is carried out."""

    replicate_count: int = whole(1, least=1, neutral=True)
    """Independent answers per question and model."""
    stage_idle_timeout: float | None = setting(
        600.0, optional(number, validators.ge(0)), read=toml_or_text, neutral=True
    )
    """Seconds that a stage may take without progress while no call is in flight; 0 or None: no limit."""
    concurrency: int = whole(8, least=1, neutral=True)
    """Items in flight."""
    fail_fast: bool = flag(False, neutral=True)
    """Whether no more calls are made once an item has ended in an error that is not about what a model said: a broken
    plugin, a server that is down, a template that cannot be used."""
    task_ordering: TaskOrdering = word("auto", TaskOrdering, neutral=True)
    """The order in which answers are started. `generation_order`: question by question, each to all answering models.
    `distribute_answerers`: all answering models at the same time, so that a slow one holds up no other. `prefix_cache`:
    one model after the other, equal prompts together, for providers that cache prompts. `random`: shuffled, in the same
    way for every run of one name. `auto`: `distribute_answerers` where several models answer, else `prefix_cache`."""
    canaries: bool = flag(False, neutral=True)
    """Whether every judge also reads wrong answers that tell it how to judge them: for templates, checks and traits, if
    the run has them; at least 10 each, and one for every 99 items and traits. They count in no number of the
    benchmark."""
    canary_threshold: float = fraction(0.02, neutral=True)
    """The share of them, of each kind, that a judge may obey; if one obeys more, the run fails."""
    executor: str = words("local", neutral=True)
