"""The run directory: what was run, with what, and how it ended."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import asdict
from karenina_calls.files.bounded import read_bounded, read_json
from karenina_calls.ports.client import Model
from karenina_calls.secrets.redaction import redactor

from karenina_core.errors import ConfigError, Problem, RunDirectoryError, one_line

from ..answers.answers import ReplayStore
from ..config.saved_config import recorded, rubric_definition
from ..files.atomic_files import write_json
from ..files.run_files import CONTINUED_BY, MANIFEST, RESULTS, check_place
from ..files.run_lock import LOCK, RunLock, owner_of
from ..journal.reader import JOURNAL
from ..plan.items import Prepared
from ..results.lines import redacted
from ..summaries.canaries import canaries_in
from .fingerprint import Changed, digest_of, fingerprint, other_tools, version_of

FINGERPRINT = "fingerprint.json"
ANSWERS = "answers.json"
ASKED_AGAIN = "answers_asked_again"
"""Key of the manifest: answers that the run was given and that a repair generates again; see `ReplayStore`."""
FORMAT_VERSION = "1.0"
ANOTHER = "choose another (--out DIR, or --fork DIR)"
REPAIRS = "repairs"


def _is_repair(name: object) -> bool:
    """Whether it names a folder within that of the repairs: from a stranger's run it could lead anywhere."""
    folder, _, own = name.partition("/") if isinstance(name, str) else ("", "", "")
    return folder == REPAIRS and own.strip(".") != "" and not set(own) & set("/\\\0")


PARTS: dict[str, Callable[[Any], bool]] = {
    "run_name": lambda value: isinstance(value, str),
    "status": lambda value: isinstance(value, str),
    "items": lambda value: isinstance(value, int),
    "benchmark": lambda value: isinstance(value, dict),
    "config": lambda value: (
        isinstance(value, dict)
        and isinstance(value.get("replicate_count"), int)
        and all(isinstance(value.get(name, 0), int | float | None) for name in ("budget_usd", "budget_tokens"))
    ),
    "questions": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    "left_out": lambda value: (
        isinstance(value, list)
        and all(isinstance(row, dict) and isinstance(row.get("question_id"), str) for row in value)
    ),
    "repair": lambda value: value is None or _is_repair(value),
    "repairs": lambda value: value is None or (isinstance(value, list) and all(map(_is_repair, value))),
}
"""What a manifest must have for its run to be resumed."""
MOST_PROCESSES = 20
"""The last ones, that a manifest lists: chosen so that a run that is resumed often does not fill it."""
OF_FINGERPRINT = ("questions", "settings", "models", "code")


RUNS = Path("karenina-runs")


def latest_run() -> Path:
    """The run directory under `RUNS` with the last time in its name. Raises ConfigError where there is none."""
    found = [folder for folder in RUNS.glob("*-*Z") if (folder / MANIFEST).is_file()]
    if not found:
        raise ConfigError(f"there is no run under {RUNS} here; name the directory of the run")
    return max(found, key=lambda folder: folder.name.rpartition("-")[2])


def default_directory(label: str) -> Path:
    """`karenina-runs/<label>-<UTC time>` in the working directory."""
    safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in label).strip("-.") or "run"
    return RUNS / f"{safe[:60]}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"


