"""Every hook that a plugin may implement, grouped by when it is called.

A plugin is a module, class instance or object with functions marked `@hookimpl`, named by an entry point of the group
`karenina.plugins`. Hooks are plain functions, never `async def`; an implementation may leave out arguments that it
does not need. `app` is the application that calls, for its registries and for the plugin's own settings
(`app.settings("name")`). Everything is called in the order of the plugins' names, and no result depends on that order.

Hooks that wrap can change numbers: a run is gone on with only where the plugin's version, code and settings are those
of before. One that changes none, as it traces or records, is marked `@neutral` too. What wraps items needs no mark.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .markers import hookspec

if TYPE_CHECKING:
    from ..errors import ErrorKind
    from ..model.benchmark import BenchmarkData
    from ..model.identity import TaskIdentity
    from ..model.result import TrailEntry, VerificationResult
    from ..ports.middleware import Around, CallTarget
    from ..prompts.instructions import AdapterInstruction
    from .adapters import AdapterRegistry
    from .application import Karenina
    from .registries import (
        AggregatorRegistry,
        EmbedderRegistry,
        ExecutorRegistry,
        FormatRegistry,
        PrimitiveRegistry,
        SearchToolRegistry,
        SettingsRegistry,
        SinkRegistry,
        StageRegistry,
        StrategyRegistry,
        TemplateRuntimeRegistry,
        ToolServerRegistry,
        TraitRegistry,
        ViewRegistry,
    )

# Registration: called once per application. Each fills one registry; see `Registry.add`.


@hookspec
def karenina_register_stages(registry: StageRegistry) -> None:
    """Add stage classes.

    They are made once per plan, with the plugin's settings when the constructor takes one argument.
    """


@hookspec
def karenina_register_traits(registry: TraitRegistry) -> None:
    """Add rubric trait evaluators, named by the type of trait that they score: each a `TraitEvaluator` class.

    One is made per application, with the plugin's settings when the constructor takes one argument.
    """


@hookspec
def karenina_register_adapters(registry: AdapterRegistry) -> None:
    """Register an `AdapterSpec` for every interface: how models are reached."""


@hookspec
def karenina_register_sinks(registry: SinkRegistry) -> None:
    """Add sinks: where results are written. A sink is made with its target, the part of `--sink name:target` after
    the colon."""


@hookspec
def karenina_register_embedders(registry: EmbedderRegistry) -> None:
    """Add embedders: texts to vectors. An embedder is a class that is made with the name of a model, an `Embedder`."""


@hookspec
def karenina_register_search_tools(registry: SearchToolRegistry) -> None:
    """Add search tools: a query to results, each a `SearchTool`."""


@hookspec
def karenina_register_tool_servers(registry: ToolServerRegistry) -> None:
    """Add clients of tool servers, named by their protocol (`mcp`): classes that are made with the name and the address
    of a server, each a `ToolServer`."""


@hookspec
def karenina_register_template_runtimes(registry: TemplateRuntimeRegistry) -> None:
    """Add template runtimes: how the text of an answer template becomes a `TemplateHandle`."""


@hookspec
def karenina_register_executors(registry: ExecutorRegistry) -> None:
    """Add executors: how many items are run."""


@hookspec
def karenina_register_settings(registry: SettingsRegistry) -> None:
    """Add one frozen attrs class: the settings of this plugin, `[plugins.<name>]` in the configuration file."""


@hookspec
def karenina_register_strategies(registry: StrategyRegistry) -> None:
    """Add judgment strategies: how a judge gets from an answer to fields or scores."""


@hookspec
def karenina_register_primitives(registry: PrimitiveRegistry) -> None:
    """Add verification primitives, by class name: how an extracted value is compared with the expected one."""


@hookspec
def karenina_register_views(registry: ViewRegistry) -> None:
    """Add views of results, such as `template` or `rubric`: classes that are made with a `VerificationResultSet`.

    `results.view(name)` makes one.
    """


@hookspec
def karenina_register_aggregators(registry: AggregatorRegistry) -> None:
    """Add aggregators: functions of a list of values, never empty and without None, that give one value for all.

    One that cannot be applied to such values raises TypeError or ValueError, and says why.
    """


@hookspec
def karenina_register_formats(registry: FormatRegistry) -> None:
    """Add file formats: how results are written to a file one after the other and, where it can be done, read."""


# Reading and writing benchmarks: called once per file; the first answer that is not None counts.


@hookspec(firstresult=True)
def karenina_load_benchmark(path: Path, data: bytes, app: Karenina) -> BenchmarkData | None:
    """Read a benchmark from the content of a file, or return None where the format is not yours. Execute nothing.

    `app.traits` knows the trait types of other packages, and how each is written (`TraitEvaluator.file_type`).
    """


@hookspec(firstresult=True)
def karenina_save_benchmark(benchmark: BenchmarkData, path: Path, app: Karenina) -> bytes | None:
    """The content to write for a benchmark, or None where the file's suffix is not yours. The core writes it."""


