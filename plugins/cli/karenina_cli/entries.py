"""Entry points that packages add to the command line: whose they are, what they do, and importing one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from karenina_core.entry_points import installed_entry_points, owner
from karenina_core.errors import PluginError, one_line
from karenina_core.plugin.command_line import Section

from .output import Part, Table, note

SHORT = re.compile(r'\bshort_help="([^"\\\n]+)"[,)]')
"""In the lines of decorators above a function; to parse all of a module takes ten times as long."""


def imported(point: EntryPoint, what: str) -> Any:
    """Raises PluginError that names the distribution. `what` is the thing: `command`, `section`."""
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # a module of another package
        whose = owner(point)
        raise PluginError(
            f"the {what} {point.name!r} of {whose} cannot be imported: {one_line(error)}; update or uninstall {whose}"
        ) from error


def usable(group: str, what: str) -> Iterator[tuple[EntryPoint, Any]]:
    """Everything of a group that can be imported, by name and owner; the rest is noted on stderr."""
    found = {(point.name, owner(point)): point for point in installed_entry_points(group)}
    for _, point in sorted(found.items()):
        try:
            yield point, imported(point, what)
        except PluginError as error:
            note(f"Warning: {error}")


def source_help(point: EntryPoint, longest: int) -> str:
    """The short help of a command that is a decorated function: its docstring, or `help` or `short_help` where the
    decorator has it as a plain text. Empty where the source does not show it.
    """
    try:
        top, *rest = point.module.split(".")
        spec = find_spec(top)  # of a name without dots nothing is imported
        origin = Path((spec.origin if spec is not None else None) or "")
        path = origin.parent.joinpath(*rest) if rest else origin.with_suffix("")
        source = path / "__init__.py" if path.is_dir() and rest else path.with_suffix(".py")
        code = source.read_bytes()
        before, found, _ = code.decode(errors="replace").partition(f"\ndef {point.attr}(")
        above = before.rpartition("\n\n")[2]
        if found and above[0] == "@" and "#" not in above and len(plain := SHORT.findall(above)) == 1:
            return click.Command(None, help=plain[0]).get_short_help_str(longest)
        tree = ast.parse(code)
    except (ImportError, OSError, RecursionError, SyntaxError, ValueError):  # of another package
        return ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == point.attr:
            given = {
                keyword.arg: keyword.value.value
                for decorator in node.decorator_list
                if isinstance(decorator, ast.Call)
                for keyword in decorator.keywords
                if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
            }
            return click.Command(
                None, help=given.get("short_help") or given.get("help") or ast.get_docstring(node) or ""
            ).get_short_help_str(longest)
    return ""


def every_section(
    group: str, call: Callable[[Any], Section], raised: tuple[type[Exception], ...] = ()
) -> list[Section]:
    """What packages say, by the names of their sections; one that fails is a problem of its own. Raises `raised`."""
    found = []
    for point, section in usable(group, "section"):
        try:
            found.append(call(section))
        except raised:
            raise
        except Exception as error:  # code of another package
            what = f"the section {point.name!r} of {owner(point)} failed: {one_line(error)}"
            found.append(Section({}, problems=[what], usable=False))
    return found


def merged(found: Mapping[str, Any], sections: Iterable[Section]) -> dict[str, Any]:
    """With the documents of sections, as far as their names are free."""
    document = dict(found)
    for section in sections:
        document = {**section.document, **document}
    return document


def section_parts(section: Section) -> list[Part]:
    """What is printed of it."""
    return [*section.before, Table(section.columns, section.rows, section.title), *section.after]
