"""Judgment strategies: how a judge gets from an answer to a filled template. Strategies are plugins; stages ask for
one by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import field, frozen

from ..templates.handle import FilledTemplate, TemplateHandle
from .context import VerificationContext
from .trace import EvaluationInput

__all__ = ["Judgment", "JudgmentStrategy"]


@frozen(kw_only=True)
class Judgment:
    """A filled template and how it came about."""

    filled: FilledTemplate
    channel: str | None = None
    repairs: int = 0
    evidence: Mapping[str, Any] = field(factory=dict)
    """Artifacts of deep judgment, by key; those that are left out are "not performed"."""


class JudgmentStrategy(Protocol):
    """Fills a template from an answer."""

    name: str

    async def fill(self, context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Judgment:
        """Raises ParseError where the judge's replies cannot be used, PortError where it cannot be reached."""
        ...
