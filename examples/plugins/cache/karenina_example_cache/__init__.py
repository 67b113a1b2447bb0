"""Middleware: what a model was asked before, and answered, it is not asked again.

It is for trying out templates and prompts. Replicates of an answer are calls of their own: they have other keys.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from attrs import frozen

from karenina_core import hookimpl, neutral

KARENINA_API = 1


@frozen
class CacheSettings:
    """The table `[plugins.example-cache]` of a configuration."""

    folder: str | None = None
    """Where replies are kept. None keeps nothing."""


class Cache:
    """Keeps the replies to calls as JSON files, each named by the key of its call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def __call__(self, call: Any, proceed: Any) -> Any:
        path = self.folder / f"{hashlib.sha256(call.request.key.encode()).hexdigest()}.json"
        try:
            return call.from_data(json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            reply = await proceed(call)
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}-{id(call)}")
        unfinished.write_text(json.dumps(call.to_data(reply)), "utf-8")
        unfinished.replace(path)  # a file is there as a whole, or not at all
        return reply


@hookimpl
@neutral
def karenina_wrap_call(target: Any, app: Any) -> Cache | None:
    """In front of models. Neutral: what it gives back was once given to the same call."""
    folder = app.settings("example-cache").folder
    return Cache(Path(folder)) if folder and target.kind in ("llm", "parser") else None


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add(CacheSettings)
