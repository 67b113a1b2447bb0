"""The version of what karenina offers to plugins, and how parts of it are taken back.

The number is one more in each release of karenina-core that adds a hook, an argument of a hook or a public name, or
takes one away. The entry module of a plugin may say for which number it was written, `KARENINA_API = 1`; one that says
nothing was written for the first. docs/explanation/compatibility.md says what may change when.
"""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import PluginError

PLUGIN_API = 1
"""The version of what plugins may use here."""
OLDEST_PLUGIN_API = 1
"""The oldest version for which a plugin may be written. It rises when something is taken away."""
DECLARATION = "KARENINA_API"


class KareninaDeprecationWarning(DeprecationWarning):
    """Something that a plugin uses will be gone. pytest shows it, and `karenina doctor` for all plugins."""


def check_api(declared: Any, distribution: str = "") -> None:
    """Raises PluginError where a plugin was written for a version that is not supported. None is the first one."""
    version = 1 if declared is None else declared
    if type(version) is not int or version < 1:
        raise PluginError(f"its {DECLARATION} is {version!r}; set it to a whole number of at least 1")
    plugin = distribution or "the plugin"
    if version > PLUGIN_API:
        raise PluginError(
            f"it is written for version {version} of the plugin API, and the installed karenina-core has version "
            f"{PLUGIN_API}; update karenina-core, or install an older {plugin}"
        )
    if version < OLDEST_PLUGIN_API:
        silent = f", as its module has no {DECLARATION}" if declared is None else ""
        raise PluginError(
            f"it is written for version {version} of the plugin API{silent}, and the installed karenina-core supports "
            f"versions {OLDEST_PLUGIN_API} to {PLUGIN_API}; update {plugin}, or install an older karenina-core"
        )


def declared_api(plugin: Any) -> Any:
    """What a plugin object, or the module of its class, has as `KARENINA_API`; None for nothing."""
    own = getattr(plugin, DECLARATION, None)
    if own is not None or isinstance(plugin, ModuleType):
        return own
    return getattr(sys.modules.get(getattr(plugin, "__module__", "")), DECLARATION, None)


def written_api(module: str) -> Any:
    """What the source of a module says as `KARENINA_API = ...`, for one that cannot be imported; None for nothing."""
    with suppress(ImportError, OSError, SyntaxError, ValueError, RecursionError):
        spec = find_spec(module)
        for node in ast.parse(Path((spec and spec.origin) or "").read_bytes()).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == DECLARATION for target in targets):
                return ast.literal_eval(getattr(node, "value", None) or ast.Constant(None))
    return None


def deprecation(what: str, *, instead: str, gone: str) -> KareninaDeprecationWarning:
    """The warning that something public will be gone in version `gone` of karenina-core.

    Of hooks and their arguments pluggy gives it to whoever implements them: `hookspec(warn_on_impl=...)` and
    `hookspec(warn_on_impl_args={"argument": ...})`. A function warns in its first line.
    """
    return KareninaDeprecationWarning(f"{what} is deprecated and will be gone in karenina-core {gone}; use {instead}")
