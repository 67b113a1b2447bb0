"""The format json: one document, version 2.2, written and read one result after the other, piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from karenina_core import VerificationResult
from karenina_core.errors import BenchmarkError, ConfigError, plural
from karenina_core.log import get_logger

from ..records import portable_record
from .about import about_run
from .other_tools import NO_TEMPLATE, result_from

VERSION = "2.2"
log = get_logger("karenina.results")


class JsonFile:
    """`{"format_version", "metadata", "shared_data", "results"}`, one result a line.

    In version 2.2 the answer, its usage and the checks before parsing are fields of a result's `template`; they are
    written there, and in parts of their own (`generation`, `checks`). A result without a template has nothing else
    there but that no verification was performed. Also reads the versions 2.0 and 2.1, and files of
    other tools: see `other_tools`.
    """

    name = "json"
    suffixes = (".json",)

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        benchmark = manifest.get("benchmark")
        rubric = benchmark.get("rubric") if isinstance(benchmark, Mapping) else None
        head = {"metadata": about_run(results, manifest), "shared_data": {"rubric_definition": rubric}}
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f'{{"format_version":"{VERSION}",\n')
            for key, value in head.items():
                file.write(f'"{key}":{json.dumps(value, separators=(",", ":"), default=str)},\n')
            file.write('"results":[')
            for number, result in enumerate(results):
                file.write(f"{',' if number else ''}\n{_line(result)}")
            file.write("\n]}\n")

    def read(self, path: Path) -> Iterator[VerificationResult]:
        """The results of a file. Raises BenchmarkError, which says how many could be read before."""
        number, seen = 0, False
        try:
            with path.open(encoding="utf-8") as file:
                for key, value in elements(file, "results"):
                    if key == "format_version":
                        if str(value).partition(".")[0] != VERSION.partition(".")[0]:
                            raise ValueError(
                                f"its format_version is {value!r}; 2.0 and later versions that begin with 2 can be read"
                            )
                    elif key == "scenario_results" and value:
                        log.warning("scenario results are not read", file=str(path), left_out=len(value))
                    seen = seen or key in ("results", "format_version")
                    if key == "results":
                        yield result_from(value)
                        number += 1
        except (OSError, ConfigError, ValueError) as error:
            raise BenchmarkError(f"{path}: cannot be read after {plural(number, 'result')}: {error}") from error
        if not seen:
            what = "is not an export of results: it has neither results nor a format_version"
            raise BenchmarkError(f"{path}: {what}; write one: karenina export DIR -o FILE.json")


def _line(result: VerificationResult) -> str:
    line = portable_record(result)
    data = json.loads(line)
    own = NO_TEMPLATE if data["template"] is None else data["template"]
    data["template"] = {**data["generation"], **data["checks"], **own}
    return json.dumps(data, separators=(",", ":"), ensure_ascii=line.isascii())  # escapes stay escapes


CHUNK = 1 << 20
"""Characters that are read at a time; chosen."""
DELIMITERS = frozenset(" \t\r\n,:]}")
UNFINISHED = "Unterminated string"
LONGEST = 16
"""Characters of an escape, a number's beginning or a word that the end of what was read may cut."""


def elements(file: IO[str], array: str) -> Iterator[tuple[str, Any]]:
    """`(key, value)` of the object that a file holds; of the array under the key `array`, every element on its own.

    Numbers that JSON does not have (NaN) are None. Raises ValueError where the document is not an object, is damaged,
    or ends too early.
    """
    text = _Text(file)
    text.take("{")
    more = text.next() != "}"
    while more:
        key = text.value()
        if not isinstance(key, str):
            raise ValueError(f"expected a name, got {key!r}")
        text.take(":")
        if key == array and text.next() == "[":
            yield from ((key, value) for value in _elements(text))
        else:
            yield key, text.value()
        more = text.next() == ","
        if more:
            text.take(",")
    text.take("}")
    if text.next():
        raise ValueError(f"expected the end, got {text.next()!r}")


def _elements(text: _Text) -> Iterator[Any]:
    text.take("[")
    more = text.next() != "]"
    while more:
        yield text.value()
        more = text.next() == ","
        if more:
            text.take(",")
    text.take("]")


class _Text:
    """The rest of the document; only what is being looked at is in memory."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._decoder = json.JSONDecoder(parse_constant=lambda name: None)
        self._buffer = file.read(CHUNK).removeprefix("\ufeff")
        self._place = 0

    def next(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            while self._place < len(self._buffer) and self._buffer[self._place] in " \t\r\n":
                self._place += 1
            if self._place < len(self._buffer):
                return self._buffer[self._place]
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        if self.next() != character:
            raise ValueError(f"expected {character!r}, got {self.next()!r}" if self.next() else "it ends too early")
        self._place += 1

    def value(self) -> Any:
        self.next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._place)
                # What was read may end within a number: 12 can be the beginning of 12.5.
                if self._buffer[end : end + 1] in DELIMITERS or not self._more():
                    self._place = end
                    return value
            except json.JSONDecodeError as error:
                cut = error.msg.startswith(UNFINISHED) or error.pos + LONGEST > len(self._buffer)
                if not (cut and self._more()):
                    raise ValueError(f"{error.msg}: {self._buffer[error.pos : error.pos + 40]!r}") from None
            except RecursionError:
                raise ValueError("it is nested too deeply") from None

    def _more(self) -> bool:
        """Read on, twice as much as did not suffice. False at the end."""
        left = len(self._buffer) - self._place
        chunk = self._file.read(max(CHUNK, left))
        if chunk:
            self._buffer = self._buffer[self._place :] + chunk
            self._place = 0
        return bool(chunk)
