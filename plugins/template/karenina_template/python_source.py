"""Templates written in Python, executed in this process. Only for code that the user trusts."""

from __future__ import annotations

import builtins
import inspect
import itertools
import linecache
import sys
import textwrap
import typing
import weakref
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from attrs import frozen
from pydantic import Field

from karenina_core.errors import TemplateError, did_you_mean, one_line
from karenina_core.ports.threads import in_own_thread

from .language.answer import BaseAnswer, VerifiedField
from .language.author_code import author_code
from .language.normalize import SynonymMap
from .language.primitives.base import VerificationPrimitive
from .language.primitives.text import TracePrimitive
from .language.strategies import AllOf, AnyOf, AtLeastN, FieldCheck
from .pydantic_handle import THREAD, Aside, ModelHandle, open_class

_PACKAGES = ("schemas", "entities")


def template_import(names: Mapping[str, Any]) -> Callable[..., Any]:
    """An `__import__` for one template that finds `names` in every module of the reference project's package.

    Benchmark files carry templates that begin with `from karenina.schemas.entities import BaseAnswer`. No module of
    that name exists here; any other import goes the usual way.
    """
    known: dict[str, ModuleType] = {}

    def module(path: str) -> ModuleType:
        if path not in known:
            known[path] = made = ModuleType(path, "Replaces a module of the reference project inside a template.")
            made.__dict__.update(names, __all__=sorted(names), __path__=[])
            parent, _, last = path.rpartition(".")
            if parent:
                setattr(module(parent), last, made)
        return known[path]

    # The names of the parameters are those of the function that it replaces.
    def find(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level or name.partition(".")[0] != "karenina":
            return builtins.__import__(name, globals, locals, fromlist, level)
        found = module(name)
        for word in fromlist or ():
            if word in _PACKAGES:
                module(f"{name}.{word}")
            elif word != "*" and word not in names:
                raise ImportError(
                    f"cannot import {word!r} from {name!r}{did_you_mean(word, names)}; templates can import "
                    f"{', '.join(sorted(names))}"
                )
        return found if fromlist else known["karenina"]

    return find


_TYPING_NAMES = ("Any", "Dict", "List", "Literal", "Optional", "Union")
_CLASSES = (AllOf, AnyOf, AtLeastN, BaseAnswer, FieldCheck, SynonymMap, TracePrimitive, VerificationPrimitive)
_OURS: Mapping[str, Any] = {cls.__name__: cls for cls in _CLASSES} | {"VerifiedField": VerifiedField}
"""What every template finds beside the registered primitives."""
_numbers = itertools.count(1)


@frozen
class InProcessRuntime:
    """Executes template code in this process, with everything that this process may do."""

    name: str = "in-process"
    languages: frozenset[str] = frozenset({"python"})
    executes_code: bool = True
    isolation: str = "in-process"

    async def load(self, text: str, primitives: Mapping[str, type]) -> ModelHandle:
        """Execute the source once and check the one template class that it defines."""
        return (await in_own_thread(lambda: open_source(text, primitives, self.isolation), THREAD)).result()


def open_source(text: str, primitives: Mapping[str, type], isolation: str, aside: Aside = in_own_thread) -> ModelHandle:
    """EXECUTES the source, in this process, and makes the handle of its template. Raises TemplateError."""
    source = _LoadedSource(text)
    try:
        source.execute(primitives)
        handle = open_class(source.template_class(), isolation, keep=source, aside=aside)
    except BaseException:
        _forget(source.name, source.file)
        raise
    weakref.finalize(source, _forget, source.name, source.file)
    return handle


class _LoadedSource:
    """One template's module. It is registered, so that annotations resolve and tracebacks show lines, until nothing
    uses it.
    """

    def __init__(self, text: str) -> None:
        number = next(_numbers)
        self.name = f"karenina_template_source_{number}"
        self.file = f"<template {number}>"
        # Source taken from inside a function or a notebook cell is indented as a whole.
        self.text = textwrap.dedent(text) if text.lstrip("\r\n")[:1] in (" ", "\t") else text
        self.module = ModuleType(self.name)

    def execute(self, primitives: Mapping[str, type]) -> None:
        try:
            code = compile(self.text, self.file, "exec", dont_inherit=True)
        except SyntaxError as error:
            where = f"line {error.lineno}: " if error.lineno else ""
            line = (error.text or "").strip()
            raise TemplateError(f"{where}{error.msg}" + (f": {line}" if line else "")) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise TemplateError(f"the source cannot be compiled: {one_line(error)}") from None
        ours = {**primitives, **_OURS}
        space = self.module.__dict__
        space.update(ours, Field=Field, **{name: getattr(typing, name) for name in _TYPING_NAMES})
        space["__builtins__"] = {**vars(builtins), "__import__": template_import(ours)}
        sys.modules[self.name] = self.module
        linecache.cache[self.file] = (len(self.text), None, self.text.splitlines(keepends=True), self.file)
        with author_code("loading the template", self.name):
            exec(code, space)

    def template_class(self) -> type[BaseAnswer]:
        """The one class that extends BaseAnswer and that no other class of the source extends."""
        classes = {
            value: None
            for value in self.module.__dict__.values()
            if inspect.isclass(value) and issubclass(value, BaseAnswer) and value.__module__ == self.name
        }
        leaves = [cls for cls in classes if not any(other is not cls and issubclass(other, cls) for other in classes)]
        if not leaves:
            raise TemplateError("no template class: define one class that derives from BaseAnswer")
        if len(leaves) > 1:
            names = ", ".join(cls.__name__ for cls in leaves)
            raise TemplateError(
                f"several template classes ({names}): keep one; models nested in it derive from pydantic's BaseModel"
            )
        return leaves[0]


def _forget(name: str, file: str) -> None:
    sys.modules.pop(name, None)
    linecache.cache.pop(file, None)
