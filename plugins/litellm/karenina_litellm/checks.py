"""What the conformance checks are given: the promise that litellm is known to break."""

from __future__ import annotations

CLOSING = "litellm keeps a task for its logs in every event loop, and offers no way to end it"
OPTIONS = {"litellm": {"expected_failures": {"closing": CLOSING}}}
