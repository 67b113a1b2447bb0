"""Stages in place of plugins that may not be installed, and contexts for single stages."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from karenina_core import Karenina, Question, VerificationContext
from karenina_core.plugin.discovery import discover, load
from karenina_core.testing import application

PUBLISHED = {
    *("validate-template", "generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail"),
    *("abstention-check", "sufficiency-check", "parse-template", "verify-template"),
    *("embedding-check", "deep-judgment-auto-fail", "finalize-result"),
    *("rubric-evaluation", "deep-judgment-rubric-auto-fail"),
}
"""The plugins whose stages the published lists below are made of, as far as they are not stood in for."""


def _doubles() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stage_doubles", Path(__file__).with_name("doubles.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def doubles() -> ModuleType:
    return _doubles()


@pytest.fixture(scope="session")
def built_in() -> dict[str, Any]:
    """The plugins of the stages that come with karenina, by name."""
    return {source.name: load(source) for source in discover() if source.name in PUBLISHED}


@pytest.fixture(scope="session")
def built_in_app(built_in: dict[str, Any]) -> Karenina:
    return Karenina(built_in)


@pytest.fixture(scope="session")
def whole_app(built_in: dict[str, Any], doubles: ModuleType) -> Karenina:
    """The built-in stages and a double for every stage of the published pipeline that is not among them."""
    return application(*built_in.values(), *doubles.STAGES)


@pytest.fixture
def context() -> Callable[..., VerificationContext]:
    """`context(mode=..., ...)`: a context of one question."""

    def make(**facts: Any) -> VerificationContext:
        facts.setdefault("question", Question(question="What is the putative target of venetoclax?"))
        return VerificationContext(**facts)

    return make
