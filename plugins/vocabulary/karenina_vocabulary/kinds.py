"""The kinds of things that stages share: how templates are read, compared and filled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from karenina_core.plugin.registry import Registry

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina


class TemplateRuntimeRegistry(Registry[Any]):
    """Add template runtimes: how the text of an answer template becomes a `TemplateHandle`."""

    kind = "template runtime"
    hook = "karenina_register_template_runtimes"


def runtime_of(app: Karenina, name: str) -> Any:
    """The template runtime of this name, made once for an application. Raises UnknownName and PluginError."""
    return app.once((TemplateRuntimeRegistry, name), partial(app.registry(TemplateRuntimeRegistry).make, name))


class PrimitiveRegistry(Registry[Any]):
    """Add verification primitives, by class name: how an extracted value is compared with the expected one."""

    kind = "primitive"
    hook = "karenina_register_primitives"


class StrategyRegistry(Registry[Any]):
    """Add judgment strategies: how a judge gets from an answer to fields or scores."""

    kind = "judgment strategy"
    hook = "karenina_register_strategies"
