"""A layout and a sink from a package that does without the one that declares layouts."""

from karenina_core import hookimpl


def headline(results: list) -> str:
    return f"NEWS: {len(results)} results are in"


class Silent:
    """A sink that keeps nothing."""

    def __init__(self, target: str) -> None:
        self.target = target


@hookimpl
def karenina_register_layouts(registry) -> None:
    registry.add("karenina_stranger_headline:headline", name="headline")


@hookimpl
def karenina_register_sinks(registry) -> None:
    registry.add(Silent, name="silent")
