"""Functions of callable traits as bytes that a benchmark file can keep. Only written here: nothing is unpickled."""

from __future__ import annotations

import importlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from karenina_core.errors import PluginError, one_line

ONE_TEXT = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
INSTALLED = tuple(
    Path(path).resolve()
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def check_function(function: Any, trait: str) -> None:
    """Refuse what cannot score a text: it must be a plain function of exactly one parameter. Raises ValueError."""
    if not callable(function):
        raise ValueError(f"trait {trait!r}: {function!r} is not a function")
    own = getattr(function, "__call__", None)  # noqa: B004  # the method of an object that is called like a function
    for kind, is_one in (
        ("async", inspect.iscoroutinefunction),
        ("an async generator", inspect.isasyncgenfunction),
        ("a generator", inspect.isgeneratorfunction),
    ):
        if is_one(function) or is_one(own):
            raise ValueError(f"trait {trait!r}: the function is {kind}; give a plain one that returns the score")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        what = "the function does not say what parameters it takes; wrap it: lambda text: ..."
        raise ValueError(f"trait {trait!r}: {what}") from None
    if len(parameters) != 1 or parameters[0].kind not in ONE_TEXT:
        shown = ", ".join(map(str, parameters)) or "none"
        raise ValueError(
            f"trait {trait!r}: the function must take exactly one parameter, the text; it takes ({shown}). "
            "Give the others their values in a function around it: lambda text: ..."
        )


def pickled(function: Callable[[str], Any], trait: str) -> bytes:
    """The function as a pickle that needs no other file of its author.

    What it uses of its own module goes with it, unless that module belongs to Python or to an installed package. Raises
    ValueError where something of it cannot be pickled, PluginError where cloudpickle is not installed.
    """
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError:
        what = "functions are saved with cloudpickle, which is not installed; pip install karenina-rubric"
        raise PluginError(f"trait {trait!r}: {what}") from None
    try:
        with _by_value(cloudpickle, function):
            code: bytes = cloudpickle.dumps(function)
    except Exception as error:  # what the function refers to may raise anything
        raise ValueError(
            f"trait {trait!r}: the function cannot be saved: {one_line(error)}. Make what cannot be pickled inside the "
            "function instead of outside of it"
        ) from error
    return code


@contextmanager
def _by_value(cloudpickle: Any, function: Any) -> Iterator[None]:
    """Have the pickle hold the functions of a module that the author wrote; it only names those of other modules."""
    name = getattr(inspect.unwrap(function), "__module__", None) or type(function).__module__
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    own = bool(file) and not any(Path(str(file)).resolve().is_relative_to(place) for place in INSTALLED)
    own = own and name not in cloudpickle.list_registry_pickle_by_value()
    if own:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        if own:
            cloudpickle.unregister_pickle_by_value(module)
