"""Which runtime may load a template, and loading each one once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

from karenina_vocabulary.kinds import PrimitiveRegistry, StrategyRegistry, TemplateRuntimeRegistry, runtime_of

from karenina_core.errors import PluginError, TemplateError, TemplateRefused, one_line
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import CodePolicy
from karenina_core.values.question import TemplateSource

IN_PROCESS = "in-process"
KEPT = 64
"""Templates that are kept when no item has them any more: more than the items that are under way by default, so that
those of one question find it. Chosen; a template in Python takes 40 KB."""
AT_ONCE = 4
"""Templates that are loaded at a time, each in a thread: more would not be quicker, and with one a template whose code
does not end would keep all others waiting."""


class TemplateLoader:
    """Loads templates under one policy. Items share the handle of a template while one of them has it, and it is kept
    for a while after, for replicates and other judges: what stays does not grow with the questions of a run."""

    def __init__(self, app: Karenina, policy: CodePolicy) -> None:
        self._app = app
        self._policy = policy
        self._handles: OrderedDict[tuple[str, str], asyncio.Future[Any]] = OrderedDict()
        """Those that are being loaded, and those that were asked for last."""
        self._used: WeakValueDictionary[tuple[str, str], Any] = WeakValueDictionary()
        """Those that some item has."""
        self._broken: list[str] = []
        self._places = asyncio.Semaphore(AT_ONCE)
        known = app.registry(TemplateRuntimeRegistry)
        made = (self._attempt(name, partial(runtime_of, app, name)) for name in known)
        there = [runtime for runtime in made if runtime is not None]
        self._unable = [runtime for runtime in there if getattr(runtime, "unavailable", "")]
        self._runtimes = [runtime for runtime in there if runtime not in self._unable]
        self._primitives: dict[str, type] | None = None

    def runtime_for(self, source: TemplateSource) -> Any:
        """The runtime that may load this template: one without code first, then what the policy names.

        Raises TemplateRefused where the policy forbids every runtime, TemplateError where none knows the language.
        """
        able = [runtime for runtime in self._runtimes if source.language in runtime.languages]
        if not able and not any(source.language in runtime.languages for runtime in self._unable):
            known = sorted({language for runtime in self._runtimes for language in runtime.languages})
            raise TemplateError(
                f"no installed runtime loads templates written in {source.language!r} "
                f"(available: {', '.join(known) or 'none'}).{self._app.inactive()}{self._trouble()}"
            )
        allowed = [
            runtime
            for runtime in able
            if not runtime.executes_code
            or self._policy == "trusted"
            or (self._policy == "sandbox" and runtime.isolation != IN_PROCESS)
        ]
        if not allowed:
            reasons = "; ".join(runtime.unavailable for runtime in self._unable)
            why = f" ({reasons})" if reasons else ""
            raise TemplateRefused(
                f"the template is Python code, and there is no sandbox to run it in{why}; "
                "if you trust this file, run it in this process with --trust (in Python: code_policy='trusted')"
                if self._policy == "sandbox"
                else "the template is code, and code_policy is 'refuse'"
            )
        trusted = self._policy == "trusted"
        return min(
            allowed, key=lambda found: (found.executes_code, (found.isolation != IN_PROCESS) == trusted, found.name)
        )

    def idle(self, languages: Collection[str]) -> set[tuple[type, str]]:
        """The kinds and names of what has no part in templates of these languages: runtimes without code of other
        languages, and the strategies that fill what only those load."""
        unused = [one for one in self._runtimes if not one.executes_code and one.languages.isdisjoint(languages)]
        named = {(StrategyRegistry, own) for one in unused if (own := getattr(one, "strategy", None))}
        return named | {(TemplateRuntimeRegistry, one.name) for one in unused}

    async def load(self, source: TemplateSource) -> Any:
        """The handle of a template. Raises TemplateError."""
        key = (source.language, source.text)
        if (loading := self._handles.get(key)) is not None:
            self._handles.move_to_end(key)
            if loading.done():
                return loading.result()
        elif (handle := self._used.get(key)) is not None:
            return handle
        else:
            self._handles[key] = asyncio.ensure_future(self._load(source))
        handle = await asyncio.shield(self._handles[key])
        with suppress(TypeError):  # a runtime's handle that cannot be referred to weakly
            self._used[key] = handle
        self._forget()
        return handle

    def _forget(self) -> None:
        """Keep the templates that were asked for last."""
        for key in list(islice(self._handles, max(len(self._handles) - KEPT, 0))):
            if self._handles[key].done():
                del self._handles[key]

    async def _load(self, source: TemplateSource) -> Any:
        runtime = self.runtime_for(source)
        if self._primitives is None:
            loaded = {n: self._attempt(n, entry.load) for n, entry in self._app.registry(PrimitiveRegistry).items()}
            self._primitives = {name: primitive for name, primitive in loaded.items() if primitive is not None}
        try:
            async with self._places:
                return await runtime.load(source.text, self._primitives)
        except TemplateError as error:
            if not self._broken:
                raise
            raise TemplateError(f"{error}{self._trouble()}") from error

    def _attempt(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` gives; None where it is broken, which only matters to templates that need it."""
        try:
            return make()
        except (Exception, SystemExit) as error:
            self._broken.append(f"{name}: {error if isinstance(error, PluginError) else one_line(error)}")
            return None

    def _trouble(self) -> str:
        return f" Broken: {'; '.join(self._broken)}." if self._broken else ""
