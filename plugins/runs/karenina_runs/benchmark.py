"""`Benchmark`: a benchmark that can load, save and run itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, fields, frozen
from karenina_calls.files.bounded import read_bounded
from karenina_calls.models.untrusted_models import as_foreign

from karenina_core.errors import BenchmarkError, KareninaError, PluginError
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import VerificationConfig
from karenina_core.values.question import Question
from karenina_core.values.rubric import DynamicRubric, Rubric

from .answers.answers import ReplayStore, as_store
from .execute.control import RunControl, synchronous
from .execute.runner import Destination, execute
from .files.atomic_files import write_atomically
from .plan.prepare import prepare
from .results.results import VerificationResultSet
from .results.shown import benchmark_html, benchmark_text

MAX_BYTES = 256 * 1024 * 1024
"""Of a benchmark file. Chosen: reading it, which takes several times as much memory, does not fill a small machine."""


def _content(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_BYTES, pipes=True)
    except FileNotFoundError:
        raise BenchmarkError(f"there is no file {path}; check the path") from None
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror}") from error


def table_lines(table: Any) -> bytes:
    """The rows of a table in memory as lines of JSON. Raises BenchmarkError."""
    if hasattr(table, "to_json"):  # pandas
        return str(table.to_json(orient="records", lines=True, date_format="iso", double_precision=15)).encode()
    if hasattr(table, "write_ndjson"):  # polars
        return str(table.write_ndjson()).encode()
    try:
        return "".join(f"{json.dumps(dict(row), allow_nan=False)}\n" for row in table).encode()
    except (TypeError, ValueError) as error:
        raise BenchmarkError(
            f"{type(table).__name__} is not a table ({error}); give a path, a DataFrame, or a list of dicts of JSON"
        ) from None


@frozen(kw_only=True, repr=False)
class Benchmark(BenchmarkData):
    """Questions with their templates and rubrics. Immutable: methods that change something return a new benchmark."""

    source: Path | None = field(default=None, eq=False, repr=False)
    """The file that it was read from; None where it was changed since."""

    def __repr__(self) -> str:
        return benchmark_text(self)

    def _repr_html_(self) -> str:
        """What it holds, for notebooks."""
        return benchmark_html(self)

    @classmethod
    def create(cls, name: str, **facts: Any) -> Benchmark:
        """A benchmark without questions. `facts` are fields such as `description`, `version` and `creator`."""
        return cls(name=name, **facts)

    @classmethod
    def load(
        cls, path: str | Path, workspace_root: str | Path | None = None, *, app: Karenina | None = None
    ) -> Benchmark:
        """Read a benchmark file with the loader that knows its format. Executes nothing. Raises BenchmarkError.

        `workspace_root` is the folder that the questions' `workspace_path` are in. Models that the file describes are
        marked: they are asked only in a run that is trusted, or where the configuration names them too.
        """
        path = Path(path)
        return cls._read(path, _content(path), {}, current(app), workspace_root=workspace_root, source=path.absolute())

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        columns: Mapping[str, str] | None = None,
        sheet: str | None = None,
        name: str = "table",
        app: Karenina | None = None,
    ) -> Benchmark:
        """Read a table of questions: the path of a file, a DataFrame of pandas or polars, or rows as mappings.

        What its columns are is guessed by their names; `columns` decides (`{"Frage": "question"}`). `sheet` is the one
        to read of a workbook, by default the first. `name` is the benchmark's, where the table is no file. Executes
        nothing. Raises BenchmarkError.
        """
        options = {"columns": columns or {}, "sheet": sheet}
        if isinstance(table, str | Path):
            path = Path(table)
            source = None if columns or sheet else path.absolute()  # read again without them it would be another one
            return cls._read(path, _content(path), options, current(app), source=source)
        return cls._read(Path(f"{name}.jsonl"), table_lines(table), options, current(app))

    @classmethod
    def _read(cls, path: Path, data: bytes, options: Mapping[str, Any], app: Karenina, **about: Any) -> Benchmark:
        try:
            loaded = app.first("karenina_load_benchmark", path=path, data=data, app=app, options=options)
        except BenchmarkError:
            raise
        except KareninaError as error:
            raise BenchmarkError(f"{path} cannot be read as a benchmark: {error}") from error
        if loaded is None:
            raise BenchmarkError(
                f"no installed loader reads {path.name}; save it as .jsonld, which karenina-jsonld reads, or as a"
                f" sheet: karenina-tables reads .csv, .tsv, .xlsx and .jsonl.{app.inactive()}"
            )
        if not isinstance(loaded, BenchmarkData):
            raise BenchmarkError(f"{path}: a plugin returned {type(loaded).__name__} instead of a benchmark")
        facts = {f.name: getattr(loaded, f.name) for f in fields(BenchmarkData)}
        facts = {name: value if name == "document" else as_foreign(value) for name, value in facts.items()}
        return cls(**{**facts, **about})

    def save(self, path: str | Path, *, app: Karenina | None = None) -> Path:
        """Write the benchmark with the writer that knows the suffix, as a whole or not at all.

        Raises BenchmarkError.
        """
        app, path = current(app), Path(path)
        try:
            data = app.first("karenina_save_benchmark", benchmark=self, path=path, app=app)
        except PluginError as error:
            raise BenchmarkError(f"{path} cannot be written: {error}") from error
        if data is None:
            raise BenchmarkError(f"no installed writer knows the suffix of {path.name}; use .jsonld")
        if not isinstance(data, bytes):
            raise BenchmarkError(f"{path}: a plugin returned {type(data).__name__} instead of bytes")
        try:
            write_atomically(path, data)
        except OSError as error:
            raise BenchmarkError(f"{path} cannot be written: {error.strerror}") from error
        return path

    def with_questions(self, questions: Iterable[Question]) -> Benchmark:
        """The same benchmark with more questions; one of a known id takes the place of the old one."""
        new = {question.id: question for question in questions}
        kept = [new.pop(question.id, question) for question in self.questions]
        return evolve(self, questions=(*kept, *new.values()), source=None)

    def without_questions(self, question_ids: Iterable[str]) -> Benchmark:
        """The same benchmark with fewer questions."""
        gone = set(question_ids)
        return evolve(self, questions=tuple(q for q in self.questions if q.id not in gone), source=None)

    def with_rubric(self, rubric: Rubric | None) -> Benchmark:
        """The same benchmark with another rubric for all questions."""
        return evolve(self, rubric=rubric, source=None)

    def with_dynamic_rubric(self, rubric: DynamicRubric | None) -> Benchmark:
        """The same benchmark with other traits for the answers that take them up."""
        return evolve(self, dynamic_rubric=rubric, source=None)

    async def arun_verification(
        self,
        config: VerificationConfig,
        *,
        question_ids: Sequence[str] | None = None,
        run_name: str | None = None,
        run_dir: str | Path | None = None,
        sinks: Sequence[str] = (),
        reuse: str | Path | Sequence[str | Path] = (),
        answers: ReplayStore | str | Path | None = None,
        app: Karenina | None = None,
        control: RunControl | None = None,
    ) -> VerificationResultSet:
        """Verify the benchmark.

        `run_dir` keeps the results in a folder; `sinks` adds destinations as `name:target`. `reuse` names directories
        of other runs: what was asked there, or in the runs that these were given or extend, is not asked again.
        `answers` are given to the run in place of asking the answering models: a store, a file of one, or a run
        directory, whose answers must then all be there. `control` can end the run early: what is asked already is
        waited for and kept.

        Raises ConfigError, PlanError, TemplateRefused and RunDirectoryError before the first model call, and
        RunDirectoryError also later, when results can no longer be kept.
        """
        app = current(app)
        if isinstance(question_ids, str):
            question_ids = [question_ids]
        store = as_store(answers, app=app)
        prepared = prepare(self, config, app=app, question_ids=question_ids, run_name=run_name, answers=store)
        folder = Path(run_dir) if run_dir else None
        source = self.source if self.source is not None and self.source.is_file() else None
        destination = Destination(run_dir=folder, sinks=sinks, source=source, reuse=reuse)
        return await execute(prepared, destination, control=control)

    run_verification = synchronous(arun_verification)