# Models: called while a run is prepared, once per model.


@hookspec(firstresult=True)
def karenina_resolve_model(model: str) -> str | None:
    """The interface that serves a model given as `provider/name`, or None."""


@hookspec(firstresult=True)
def karenina_classify_error(error: BaseException) -> ErrorKind | None:
    """Name the kind of an exception that an adapter let through, or None."""


@hookspec
def karenina_instruct(
    task: str, interface: str, context: Mapping[str, Any], app: Karenina
) -> AdapterInstruction | None:
    """Text to add to the prompt of a task for models behind an interface. Called once per prompt."""


# Calls: once for everything that is opened.


@hookspec
def karenina_wrap_call(target: CallTarget, app: Karenina) -> Around | None:
    """Return middleware that stands in front of what is called: to record, replay, trace or change calls.

    A coroutine function `around(call, proceed)` that returns what `await proceed(call)` gives, or a reply of its own;
    it may proceed with another call. What else it may have is in `karenina_core.ports.middleware.Around`. What it
    raises, the call raises. None leaves `target` as it is.

    Called for everything that is opened, by its kind: for each port of a model (also where it is only looked at before
    a run) and for its work with tools; once per embedder; for a search tool whenever it is asked for; for a tool
    server when it is looked at and again when it is connected to. The middleware of the plugin with the first name is
    the outermost. One that changes no number is marked `@neutral`, too: a run is gone on with whether it is there or
    not.
    """


# Items and stages: called once per plan.


@hookspec
def karenina_wrap_item(
    app: Karenina,
) -> Callable[[TaskIdentity, Callable[[], Awaitable[VerificationResult]]], Awaitable[None]] | None:
    """Return a coroutine function `around(task, proceed)` that surrounds every item and may await `proceed()`.

    It cannot keep an item from its result or change it: an item that it did not proceed with runs all the same, one
    that it proceeds with twice runs once, and what it raises is logged. An item that it ends halfway, by cancelling
    `proceed()`, has an error as its result. The wrapper of the plugin with the first name is the outermost one.
    """


@hookspec
def karenina_wrap_stage(
    stage: Any, app: Karenina
) -> Callable[[Any, Callable[[], Awaitable[None]]], Awaitable[None]] | None:
    """Return a coroutine function `around(context, proceed)` that runs in place of the stage and may await `proceed()`.

    The wrapper of the plugin with the first name is the outermost one.
    """


# Observers: an observer that raises is logged and never fatal.


@hookspec
def karenina_run_started(run: Mapping[str, Any], app: Karenina) -> None:
    """A run begins: `{"run_name", "run_dir", "benchmark", "items"}`."""


@hookspec
def karenina_stage_finished(task: Any, entry: TrailEntry, app: Karenina) -> None:
    """A stage was run, skipped or failed, for the item `task` (a `TaskIdentity`)."""


@hookspec
def karenina_item_finished(result: VerificationResult, app: Karenina) -> None:
    """An item has its result."""


@hookspec
def karenina_run_finished(summary: Mapping[str, Any], status: str, app: Karenina) -> None:
    """A run ended: the JSON document of `karenina verify --json`, and how it ended.

    `status` is `completed`, `interrupted` or `failed`. Not every run that ends has begun.
    """
