"""What `karenina compare` does: read the runs, compare them, say it, and ask the gates."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import evolve, frozen
from karenina_cli.entries import merged, section_parts, usable
from karenina_cli.exits import COULD_NOT_RUN, GATE_FAILED, OK
from karenina_cli.options.gates import run_limits
from karenina_cli.output import Part, inline, note, own_stdout, print_json, print_parts
from karenina_runs.config.config_file import load_config
from karenina_runs.kinds import FormatRegistry
from karenina_runs.results.exports import find_format
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.results.stored import stored_results
from karenina_runs.summaries.gates import Gate, RunLimits, keywords_in, must_pass_ids, run_gates
from karenina_runs.summaries.rates import Planned

from karenina_core.errors import BenchmarkError, ConfigError
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.command_line import Section

from ..numbers import unfinished
from ..plugin import NAME
from ..question_groups import grouping, groups_of
from ..settings import CompareSettings
from .compare import compare_models
from .document import document, github, joined, junit
from .gates import Limits, gates
from .loaded import compare_runs
from .tables import markdown, parts
from .values import Comparison

GROUP = "karenina.comparisons"
JUNIT = "junit"
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


def print_comparison(a: Path, b: Path | None, options: Mapping[str, Any], output: Output) -> int:
    """Compare two runs, or the models of one, and return the exit code. Raises BenchmarkError and ConfigError."""
    with own_stdout() as out:
        first, second = _loaded(a), _loaded(b) if b is not None else None
        limits, of_run = _limits(options, two=second is not None), run_limits(options)
        made = _compared(a, b, first, second, options)
        later, chosen = second if second is not None else first, bool(options["models"] or options["judges"])
        sections, judged = _of_others(a, b, made, options)
        asked = [*gates(made, limits), *_gates_of_run(later, made, of_run, chosen=chosen), *judged]
        text = TEXTS[output.form](made, asked, sections) if output.form in TEXTS else None
        if b is None and text is not None and output.form == "junit":
            text = with_questions(text, a)
        if output.file is not None:
            if text is None:
                drawn = io.StringIO()
                print_parts(_parts(made, asked, sections), drawn)
                text = drawn.getvalue()
            try:  # into what is there: it may be a device or a pipe
                output.file.write_bytes(text.encode("utf-8", "replace"))
            except OSError as error:
                raise ConfigError(
                    f"{output.file} cannot be written: {error.strerror}; choose another (-o FILE)"
                ) from error
        if output.as_json:
            print_json(merged(document(made, asked), sections), out)
        elif output.file is not None or text is None:
            print_parts(_parts(made, asked, sections), out)
        else:
            out.write(text)
        for gate in asked:
            if not gate.passed or gate.warns:
                state = "Warning: the " if gate.passed else ""
                how = "cannot be decided" if gate.passed else "failed"
                note(inline(f"{state}{gate.name} gate {how}: {gate.about}: {gate.message}", 1_000))
        if not all(gate.passed for gate in asked):
            return GATE_FAILED
        return OK if made.rows or b is None else COULD_NOT_RUN


def _of_others(
    a: Path, b: Path | None, made: Comparison, options: Mapping[str, Any]
) -> tuple[list[Section], list[Gate]]:
    """What other packages say of the compared models, and their gates: functions `section(app, a, b, pairs)` of the
    group `karenina.comparisons`, which give a `Section`, or None, and gates."""
    pairs, sections, gates = [row.pair for row in made.rows], [], []
    for _, section in usable(GROUP, "section"):
        app = _app(options)
        said, judged = section(app, a, b, pairs)
        sections += [said] if said is not None else []
        gates += judged
    return sections, gates


def _app(options: Mapping[str, Any]) -> Karenina:
    if options["config"] is None and not options["sets"]:
        return Karenina.default()
    return load_config(options["config"], options["sets"], models=False).app


def _parts(made: Comparison, asked: Sequence[Gate], sections: Sequence[Section]) -> list[Part]:
    *own, last = parts(made, asked)
    return [*own, *(part for section in sections for part in section_parts(section)), last]


def _limits(options: Mapping[str, Any], *, two: bool) -> Limits:
    """What the options and the settings ask for; `two`: of two runs. Raises ConfigError."""
    settings = CompareSettings()
    if options["config"] is not None or options["sets"]:
        settings = _app(options).settings(NAME) or settings
    given = options["max_drop"]
    return Limits(
        no_regression=options["fail_on_regression"] or (two and settings.fail_on_regression),
        coverage=options["min_coverage"],
        pass_rate=options["min_pass_rate"],
        max_drop=settings.max_drop if two and given is None else given,
        undecided=settings.undecided,
        tolerated_drop=settings.tolerated_drop,
    )


def _gates_of_run(
    results: VerificationResultSet, made: Comparison, limits: RunLimits, *, chosen: bool
) -> Sequence[Gate]:
    """Those that are about the items of the later run alone; `chosen`: of the compared models, not of all. Raises
    ConfigError where one could never be decided."""
    limits = evolve(limits, pass_rate=None, coverage=None)  # of these the comparison knows more
    wanted = {(row.answering or "", row.parsing or "") for row in made.numbers_b.pairs}
    planned = results.planned or Planned(
        results.get_question_ids(), sorted(results.group_by_replicate()), tuple(sorted(wanted))
    )
    if chosen:
        planned = evolve(planned, pairs=tuple(pair for pair in planned.pairs if pair in wanted))
    modes = {result.metadata.evaluation_mode for result in results}
    mode = "rubric_only" if modes == {"rubric_only"} else "template_only"
    must_pass = must_pass_ids(limits, keywords_in(results, planned), len(planned.replicates), mode)
    return run_gates(results, planned, limits, must_pass)


def with_questions(text: str, path: Path) -> str:
    """JUnit XML with a suite for each pair of models of a run too, and a test for each question, where a package brings
    that format."""
    app = Karenina.default()
    if JUNIT not in app.registry(FormatRegistry):
        return text
    stored = stored_results(path, app)
    with TemporaryDirectory() as folder:
        file = Path(folder, "run.xml")
        find_format(app, file, JUNIT).write(stored, file, stored.manifest)
        return joined(text, file.read_text("utf-8"))


def _compared(
    a: Path,
    b: Path | None,
    first: VerificationResultSet,
    second: VerificationResultSet | None,
    options: Mapping[str, Any],
) -> Comparison:
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
    made = compare_runs(first, second, names=(str(a), str(b)), **shared)
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
