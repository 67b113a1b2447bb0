"""Write a changed document so that all that is unchanged keeps its spelling: spaces, line breaks, escapes, numbers."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from attrs import frozen

from .nodes import BOM, dump, identical

# Its scanner is written in C: it finds the end of a value without any work in Python.
_scan = json.JSONDecoder().raw_decode
_BLANK = re.compile(r"[ \t\r\n]*")
_FIRST_BREAK = re.compile(r"[{\[](\r?\n)([ \t]*)")


class _Child(NamedTuple):
    """One value of the document: its key in an object, its extent in the text, and what it means."""

    key: str | None
    start: int
    end: int
    value: Any


@frozen
class _Layout:
    """How the document is laid out."""

    text: str
    newline: str
    indent: str
    one_line: bool

    def lines(self, opening: str, parts: list[str], closing: str, level: int) -> str:
        if not parts:
            return opening + closing
        outer = self.newline + self.indent * level
        inner = outer + self.indent
        return f"{opening}{inner}{f',{inner}'.join(parts)}{outer}{closing}"

    def fresh(self, value: Any, level: int, *, one_line: bool) -> str:
        if one_line:
            return dump(value)
        return dump(value, self.indent).replace("\n", self.newline + self.indent * level)


def splice(text: str, old: Any, new: Any) -> str:
    """JSON text that means `new`, made from `text`, which means `old`.

    What is equal in both is copied from `text` letter by letter. Members of a changed object or list that has no line
    break stay on one line; others are indented as the document is.
    """
    start = _skip(text, len(BOM) if text.startswith(BOM) else 0)
    _, end = _scan(text, start)
    found = _FIRST_BREAK.match(text, start)
    newline, indent = (found[1], found[2]) if found else ("\n", "  ")
    layout = _Layout(text, newline, indent, one_line="\n" not in text[start:end])
    return text[:start] + _render(layout, _Child(None, start, end, old), new, 0) + text[end:]


def _skip(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _children(text: str, parent: _Child) -> Iterator[_Child]:
    """The members of an object or a list that has some."""
    keyed = isinstance(parent.value, dict)
    position = _skip(text, parent.start + 1)
    for index in range(len(parent.value)):
        key = None
        if keyed:
            key, position = _scan(text, position)
            position = _skip(text, _skip(text, position) + 1)
        _, end = _scan(text, position)
        yield _Child(key, position, end, parent.value[key if keyed else index])
        position = _skip(text, _skip(text, end) + 1)


def _render(layout: _Layout, here: _Child, new: Any, level: int) -> str:
    if identical(here.value, new):
        return layout.text[here.start : here.end]
    one_line = "\n" not in layout.text[here.start : here.end]
    if here.value and isinstance(here.value, dict) and isinstance(new, dict):
        children = {child.key: child for child in _children(layout.text, here)}
        if list(children) == list(new):
            return _patched(layout, here, list(zip(children.values(), new.values(), strict=True)), level)
        bodies = _bodies(layout, [children.get(key) for key in new], list(new.values()), level, one_line)
        parts = [f"{dump(key)}: {body}" for key, body in zip(new, bodies, strict=True)]
        return f"{{{', '.join(parts)}}}" if one_line else layout.lines("{", parts, "}", level)
    if here.value and isinstance(here.value, list) and isinstance(new, list):
        entries = list(_children(layout.text, here))
        # the old entry to take the spelling from; a wrong guess costs spelling only, never content
        same = {id(child.value): child for child in entries}
        named = {_label(child.value): child for child in reversed(entries)}
        named.pop(None, None)
        sources = [same.get(id(value)) or named.get(_label(value)) for value in new]
        if len(sources) == len(entries) and all(map(operator.is_, sources, entries)):
            return _patched(layout, here, list(zip(entries, new, strict=True)), level)
        bodies = _bodies(layout, sources, new, level, one_line)
        return f"[{', '.join(bodies)}]" if one_line else layout.lines("[", bodies, "]", level)
    return layout.fresh(new, level, one_line=layout.one_line)


def _bodies(layout: _Layout, sources: list[_Child | None], values: list[Any], level: int, one_line: bool) -> list[str]:
    return [
        _render(layout, child, value, level + 1) if child else layout.fresh(value, level + 1, one_line=one_line)
        for child, value in zip(sources, values, strict=True)
    ]


def _patched(layout: _Layout, here: _Child, members: list[tuple[_Child, Any]], level: int) -> str:
    """The same members in the same order: only their values are replaced."""
    pieces, position = [], here.start
    for child, value in members:
        pieces += [layout.text[position : child.start], _render(layout, child, value, level + 1)]
        position = child.end
    return "".join(pieces) + layout.text[position : here.end]


def _label(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    label = value.get("@id") or value.get("name")
    return label if isinstance(label, str) else None
