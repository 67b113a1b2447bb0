"""Calls as middleware sees them: of a model, of work with tools, of an embedder, a search tool or a tool server.

A plugin wraps all kinds of calls in one way: a coroutine function `around(call, proceed)` that it
returns from the hook `karenina_wrap_call`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from attrs import field, frozen

from ..values.config import ModelConfig
from .values import PortCapabilities

R = TypeVar("R")
CallKind = Literal["llm", "parser", "agent", "work", "embedder", "search", "tool"]


@frozen
class CallTarget:
    """What is called. Something is made for it once, when it is opened, and its calls follow."""

    kind: CallKind
    """`llm`, `parser`, `agent`: a port of a model, one attempt at a time. `work`: the work of a model with tools as a
    whole, by the adapter's own agent (one call of kind `agent` inside of it) or turn by turn (calls of kind `llm`).
    `embedder`, `search`: an embedder, a search tool. `tool`: a tool server, its list of tools and their calls."""
    name: str
    """The interface of a model, else the name of the embedder, the search tool or the tool server. Of a function or an
    object that a configuration gives as search tool: `module.name` of the function or of the object's class."""
    model: str = ""
    """The name of the model, also that of an embedder."""
    config: ModelConfig | None = None
    """The configuration of a model."""

    @classmethod
    def of_model(cls, kind: CallKind, config: ModelConfig) -> CallTarget:
        return cls(kind, config.interface, config.name, config)


@frozen(eq=False, slots=False)
class Call(ABC, Generic[R]):
    """One call, with its typed arguments; `R` is the type of its reply. Another one is made with `attrs.evolve`."""

    reply_type: ClassVar[type] = object
    """What a reply has to be an instance of."""
    target: CallTarget
    _request: Any = field(default=None, init=False, repr=False)

    @property
    def request(self) -> Any:
        """The call as plain data, with its key; made once, at the first use."""
        if self._request is None:  # a cached_property takes a lock, which is slower than the rest of this
            object.__setattr__(self, "_request", self.plain())
        return self._request

    @abstractmethod
    def plain(self) -> Any:
        """Make the call's plain data."""

    @abstractmethod
    def on(self, port: Any) -> Awaitable[R]:
        """Make the call on a port that has the method for it."""

    @staticmethod
    @abstractmethod
    def to_data(reply: R, /) -> dict[str, Any]:
        """The reply as plain data."""

    @staticmethod
    @abstractmethod
    def from_data(data: Mapping[str, Any], /) -> R:
        """The inverse of `to_data`."""


class Proceed(Protocol):
    """What is behind some middleware: the middleware of other plugins and, last, what is called."""

    @property
    def capabilities(self) -> PortCapabilities: ...

    def __call__(self, call: Call[R], /) -> Awaitable[R]:
        """Make this call. May be awaited more than once, or not at all."""
        ...


class Around(Protocol):
    """Middleware: returns what `proceed(call)` gives, or a reply of its own. What it raises, the call raises.

    It may have more, each only where it is needed:

    - `answers = True`: it replies to every call by itself. What is behind it is never opened or asked, and no provider
      is needed.
    - `capabilities(behind)`: the `PortCapabilities` of what it wraps, if others than those behind it.
    - `async aopen()`: awaited before what is behind it is opened; what it raises keeps that from being opened.
    - `async aclose()`: awaited before what is behind it is closed, any number of times.

    Models and tool servers are opened and closed; embedders and search tools are not.
    """

    def __call__(self, call: Any, proceed: Proceed, /) -> Awaitable[Any]: ...
