"""The file of labels: what was drawn, and what each person said. It is always whole, whoever is interrupted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, frozen
from karenina_calls.files.bounded import read_json
from karenina_runs.files.atomic_files import write_json

from karenina_core.errors import ConfigError, Problem

from .answers import FIELD, VERDICT
from .binding import listed, other_questions
from .plan import BY_HAND, Plan, plan_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment] # the module is missing there, and asked for before it is used

__all__ = [
    "NAME",
    "Label",
    "LabelFile",
    "add_labels",
    "now",
    "read_labels",
    "replace_plan",
    "verdicts_of_people",
    "write_labels",
]

NAME = "labels.json"
FORMAT_VERSION = "1.0"


@frozen(kw_only=True)
class Label:
    """What one person says of one answer."""

    item: str
    annotator: str
    target: str
    """`verdict`, `field:NAME` or `trait:NAME`."""
    value: Any
    """True or False of a verdict; of a field `{"reading": VALUE}`, where null is that the answer says nothing of it;
    the score or class of a trait. None where the person cannot say."""
    at: str = ""
    """ISO 8601."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Of several labels with one key, the last one counts."""
        return self.item, self.annotator, self.target


@frozen(kw_only=True)
class LabelFile:
    """A plan, the labels, and what they are bound to."""

    run_id: str
    binding: Mapping[str, Any]
    """See `binding`: as the run was when the answers were drawn."""
    plan: Plan
    labels: tuple[Label, ...] = ()

    def by_target(self, target: str) -> dict[str, dict[str, Any]]:
        """`{answer: {annotator: value}}`, without those who cannot say."""
        found: dict[str, dict[str, Any]] = {}
        for label in self.labels:
            if label.target == target and label.value is not None:
                found.setdefault(label.item, {})[label.annotator] = label.value
        return found

    @property
    def targets(self) -> list[str]:
        """Those that somebody has labelled: the verdict first, then fields and traits."""
        return sorted(
            {label.target for label in self.labels if label.value is not None},
            key=lambda target: (target != "verdict", not target.startswith(FIELD), target),
        )

    @property
    def judges(self) -> frozenset[str]:
        """Those of the run when the answers were drawn: strata are made of what these said."""
        return frozenset(self.binding["models"]["parsing"])

    @property
    def annotators(self) -> list[str]:
        return sorted({label.annotator for label in self.labels})


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_labels(path: Path) -> LabelFile:
    """Raises ConfigError for what is no such file."""
    try:
        found = read_json(path)
        rows = tuple(Label(**row) for row in found["labels"])
        for row in rows:
            if not isinstance(row.item, str) or not isinstance(row.target, str) or not isinstance(row.annotator, str):
                raise TypeError("a label names an item, a target and an annotator")
            if row.target.startswith(FIELD) and row.value is not None:
                row.value["reading"]
        return LabelFile(run_id=found["run_id"], binding=found["binding"], plan=plan_of(found["plan"]), labels=rows)
    except FileNotFoundError:
        raise ConfigError(f"there is no file of labels {path}; type: karenina label RUN --annotator NAME") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(
            f"{path} is not a file of labels: {why}; karenina label RUN --annotator NAME makes one"
        ) from error


def verdicts_of_people(path: Path, runs: Iterable[Path]) -> dict[str, bool]:
    """Whether an answer is right, by its id, as most people say who have labelled it; those of whom half say so are
    left out. Raises ConfigError as `read_labels`, where the file has no verdict, and where one of the runs that the
    labels are used for has another question, reference answer or template under a name that the labels know."""
    file = read_labels(path)
    for run in runs:
        if changed := other_questions(file.binding, run):
            what = f"{path} was made for other questions than {run} has: {listed(changed)}"
            raise ConfigError([Problem("--labels", f"{what}; label answers of this run (karenina label)")])
    said = file.by_target(VERDICT)
    shares = {item: sum(votes.values()) / len(votes) for item, votes in said.items()}
    if not (found := {item: share > 0.5 for item, share in shares.items() if share != 0.5}):
        raise ConfigError(f"{path} has no verdict of a person; karenina label asks for them")
    return found


def write_labels(path: Path, file: LabelFile) -> None:
    """Replace the file as a whole. Raises ConfigError where it cannot be written."""
    document = {"format_version": FORMAT_VERSION, **asdict(file, value_serializer=_plain)}
    try:
        write_json(path, document, indent=1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another (--labels FILE)") from error


def _plain(_: Any, __: Any, value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def add_labels(path: Path, labels: Iterable[Label]) -> LabelFile:
    """Add labels to the file as it is now, so that several people can label at a time, and return it."""
    with _alone(path):
        file = read_labels(path)
        kept = {label.key: label for label in (*file.labels, *labels)}
        file = evolve(file, labels=tuple(kept.values()))
        write_labels(path, file)
    return file


def replace_plan(path: Path, plan: Plan) -> LabelFile:
    """Give the file as it is now a larger draw, and return it."""
    with _alone(path):
        file = evolve(read_labels(path), plan=plan)
        write_labels(path, file)
    return file


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other process adds labels meanwhile, where the system has locks that end with their process."""
    handle = None if fcntl is None else os.open(path.parent, os.O_RDONLY)
    try:
        if handle is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def is_drawn(file: LabelFile) -> bool:
    """Whether a plan drew the answers, so that they say something of the others."""
    return file.plan.kind != BY_HAND
