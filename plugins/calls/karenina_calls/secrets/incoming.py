"""What comes in from models, tools and searches, without the secrets of the run: before anything reads or keeps it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from attrs import define, evolve, field, fields, has

from karenina_core.errors import ParseError, PortError
from karenina_core.ports.values import LLMResponse, RunTool, Tool, ToolOutcome
from karenina_core.values.message import UsageMetadata

from ..services.embedding import Embeddings
from ..tools.tool_calls import run_tool
from .redaction import Secrets

SECRET_REMOVED = "secret_removed"
"""The flag of a text out of which a secret was taken; a second one names what it was the value of."""
FLAGS = ("flags", "text_flags")
OPENING = "a text that came in held the value of "
NO_TEXTS = (int, float, bool, type(None), UsageMetadata, Embeddings)
NOTE = (
    OPENING + "{}, which was removed before anything read it; if that is not a secret, unset the variable or choose "
    "another value, and run again"
)
T = TypeVar("T")


@define(eq=False)
class Cleaner:
    """Takes the secrets out of what comes in for one call, or is given to one item."""

    secrets: Secrets
    every: set[str] = field(factory=set)
    """Of the item: what the secrets were the values of that were taken out for any of its calls."""
    removed: frozenset[str] = field(default=frozenset(), init=False)
    """The same for this call."""

    async def around(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What comes back, or is raised, without secrets."""
        try:
            return self.reply(await ask())
        except BaseException as error:
            if self.secrets:  # what a provider says about a call may repeat its key
                found: set[str] = set()
                error.args = tuple(_clean(part, self.secrets, found) for part in error.args)
                if isinstance(error, PortError):
                    error.raw = _clean(error.raw, self.secrets, found)
                    error.evidence = {name: self.reply(value) for name, value in error.evidence.items()}
                if isinstance(error, ParseError):
                    error.raw_response = self.secrets.text(error.raw_response, found)
                self._note(found)
            raise

    def reply(self, value: T) -> T:
        """A reply, or any part of it: the very same object where it holds no secret. One with `flags` says what was
        taken out so far, also by an adapter."""
        if not self.secrets or self._is_plain(value):
            return value
        found = sources_of(getattr(value, "flags", ()))
        cleaned: T = _clean(value, self.secrets, found)
        self._note(found)
        name = next((name for name in FLAGS if hasattr(cleaned, name)), None)
        if not self.removed or name is None:
            return cleaned
        flags = dict.fromkeys((*getattr(cleaned, name), *removal_flags(self.removed)))
        changed: Any = cleaned
        flagged: T = evolve(changed, **{name: tuple(flags)})
        return flagged

    def _note(self, found: set[str]) -> None:
        self.removed |= found
        self.every |= found

    def _is_plain(self, reply: object) -> bool:
        """Whether it is seen at once that a reply of a model has nothing to be cleaned, as nearly all have."""
        if not isinstance(reply, LLMResponse):
            return False
        if self.removed or reply.flags or reply.tool_calls or reply.thinking_blocks or isinstance(reply.raw, tuple):
            return False
        texts = reply.content, reply.structured, reply.thinking, reply.finish_reason, reply.actual_model
        return not self.secrets.may_be_in(*texts)

    def tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """The tools, which answer and fail without secrets."""
        return [evolve(tool, run=self._cleaned(tool.run)) if tool.run else tool for tool in tools]

    def _cleaned(self, run: RunTool) -> RunTool:
        async def cleaned(arguments: Mapping[str, Any]) -> ToolOutcome:
            return self.reply(await run_tool(run, arguments))

        return cleaned if self.secrets else run

    def outcome(self, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """`{"reply": {...}}` or `{"error": {...}}` to be kept, with what was taken out of it under `removed`."""
        return {name: data, "removed": sorted(self.removed)} if self.removed else {name: data}

    def kept(self, outcome: Mapping[str, Any]) -> Mapping[str, Any]:
        """What was kept so: what was no secret then may be one now."""
        found = set(outcome.get("removed", ()))
        cleaned: Mapping[str, Any] = self.secrets.data(outcome, found) if self.secrets else outcome
        self._note(found)
        return cleaned


def _clean(value: Any, secrets: Secrets, removed: set[str]) -> Any:
    if isinstance(value, str):
        return secrets.text(value, removed)
    if isinstance(value, NO_TEXTS):
        return value
    if isinstance(value, list | tuple):
        items = [_clean(item, secrets, removed) for item in value]
        same = all(one is other for one, other in zip(items, value, strict=True))
        return value if same else tuple(items) if isinstance(value, tuple) else items
    if not has(type(value)):
        return secrets.data(value, removed)
    kind: Any = type(value)
    parts = {name: (part := getattr(value, name), _clean(part, secrets, removed)) for name in _parts(kind)}
    changed = {name: now for name, (before, now) in parts.items() if now is not before}
    return evolve(value, **changed) if changed else value


@cache
def _parts(kind: Any) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in fields(kind) if attribute.init)


def removal_flags(removed: Iterable[str]) -> tuple[str, ...]:
    """The flags of a text out of which these secrets were taken, by what they were the values of."""
    return (SECRET_REMOVED, *(f"{SECRET_REMOVED}:{source}" for source in sorted(removed))) if removed else ()


def sources_of(flags: Iterable[str]) -> set[str]:
    """What the secrets were the values of that flags name."""
    return {source for flag in flags for name, _, source in [flag.partition(":")] if name == SECRET_REMOVED and source}


def removal_note(removed: Iterable[str]) -> str:
    """What the user should know where secrets were taken out. They are not in it."""
    return NOTE.format(", ".join(sorted(removed)))


def sources_noted(warnings: Iterable[str]) -> set[str]:
    """What the secrets were the values of that warnings such as `removal_note` name."""
    notes = (
        warning.removeprefix(OPENING).partition(", which was")[0] for warning in warnings if warning.startswith(OPENING)
    )
    return {source for note in notes for source in note.split(", ")}
