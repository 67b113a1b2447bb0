"""The public names of what judges are shown."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NAMES"]

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core.prompts": {
        "untrusted": "karenina_judging.untrusted_text",
    },
}
