"""A journal's calls as a recording: what `--replay FILE` reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from karenina_core.errors import ConfigError, RunDirectoryError

from ..files.atomic_files import replacing
from ..journal.reader import JournalReader
from ..journal.rows import CALLS

PAGE = 4096
"""Numbers of calls in memory at a time. Chosen: 32 KiB of them."""


def recording_lines(reader: JournalReader) -> Iterator[str]:
    """One JSON line for every call, as in `karenina_calls.records.requests`.

    Equal calls of one item come in the order of their numbers, which is that in which a replay asks for them. Of a call
    that was made again, the latest reply is there. Raises RunDirectoryError.
    """
    ((most,),) = reader.query("SELECT coalesce(max(nth), -1) FROM calls")
    for nth in range(most + 1):
        query, after = f"SELECT id FROM calls WHERE nth = {nth:d} AND id > {{}} ORDER BY id LIMIT {PAGE}", 0
        while found := reader.query(query.format(after)):
            for (after,) in found:
                row = reader.candidates(CALLS, [after], {"nth": nth})
                latest = None if row is None else reader.call(row["key"], nth)
                if row is not None and latest is not None and latest.id == after:
                    yield reader.bodies.unpacked(row.body)


def write_recording(reader: JournalReader, path: Path) -> int:
    """Write a recording, as a whole or not at all. Returns the number of calls.

    Raises ConfigError where the file cannot be written, RunDirectoryError where the journal cannot be read.
    """
    count = 0
    try:
        with replacing(path) as file:
            for line in recording_lines(reader):
                file.write(f"{line}\n".encode())
                count += 1
    except RunDirectoryError:
        raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another file") from error
    return count
