"""Files of results in the formats that plugins bring."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol, cast

from karenina_core.errors import ConfigError, PluginError, Problem, did_you_mean
from karenina_core.plugin.application import Karenina
from karenina_core.values.result import VerificationResult

from ..files.atomic_files import flush_folder
from ..files.run_files import MANIFEST, RESULTS
from ..kinds import FormatRegistry


class Format(Protocol):
    """How results are written to a file. Three more methods are optional.

    `read(path)` gives an iterator of the results in a file, each as it was written. `check()` raises PluginError, with
    what to install, where the format cannot be used here. `with_columns(name)` gives the same format with other
    columns, `short` or `full`, where it is a table.
    """

    name: str
    suffixes: tuple[str, ...]
    """`.json` and the like, the usual one first."""

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        """Write a file that is complete when this returns. Raises OSError where it cannot be written.

        `results` can be gone through more than once, and may be more than memory holds. `manifest` is that of the run
        directory, empty where there is none. The file gets its own name when it is complete; `path` is another one.
        """


def find_format(app: Karenina, path: Path, name: str | None = None) -> Format:
    """The format of this name, else that of the file's suffix, ready to be used.

    Raises UnknownName or ConfigError where there is none, and PluginError where it cannot be used here.
    """
    found = app.registry(FormatRegistry).make(name) if name else suffix_format(app, path)
    if found is None:
        suffixes = [suffix for format_ in _formats(app) for suffix in format_.suffixes]
        known = ", ".join(suffixes) or "none; install karenina-results"
        raise ConfigError(
            f"{path}: no file format has the suffix {path.suffix!r}{did_you_mean(path.suffix, suffixes)}; available: "
            f"{known}"
        )
    if hasattr(found, "check"):
        found.check()
    return cast(Format, found)


def ready_format(app: Karenina, path: Path, name: str | None = None, kept: Iterable[Path] = ()) -> Format:
    """What `find_format` finds, before anything is paid for or read.

    Raises like it, and where the file cannot be written: its folder is not there, it is a device, it belongs to a run
    directory, or it is one of those that are `kept`.
    """
    target = _target(path)
    if not target.parent.is_dir():
        raise ConfigError(f"{path} cannot be written: there is no folder {path.parent}; make it, or choose another one")
    if target in [one.resolve() for one in kept]:
        raise ConfigError(f"{path} is read or written by the same command; choose another file")
    return find_format(app, path, name)


def with_columns(found: Format, columns: str | None) -> Format:
    """The format with these columns. Raises ConfigError where it has no columns to choose."""
    if columns is None:
        return found
    choose = getattr(found, "with_columns", None)
    if choose is None:
        what = f"the format {found.name} has no columns to choose; leave it out, or write .csv or .xlsx"
        raise ConfigError([Problem(f"--columns {columns}", what)])
    return cast(Format, choose(columns))


def suffix_format(app: Karenina, path: Path) -> Any | None:
    """The format that has the suffix of this file; None where no format has it."""
    return next((found for found in _formats(app) if path.suffix.lower() in found.suffixes), None)


def usual_suffix(found: Format) -> str:
    """The suffix that files of a format mostly have, with its dot."""
    return found.suffixes[0] if found.suffixes else f".{found.name}"


def export_results(
    results: Iterable[VerificationResult], path: Path, found: Format, manifest: Mapping[str, Any] | None = None
) -> None:
    """Write a file of results. It is there as a whole or not at all; one that exists is replaced.

    Raises ConfigError where it cannot be written; whatever else goes wrong, nothing is left behind.
    """
    target = _target(path)
    partial = target.with_name(f"{target.name}.{token_hex(4)}.partial")  # another process may write the same file
    try:
        found.write(results, partial, manifest or {})
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
        flush_folder(target.parent)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}; choose another place") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _target(path: Path) -> Path:
    """The file itself, where a link leads to it. Raises ConfigError where it must not be replaced."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise ConfigError(f"{path} is not an ordinary file; choose another one")
    if target.name in (MANIFEST, RESULTS) and (target.parent / MANIFEST).exists():
        raise ConfigError(f"{path} belongs to a run directory; choose another file")
    return target


def _formats(app: Karenina) -> Iterator[Any]:
    """Those that can be imported."""
    for name in app.registry(FormatRegistry):
        with contextlib.suppress(PluginError):
            yield app.registry(FormatRegistry).make(name)
