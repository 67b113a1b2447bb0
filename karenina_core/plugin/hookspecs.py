"""The hooks of the core that register nothing, grouped by when they are called.

Those that register things, `karenina_register_stages(registry)` and the like, are declared by the kinds of things
(`karenina_core.plugin.kinds`).

A plugin is a module, class instance or object with functions marked `@hookimpl`, named by an entry point of the group
`karenina.plugins`. Hooks are plain functions, never `async def`; an implementation may leave out arguments that it
does not need. `app` is the application that calls, a `Karenina`, for its registries and for the plugin's own settings
(`app.settings("name")`). Everything is called in the order of the plugins' names, and no result depends on that order.

Hooks that wrap can change numbers: a run is resumed only where the plugin's version, code and settings are those
of before. One that changes none, as it traces or records, is marked `@neutral` too. What wraps items needs no mark.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .markers import hookspec

if TYPE_CHECKING:
    from ..errors import ErrorKind
    from ..ports.middleware import Around, CallTarget
    from ..values.benchmark import BenchmarkData
    from ..values.identity import TaskIdentity
    from ..values.result import VerificationResult

# Reading and writing benchmarks: called once per file; the first answer that is not None counts.


@hookspec(firstresult=True)
def karenina_load_benchmark(path: Path, data: bytes, app: Any, options: Mapping[str, Any]) -> BenchmarkData | None:
    """Read a benchmark from the content of a file, or return None where the format is not yours. Execute nothing.

    `options` is what the caller says about a table: `columns` and `sheet`, see `Benchmark.from_table`.
    `app.traits` knows the trait types of other packages, and how each is written (`TraitEvaluator.file_type`).
    """


@hookspec(firstresult=True)
def karenina_save_benchmark(benchmark: BenchmarkData, path: Path, app: Any) -> bytes | None:
    """The content to write for a benchmark, or None where the file's suffix is not yours. The core writes it."""


# Models: called while a run is prepared, once per model.


@hookspec(firstresult=True)
def karenina_resolve_model(model: str) -> str | None:
    """The interface that serves a model by its name alone, such as `provider/name` or `interface:name`, or None."""


@hookspec(firstresult=True)
def karenina_classify_error(error: BaseException) -> ErrorKind | None:
    """Name the kind of an exception that an adapter let through, or None.

    For adapters of others; your own raises `PortError`, which also has the status, the wait that the server requests
    and the raw reply, and no key in its text. A kind alone loses all of that.
    """


# Calls: once for everything that is opened.


@hookspec
def karenina_wrap_call(target: CallTarget, app: Any) -> Around | None:
    """Return middleware for what is called: to record, replay, trace or change calls.

    A coroutine function `around(call, proceed)` that returns what `await proceed(call)` gives, or a reply of its own;
    it may proceed with another call. What else it may have is in `karenina_core.ports.middleware.Around`. The call
    raises what it raises. None leaves `target` unchanged.

    Called for everything that is opened, by its kind: for each port of a model (also where it is only looked at before
    a run) and for its work with tools; once per embedder; for a search tool at every request; for a tool server when it
    is inspected and again when it is connected. The middleware of the plugin with the first name is the outermost.
    Middleware that changes no number is also marked `@neutral`: a run can be resumed with or without it.
    """


# Items and stages: called once per plan.


@hookspec
def karenina_wrap_item(
    app: Any,
) -> Callable[[TaskIdentity, Callable[[], Awaitable[VerificationResult]]], Awaitable[None]] | None:
    """Return a coroutine function `around(task, proceed)` that surrounds every item and may await `proceed()`.

    It cannot keep an item from its result or change it: an item that it did not proceed with still runs, one
    that it proceeds with twice runs once, and what it raises is logged. An item that it ends halfway, by cancelling
    `proceed()`, has an error as its result. The wrapper of the plugin with the first name is the outermost one.
    """


@hookspec
def karenina_wrap_stage(stage: Any, app: Any) -> Callable[[Any, Callable[[], Awaitable[None]]], Awaitable[None]] | None:
    """Return a coroutine function `around(context, proceed)` that runs in place of the stage and may await `proceed()`.

    The wrapper of the plugin with the first name is the outermost one.
    """


# Observers: an observer that raises is logged and never fatal.


@hookspec
def karenina_run_started(run: Mapping[str, Any], app: Any) -> None:
    """A run begins: `{"run_name", "run_dir", "benchmark", "items"}`."""


@hookspec
def karenina_item_finished(result: VerificationResult, app: Any) -> None:
    """An item has its result."""


@hookspec
def karenina_run_finished(summary: Mapping[str, Any], status: str, app: Any) -> None:
    """A run ended: the JSON document of `karenina verify --json`, and how it ended.

    `status` is `completed`, `interrupted` or `failed`. A run can end before it has started.
    """
