"""How much of what a judge reads a provider's cache of prompts serves, where a long answer has many traits."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterator
from itertools import takewhile
from operator import eq
from typing import Any

from attrs import define, field

from karenina_core import (
    Karenina,
    LLMRubricTrait,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    VerificationResult,
    run_single_model_verification,
)
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

from .measure import Row

__all__ = ["TRAITS", "PrefixCache", "prefix_rows", "scored"]

LEAST = 1024
"""Tokens: providers keep no shorter beginning of a prompt (https://platform.openai.com/docs/guides/prompt-caching)."""
CHARACTERS = 4
"""Of a token, roughly. It is the share that counts, and in a share they cancel out."""
SECONDS = 0.05
"""What a reply takes; until it is there, nobody else is served from the cache."""
ANSWER = "".join(f"Remark {number} on the moons of Mars, which are two and small. " for number in range(150))[:8192]
TRAITS = tuple(
    LLMRubricTrait(name=f"quality {number}", description=f"Has quality {number}.", kind=kind)
    for number, kind in enumerate(("boolean",) * 6 + ("score",) * 4)
)
QUESTION = Question(id="moons", question="What is known of the moons of Mars?", raw_answer="Two")


@define
class PrefixCache:
    """A judge whose provider keeps what it has read, as providers do: the schema and then the messages, from the
    beginning, once a reply is there."""

    kept: list[str] = field(factory=list)
    sent: int = 0
    """Tokens of all prompts."""
    read: int = 0
    """Those of them that the cache has served."""

    async def __call__(self, request: ServedRequest) -> Any:
        if request.schema is None:
            return ANSWER
        prompt = "\n".join([json.dumps(request.schema), *(str(message["content"]) for message in request.messages)])
        same = max((sum(takewhile(bool, map(eq, prompt, other))) for other in self.kept), default=0) // CHARACTERS
        tokens, served = len(prompt) // CHARACTERS, same if same >= LEAST else 0
        self.sent += tokens
        self.read += served
        await asyncio.sleep(SECONDS)
        self.kept.append(prompt)
        return Reply(dict(_scores(request)), usage=(tokens, 5), cache=(served, 0))

    @property
    def share(self) -> float:
        """Of the tokens of all prompts, those that the cache has served."""
        return self.read / self.sent


def _scores(request: ServedRequest) -> Iterator[tuple[str, Any]]:
    """Scores that follow from the traits alone."""
    for key, about in request.schema["properties"].items():
        (name,) = (trait.name for trait in TRAITS if f"{key}: {trait.name}\n" in request.text)
        number = zlib.crc32(name.encode())
        yield key, number % 2 == 0 if about["type"] == "boolean" else 1 + number % 5


def scored(app: Karenina, url: str, **settings: Any) -> VerificationResult:
    """The result of one answer of 8 KB with ten traits."""
    answering, parsing = (
        ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url=url) for name in ("a", "j")
    )
    config = VerificationConfig(**{"rubric_evaluation_strategy": "sequential", **settings})
    rubric = Rubric(llm_traits=list(TRAITS))
    return run_single_model_verification(
        QUESTION, answering, parsing, rubric=rubric, evaluation_mode="rubric_only", config=config, app=app
    )


def prefix_rows() -> list[Row]:
    """Ten traits on an answer of 8 KB, a call each. It is counted, so once is enough."""
    app, judge = Karenina.installed(), PrefixCache()
    with ScriptedServer(judge) as server:
        scored(app, server.url)
    app.loop.close()
    detail = f"counted; cached share {100 * judge.share:.1f} %: {judge.read} of {judge.sent} tokens of the judge"
    return [Row("10 traits, 8 KB, not from a cache", 100 * (1 - judge.share), 30.0, None, detail, unit="%")]
