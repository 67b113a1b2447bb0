"""The inside of a locked process: it serves one template, or one function of a trait, until it is ended.

What runs here is the author's, and may have changed everything in this process. So nothing that the host relies on is
decided here: the host checks each reply, counts the time and ends the process.
"""

from __future__ import annotations

import ast
import base64
import pickle
import signal
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from attrs import asdict
from karenina_template.language.author_code import line_in
from karenina_template.language.to_json import plain
from karenina_template.pydantic_handle import ModelFilled, ModelHandle
from karenina_template.python_source import open_source
from karenina_vocabulary.handle import FieldVerdict, RegexVerdict

from karenina_core.errors import FillError, TemplateError, one_line, shortened
from karenina_core.ports.threads import Ended

from .frames import KEPT, framed, read_frame, write_all

T = TypeVar("T")
ENTRY = "evaluate"
LONGEST = 2000
"""Characters of an error, and of a value that is no score."""


class TooLong(BaseException):
    """The time for a call is up: the host has it interrupted, with SIGPROF."""


def serve(descriptor: int, primitives: Mapping[str, type], modules: str) -> None:
    """Answer requests until the host closes the other end."""
    signal.signal(signal.SIGPROF, _interrupt)
    served = Served(primitives, modules)
    while (frame := read_frame(descriptor)) is not None:
        token, request = frame
        reply, last = served.answer(request)
        try:
            data = framed(token, reply)
        except BaseException as error:
            data, last = framed(token, {"error": "template", "message": f"it is no JSON: {one_line(error)}"}), True
        write_all(descriptor, data)
        if last:
            return


def _interrupt(number: int, frame: object) -> None:
    raise TooLong


class Served:
    """What one worker has loaded, and what was filled with it."""

    def __init__(self, primitives: Mapping[str, type], modules: str) -> None:
        self._primitives = primitives
        self._modules = modules
        self._handle: ModelHandle | None = None
        self._function: Callable[[str], Any] | None = None
        self._filled: OrderedDict[int, ModelFilled] = OrderedDict()
        self._does: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "template": self._template,
            "function": self._load_function,
            "use": self._use,
            "call": self._call,
        }

    def answer(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The reply, and whether it is the last: what was interrupted may be in any state."""
        try:
            try:
                return self._does[request["do"]](request), False
            except FillError as error:
                return _failure("fill", str(error)), False
            except TemplateError as error:
                return _failure("template", f"{error}{self._advice(error)}"), isinstance(error.__cause__, MemoryError)
            except TooLong as error:
                return _failure("time", line_in(self._module(), error)), True
            except BaseException as error:  # the author's code
                what = f"{one_line(error, LONGEST)}{self._advice(error)}"
                return _failure("template", what), isinstance(error, MemoryError)
        except TooLong:  # while an error was put into words
            return _failure("time", ""), True

    def _module(self) -> str:
        return self._handle.cls.__module__ if self._handle else "karenina_template_source_1"

    def _advice(self, error: BaseException | None) -> str:
        """What an author can do who imports what is not there."""
        while error is not None and not isinstance(error, ModuleNotFoundError):
            error = error.__cause__
        if error is None:
            return ""
        return f"; in the sandbox there are {self._modules}, and what [plugins.sandbox-runtime] imports names"

    def _template(self, request: Mapping[str, Any]) -> dict[str, Any]:
        handle = open_source(request["text"], self._primitives, "sandbox", _at_once)
        self._handle = handle
        return {
            "fields": [asdict(item) for item in handle.fields()],
            "trace_fields": [asdict(item) for item in handle.trace_fields()],
            "schema": handle.schema(),
            "ground_truth": handle.ground_truth(),
            "warnings": list(handle.warnings),
            "accepted": {name: [plain(value) for value in found] for name, found in handle.accepted().items()},
        }

    def _use(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Fill the template, unless it is filled already, and take a step with it."""
        assert self._handle is not None
        number = request["filled"]
        if (made := request.get("make")) is not None:
            filled = _at_end(self._handle.build(made["data"]))
            for step in made["steps"]:
                try:
                    filled = _step(filled, *step)[0]
                except (FillError, TemplateError):
                    continue  # as it did the first time
            self._filled[number] = filled
        self._filled.move_to_end(number)
        while len(self._filled) > KEPT:
            self._filled.popitem(last=False)
        filled = self._filled[number]
        if request["step"] is None:
            return {"values": dict(filled.values()), "not_acceptable": filled.not_acceptable()}
        return _step(filled, *request["step"])[1]

    def _load_function(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The function in the code of a trait: a pickle, or the source text of a function `evaluate(text)`."""
        code = base64.b64decode(request["code"])
        try:
            source = ast.parse(code.decode("utf-8"))
        except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError, MemoryError):
            source = None  # a pickle is never source: it ends with a full stop
        if source is None:
            function = pickle.loads(code)
        else:
            names: dict[str, Any] = {"__name__": "karenina_callable_trait"}
            exec(compile(source, "<callable trait>", "exec"), names)
            if ENTRY not in names:
                raise ValueError(f"its source defines no function {ENTRY}(text)")
            function = names[ENTRY]
        if not callable(function):
            raise ValueError(f"it holds {type(function).__name__} instead of a function")
        self._function = function
        return {}

    def _call(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._function is not None
        value = self._function(request["text"])
        if value is None or type(value) in (bool, int, float, str):
            return {"value": value}
        if isinstance(value, str):
            return {"value": str(value)}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {"value": float(value) if isinstance(value, float) else int(value)}
        try:
            shown = shortened(repr(value), LONGEST)
        except Exception:
            shown = "something"
        return {"other": type(value).__name__, "shown": shown}


def _step(filled: ModelFilled, method: str, *arguments: Any) -> tuple[ModelFilled, dict[str, Any]]:
    """The filled template after a step, and what the step returned, as JSON data."""
    if method == "accepting":
        return filled.accepting(arguments[0]), {}
    if method == "granular":
        return filled, {"score": _at_end(filled.granular())}
    if method == "regex":
        found: RegexVerdict = _at_end(filled.regex(arguments[0]))
        return filled, {name: plain(value) for name, value in asdict(found).items()}
    trace, said, similarities = arguments
    verdict: FieldVerdict = _at_end(filled.verify(trace, said=said, similarities=similarities))
    return filled, {
        "result": verdict.result,
        "field_results": dict(verdict.field_results),
        "field_scores": dict(verdict.field_scores),
        "composition_strategy": verdict.composition_strategy,
        "remarks": list(verdict.remarks),
        "stable": verdict.stable,
    }


async def _at_once(call: Callable[[], Any], name: str) -> Ended[Any]:
    """In place of a thread: nothing else waits in this process."""
    return Ended(call())


def _at_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise TemplateError("it waits for something, and there is no event loop in the sandbox")


def _failure(kind: str, message: str) -> dict[str, Any]:
    return {"error": kind, "message": message}
