"""What `karenina compare` does: read the runs, compare them, say it, and ask the gates."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from karenina_cli.exits import GATE_FAILED, OK
from karenina_cli.output import inline, note, own_stdout, print_json, print_parts
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import BenchmarkError, ConfigError

from ..numbers import unfinished
from ..question_groups import grouping, groups_of
from .compare import compare, compare_models
from .document import document, github, junit
from .gates import Limits, gates
from .tables import markdown, parts
from .values import Comparison

TEXTS = {"markdown": markdown, "junit": junit, "github": github}


@frozen(kw_only=True)
class Output:
    """What is written, and where."""

    form: str = "table"
    """`table`, `markdown`, `junit` or `github`."""
    file: Path | None = None
    """Where the format goes; None for stdout."""
    as_json: bool = False
    """Whether stdout gets the JSON document."""


def compare_runs(a: Path, b: Path | None, options: Mapping[str, Any], limits: Limits, output: Output) -> int:
    """Compare two runs, or the models of one, and return the exit code. Raises BenchmarkError and ConfigError."""
    with own_stdout() as out:
        made = _compared(a, b, options)
        asked = gates(made, limits)
        text = TEXTS[output.form](made, asked) if output.form in TEXTS else None
        if output.file is not None:
            if text is None:
                drawn = io.StringIO()
                print_parts(parts(made, asked), drawn)
                text = drawn.getvalue()
            try:  # into what is there: it may be a device or a pipe
                output.file.write_bytes(text.encode("utf-8", "replace"))
            except OSError as error:
                raise ConfigError(
                    f"{output.file} cannot be written: {error.strerror}; choose another (-o FILE)"
                ) from error
        if output.as_json:
            print_json(document(made, asked), out)
        elif output.file is not None or text is None:
            print_parts(parts(made, asked), out)
        else:
            out.write(text)
        for gate in asked:
            if not gate.passed:
                note(inline(f"{gate.name} gate failed: {gate.about}: {gate.message}", 1_000))
        return OK if all(gate.passed for gate in asked) else GATE_FAILED


def _compared(a: Path, b: Path | None, options: Mapping[str, Any]) -> Comparison:
    first, second = _loaded(a), _loaded(b) if b is not None else None
    cluster = None
    if (name := options["cluster_by"]) is not None:
        cluster = grouping(name)
        if not groups_of([*first, *(second or ())], cluster):
            raise ConfigError(f"--cluster-by {name}: no question of these runs has a group; name other groups")
    shared = {name: options[name] for name in ("metrics", "models", "correction", "alpha")} | {"cluster": cluster}
    if b is None or second is None:
        made = compare_models(first, name=str(a), **shared)
        return evolve(made, notes=(*made.notes, *unfinished(a, len(first))), unasked_b=_unasked(first))
    shared |= {name: options[name] for name in ("judges", "unchanged")}
    made = compare(first, second, names=(str(a), str(b)), **shared)
    missing = [f"{name}: {text}" for name, path, own in (("A", a, first), ("B", b, second))
               for text in unfinished(path, len(own))]  # fmt: skip
    return evolve(made, notes=(*made.notes, *missing), unasked_b=_unasked(second))


def _unasked(results: VerificationResultSet) -> int:
    return sum(found.rates.absent for found in results.tally.pairs.values() if not found.rates.items)


def _loaded(path: Path) -> VerificationResultSet:
    results = VerificationResultSet.load(path)
    if not results:
        raise BenchmarkError(f"{path} holds no results; give the directory of a run that has some")
    return results
