"""What the conformance checks are given: the protocol that their server speaks."""

from __future__ import annotations

from karenina_core.testing import GeminiGenerateContent

OPTIONS = {"gemini": {"wire": GeminiGenerateContent()}}
