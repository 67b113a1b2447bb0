"""The code of traits from benchmark files, where it is not trusted: it runs in a sandbox, if one is installed."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from contextlib import suppress
from typing import Any

from attrs import evolve
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.handle import FunctionRuntime
from karenina_vocabulary.kinds import TemplateRuntimeRegistry, runtime_of
from karenina_vocabulary.traits import CallableRubricTrait

from karenina_core import Karenina
from karenina_core.errors import PluginError, TemplateError

from .code import score_of, unfit


def sandbox_of(app: Karenina) -> FunctionRuntime | None:
    """The runtime that keeps functions apart, where one is installed that works on this machine."""
    for name in app.registry(TemplateRuntimeRegistry):
        with suppress(PluginError):
            runtime = runtime_of(app, name)
            if isinstance(runtime, FunctionRuntime) and not runtime.unavailable:
                return runtime
    return None


class Apart:
    """Functions of traits in the sandbox. Each is loaded once, and shared by all items."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._loaded: OrderedDict[tuple[asyncio.AbstractEventLoop, bytes], asyncio.Future[Any]] = OrderedDict()

    async def score(self, runtime: FunctionRuntime, trait: CallableRubricTrait, code: bytes, text: str) -> TraitScore:
        """What the function says about a text. Raises nothing for what the function does."""
        key = (asyncio.get_running_loop(), hashlib.sha256(code).digest())
        if key not in self._loaded:
            self._loaded[key] = asyncio.ensure_future(runtime.load_function(code))
            if len(self._loaded) > self._most:
                self._loaded.popitem(last=False)
        try:
            function = await asyncio.shield(self._loaded[key])
        except TemplateError as error:
            return TraitScore(state="error", reason=f"its code cannot be loaded in the sandbox: {error}")
        try:
            value = await function.call(text)
        except TemplateError as error:
            found = TraitScore(state="error", reason=f"its function failed in the sandbox: {error}")
        else:
            other = getattr(value, "shown", None)
            found = score_of(trait, value) if other is None else unfit(trait, other, value.type)
        return evolve(found, details={**found.details, "isolation": function.isolation})
