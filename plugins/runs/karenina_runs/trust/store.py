"""Whose code the user of this machine trusts: one file for each digest, under the user's data directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import frozen
from karenina_calls.files.bounded import read_json

from karenina_core.errors import ConfigError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import CodePolicy

from ..files.atomic_files import write_json
from ..files.user_folder import user_folder
from .bundle import Piece, code_of, digest


@frozen
class Record:
    """Code that was trusted."""

    digest: str
    file: str
    """Where it was, as an absolute path."""
    benchmark: str
    """The name of the benchmark."""
    added: str
    """When, in UTC."""
    pieces: tuple[Piece, ...]


@frozen
class TrustStore:
    """What `karenina trust` adds and removes. Nothing but a folder of the user's own is believed."""

    folder: Path | None
    """None where there is no place for it: nothing is trusted there."""

    @classmethod
    def of_user(cls) -> TrustStore:
        """That of whoever runs this process."""
        return cls(user_folder("trust"))

    def holds(self, found: str) -> bool:
        """Whether the user has trusted what has this digest."""
        return self.folder is not None and _is_own(self.folder) and _is_own(self._file(self.folder, found))

    @property
    def empty(self) -> bool:
        """Whether nothing at all is trusted, which takes no digest to know."""
        return not self._files()

    def add(self, pieces: Sequence[Piece], file: Path, benchmark: str) -> Record:
        """Trust these pieces. Raises ConfigError where there is no place of the user's own to keep that."""
        record = Record(
            digest=digest(pieces),
            file=str(file.resolve()),
            benchmark=benchmark,
            added=datetime.now(UTC).isoformat(timespec="seconds"),
            pieces=tuple(pieces),
        )
        if self.folder is None:
            raise ConfigError("there is no home directory in which to keep what is trusted; set HOME")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_own(self.folder):
                raise ConfigError(
                    f"others may write to {self.folder}, so nothing in it is trusted; make it your own and type: "
                    f"chmod go-w {self.folder}"
                )
            rows = [[piece.kind, piece.owner, piece.text] for piece in record.pieces]
            target = self._file(self.folder, record.digest)
            about = {"file": record.file, "benchmark": record.benchmark, "added": record.added}
            write_json(target, {**about, "pieces": rows})
            target.chmod(0o600)
        except OSError as error:
            raise ConfigError(f"{self.folder} cannot be written: {error.strerror}") from error
        return record

    def remove(self, file: Path, found: str | None = None) -> int:
        """Trust no longer what has this digest, nor what was trusted as this file before. Returns how many."""
        records = [record for record in self.records() if record.digest == found or record.file == str(file.resolve())]
        for record in records:
            assert self.folder is not None  # there are records
            self._file(self.folder, record.digest).unlink(missing_ok=True)
        return len(records)

    def records(self) -> list[Record]:
        """Everything that is trusted, the latest first."""
        found = []
        for path in self._files():
            try:
                about = read_json(path)
                pieces = tuple(Piece(*row) for row in about["pieces"])
                found.append(Record(path.stem, about["file"], about["benchmark"], about["added"], pieces))
            except (OSError, ValueError, KeyError, TypeError):
                continue  # not written by this class
        return sorted(found, key=lambda record: record.added, reverse=True)

    def before(self, file: Path, benchmark: str) -> Record | None:
        """What was trusted last as this file, or as a benchmark of this name."""
        of_name = [record for record in self.records() if record.benchmark == benchmark]
        of_file = [record for record in self.records() if record.file == str(file.resolve())]
        return next(iter((*of_file, *of_name)), None)

    def _files(self) -> list[Path]:
        try:
            return list(self.folder.glob("*.json")) if self.folder is not None else []
        except OSError:  # what cannot be read is not trusted
            return []

    def _file(self, folder: Path, found: str) -> Path:
        return folder / f"{found}.json"


def trusted_digest(benchmark: BenchmarkData, policy: CodePolicy) -> str | None:
    """The digest of the benchmark's code where the user trusts it and the policy does not refuse all code."""
    store = TrustStore.of_user()
    if policy != "sandbox" or store.empty:
        return None
    pieces = code_of(benchmark)
    found = digest(pieces)
    return found if pieces and store.holds(found) else None


def _is_own(path: Path) -> bool:
    """Whether it is there, and no other user can have written to it."""
    try:
        about = path.lstat()
    except (OSError, ValueError):
        return False
    if stat.S_ISLNK(about.st_mode):
        return False
    return os.name == "nt" or (about.st_uid == os.geteuid() and not about.st_mode & 0o022)
