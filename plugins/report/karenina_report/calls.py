"""The requests and replies of items that did not pass, as the page folds them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from karenina_cli.show.calls import call_parts, calls_of
from karenina_cli.summary import GOOD
from karenina_runs.journal.reader import journal_of

from karenina_core import VerificationResult
from karenina_core.errors import RunDirectoryError

from .texts import cut

MOST_ITEMS = 200
"""Items whose calls are on the page; chosen: a person does not open more, and they are most of what it weighs."""
MOST_CALLS = 8
"""Calls of one item that are on the page; the last ones, which decided."""
LONGEST = 3000
"""Characters of a request or a reply that are on the page; chosen, one screenful."""


class FoldedCall(NamedTuple):
    """One call: its title, and its texts with their names and how many characters are left out."""

    title: str
    texts: tuple[tuple[str, str, int], ...]


class ItemCalls(NamedTuple):
    """What the page has of the calls of an item."""

    calls: tuple[FoldedCall, ...] = ()
    left_out: int = 0
    """Calls that are not on the page."""
    command: str = ""
    """Prints all of them; empty where nothing does."""


def folding(run_dir: Path | None) -> Callable[[VerificationResult], ItemCalls]:
    """What gives the calls of each result, one after the other."""
    if run_dir is None or not journal_of(run_dir).is_file():
        return lambda result: ItemCalls()
    shown: set[str] = set()

    def folded(result: VerificationResult) -> ItemCalls:
        about = result.metadata
        command = shlex.join(["karenina", "show", str(run_dir), about.question_id, "--calls"])
        if about.outcome in GOOD or len(shown) >= MOST_ITEMS:
            return ItemCalls(command=command)
        shown.add(about.result_id)
        try:
            (calls,) = calls_of(run_dir, [result])
        except RunDirectoryError:  # the journal is damaged, and the results are not
            return ItemCalls(command=command)
        kept = calls[-MOST_CALLS:]
        return ItemCalls(tuple(map(_folded, kept)), len(calls) - len(kept), command)

    return folded


def _folded(call: dict[str, object]) -> FoldedCall:
    _, _, title, *parts = call_parts([call])  # the number of calls and an empty line come first
    texts: list[tuple[str, str, int]] = []
    name = ""
    for part in parts:
        if isinstance(part, str):
            name = part
            if part.startswith("Failed: "):
                texts.append(("Failed", *cut(part.removeprefix("Failed: "), LONGEST)))
                name = "Reply"
        else:
            text = "".join(piece for piece, _ in getattr(part, "pieces", ()))
            texts.append((name, *cut(text, LONGEST)))
    return FoldedCall(str(title).removeprefix("1. "), tuple(texts))
