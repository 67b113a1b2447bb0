"""A user's instructions belong to tasks; a name that is no field of the configuration must find nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from karenina_core import PromptConfig
from karenina_core.prompts import PromptTask

Lookup = Callable[[PromptConfig, str], object]
TASKS = st.sampled_from([*PromptTask, "get_for_task", "__init__", "__class__", "__attrs_attrs__", "odd"]) | st.text()


def by_attribute(config: PromptConfig, task: str) -> object:
    """The naive way: whatever attribute has the name of the task."""
    return getattr(config, task, None)


def law(lookup: Lookup) -> None:
    @settings(
        database=None,
        deadline=None,
        derandomize=True,
        report_multiple_bugs=False,
        phases=(Phase.explicit, Phase.generate),
    )
    @given(TASKS)
    def told_is_a_text_or_nothing(task: str) -> None:
        said = lookup(PromptConfig(generation="Answer briefly.", parsing="Extract."), task)
        assert said is None or (isinstance(said, str) and said in ("Answer briefly.", "Extract."))

    told_is_a_text_or_nothing()


def test_a_task_finds_a_users_words_or_nothing() -> None:
    law(PromptConfig.get_for_task)


def test_looking_a_task_up_as_an_attribute_breaks_that() -> None:
    with pytest.raises(AssertionError):
        law(by_attribute)
