"""The format json: one document, version 2.2, written and read one result after the other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from karenina_core import VerificationResult
from karenina_core.errors import BenchmarkError, ConfigError, plural
from karenina_core.log import get_logger

from ..records import portable_record
from .about import about_run
from .json_stream import elements
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
            raise BenchmarkError(f"{path}: is not an export of results: it has neither results nor a format_version")


def _line(result: VerificationResult) -> str:
    line = portable_record(result)
    data = json.loads(line)
    own = NO_TEMPLATE if data["template"] is None else data["template"]
    data["template"] = {**data["generation"], **data["checks"], **own}
    return json.dumps(data, separators=(",", ":"), ensure_ascii=line.isascii())  # escapes stay escapes
