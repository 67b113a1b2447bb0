"""Parts of results: attrs classes that distributions declare, each for what its stages find out.

A distribution declares one by an entry point of the group `karenina.result_parts`, whose name is that of the part:
`readability = "my_package.parts:ReadabilityPart"`. Its fields are fields of results then: where a stage sets one of
them, it is in `result.readability`, in JSON and in tables. The module must import no stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import field, fields, frozen

from ..entry_points import installed_entry_points, name_and_version, owner
from ..errors import PluginError, one_line

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "GROUP",
    "DeclaredPart",
    "Known",
    "ResultPart",
    "declared_parts",
    "field_names",
    "loading",
    "read_parts",
    "reserve",
    "result_parts",
]

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


@frozen
class DeclaredPart:
    """One entry point of the group."""

    name: str
    point: EntryPoint = field(eq=False, repr=False)
    cls: type[ResultPart] | None = None
    reason: str = ""
    """Why there is no class; then data of this name is kept as it is."""

    @property
    def distribution(self) -> str:
        return owner(self.point)

    @property
    def version(self) -> str:
        return name_and_version(self.point.dist)[1] if self.point.dist else ""


class Known:
    """What was read last; one for a process."""

    declared: tuple[DeclaredPart, ...] | None = None
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


def declared_parts() -> tuple[DeclaredPart, ...]:
    """All that is declared, what cannot be used included."""
    result_parts()
    return Known.declared or ()


def loading() -> bool:
    """Whether the modules of parts are being imported just now, so that not all parts are known."""
    return Known.loading


def reserve(names: Iterable[str]) -> None:
    """No part may be called so."""
    Known.reserved = frozenset(names)


def read_parts() -> None:
    """Read what is installed, as every application does when it is made. Raises PluginError."""
    points = sorted(set(installed_entry_points(GROUP)), key=lambda point: (point.name, owner(point)))
    known = {part.point: part for part in Known.declared or ()}
    if len(known) == len(points) and all(point in known for point in points):
        return
    _refuse_names(points)
    Known.loading = True
    try:
        declared = tuple(known.get(point) or _loaded(point) for point in points)
    finally:
        Known.loading = False
    usable = sorted((part for part in declared if part.cls), key=lambda part: (part.cls and part.cls.order, part.name))
    _refuse_shared_fields(usable)
    Known.declared, Known.classes = declared, {part.name: part.cls for part in usable if part.cls}


def _refuse_names(points: list[EntryPoint]) -> None:
    for point in points:
        if point.name in Known.reserved:
            raise PluginError(f"{owner(point)} declares the result part {point.name!r}, which every result has")
    for one, other in pairwise(points):
        if one.name == other.name and (owner(one), one.value) != (owner(other), other.value):
            raise PluginError(
                f"{owner(one)} and {owner(other)} both declare the result part {one.name!r}; uninstall one of them"
            )


def _refuse_shared_fields(parts: list[DeclaredPart]) -> None:
    homes: dict[str, DeclaredPart] = {}
    for part in parts:
        for name in field_names(part.cls):
            if (first := homes.setdefault(name, part)) is not part:
                raise PluginError(
                    f"{first.distribution} (part {first.name!r}) and {part.distribution} (part {part.name!r}) both "
                    f"declare the result field {name!r}; uninstall one of them"
                )


def field_names(cls: Any) -> Iterator[str]:
    """Of a part or of the result itself: the fields that are written."""
    return (attribute.name for attribute in fields(cls) if not attribute.name.startswith("_"))


def _loaded(point: EntryPoint) -> DeclaredPart:
    try:
        cls = point.load()
    except (Exception, SystemExit) as error:
        return DeclaredPart(point.name, point, None, f"cannot be imported: {one_line(error)}")
    if not (isinstance(cls, type) and issubclass(cls, ResultPart) and hasattr(cls, "__attrs_attrs__")):
        return DeclaredPart(point.name, point, None, f"{cls!r} is no attrs class that is derived from ResultPart")
    return DeclaredPart(point.name, point, cls)
