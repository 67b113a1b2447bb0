"""A kind of things from another package: layouts of results, which any plugin may bring."""

from karenina_core import Karenina, hookimpl
from karenina_core.errors import PluginError
from karenina_core.plugin.registry import Registry


class LayoutRegistry(Registry):
    """Add layouts of reports: functions of a list of results that give a text."""

    kind = "layout"
    hook = "karenina_register_layouts"
    affects_every_run = False

    def checked(self, thing):
        if not isinstance(thing, str) and not callable(thing):
            raise PluginError(f"{thing!r} is not a layout: add a function of a list of results")
        return thing


def laid_out(app: Karenina, name: str, results: list) -> str:
    """Raises UnknownName and PluginError."""
    return app.registry(LayoutRegistry).load(name)(results)


def plain(results: list) -> str:
    return f"{len(results)} results"


@hookimpl
def karenina_register_layouts(registry) -> None:
    registry.add(plain)