class RunDirectory:
    """One run's folder. Made before the first model call, so that nothing is paid for that cannot be kept."""

    def __init__(self, path: Path, prepared: Prepared | None = None) -> None:
        self.path = path
        self.lock = RunLock(path)
        self._redact: Callable[[str], str] = str if prepared is None else redactor(prepared.secrets)
        self._manifest: dict[str, Any] = {}
        self._began = _now()

    @classmethod
    def create(
        cls,
        path: Path,
        prepared: Prepared,
        source: Path | None = None,
        answerers: Iterable[Model] = (),
        sinks: Sequence[str] = (),
        **facts: Any,
    ) -> RunDirectory:
        """Make the folder and its first manifest. `answerers` are open: the manifest says what tools they have.

        `facts` are in the manifest too. No other process can write to the folder until `release`. Raises
        RunDirectoryError where the folder exists and holds anything, another process is about to make it, or it cannot
        be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            check_place(path)
            _check_empty(path)
        except RunDirectoryError:
            raise
        except OSError as error:
            raise RunDirectoryError(f"the run directory {path} cannot be made: {error.strerror}; {ANOTHER}") from error
        directory = cls(path, prepared)
        directory.lock.acquire()
        try:
            _check_empty(path)  # of two that have found it empty, one was first
            answers, configured = prepared.answers, recorded(prepared, sinks, directory._redact)
            if answers is not None:
                try:
                    answers.save(path / ANSWERS, redact=directory._redact)
                except OSError as error:
                    raise RunDirectoryError(f"{path / ANSWERS} cannot be written: {error.strerror}") from error
                if answers.asked_again:
                    configured[ASKED_AGAIN] = sorted(answers.asked_again)
            directory._write(FINGERPRINT, directory.fingerprint(prepared))
            configured["trusted_code"] = prepared.trusted_code
            about = {**_manifest(prepared, source), **configured, "tool_servers": _tool_servers(answerers)}
            directory.update(**about, **facts)
        except BaseException:
            directory.release()
            raise
        return directory

    @classmethod
    def reopen(cls, path: Path, prepared: Prepared, answerers: Iterable[Model] = ()) -> RunDirectory:
        """That of a run which is resumed: no other process can write to it until `release`. Raises ConfigError, Changed
        where the tools of `answerers` have changed since it began, and RunDirectoryError where another process
        writes to it, or it cannot be written."""
        directory = cls(path, prepared)
        check_place(path)
        directory.lock.acquire()
        try:
            directory._manifest = read_manifest(path)
            if lines := list(other_tools(directory._manifest.get("tool_servers", ()), _tool_servers(answerers))):
                raise Changed([Problem("", line) for line in lines])
        except BaseException:
            directory.release()
            raise
        return directory

    def release(self) -> None:
        """Let others write to it."""
        self.lock.release()

    def fingerprint(self, prepared: Prepared) -> dict[str, Any]:
        """What the numbers of a run depend on, as this folder's file has it: without secrets."""
        text = json.dumps(fingerprint(prepared), default=str)
        found = json.loads(text)
        if self._redact(text) != text:  # one look at all of it
            found = redacted(found, self._redact)
        answers = {} if prepared.answers is None else {"answers": digest_of(self.path / ANSWERS)}
        return {**found, **answers}

    def configured(self, prepared: Prepared) -> dict[str, Any]:
        """The configuration of the resumed run, for the manifest: such as what it may spend now."""
        return {"config": redacted(recorded(prepared, (), self._redact)["config"], self._redact)}

    @property
    def run_id(self) -> str:
        return str(self._manifest["run_id"])

    @property
    def canaries(self) -> dict[str, Any] | None:
        """What became of them in an earlier process of the run."""
        return canaries_in(self._manifest)

    def update(self, **facts: Any) -> None:
        """Change the manifest on disk. Raises RunDirectoryError."""
        self._manifest |= {**redacted(facts, self._redact), "updated_at": _now()}
        self._write(MANIFEST, self._manifest, indent=2)

    def resumed(self, facts: Mapping[str, Any]) -> None:
        """The run is continued. Raises RunDirectoryError."""
        self.update(status="running", failure_type=None, failure_message=None, **facts)

    def ended(
        self,
        status: str,
        failure: BaseException | None,
        facts: Mapping[str, Any],
        *,
        lanes: Mapping[str, Any],
        notes: Sequence[str],
    ) -> None:
        """How the run ended, and what this process did. Raises RunDirectoryError."""
        processes = self._manifest.get("processes", [])
        if lanes:  # it has made calls
            times = {"began_at": self._began, "ended_at": _now()}
            processes = [*processes, {**times, "status": status, "notes": notes, "lanes": lanes}][-MOST_PROCESSES:]
        self.update(
            status=status,
            failure_type=None if failure is None else type(failure).__name__,
            failure_message=None if failure is None else one_line(failure, 2000).partition(": ")[2],
            processes=processes,
            **facts,
        )

    def _write(self, name: str, document: Mapping[str, Any], indent: int | None = None) -> None:
        try:
            self.lock.check()
            write_json(self.path / name, document, indent)
        except OSError as error:
            line = f"karenina resume {shlex.quote(str(self.path))}"
            raise RunDirectoryError(
                f"{self.path / name} cannot be written: {error.strerror}; free space, or start a run in another "
                f"directory (--out DIR). To resume a run that has begun, type: {line}"
            ) from error


