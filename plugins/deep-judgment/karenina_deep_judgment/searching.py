"""Looking quotations up with a search tool: a search that failed is not one that found nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from attrs import evolve

from karenina_core.errors import SearchError, one_line
from karenina_core.log import redactor, secrets_in
from karenina_core.ports.search import SearchResult, SearchTool
from karenina_core.ports.text import sanitize

from .excerpts import Excerpt

__all__ = ["AT_ONCE", "reason_of", "risk_of", "searched"]

AT_ONCE = 4
"""Searches of one item that run at the same time."""
MOST_RESULTS = 5
MOST_CHARACTERS = 2_000
"""What is kept of a search: it goes into a prompt and into the result."""


async def searched(
    excerpts: Mapping[str, Sequence[Excerpt]], tool: SearchTool
) -> tuple[dict[str, tuple[Excerpt, ...]], list[str]]:
    """The excerpts with what a search for each of them found, or with why it failed; and every failure once.

    Equal quotations are searched for once. Explanations without a quotation stay as they are.
    """
    places = asyncio.Semaphore(AT_ONCE)

    async def look_up(text: str) -> Sequence[SearchResult] | str:
        async with places:
            try:
                return await tool.asearch(text)
            except SearchError as error:
                return reason_of(error)

    texts = list(dict.fromkeys(e.text for rows in excerpts.values() for e in rows if e.text))
    found = dict(zip(texts, await asyncio.gather(*map(look_up, texts)), strict=True))
    attached = {
        name: tuple(_with(excerpt, found[excerpt.text]) if excerpt.text else excerpt for excerpt in rows)
        for name, rows in excerpts.items()
    }
    return attached, list(dict.fromkeys(said for said in found.values() if isinstance(said, str)))


def _with(excerpt: Excerpt, found: Sequence[SearchResult] | str) -> Excerpt:
    if isinstance(found, str):
        return evolve(excerpt, search_error=found)
    rows = tuple(
        {"title": result.title, "url": result.url, "content": _cut(result.content)} for result in found[:MOST_RESULTS]
    )
    return evolve(excerpt, search_results=rows)


def reason_of(error: Exception) -> str:
    """Why there is no search, without the secrets of the environment: it goes into results and warnings."""
    return _cut(redactor(secrets_in(os.environ))(sanitize(str(error) or one_line(error))[0]))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"


def risk_of(risks: Sequence[str], scale: Sequence[str]) -> str:
    """The highest of the risks; `scale` is in ascending order."""
    return max(risks, key=scale.index)
