"""How a command begins that has trials judged: the configuration, the benchmark, and what can be tried of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from attrs import frozen
from karenina_authoring.proof.prove import primitives_of
from karenina_cli.estimating import check_estimate
from karenina_cli.options.flags import configured, select_questions
from karenina_cli.output import note
from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.templates import TemplateLoader

from karenina_core.errors import ConfigError, Problem
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig

from .trials import Subject, Trial, subjects

T = TypeVar("T", bound=Trial)


@frozen
class Begun(Generic[T]):
    """What there is to try."""

    app: Karenina
    benchmark: Benchmark
    config: VerificationConfig
    trials: Sequence[T]
    tried: int
    """Questions that there are trials of."""
    left_out: Mapping[str, str]
    """Why questions cannot be tried, by their ids."""


def begun(
    path: Path, options: Mapping[str, Any], make: Callable[[Sequence[Subject]], Awaitable[Sequence[T]]]
) -> Begun[T]:
    """`make` makes the trials. Raises ConfigError and BenchmarkError, also where no question can be tried: nothing was
    asked yet."""
    check_estimate(options)
    loaded = configured({**options, "features_on": (), "features_off": ()})
    benchmark = Benchmark.load(path, app=loaded.app)
    ids = [question.id for question in benchmark]
    if options["questions"] is not None:
        ids = select_questions(options["questions"], ids)
    loader = TemplateLoader(loaded.app, loaded.config.code_policy)
    chosen = map(benchmark.question, ids)

    async def made() -> tuple[Sequence[T], Mapping[str, str]]:
        found, left_out = await subjects(chosen, loader, primitives_of(loaded.app))
        return await make(found) if found else (), left_out

    trials, left_out = asyncio.run(made())  # templates of a sandbox belong to the loop that has loaded them
    if not trials:
        for name, why in left_out.items():
            note(f"{name}: {why}")
        what = "no question has a template with values that are known to be right"
        raise ConfigError([Problem("benchmark", f"{what}; see `karenina benchmark prove {path}`")])
    return Begun(loaded.app, benchmark, loaded.config, trials, len({t.question.id for t in trials}), left_out)
