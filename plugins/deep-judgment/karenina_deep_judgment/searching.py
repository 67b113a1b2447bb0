"""Looking quotations up with a search tool: a search that failed is not one that found nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve
from karenina_calls.ports.text import sanitize
from karenina_calls.secrets.redaction import redactor
from karenina_calls.services.shared import search_tool_of
from karenina_calls.tools.search import SearchResult, SearchTool

from karenina_core import Karenina
from karenina_core.errors import KareninaError, SearchError, one_line, shortened
from karenina_core.pipeline.engine import stops_item
from karenina_core.secrets import secrets_in

from .excerpts import Excerpt
from .replies import Assessment

AT_ONCE = 4
"""Searches of one item that run at the same time."""
MOST_RESULTS = 5  # chosen, above what `tavily` is asked for by default
MOST_CHARACTERS = 2_000
"""What is kept of a search: it goes into a prompt and into the result."""


Found = Mapping[str, tuple[Excerpt, ...]]
"""Excerpts by the name of what they are quoted for."""


async def looked_up(
    app: Karenina, wanted: Any, excerpts: Found, places: asyncio.Semaphore | None = None
) -> tuple[Found, list[str]]:
    """The excerpts with what a search for each of them found, or with why it failed, and warnings for the result.

    `wanted` is the search tool as a configuration names it. One that cannot be made is a search that failed, like one
    that is made and raises. Equal quotations are searched for once. Explanations without a quotation stay as they are.
    Every search takes one of the places; by default there are `AT_ONCE`.
    """
    texts = list(dict.fromkeys(e.text for rows in excerpts.values() for e in rows if e.text))
    found: dict[str, Sequence[SearchResult] | str]
    try:
        tool = search_tool_of(app, wanted)
    except BaseException as error:  # third-party constructors and middleware fail like a search
        if stops_item(error):
            raise
        why = reason_of(error)
        found, what = dict.fromkeys(texts, why), "there is no search"
    else:
        look_up = partial(_result, tool, places or asyncio.Semaphore(AT_ONCE))
        found = dict(zip(texts, await asyncio.gather(*map(look_up, texts)), strict=True))
        why, what = next((error for error in found.values() if isinstance(error, str)), ""), ""
    attached = {
        name: tuple(_with(excerpt, found[excerpt.text]) if excerpt.text else excerpt for excerpt in rows)
        for name, rows in excerpts.items()
    }
    failed = sum(excerpt.search_error is not None for rows in attached.values() for excerpt in rows)
    return attached, [f"{what or f'the search for {failed} excerpts failed'} ({why})"] if why else []


async def _result(tool: SearchTool, places: asyncio.Semaphore, text: str) -> Sequence[SearchResult] | str:
    async with places:
        try:
            return await tool.asearch(text)
        except SearchError as error:
            return reason_of(error)


def _with(excerpt: Excerpt, found: Sequence[SearchResult] | str) -> Excerpt:
    if isinstance(found, str):
        return evolve(excerpt, search_error=found)
    rows = tuple(
        {"title": result.title, "url": result.url, "content": _cut(result.content)} for result in found[:MOST_RESULTS]
    )
    return evolve(excerpt, search_results=rows)


def to_assess(excerpts: Found) -> dict[str, tuple[str, Excerpt]]:
    """The excerpts that were searched for, each with its name, by the key that the judge is given."""
    rows = [(name, e) for name, rows in excerpts.items() for e in rows if e.search_results is not None]
    return {f"excerpt_{number}": row for number, row in enumerate(rows, 1)}


def with_assessments(
    excerpts: Found, asked: Mapping[str, tuple[str, Excerpt]], assessments: Mapping[str, Assessment]
) -> dict[str, tuple[Excerpt, ...]]:
    """The excerpts with the judge's assessment of those that it was asked about."""
    made = {(name, id(excerpt)): assessments[key] for key, (name, excerpt) in asked.items()}

    def assessed(name: str, excerpt: Excerpt) -> Excerpt:
        found = made.get((name, id(excerpt)))
        if found is None:
            return excerpt
        return evolve(excerpt, hallucination_risk=found.risk, hallucination_justification=found.justification)

    return {name: tuple(assessed(name, excerpt) for excerpt in rows) for name, rows in excerpts.items()}


def reason_of(error: BaseException) -> str:
    """Why there is no search, without the secrets of the environment: it goes into results and warnings."""
    spoken = isinstance(error, KareninaError | TypeError) and str(error)
    return _cut(redactor(secrets_in(os.environ))(sanitize(spoken or one_line(error))[0]))


def _cut(text: str) -> str:
    return shortened(text, MOST_CHARACTERS)
