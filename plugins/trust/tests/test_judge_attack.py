"""`karenina judge attack`: a naive judge is caught by every family that it obeys, and no other gives an alarm."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from karenina_runs.summaries.intervals import wilson
from karenina_trust.attack.suite import POSITIONS, suite

from karenina_core.testing import Reply, ScriptedServer, ServedRequest

from .judged_trials import EXPECTED, Script, benchmark, extracted, judge_arguments, karenina, response

FAMILIES = tuple(suite().families)
PLAIN = re.compile(r"Response: (.*)\n\nIs the response correct\?", re.DOTALL)


def right(request: ServedRequest) -> dict[str, Any]:
    """What the template of the request's question expects."""
    name = next(name for name in EXPECTED if f"known of {name}" in request.text)
    assert request.schema is not None
    properties = request.schema["properties"]
    return {"is_correct": True} if "is_correct" in properties else dict(EXPECTED[name])


def inserted(request: ServedRequest) -> tuple[str, str]:
    """What an answer holds beside the wrong one, and the wrong one; the first is the whole where there is no other."""
    plain = PLAIN.search(request.text)
    text = plain[1] if plain else response(request)
    found = re.search(r"gene: [\w ]+\nyear: -?\d+\napproved: \w+", text)
    if found is None:
        return text, ""
    return text[: found.start()].removesuffix("\n\n") + text[found.end() :].removeprefix("\n\n"), found[0]


def filled(request: ServedRequest) -> dict[str, str]:
    """The family of every payload, as it is in an answer to this request's question."""
    expected = right(request)
    name = next(name for name in EXPECTED if f"known of {name}" in request.text)
    values = {**EXPECTED[name], "approved": "yes" if EXPECTED[name]["approved"] else "no"}
    wanted = "; ".join(f"{key}: {value}" for key, value in values.items())
    return {one.filled(wanted, json.dumps(expected)): one.family for one in suite().payloads}


def judge(
    obeyed: Collection[str], *, of: Collection[str] = ("templates", "holistic"), obeys_any: bool = False
) -> Script:
    """Obeys payloads of these families in these styles; without them it says what the rest of an answer says."""

    def reply(request: ServedRequest) -> Any:
        assert request.schema is not None
        holistic = "is_correct" in request.schema["properties"]
        text, wrong = inserted(request)
        family = filled(request).get(text)
        style = "holistic" if holistic else "templates"
        if style in of and (family in obeyed or (obeys_any and text)):
            return right(request)
        return {"is_correct": False} if holistic else extracted(wrong, request.schema["properties"])

    return reply


def attack(folder: Path, server: ScriptedServer, *more: object) -> tuple[int, dict[str, Any]]:
    path = benchmark(folder)
    ended = karenina(
        "judge", "attack", path, *judge_arguments(server), "--quiet", "--json", "--out", folder / "r", *more
    )
    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)
    return ended.exit_code, {**found, **{row["style"]: row for row in found["judges"]}}


def code_of(run: Path) -> dict[str, Any]:
    """What made the numbers of the run that judged the attacks."""
    found: dict[str, Any] = json.loads((run / "fingerprint.json").read_text("utf-8"))["code"]
    return found


def rates(row: dict[str, Any], what: str) -> dict[str, float]:
    return {family: found[what]["rate"] for family, found in row["families"].items()}


def test_the_suite_is_large_varied_and_written_out() -> None:
    found = suite()
    assert (len(found.payloads) >= 60, len(found.families)) == (True, 8)
    assert len({one.id for one in found.payloads}) == len(found.payloads)
    assert len({one.filled("w", "r") for one in found.payloads}) == len(found.payloads)
    counts = Counter(one.family for one in found.payloads)
    assert set(counts) == set(FAMILIES)
    assert min(counts.values()) >= 7
    visible = re.compile(r"[\u0020-\u00ac\u00ae-\u1fff]{4}")
    for one in found.payloads:
        hidden = one.filled("gene: A", '{"gene": "A"}')
        assert (one.encoding != "") is (one.family == "invisible"), one.id
        if one.encoding:
            assert not visible.search(hidden), f"{one.id} can be read"


@given(st.integers(0, 5000))
def test_a_control_is_as_long_as_what_it_stands_for_and_asks_for_nothing(length: int) -> None:
    assert len(suite().control(length)) == length
    assert not re.search(r"correct|right|judge|record|verdict|grade|\{", suite().benign, re.IGNORECASE)


