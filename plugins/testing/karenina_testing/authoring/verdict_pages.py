"""Showing the verdicts of checks."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from karenina_cli.output import Part, Table, print_found

from .verdicts import Request, Verdict


def print_verdicts(request: Request, found: Sequence[Verdict], *, as_json: bool) -> None:
    """As text: every promise, and what is wrong with those that are broken. As JSON: the same as data."""
    broken = [verdict for verdict in found if not verdict.kept]
    document = {
        "plugin": request.name,
        "kept": len(found) - len(broken),
        "broken": len(broken),
        "examples": request.examples,
        "seed": request.seed,
        "promises": [verdict.as_data() for verdict in found],
    }
    rows = [("kept" if verdict.kept else "BROKEN", verdict.name, verdict.promise) for verdict in found]
    parts: list[Part] = [Table(("verdict", "check", "promise"), rows)]
    parts += ["", *(f"{_page(verdict)}\n" for verdict in broken)]
    parts.append(f"{request.name}: {len(found)} promises, {len(broken)} broken ({_drawn(request)}).")
    if broken:
        parts.append(f"Again, one alone: {_again(request, broken[0].name)}")
    print_found(document, parts, sys.stdout, as_json=as_json)


def _page(verdict: Verdict) -> str:
    """What happened, with what, where, and what to change."""
    lines = {"with": verdict.input, "at": verdict.line, "change": verdict.change}
    about = [f"  {what}: {text}" for what, text in lines.items() if text]
    problem = verdict.problem.replace("\n", "\n  ")
    return "\n".join([f"{verdict.name}: {verdict.promise}", f"  {problem}", *about])


def _drawn(request: Request) -> str:
    seed = "the same examples each time" if request.seed is None else f"--seed {request.seed}"
    return seed if request.examples is None else f"{seed}, --examples {request.examples}"


def _again(request: Request, name: str) -> str:
    words = ["karenina plugins check", request.name, "-k", name]
    words += [] if request.seed is None else ["--seed", str(request.seed)]
    return " ".join([*words, *([] if request.examples is None else ["--examples", str(request.examples)])])
