"""The templates of a run, asked again: what a field is about, and whether a reading of an answer passes its check."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from karenina_runs.benchmark import Benchmark
from karenina_runs.folder.directory import read_manifest
from karenina_runs.plan.templates import TemplateLoader
from karenina_runs.resume import benchmark_of

from karenina_core import VerificationResult
from karenina_core.errors import ConfigError, FillError, KareninaError, TemplateError, one_line
from karenina_core.plugin.application import Karenina
from karenina_core.values.identity import template_id

__all__ = ["Templates"]


@define
class Templates:
    """The templates of a run's benchmark, read when the first of them is needed."""

    run: Path
    file: Path | None = None
    """The benchmark, where it is elsewhere now."""
    app: Karenina = field(factory=Karenina.default)
    _benchmark: Benchmark | None = None
    _loader: TemplateLoader | None = None
    _known: dict[str, Any] = field(factory=dict)

    def describe(self, question_id: str) -> Mapping[str, str]:
        """`{field: what the judge was asked for}`; nothing where the benchmark is not at hand."""
        try:
            handle = self.app.run(self._handle(question_id))
        except KareninaError:
            return {}
        return {about.name: f"{about.description} ({about.type})" for about in handle.fields()}

    def passes(self, result: VerificationResult, name: str, reading: Any) -> bool:
        """Whether the template finds a field right with this value, the others being as the judge extracted them.

        Raises ConfigError where the benchmark is not there or has another template now, and where the value does not
        fit the field.
        """
        about = result.metadata
        if self._template_id(about.question_id) != about.template_id:
            raise ConfigError(
                f"the question {about.question_id!r} has another template in the benchmark than in the run; give the "
                "file as it was (--benchmark FILE)"
            )
        return self.app.run(self._passes(result, name, reading))

    async def _passes(self, result: VerificationResult, name: str, reading: Any) -> bool:
        handle = await self._handle(result.metadata.question_id)
        extracted = result.template.parsed_llm_response or {} if result.template is not None else {}
        try:
            filled = await handle.build({**extracted, name: reading})
            verdict = await filled.verify(result.generation.raw_llm_response)
        except FillError as error:
            raise ConfigError(
                f"the reading {reading!r} of {name} ({result.metadata.question_id}) does not fit the field: "
                f"{one_line(error)}; label it again"
            ) from error
        except TemplateError as error:
            raise ConfigError(f"{name} ({result.metadata.question_id}) cannot be checked: {error}") from error
        return bool(verdict.field_results.get(name) is True)

    def _questions(self) -> Benchmark:
        if self._benchmark is None:
            manifest = read_manifest(self.run)
            self._benchmark = benchmark_of(manifest, self.app, self.run, file=self.file, call="Benchmark.load")
        return self._benchmark

    def _template_id(self, question_id: str) -> str:
        benchmark = self._questions()
        return template_id(benchmark.question(question_id).answer_template) if question_id in benchmark else ""

    async def _handle(self, question_id: str) -> Any:
        if question_id not in self._known:
            benchmark = self._questions()
            source = benchmark.question(question_id).template if question_id in benchmark else None
            if source is None:
                raise ConfigError(f"the benchmark no longer has a template of {question_id!r} (--benchmark FILE)")
            if self._loader is None:
                self._loader = TemplateLoader(self.app, "sandbox")
            self._known[question_id] = await self._loader.load(source)
        return self._known[question_id]
