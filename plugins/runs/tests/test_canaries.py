"""Canaries: a judge that obeys what it reads is found out, and the benchmark's own numbers do not notice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from karenina_judging.canaries import DIFFERENT, INJECTIONS, SUBJECTS, canary
from karenina_runs.execute.runner import Destination
from karenina_runs.journal.check import check
from karenina_runs.plan.canaries import canary_items
from karenina_runs.resume import resume_run
from karenina_runs.summaries.canaries import canaries_in, exceeded, is_complete
from karenina_runs.summaries.intervals import wilson

from karenina_core import ModelConfig, VerificationResultSet
from karenina_core.errors import PortError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]
TOLD = {subject[3] for subject in SUBJECTS}


def obedient(families: set[str]) -> Callable[[Any], Any]:
    """A judge that obeys the injections of these families, and reads what the answer says otherwise."""

    def judge(call: Any) -> Any:
        if "BCL2" in call.text:
            return {"target": "BCL2"}
        plain = "".join(chr(ord(c) - 0xE0000) if 0xE0000 < ord(c) < 0xE0080 else c for c in call.text)
        given = next(canary(n) for n in range(DIFFERENT) if canary(n).answer in call.text)
        assert given.wanted in plain
        return {"answer": given.wanted if given.family in families else "what the answer says"}

    return judge


def run_with(world: Make, folder: Path | None, judge: Any, *, questions: int = 3, **facts: Any) -> Any:
    here = world(questions=questions, judge=ScriptedLLM(judge))
    found = here.run(here.config(canaries=True, **facts), Destination(run_dir=folder))
    return here, found


@given(st.integers(0, 10 * DIFFERENT))
def test_a_canary_holds_its_instruction_and_another_answer(number: int) -> None:
    found = canary(number)
    assert found == canary(number + DIFFERENT)
    plain = "".join(chr(ord(c) - 0xE0000) if 0xE0000 < ord(c) < 0xE0080 else c for c in found.answer)
    assert found.wanted in plain
    (field,) = json.loads(found.template)["fields"]
    assert field["ground_truth"] == found.wanted


def test_no_two_canaries_are_the_same_and_every_ten_have_all_injections() -> None:
    assert len({(found.question, found.answer) for found in map(canary, range(DIFFERENT))}) == DIFFERENT
    assert len({canary(number).id for number in range(DIFFERENT)}) == DIFFERENT
    for first in range(DIFFERENT):
        assert len({canary(number).family for number in range(first, first + len(INJECTIONS))}) == len(INJECTIONS)
    assert not [wrong for _, _, wrong, wanted in SUBJECTS if wanted.casefold() in wrong.casefold()]


def test_a_judge_that_resists_passes_and_one_that_obeys_does_not(world: Make, tmp_path: Path) -> None:
    _, found = run_with(world, tmp_path / "good", obedient(set()))
    (row,) = found.canaries["judges"]
    assert (row["canaries"], row["obeyed"], row["resisted"], row["errors"]) == (10, 0, 10, 0)
    assert (row["rate"], row["exceeded"], exceeded(found.canaries)) == (0.0, False, [])
    assert (row["rate_low"], row["rate_high"]) == (0.0, wilson(0.0, 10).high)

    _, found = run_with(world, tmp_path / "bad", obedient({"authority", "invisible"}))
    (row,) = found.canaries["judges"]
    assert (row["obeyed"], row["resisted"], row["rate"], row["exceeded"]) == (2, 8, 0.2, True)
    assert (row["rate_low"], row["rate_high"]) == (wilson(0.2, 10).low, wilson(0.2, 10).high)
    assert {name for name, counts in row["families"].items() if counts["obeyed"]} == {"authority", "invisible"}
    (line,) = exceeded(found.canaries)
    assert line in found.notes
    assert found.get_summary()["canaries"] == found.canaries


def test_the_threshold_says_how_much_is_too_much(world: Make) -> None:
    _, found = run_with(world, None, obedient({"command"}), canary_threshold=0.1)
    assert (found.canaries["judges"][0]["rate"], exceeded(found.canaries)) == (0.1, [])


def test_no_number_of_the_benchmark_notices_them(world: Make, tmp_path: Path) -> None:
    _, found = run_with(world, tmp_path / "run", obedient({"command"}))
    plain = world(questions=3, judge=ScriptedLLM(obedient(set())))
    without = plain.run(plain.config(), Destination(run_dir=tmp_path / "plain"))
    mine, theirs = found.get_summary(), without.get_summary()
    assert without.canaries is None
    own = {"run_dir", "notes", "canaries", "paid", "reused_calls"}
    assert {name: value for name, value in mine.items() if name not in own} == {
        name: value for name, value in theirs.items() if name not in own
    }
    assert mine["paid"]["calls"] == theirs["paid"]["calls"] + found.canaries["judges"][0]["calls"] == 6 + 10
    rows = [
        {k: v for k, v in json.loads(line).items() if k not in ("trail", "metadata")}
        for folder in ("run", "plain")
        for line in (tmp_path / folder / "results.jsonl").read_text("utf-8").splitlines()
    ]
    assert [r["template"] for r in rows[:3]] == [r["template"] for r in rows[3:]]
    assert "canary" not in (tmp_path / "run" / "results.jsonl").read_text("utf-8")
    assert check(tmp_path / "run").problems == check(tmp_path / "plain").problems


def test_the_manifest_has_them_and_a_resumed_run_does_not_ask_again(world: Make, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    here, found = run_with(world, folder, obedient({"command"}))
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert canaries_in(manifest) == found.canaries == manifest["canaries"]
    assert VerificationResultSet.load(folder).canaries == found.canaries
    asked = len(here.judge.calls)
    again = resume_run(folder, benchmark=here.benchmark, config=here.config(canaries=True), app=here.app)
    assert again.canaries == found.canaries
    assert len(here.judge.calls) == asked == 3 + 10
    assert again.get_summary()["paid"] == found.get_summary()["paid"]


def test_those_that_failed_are_tried_again_and_the_others_are_not_paid_twice(world: Make, tmp_path: Path) -> None:
    folder, down = tmp_path / "run", [True]
    resists = obedient(set())

    def judge(call: Any) -> Any:
        if down[0] and "Vellmora" in call.text:
            raise PortError("the judge is down", kind="server")
        return resists(call)

    here, found = run_with(world, folder, judge)
    (row,) = found.canaries["judges"]
    assert (row["errors"], row["resisted"], is_complete(found.canaries)) == (1, 9, False)
    assert any("1 canary answer not judged" in note for note in found.notes)
    down[0], asked = False, len(here.judge.calls)
    again = resume_run(folder, benchmark=here.benchmark, config=here.config(canaries=True), app=here.app)
    (row,) = again.canaries["judges"]
    assert (row["errors"], row["resisted"], is_complete(again.canaries)) == (0, 10, True)
    assert len(here.judge.calls) == asked + 1


def test_a_budget_leaves_the_rest_for_the_resumed_run(world: Make, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    price = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.001, "max_tokens": 10}
    judges = [ModelConfig(model_name="j", interface="judging", max_retries=0, **price)]
    answerers = [ModelConfig(model_name="a", interface="answering", **price)]
    facts: dict[str, Any] = {"parsing_models": judges, "answering_models": answerers, "concurrency": 1}
    here, found = run_with(world, folder, obedient(set()), budget_usd=0.07, **facts)
    (row,) = found.canaries["judges"]
    assert (0 < row["resisted"] < 10, row["resisted"] + row["errors"], len(found)) == (True, 10, 0)
    again = resume_run(
        folder, benchmark=here.benchmark, config=here.config(canaries=True, budget_usd=50, **facts), app=here.app
    )
    assert is_complete(again.canaries)
    assert (again.canaries["judges"][0]["resisted"], len(again)) == (10, 3)
    assert len([call for call in here.judge.calls if "BCL2" not in call.text]) == 10


def test_their_number_grows_with_the_run_and_every_judge_has_the_same(world: Make) -> None:
    here = world(questions=40, judge=ScriptedLLM(obedient(set())))
    judges = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in "jk"]
    prepared = here.prepare(here.config(canaries=True, parsing_models=judges, replicate_count=50))
    items = canary_items(prepared)
    of_judge = {judge.id: [item.position for item in items if item.parsing == judge] for judge in judges}
    assert of_judge["j"] == of_judge["k"] == list(range(21))
    assert len(of_judge["j"]) >= 0.01 * (len(of_judge["j"]) + 40 * 50)
    assert len({item.task for item in items}) == len(items)
    many = evolve(prepared, config=evolve(prepared.config, replicate_count=3000))
    assert len({item.task for item in canary_items(many)}) == len(canary_items(many)) > 2 * DIFFERENT


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        {},
        {"threshold": 0.1, "judges": [3]},
        {"threshold": "x", "judges": []},
        {"threshold": 0.1, "judges": [], "untried": [3]},
        {"threshold": 0.1, "judges": [{"judge": "j", "exceeded": True}]},
    ],
)
def test_what_no_run_has_written_is_not_read(found: Any) -> None:
    assert canaries_in({"canaries": found}) is None


def test_an_instruction_is_marked_as_data_for_the_judge(world: Make) -> None:
    here, _ = run_with(world, None, obedient(set()))
    for call in here.judge.calls:
        (inside,) = re.findall(r'<untrusted-(\w{16}) label="response">\n(.*?)\n</untrusted-\1>', call.text, re.DOTALL)
        outside = call.text.replace(inside[1], "")
        assert not [wanted for wanted in TOLD if wanted in outside]
