"""Runs know nothing of what came after them: these modules are imported by nobody else in `run/`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "karenina_core" / "run"
AMEND = (
    *("extension", "extension_checks", "extension_merge", "extension_models", "extension_plans", "extension_rows"),
    *("extension_scan", "repair", "repair_selection", "repairs", "undoing"),
)
BATCHES = ("batching", "batches", "provider_batches")
WORKSPACES = ("workspaces", "workspace_capture", "workspace_sources")
WITHOUT_FOLDERS = ("runner", "single", "destination", "ending", "surroundings", "keeping", "continuing", "resume")
"""They know surroundings of an answer, and not that they are folders."""
MOST_PARAMETERS = 8
KEYWORD_APIS = {
    *("arun_verification", "aextend_run", "arun_single_model_verification", "run_single_model_verification"),
    "filter",  # of `VerificationResultSet`
}
"""Functions for users, whose parameters are given by name."""


def _imported(path: Path) -> set[str]:
    """The modules beside it that a file imports, those under TYPE_CHECKING and inside functions included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {(node.module or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("karenina_core.run"):
            rest = node.module.removeprefix("karenina_core.run").lstrip(".")
            found |= {rest.split(".")[0]} if rest else {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("room", [AMEND, BATCHES], ids=["amend", "batches"])
def test_a_room_above_runs_is_imported_by_nobody_beneath_it(room: tuple[str, ...]) -> None:
    assert all((RUN / f"{name}.py").is_file() for name in room)
    others = [path for path in RUN.glob("*.py") if path.stem not in room]
    assert len(others) > len(room)
    assert {path.stem: names for path in others if (names := _imported(path).intersection(room))} == {}


@pytest.mark.parametrize("name", WITHOUT_FOLDERS)
def test_what_carries_items_out_knows_no_workspaces(name: str) -> None:
    assert _imported(RUN / f"{name}.py").isdisjoint(WORKSPACES)


def test_functions_take_few_parameters_keyword_only_ones_included() -> None:
    found = {}
    for path in RUN.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in KEYWORD_APIS:
                args = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if (count := len([a for a in args if a not in ("self", "cls")])) > MOST_PARAMETERS:
                    found[f"{path.stem}.{node.name}"] = count
    assert found == {}
