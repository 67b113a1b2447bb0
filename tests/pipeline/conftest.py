"""The stages that come with karenina, and contexts for single stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karenina_core import Karenina, Question, VerificationContext
from karenina_core.plugin.discovery import discover, load

PUBLISHED = {
    *("validate-template", "generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail"),
    *("abstention-check", "sufficiency-check", "parse-template", "verify-template"),
    *("embedding-check", "deep-judgment-auto-fail", "finalize-result"),
    *("rubric-evaluation", "deep-judgment-rubric-auto-fail"),
    *("agentic-parse-template", "agentic-rubric-evaluation"),
}
"""The plugins whose stages the published lists are made of."""


@pytest.fixture(scope="session")
def built_in() -> dict[str, Any]:
    """The plugins of the stages that come with karenina, by name."""
    return {source.name: load(source) for source in discover() if source.name in PUBLISHED}


@pytest.fixture(scope="session")
def built_in_app(built_in: dict[str, Any]) -> Karenina:
    return Karenina(built_in)


@pytest.fixture
def context() -> Callable[..., VerificationContext]:
    """`context(mode=..., ...)`: a context of one question."""

    def make(**facts: Any) -> VerificationContext:
        facts.setdefault("question", Question(question="What is the putative target of venetoclax?"))
        return VerificationContext(**facts)

    return make
