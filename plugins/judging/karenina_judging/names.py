"""The public names of what judges are shown."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core.prompts": {
        "untrusted": "karenina_judging.untrusted_text",
    },
}
