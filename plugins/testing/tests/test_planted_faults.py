"""Planted faults of every kind of plugin, each with the promises by which it is found; the first one names its line.

A fault is a module of the folder `planted`, or a class or function of a test module beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from karenina_testing.checks import BrokenPromise, Check

from karenina_core.testing import (
    adapter_checks,
    command_checks,
    embedder_checks,
    loader_checks,
    primitive_checks,
    sink_checks,
    stage_checks,
    trait_checks,
)

FAULTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "stage": {
        "busy_question": ("should_run",),
        "careless_check": ("check_config",),
        "crashes": ("odd_input",),
        "forgets_output": ("complete_output",),
        "heavy_import": ("light_import",),
        "hidden_read": ("declared_reads",),
        "ignores_error": ("should_run",),
        "misspelt_key": ("declaration",),
        "moody_condition": ("included_when",),
        "mutates_input": ("inputs_untouched",),
        "never_runs": ("reached",),
        "not_repeatable": ("repeatable",),
        "remembers": ("cancellation",),
        "swallows_cancellation": ("cancellation",),
        "undeclared_revision": ("declared_writes",),
        "undeclared_read": ("declared_reads",),
        "undeclared_write": ("declared_writes",),
        "untyped_key": ("declaration",),
        "unwritable_field": ("typed_output",),
        "writes_twice": ("written_once",),
        "writes_verdict": ("verdict_recorded",),
        "wrong_type": ("typed_output",),
    },
    "adapter": {
        "careless_reply": ("success", "temperature", "odd_text", "channels", "unknown_usage"),
        "drips": ("total_timeout",),
        "drops_schema": ("channels",),
        "eager": ("light_construction",),
        "forgets_tools": ("tools",),
        "half_a_port": ("ports", "spec"),
        "keeps_going": ("cancellation",),
        "leaks_key": ("key_hidden",),
        "leaves_task": ("closing",),
        "lets_through": ("fault_server_error", "fault_garbage", "timeout"),
        "loses_tool_calls": ("tools",),
        "never_closes": ("closing",),
        "retries": ("one_attempt", "light_import"),
        "takes_no_tools": ("ports", "tools"),
        "wrong_kind": ("fault_rate_limited", "fault_rejected_key", "fault_huge"),
    },
    "embedder": {
        "chokes": ("odd_text",),
        "deaf_embedder": ("cancellation",),
        "dreams_up": ("equal_texts",),
        "drops_empty_texts": ("vectors",),
        "holds_the_loop": ("event_loop",),
        "loads_to_look": ("light_problem",),
        "mixes_calls": ("at_once",),
        "nameless_model": ("model",),
        "needs_a_text": ("no_texts",),
        "one_loop_only": ("loops",),
        "reads_early": ("light_construction",),
        "sorts_texts": ("order",),
        "unsure_of_itself": ("problem",),
    },
    "sink": {
        "duplicates": ("idempotent",),
        "torn_lines": ("concurrent", "idempotent", "closes_twice", "secrets"),
        "Synchronous": ("methods",),
        "Lossy": ("keeps",),
        "Ascii": ("odd_text",),
        "Summarizing": ("nothing_written",),
        "Locked": ("crash",),
        "Faithful": ("replaces",),
        "Refusing": ("replaces",),
        "Full": ("beside_another",),
    },
    "trait": {
        "CachesByName": ("at_once",),
        "FirstTwo": ("well_formed",),
        "Swallows": ("cancellation",),
        "Renames": ("round_trip",),
        "FromThree": ("one_fails",),
        "Rounds": ("off_scale",),
        "Impatient": ("judge_down",),
        "Shouts": ("reference",),
        "Quotes": ("prompts",),
        "Cuts": ("shown",),
    },
    "primitive": {
        "Truthy": ("bool",),
        "Crashing": ("errors",),
        "Moody": ("repeatable",),
        "Generous": ("score",),
        "Contradicting": ("score",),
        "Different": ("ground_truth",),
        "Sorting": ("untouched",),
        "Ignoring": ("placeholder",),
        "Chatty": ("remark",),
        "Changeable": ("frozen",),
        "Unwritable": ("as_data",),
        "Endless": ("quick",),
    },
    "loader": {
        "Greedy": ("others",),
        "TakesJson": ("json_ld",),
        "Fragile": ("broken",),
        "Evaluating": ("inert",),
        "PathIds": ("repeatable",),
        "Dictionaries": ("reads",),
        "Forgetful": ("round_trip",),
        "WritesAll": ("other_suffixes",),
    },
    "command": {
        "helpless": ("help",),
        "raising": ("errors",),
        "silent": ("errors",),
        "lenient": ("wrong_option",),
        "taken": ("own_name",),
        "unhelpful": ("help_option",),
    },
}
FEW = 8
"""Items of a stage beside those with odd texts, which are among those of any number."""
MODULES = {"sink": "sink_checks", "trait": "trait_faults"} | dict.fromkeys(
    ("primitive", "loader", "command"), "new_kinds"
)
ROWS = [(kind, fault, promises) for kind, faults in FAULTS.items() for fault, promises in faults.items()]


def checks_of(kind: str, thing: Any, module: Any) -> list[Check]:
    match kind:
        case "stage":
            return stage_checks(thing.Planted, max_examples=FEW)
        case "adapter":
            return adapter_checks(thing.SPEC)
        case "embedder":
            return embedder_checks(thing.Planted, model="counts")
        case "sink" if hasattr(thing, "Planted"):
            return sink_checks(thing.Planted, module.lines)
        case "sink":
            return sink_checks(thing, module.files if thing.__name__ in ("Ascii", "Faithful") else module.ids)
        case "trait":
            return trait_checks(thing, module.WRONG[thing][0], app=module.APP)
        case "primitive":
            return primitive_checks(thing, pairs=[("Gout", "gout"), ("a", "ab")])
        case "loader":
            return loader_checks(thing(), files=module.FILES)
    return command_checks(thing, name=thing.name)


def test_there_are_forty_and_four_of_each_kind() -> None:
    assert len(ROWS) >= 40
    assert {kind for kind, faults in FAULTS.items() if len(faults) < 4} == set()
    assert set(FAULTS) == {"stage", "trait", "adapter", "sink", "embedder", "primitive", "loader", "command"}


@pytest.mark.parametrize(("kind", "fault", "promises"), ROWS, ids=[f"{kind}-{fault}" for kind, fault, _ in ROWS])
def test_a_planted_fault_is_found_by_the_promise_that_it_breaks(
    kind: str,
    fault: str,
    promises: tuple[str, ...],
    load: Any,
    planted: Any,
    fault_line: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("karenina_testing.primitives.SECONDS", 0.5)
    # A simpler item that shows the fault is looked for in test_stage_checks.py.
    monkeypatch.setattr("karenina_testing.stages.stages.smallest", lambda items, shows, known, **_: known)
    beside = Path(__file__).with_name(f"test_{MODULES[kind]}.py") if kind in MODULES else None
    module = load(beside) if beside else None
    thing = planted(fault) if module is None or not hasattr(module, fault) else getattr(module, fault)
    checks = {check.name: check for check in checks_of(kind, thing, module)}
    said = []
    for promise in promises:
        with pytest.raises(BrokenPromise, match=rf"^(?s:.)* breaks {promise}: ") as broken:
            checks[promise].run()
        said.append(str(broken.value))
    for kept in getattr(thing, "KEPT", ()):
        kept.close()
    if hasattr(thing, "Planted") or hasattr(thing, "SPEC"):
        assert fault_line(fault) in said[0]
    elif kind in ("primitive", "loader"):
        assert f"{beside.name if beside else ''}:" in said[0]
