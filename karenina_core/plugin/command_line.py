"""What packages bring to the command line. This imports nothing of karenina, for `karenina verify --help` needs it.

An option of the commands that ask models is listed in a sequence that an entry point of the group `karenina.options`
names. The entry point is called like the plugin: `wordcount = "my_package.options:OPTIONS"`.

A section of `karenina doctor` is a function `section(app)` that an entry point of the group `karenina.doctor` names,
a section of `karenina doctor DIR` a function `section(folder, *, replace)` of the group `karenina.doctor.run`, and a
section of `karenina benchmark validate` a function `section(app, benchmark, ids, policy)` of the group
`karenina.validate`: about the questions of these ids, and running code as far as the `CodePolicy` allows. All return a
`Section`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class ModelField(NamedTuple):
    """A field of every model behind an interface."""

    interface: str
    field: str
    read: Callable[[Path], Any]
    """Its value from what was typed. Raises ConfigError."""


class PluginOption(NamedTuple):
    """An option of `karenina verify`; what is not typed has no effect."""

    flag: str
    """Such as `--record`."""
    help: str
    effect: str | ModelField
    """The setting of the plugin that it sets, a name in `[plugins.NAME]`; or the field of models."""
    type: type[str] | type[int] | type[float] | type[bool] | type[Path] = str
    """`bool` makes a switch; a `Path` is a file that no export of the run may replace."""
    metavar: str | None = None
    help_later: str = ""
    """The help of commands about a run that is there (resume, extend, repair, batches); these lack it without."""


class Section(NamedTuple):
    """What `karenina doctor` says about one thing."""

    document: Mapping[str, Any]
    """What it adds to the JSON document."""
    title: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    before: Sequence[str] = ()
    """Lines above the table."""
    after: Sequence[str] = ()
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    usable: bool = True
    """Whether the command may exit with 0."""
    failure: Exception | None = None
    """Raised when all sections are printed."""

    @classmethod
    def of(cls, name: str, title: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Section:
        """A table: `rows` go to the JSON document as they are, their `columns` to the printed table."""
        cells = [[_cell(row[column]) for column in columns] for row in rows]
        return cls({name: rows}, title, columns, cells)


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value if value is not None else "")
