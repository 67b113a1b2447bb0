"""The kinds of things that stages share: how templates are read, compared and filled."""

from __future__ import annotations

from typing import Any

from karenina_core.plugin.registry import Registry


class TemplateRuntimeRegistry(Registry[Any]):
    """Add template runtimes: how the text of an answer template becomes a `TemplateHandle`."""

    kind = "template runtime"
    hook = "karenina_register_template_runtimes"


class PrimitiveRegistry(Registry[Any]):
    """Add verification primitives, by class name: how an extracted value is compared with the expected one."""

    kind = "primitive"
    hook = "karenina_register_primitives"


class StrategyRegistry(Registry[Any]):
    """Add judgment strategies: how a judge gets from an answer to fields or scores."""

    kind = "judgment strategy"
    hook = "karenina_register_strategies"
