"""Plugins made in place."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from karenina_core import hookimpl


@pytest.fixture(scope="session")
def module() -> Callable[..., ModuleType]:
    """`module(karenina_register_sinks=function)`: a module whose functions are hook implementations."""

    def make(name: str = "plugin_module", **hooks: Any) -> ModuleType:
        made = ModuleType(name)
        for hook, function in hooks.items():
            setattr(made, hook, hookimpl(function))
        return made

    return make