def _what_it_is(path: Path) -> str:
    """Of a folder without a manifest: what to do with it."""
    file, command = path / CONTINUED_BY, None
    if file.is_file():
        with suppress(OSError, ValueError):
            command = read_json(file)
    if not isinstance(command, str):
        return f"it has no {MANIFEST}; check the path"
    return f"it keeps replies for another command; to continue, type: {command}"


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run directory. Raises ConfigError where there is none, and where a file of the run is a link,
    since whoever resumes the run would write to what it leads to, or a pipe, which could be read for ever."""
    for name in (MANIFEST, RESULTS, JOURNAL, f"{JOURNAL}-wal", FINGERPRINT, ANSWERS, LOCK, REPAIRS):
        file = path / name
        if file.is_symlink():
            raise ConfigError(f"{file} is a link; replace it with a copy of its target")
        if file.exists() and not (file.is_dir() if name == REPAIRS else file.is_file()):
            raise ConfigError(f"{file} is not what a run keeps there; remove it")
    try:
        found = read_json(path / MANIFEST)
    except FileNotFoundError:
        raise ConfigError(f"{path} is not a run directory: {_what_it_is(path)}") from None
    except OSError as error:
        raise ConfigError(f"{path / MANIFEST} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path / MANIFEST} is damaged: {error}; {_put_back(path, MANIFEST)}") from error
    if not isinstance(found, dict) or not isinstance(found.get("run_id"), str):
        raise ConfigError(f"{path / MANIFEST} does not say which run it is of; it was not written by this program")
    for name, is_whole in PARTS.items():
        if not is_whole(found.get(name)):
            what = "is not there" if name not in found else "cannot be what it says"
            raise ConfigError(f"{path / MANIFEST} is damaged: {name!r} {what}; {_put_back(path, MANIFEST)}")
    return found


def answers_of_run(path: Path, manifest: Mapping[str, Any]) -> ReplayStore | None:
    """The answers that a run was given, but for those that a repair generates again. Raises ConfigError."""
    if not (path / ANSWERS).is_file():
        return None
    store = ReplayStore.load(path / ANSWERS)
    store.asked_again = frozenset((name, model, number) for name, model, number in manifest.get(ASKED_AGAIN, ()))
    return store


def read_fingerprint(path: Path) -> dict[str, Any]:
    """What the numbers of the run in a directory depend on. Raises ConfigError."""
    file, hint = path / FINGERPRINT, _put_back(path, FINGERPRINT)
    try:
        found = read_json(file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read, so it is unknown whether anything changed; {hint}") from error
    if not isinstance(found, dict) or not all(isinstance(found.get(name), dict) for name in OF_FINGERPRINT):
        raise ConfigError(f"{file} is damaged, so it is unknown whether anything changed; {hint}")
    return found


def _put_back(path: Path, name: str) -> str:
    """What to do where a file of a run is damaged."""
    line = shlex.join(["karenina", "verify", "BENCHMARK", "--reuse", str(path), "..."])
    return f"put {name} back, or start a new run that makes only the calls that were not made here: {line}"


def _check_empty(path: Path) -> None:
    """Remains of a run that was killed before it could begin do not count."""
    remains = (f".{MANIFEST}.", f".{FINGERPRINT}.", f".{ANSWERS}.")
    if all(p.name in (FINGERPRINT, ANSWERS, LOCK) or p.name.startswith(remains) for p in path.iterdir()):
        return
    try:
        status = read_json(path / MANIFEST)["status"]
    except (OSError, ValueError, KeyError, TypeError):
        what = f"other files); {ANOTHER}"
    else:
        if status == "completed":
            what = f"a run that is completed); {ANOTHER}"
        else:
            what = "a run that another process works on" if owner_of(path) is not None else "an unfinished run"
            what = f"{what}); to resume it, type: karenina resume {shlex.quote(str(path))}"
    raise RunDirectoryError(f"the run directory {path} is not empty ({what}")


def _manifest(prepared: Prepared, source: Path | None) -> dict[str, Any]:
    benchmark, config = prepared.benchmark, prepared.config
    return {
        "format_version": FORMAT_VERSION,
        "run_id": uuid4().hex,
        "run_name": prepared.run_name,
        "status": "running",
        "created_at": _now(),
        "benchmark": {
            "name": benchmark.name,
            "version": benchmark.version,
            "digest": benchmark.digest,
            "path": str(source.absolute()) if source else None,
            "sha256": hashlib.sha256(read_bounded(source, pipes=True)).hexdigest() if source else None,
            "warnings": list(benchmark.warnings),
            "rubric": rubric_definition(prepared),
        },
        "workspace_root": str(prepared.workspace_root.absolute()) if prepared.workspace_root else None,
        "evaluation_mode": prepared.mode,
        "questions": [question.id for question in prepared.questions],
        "left_out": [asdict(left) for left in prepared.left_out],
        "items": len(prepared),
        "pairs": [list(pair) for pair in prepared.planned.pairs],
        "models": {
            str(model.identity): {
                "interface": model.interface,
                "served_by": prepared.resolutions[str(model.identity)].interface,
                "note": prepared.resolutions[str(model.identity)].note,
            }
            for model in (*config.answering_models, *config.parsing_models)
        },
        "stages": sorted({stage.name for plan in prepared.plans.values() for stage in plan.stages}),
        "plugins": [asdict(plugin) for plugin in prepared.app.plugins],
        "versions": {"python": platform.python_version(), "karenina-core": version_of("karenina-core")},
    }


def _tool_servers(answerers: Iterable[Model]) -> list[dict[str, Any]]:
    """What every server offers to every model for the whole run; see `tool_digest`."""
    return [
        {
            "model": str(model.identity),
            "server": offered.server,
            "address": offered.address,
            "tools": [tool.name for tool in offered.tools],
            "digest": offered.digest,
        }
        for model in answerers
        for offered in model.offered
    ]


def _now() -> str:
    return datetime.now(UTC).astimezone().isoformat()
