"""What a run's numbers depend on as far as judges are concerned: labels and certificates hold for that alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_runs.folder.directory import FINGERPRINT, RunDirectory, read_fingerprint
from karenina_runs.folder.fingerprint import differences
from karenina_runs.plan.items import Prepared

from karenina_core.errors import ConfigError
from karenina_core.values.identity import canonical_json

__all__ = [
    "binding_of",
    "digests_of",
    "judged_otherwise",
    "judges_changed",
    "listed",
    "other_questions",
    "planned_binding",
    "stale",
]

LENGTH = 16
JUDGED = ("text", "template", "rubric")
"""Parts of a question that a judge's verdict depends on."""
LABELLED = ("text", "template")
"""Parts that a person's verdict depends on: the template has the reference answer, too."""


def binding_of(run: Path) -> dict[str, Any]:
    """The part of a run's fingerprint that a verdict depends on: its questions, models, settings and code. Raises
    ConfigError where the run has none."""
    if not (run / FINGERPRINT).is_file():
        raise ConfigError(
            f"{run} has no {FINGERPRINT}, which says what its judge, prompt, templates and rubric were: whether labels "
            "or a certificate are of the same ones cannot be checked, so nothing is certified; give the directory of a "
            "run as karenina verify leaves it"
        )
    return _binding(read_fingerprint(run))


def planned_binding(prepared: Prepared) -> dict[str, Any]:
    """The same of a run that is about to begin. Raises WorkspaceError where a workspace cannot be read."""
    return _binding(RunDirectory(Path(), prepared).fingerprint(prepared))


def _binding(found: Mapping[str, Any]) -> dict[str, Any]:
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


def listed(changed: Sequence[str]) -> str:
    """The first two of what has changed, and how many more there are."""
    more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
    return f"{'; '.join(changed[:2])}{more}"


def other_questions(before: Mapping[str, Any], run: Path) -> list[str]:
    """Which questions of labels are others in a run, a line each, whoever judges it there. Nothing is known of results
    that lie without the files of their run."""
    sides = [side.get("questions", {}) for side in (before, _recorded(run))]
    shared = [name for name in sides[1] if name in sides[0]]
    then, now = (
        {"questions": {name: {part: side[name].get(part) for part in LABELLED} for name in shared}} for side in sides
    )
    return differences(then, now)


def judged_otherwise(first: Path, run: Path) -> list[str]:
    """What of judges and of what they are asked has changed since the first run, a line each, but for questions and
    answering models. Nothing is known of results that lie without the files of their run."""
    before, now = _recorded(first), _recorded(run)
    if not before or not now:
        return []
    rest = [{**side, "questions": {}, "models": {}} for side in (before, now)]
    return [*judges_changed(first, run), *differences(*rest)]


def judges_changed(first: Path, run: Path) -> list[str]:
    """Settings of the judges of both runs that are others in the second one, a line each."""
    judges = [side["models"].get("parsing", {}) if side else {} for side in (_recorded(first), _recorded(run))]
    shared = sorted(judges[0].keys() & judges[1].keys())
    then, now = ({"models": {"parsing": {name: own[name] for name in shared}}} for own in judges)
    return differences(then, now)


def _recorded(run: Path) -> dict[str, Any]:
    folder = run if run.is_dir() else run.parent
    return binding_of(folder) if (folder / FINGERPRINT).is_file() else {}
