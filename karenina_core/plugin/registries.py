"""One registry for each kind of thing that a plugin can bring."""

from __future__ import annotations

from typing import Any

from ..errors import PluginError
from .registry import Registry

__all__ = [
    "AggregatorRegistry",
    "EmbedderRegistry",
    "ExecutorRegistry",
    "FormatRegistry",
    "PrimitiveRegistry",
    "SearchToolRegistry",
    "SettingsRegistry",
    "SinkRegistry",
    "StageRegistry",
    "StrategyRegistry",
    "TemplateRuntimeRegistry",
    "ToolServerRegistry",
    "TraitRegistry",
    "ViewRegistry",
]


STAGE_NAMES = (
    *("name", "category", "requires", "reads", "produces", "result_fields", "features", "included_when"),
    *("after", "before", "final", "blocking", "should_run", "execute"),
)
"""What planning and running a stage needs of it; `karenina_core.Stage` has all of it."""


class StageRegistry(Registry[Any]):
    """Stage classes."""

    kind = "stage"

    def checked(self, thing: Any) -> Any:
        if isinstance(thing, str):
            raise PluginError(f"stages are planned by their declarations: add the class itself, not {thing!r}")
        missing = [name for name in STAGE_NAMES if not hasattr(thing, name)]
        if missing:
            raise PluginError(
                f"{thing!r} is not a stage: it has no {', '.join(missing)}; derive it from karenina_core.Stage"
            )
        return thing

    def add(self, thing: Any, *, name: str | None = None, replaces: str | None = None, hint: str = "") -> None:
        own = self.name_of(thing)
        if name is not None and name != own:
            raise PluginError(f"the stage {own!r} cannot be added as {name!r}: a plan calls stages by their own name")
        super().add(thing, replaces=replaces, hint=hint)


EVALUATOR_NAMES = ("name", "trait_class", "evaluate", "check_config")
"""What scoring traits needs of their evaluator; `karenina_core.TraitEvaluator` has all but the first two."""


class TraitRegistry(Registry[Any]):
    """Rubric trait evaluators."""

    kind = "trait evaluator"

    def checked(self, thing: Any) -> Any:
        if isinstance(thing, str):
            return thing
        missing = [name for name in EVALUATOR_NAMES if not hasattr(thing, name)]
        if missing:
            raise PluginError(
                f"{thing!r} is not a trait evaluator: it has no {', '.join(missing)}; derive it from "
                "karenina_core.TraitEvaluator and give it a name and a trait_class"
            )
        if not getattr(thing.trait_class, "type_name", ""):
            raise PluginError(
                f"{thing!r}: its trait_class {thing.trait_class!r} sets no type_name; derive it from "
                f"karenina_core.RubricTrait and set it to {thing.name!r}"
            )
        return thing


class SinkRegistry(Registry[Any]):
    """Sink classes, made with their target."""

    kind = "sink"


class EmbedderRegistry(Registry[Any]):
    """Embedders."""

    kind = "embedder"


class SearchToolRegistry(Registry[Any]):
    """Search tools."""

    kind = "search tool"


class ToolServerRegistry(Registry[Any]):
    """Clients of tool servers."""

    kind = "tool server client"


class TemplateRuntimeRegistry(Registry[Any]):
    """Template runtimes."""

    kind = "template runtime"


class ExecutorRegistry(Registry[Any]):
    """Executors."""

    kind = "executor"


class SettingsRegistry(Registry[type]):
    """Settings classes, by the name of their plugin."""

    kind = "settings"

    def name_of(self, thing: Any) -> str | None:
        return self.plugin

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str) and not hasattr(thing, "__attrs_attrs__"):
            raise PluginError(f"settings of plugin {self.plugin!r}: {thing!r} is not an attrs class")
        return thing


class StrategyRegistry(Registry[Any]):
    """Judgment strategies."""

    kind = "judgment strategy"


class PrimitiveRegistry(Registry[Any]):
    """Verification primitives."""

    kind = "primitive"


class ViewRegistry(Registry[Any]):
    """Views of results: classes that are made with a `VerificationResultSet`."""

    kind = "view"

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str | type):
            raise PluginError(f"{thing!r} is not a view: add a class that is made with a VerificationResultSet")
        return thing


class AggregatorRegistry(Registry[Any]):
    """Functions of a list of values that give one value for all of them."""

    kind = "aggregator"

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str) and not callable(thing):
            raise PluginError(f"{thing!r} is not an aggregator: add a function of a list of values")
        return thing


class FormatRegistry(Registry[Any]):
    """File formats of results."""

    kind = "file format"

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str) and not hasattr(thing, "write"):
            raise PluginError(f"{thing!r} is not a file format: it has no write")
        return thing
