"""Results are read back as they were written, whatever text they hold; adapters in trouble cost none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.execute.runner import Destination
from karenina_runs.files.run_files import MANIFEST

from karenina_core import VerificationResultSet
from karenina_core.errors import BenchmarkError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]


# An adapter that cannot be closed


def test_an_adapter_that_cannot_be_closed_costs_no_results(world: Make) -> None:
    class Stuck(ScriptedLLM):
        async def aclose(self) -> None:
            raise OSError("cannot close")

    results = world(answerer=Stuck(lambda call: "It is BCL2.")).run()
    assert [r.metadata.outcome for r in results] == ["passed"]


def test_an_adapter_that_cannot_be_opened_stops_the_run_and_closes_the_others(world: Make) -> None:
    class Shut(ScriptedLLM):
        async def aopen(self) -> None:
            raise OSError("no route")

    here = world(judge=Shut())
    with pytest.raises(Exception, match="no route"):
        here.run()
    assert here.answerer.calls == []
    assert here.answerer.closed >= here.answerer.opened == 1


# Reading results


def test_a_line_that_is_no_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('\n{"metadata": {}}\n', "utf-8")
    with pytest.raises(BenchmarkError, match=r"results\.jsonl, line 2: not a result"):
        VerificationResultSet.load(tmp_path)
    with pytest.raises(BenchmarkError, match="give a run directory"):
        VerificationResultSet.load(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["[]", "{}", '{"left_out": 3}', '{"left_out": [{}]}', "{", "\udcff"])
def test_a_damaged_manifest_does_not_hide_the_results(world: Make, tmp_path: Path, text: str) -> None:
    world().run(destination=Destination(run_dir=tmp_path / "run"))
    (tmp_path / "run" / MANIFEST).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert len(VerificationResultSet.load(tmp_path / "run")) == 1


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\r\n", "\0", "\ud800"])
def test_odd_text_survives_the_folder(world: Make, tmp_path: Path, odd: str) -> None:
    here = world(answerer=ScriptedLLM(lambda call: f"It is{odd}BCL2."))
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    (result,) = VerificationResultSet.load(tmp_path / "run")
    assert result.generation.raw_llm_response == f"It is{odd}BCL2."


def test_the_last_of_two_lines_for_one_item_counts(world: Make, tmp_path: Path) -> None:
    world().run(destination=Destination(run_dir=tmp_path / "run"))
    file = tmp_path / "run" / "results.jsonl"
    line = file.read_text("utf-8")
    file.write_text(line + line.replace('"outcome":"passed"', '"outcome":"failed"'), "utf-8")
    (result,) = VerificationResultSet.load(file)
    assert result.metadata.outcome == "failed"
