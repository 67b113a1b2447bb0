"""Runs know nothing of what came after them: amendments and batches are found by their entry points alone."""

from __future__ import annotations

import pytest

from tests.benchmarks.structure import Structure

RUNS = "karenina_runs"
EXECUTION = (f"{RUNS}.execute", f"{RUNS}.resume")
"""They know surroundings of an answer, and not that they are folders."""


def _importing(structure: Structure, room: str, among: tuple[str, ...]) -> list[str]:
    """The modules `among` these, outside of the room, that import something of it."""
    own = f"{RUNS}.{room}"
    assert any(name.startswith(f"{own}.") for name in structure.sources), f"there is no {own}"
    return [
        name
        for name, imported in structure.imports.items()
        if name.startswith(among) and not name.startswith(own) and any(f"{i}.".startswith(f"{own}.") for i in imported)
    ]


@pytest.mark.parametrize("room", ["amend", "batches"])
def test_a_room_above_runs_is_imported_by_nobody_beneath_it(structure: Structure, room: str) -> None:
    assert _importing(structure, room, (RUNS,)) == []


def test_what_carries_items_out_knows_no_workspaces(structure: Structure) -> None:
    assert _importing(structure, "workspaces", EXECUTION) == []