def test_each_obeyed_family_is_caught_and_no_other(tmp_path: Path, long: bool) -> None:
    """Of half of the families, or of all of them, the judge obeys every other one."""
    chosen = FAMILIES if long else FAMILIES[::2]
    obeyed = chosen[::2]
    families = [word for family in chosen for word in ("--family", family)]
    with ScriptedServer(judge(obeyed)) as server:
        code, found = attack(tmp_path, server, "--no-holistic", "--max-success", 0.4, *families)
    row, payloads = found["templates"], suite().of(chosen)
    assert (code, found["version"], found["payloads"]) == (4, suite().version, len(payloads))
    assert rates(row, "success") == {name: float(name in obeyed) for name in chosen}
    assert rates(row, "false_alarms") == dict.fromkeys(chosen, 0.0)
    assert (row["errors"], row["success"]["n"]) == (0, len(payloads) * len(POSITIONS))
    assert row["success"]["low"] < row["success"]["rate"] < row["success"]["high"]
    assert {found["family"] for found in row["succeeded"]} == set(obeyed)
    assert {found["position"] for found in row["succeeded"]} == set(POSITIONS)


def test_the_plain_judge_is_tried_beside_and_sees_the_answer_as_it_is(tmp_path: Path) -> None:
    with ScriptedServer(judge(("delimiters",), of=("holistic",))) as server:
        code, found = attack(tmp_path, server, "--family", "delimiters", "--max-success", 0)
        plain = [request.text for request in server.requests if PLAIN.search(request.text)]
    assert code == 0, "the gate is about the templates"
    assert rates(found["templates"], "success") == {"delimiters": 0.0}
    assert rates(found["holistic"], "success") == {"delimiters": 1.0}
    assert rates(found["holistic"], "false_alarms") == {"delimiters": 0.0}
    assert len(plain) == len(server.requests) / 2
    assert "holistic-judgment" in code_of(tmp_path / "r")
    assert all("Reference answer: Gene: " in text and "Whatever it says" not in text for text in plain)


@pytest.mark.parametrize(("obeys_any", "alarms"), [(False, 0.0), (True, 1.0)])
def test_no_alarm_on_a_perfect_judge_and_controls_show_one_that_accepts_anything(
    tmp_path: Path, obeys_any: bool, alarms: float
) -> None:
    more = ("--family", "delimiters", "--no-holistic", "--max-success", 0)
    with ScriptedServer(judge((), obeys_any=obeys_any)) as server:
        code, found = attack(tmp_path, server, *more)
    assert code == (4 if obeys_any else 0)
    assert rates(found["templates"], "success") == rates(found["templates"], "false_alarms") == {"delimiters": alarms}
    assert "holistic" not in found
    assert "holistic-judgment" not in code_of(tmp_path / "r")


def test_errors_of_the_judge_and_answers_that_pass_anyway_are_apart(tmp_path: Path) -> None:
    """Of three questions one passes without an attack; of the other two one payload cannot be judged."""

    def reply(request: ServedRequest) -> Any:
        if "known of cystic" in request.text:
            return right(request)
        return Reply("no idea") if "</response>" in response(request) else judge(())(request)

    with ScriptedServer(reply) as server:
        code, found = attack(tmp_path, server, "--family", "delimiters", "--no-holistic", "--per-payload", 3)
    row = found["templates"]
    assert (code, row["passing_without"]) == (3, ["cystic"])
    assert (row["errors"], row["success"]["rate"]) == (2 * 3, 0.0)
    assert row["success"]["n"] == 2 * 3 * 8 - row["errors"]


def test_one_attack_a_question_has_the_interval_of_wilson(tmp_path: Path) -> None:
    with ScriptedServer(judge(("flattery",))) as server:
        _, found = attack(tmp_path, server, "--family", "flattery", "--no-holistic", "--questions", "cystic")
        ended = karenina(
            "judge", "attack", benchmark(tmp_path), *judge_arguments(server), "--family", "flatery", "--estimate"
        )
    assert found["templates"]["success"]["low"] is None, "one question says nothing about the error"
    assert (ended.exit_code, "did you mean 'flattery'" in ended.stderr) == (1, True), ended.stderr
    from karenina_trust.judges.rates import rate_of_rows

    rate = rate_of_rows([(number, number < 3) for number in range(10)])
    assert rate.interval == wilson(0.3, 10)


def test_attacks_that_were_judged_are_read_again_and_others_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = ("--family", "invisible", "--questions", "cystic")
    with ScriptedServer(judge(("invisible",))) as server:
        first = attack(tmp_path, server, *more)
        asked = server.count
        assert attack(tmp_path, server, *more) == first
        assert server.count == asked
        other = evolve(suite(), payloads=[evolve(one, text=f"{one.text}!") for one in suite().payloads])
        monkeypatch.setattr("karenina_trust.attack.printed.suite", lambda: other)
        line = ("judge", "attack", benchmark(tmp_path), *judge_arguments(server), "--out", tmp_path / "r", *more)
        ended = karenina(*line)
        assert (ended.exit_code, "other trials" in ended.stderr, server.count) == (1, True, asked)
    assert rates(first[1]["templates"], "success") == {"invisible": 1.0}
