"""What a run's numbers depend on as far as judges are concerned: labels and certificates hold for that alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karenina_runs.folder.directory import read_fingerprint
from karenina_runs.folder.fingerprint import differences

from karenina_core.values.identity import canonical_json

__all__ = ["binding_of", "digests_of", "stale"]

LENGTH = 16
JUDGED = ("text", "template", "rubric")
"""Parts of a question that a judge's verdict depends on."""


def binding_of(run: Path) -> dict[str, Any]:
    """The part of a run's fingerprint that a verdict depends on: its questions, models, settings and code. Raises
    ConfigError where the run has none."""
    found = read_fingerprint(run)
    questions = {
        name: {part: digest for part, digest in parts.items() if part in JUDGED}
        for name, parts in found["questions"].items()
    }
    return {
        "questions": questions,
        **{name: found.get(name, {}) for name in ("settings", "models", "plugins", "code")},
    }


def digests_of(binding: Mapping[str, Any]) -> dict[str, str]:
    """`{"judge", "prompt", "template", "rubric", "model"}`: what a certificate holds for, as digests. The prompt is
    what it is made of: settings of the run and of plugins, and their code."""
    questions = binding["questions"]
    parts = {
        "judge": binding["models"].get("parsing"),
        "prompt": [binding["settings"], binding["plugins"], binding["code"]],
        "template": {name: [own.get("text"), own.get("template")] for name, own in questions.items()},
        "rubric": {name: own.get("rubric") for name, own in questions.items()},
        "model": binding["models"].get("answering"),
    }
    return {
        name: hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()[:LENGTH]
        for name, value in parts.items()
    }


def stale(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What has changed since, a line each; nothing where it holds. Another judge beside the known ones changes nothing
    of what these said."""
    known = before["models"].get("parsing", {})
    parsing = {name: about for name, about in now["models"].get("parsing", {}).items() if name in known}
    return differences(before, {**now, "models": {**now["models"], "parsing": parsing}})
