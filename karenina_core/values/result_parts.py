"""Parts of results: attrs classes that distributions declare, each for what its stages find out.

A distribution declares one by an entry point of the group `karenina.result_parts`, whose name is that of the part:
`readability = "my_package.parts:ReadabilityPart"`. Its fields are fields of results then: where a stage sets one of
them, it is in `result.readability`, in JSON and in tables. The module must import no stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import fields

from ..errors import PluginError
from ..plugin.discovery import Declared, Source, discover

if TYPE_CHECKING:
    from typing import Self

GROUP = "karenina.result_parts"


class ResultPart:
    """What every part of a result is derived from."""

    __slots__ = ()
    order: ClassVar[int] = 100
    """Parts are written in this order, those of one number by name."""

    always: ClassVar[bool] = False
    """Whether every result has it, made of its defaults where nothing is given."""
    has_columns: ClassVar[bool] = False
    """Whether tables and reports have a place for it; else its fields are shown like those of extensions."""

    @classmethod
    def of(cls, context: Any, found: Mapping[str, Any]) -> Self | None:
        """The part of a finished item, from those of its fields that stages have set; None where there is none."""
        return cls(**found) if found or cls.always else None

    def linked(self, parts: Mapping[str, Any]) -> Self:
        """The part as it is beside the other ones of the same result."""
        return self


class Known:
    """What was read last; one for a process."""

    declared: Mapping[Source, Declared] | None = None
    classes: Mapping[str, type[ResultPart]] = {}
    loading = False
    reserved: frozenset[str] = frozenset()
    """Names that every result has, whatever is installed."""


def result_parts() -> Mapping[str, type[ResultPart]]:
    """Name -> class of every part that an installed distribution declares, in the order in which they are written.

    Raises PluginError where two declare the same.
    """
    if Known.declared is None and not Known.loading:
        read_parts()
    return Known.classes


def declared_parts() -> tuple[Declared, ...]:
    """All that is declared, what cannot be used included; data of such parts is kept as it is."""
    result_parts()
    return tuple((Known.declared or {}).values())


def loading() -> bool:
    """Whether the modules of parts are being imported just now, so that not all parts are known."""
    return Known.loading


def reserve(names: Iterable[str]) -> None:
    """No part may be called so."""
    Known.reserved = frozenset(names)


def read_parts() -> None:
    """Read what is installed, as every application does when it is made. Raises PluginError."""
    sources, known = discover(GROUP), Known.declared
    if known is not None and list(known) == sources:
        return
    _refuse_names(sources)
    Known.loading = True
    try:
        declared = {
            source: (known or {}).get(source) or Declared.of(source, "result part", _checked) for source in sources
        }
    finally:
        Known.loading = False
    usable = sorted(
        (part for part in declared.values() if part.cls), key=lambda part: (part.cls and part.cls.order, part.info.name)
    )
    _refuse_shared_fields(usable)
    Known.declared, Known.classes = declared, {part.info.name: part.cls for part in usable if part.cls}


def _refuse_names(sources: list[Source]) -> None:
    for source in sources:
        if source.name in Known.reserved:
            raise PluginError(f"{source.distribution} declares the result part {source.name!r}, which every result has")
    for one, other in pairwise(sources):
        if one.name == other.name:
            raise PluginError(
                f"{one.distribution} and {other.distribution} both declare the result part {one.name!r}; "
                "uninstall one of them"
            )


def _refuse_shared_fields(parts: list[Declared]) -> None:
    homes: dict[str, Declared] = {}
    for part in parts:
        for name in field_names(part.cls):
            if (first := homes.setdefault(name, part)) is not part:
                raise PluginError(
                    f"{_named(first)} and {_named(part)} both declare the result field {name!r}; uninstall one of them"
                )


def field_names(cls: Any) -> Iterator[str]:
    """Of a part or of the result itself: the fields that are written."""
    return (attribute.name for attribute in fields(cls) if not attribute.name.startswith("_"))


def _named(part: Declared) -> str:
    return f"{part.info.distribution} (part {part.info.name!r})"


def _checked(cls: Any) -> type[ResultPart]:
    if not (isinstance(cls, type) and issubclass(cls, ResultPart) and hasattr(cls, "__attrs_attrs__")):
        raise PluginError(f"{cls!r} is not an attrs class derived from ResultPart")
    return cls
