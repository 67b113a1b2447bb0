"""What a run says while it is under way: on terminals of every width, in one line, and in a notebook."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.limits.adaptive_limit import Adaptive
from karenina_calls.limits.queues import Closed, LaneState
from karenina_runs.execute.control import RunControl
from karenina_runs.execute.notebook import shown_in_notebook
from karenina_runs.execute.progress import (
    Rate,
    Snapshot,
    duration,
    facts,
    progress_line,
    progress_lines,
    short,
    time_left,
)
from karenina_runs.execute.runner import execute
from karenina_runs.plan.prepare import prepare
from karenina_runs.summaries.intervals import wilson

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.testing import Reply, ScriptedServer

BUSY = Snapshot(
    outcomes={"passed": 60, "failed": 20, "error": 10},
    errors={"timeout": 6, "rate_limited": 3, "auth": 1},
    rates=[Rate(model="atlas-large", passed=0.75, interval=wilson(0.75, 80))],
    cost_usd=1.25,
    tokens=123_456,
    in_flight=8,
    waiting=24,
    slowed=[("openai_endpoint:atlas-large", "waits 12 s")],
)


def screen(snapshot: Snapshot, width: int) -> list[str]:
    left = time_left(90, 0, 240, 180.0)
    return progress_lines(snapshot, 90, 240, seconds=180.0, left=left, width=width)


def test_the_screen_at_60_80_120_and_200_columns() -> None:
    assert screen(BUSY, 60) == [
        "━━━━━━────────── 90/240 items  3:00 min, about 5:00 min left",
        "75 % pass (65 to 83 %)",
        "10 errors: timeout 6, rate_limited 3, auth 1  123.5k tokens",
        "$1.2500  8 calls in flight, 24 waiting",
        "slowed down, waits 12 s: openai_endpoint:atlas-large",
    ]
    assert screen(BUSY, 80) == [
        "━━━━━━━━━━━━━─────────────────────── 90/240 items  3:00 min, about 5:00 min left",
        "75 % pass (65 to 83 %)  10 errors: timeout 6, rate_limited 3, auth 1",
        "123.5k tokens  $1.2500  8 calls in flight, 24 waiting",
        "slowed down, waits 12 s: openai_endpoint:atlas-large",
    ]
    assert screen(BUSY, 120) == [
        "━━━━━━━━━━━━━━━───────────────────────── 90/240 items  3:00 min, about 5:00 min left",
        "75 % pass (65 to 83 %)  10 errors: timeout 6, rate_limited 3, auth 1  123.5k tokens  $1.2500",
        "8 calls in flight, 24 waiting  slowed down, waits 12 s: openai_endpoint:atlas-large",
    ]
    assert screen(BUSY, 200) == [
        "━━━━━━━━━━━━━━━───────────────────────── 90/240 items  3:00 min, about 5:00 min left",
        "75 % pass (65 to 83 %)  10 errors: timeout 6, rate_limited 3, auth 1  123.5k tokens  $1.2500  "
        "8 calls in flight, 24 waiting  slowed down, waits 12 s: openai_endpoint:atlas-large",
    ]


TEXT = st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=60)
COUNTS = st.dictionaries(TEXT, st.integers(1, 10**6), max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    st.builds(
        Snapshot,
        errors=COUNTS,
        rates=st.lists(st.builds(Rate, model=TEXT, passed=st.floats(0, 1), interval=st.just(None)), max_size=5),
        cost_usd=st.floats(0, 1e5),
        cost_unknown=st.booleans(),
        tokens=st.integers(0, 10**9),
        in_flight=st.integers(0, 500),
        slowed=st.lists(st.tuples(TEXT, TEXT), max_size=4),
    ),
    st.integers(60, 200),
    st.integers(0, 10**5),
)
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost_that_fits(
    snapshot: Snapshot, width: int, done: int
) -> None:
    lines = progress_lines(snapshot, done, 10**5, seconds=10.0**5, left=10.0**6, width=width)
    assert all(len(line) <= width for line in lines)
    shown = "  ".join(lines[1:])
    assert all(fact in shown for fact in facts(snapshot) if len(fact) <= width)


def test_what_is_not_known_is_not_said() -> None:
    assert facts(Snapshot()) == []
    assert progress_line(None, 1, 6, seconds=2, left=None) == "1/6 items; 2 s"
    assert facts(Snapshot(cost_unknown=True)) == ["cost unknown"]
    assert facts(Snapshot(cost_usd=1, cost_unknown=True)) == ["at least $1.0000"]
    several = [Rate(model=f"m{n}", passed=0.5, interval=None) for n in range(5)]
    assert facts(Snapshot(rates=several)) == ["m0 50 % pass", "m1 50 % pass", "m2 50 % pass", "2 more models"]
    line = progress_line(BUSY, 90, 240, seconds=180, left=300)
    assert line.startswith("90/240 items; 3:00 min, about 5:00 min left; 75 % pass (65 to 83 %); 10 errors: timeout 6")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.4, "59 s"), (60, "1:00 min"), (3599, "59:59 min"), (8100, "2:15 h")]
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_numbers_are_short_and_the_time_left_waits_for_a_pace() -> None:
    assert [short(n) for n in (950, 12_345, 4_600_000)] == ["950", "12.3k", "4.6M"]
    assert time_left(2, 0, 10, 5.0) is None
    assert time_left(14, 10, 24, 8.0) == 20.0
    assert time_left(10, 0, 10, 8.0) is None


def test_a_lane_says_how_it_is_slowed_down() -> None:
    lane = LaneState("m")
    assert lane.slowed(0.0) == ""
    lane.history.add(0.0, 8.0, "start")
    assert lane.slowed(0.0) == ""
    lane.history.add(1.0, 5.0, "rate_limited")
    lane.adaptive = Adaptive(5)
    assert lane.slowed(1.0) == "5 at a time"
    lane.adaptive.spacing.apart = 0.4321
    assert lane.slowed(1.0) == "a call every 0.43 s"
    lane.adaptive.pause(13.0)
    assert lane.slowed(1.0) == "waits 12 s"
    lane.closed = Closed("why", "rate_limited")
    assert lane.slowed(1.0) == "asked no more"


TEMPLATE = (
    '{"fields": [{"name": "n", "type": "int", "description": "The number", "ground_truth": 1, '
    '"verify_with": {"type": "NumericExact"}}]}'
)


def prepared(url: str) -> Any:
    questions = [
        Question(
            id=f"q{n}", question=f"What is ({n})?", answer_template=TEMPLATE, template_language="karenina-template"
        )
        for n in range(4)
    ]
    answerer, judge = (
        ModelConfig(
            model_name=name,
            interface="openai_endpoint",
            endpoint_base_url=url,
            input_cost_per_token=0.001,
            output_cost_per_token=0.001,
        )
        for name in ("m", "j")
    )
    config = VerificationConfig(answering_models=[answerer], parsing_models=[judge])
    return prepare(Benchmark.create("b").with_questions(questions), config, app=Karenina.default())


def script(request: Any) -> Any:
    if "(3)" in request.text:
        return Reply.error(401)
    return {"n": 1 if "right" in request.text else 2} if request.schema else "right" if "(0)" in request.text else "no"


def test_a_run_counts_what_is_shown() -> None:
    control, seen = RunControl(), []

    def finished(_: object) -> None:
        assert control.counted is not None
        seen.append(control.counted.snapshot())

    with ScriptedServer(script) as server:
        asyncio.run(execute(prepared(server.url), on_result=finished, control=control))
    last = seen[-1]
    assert (dict(last.outcomes), dict(last.errors)) == ({"passed": 1, "failed": 2, "error": 1}, {"auth": 1})
    assert [(rate.model, rate.passed) for rate in last.rates] == [("m", pytest.approx(1 / 3))]
    assert last.rates[0].interval is not None
    assert last.tokens > 0
    assert last.cost_usd == pytest.approx(last.tokens / 1000)
    assert seen[0].in_flight >= 0


class Publisher:
    """What a notebook shows: the bundles, and whether each took the place of the one before."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []
        self.places: set[str] = set()

    def publish(self, *, data: dict[str, str], metadata: object, transient: dict[str, str], update: bool) -> None:
        assert update == bool(self.shown)
        self.shown.append(data)
        self.places.add(transient["display_id"])


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    """That of a notebook."""
    found = SimpleNamespace(kernel=object(), display_pub=Publisher())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: found))
    return found


def test_a_notebook_shows_it_and_how_it_ended(shell: Any) -> None:
    with ScriptedServer(script) as server:
        asyncio.run(execute(prepared(server.url)))
        shown, shell.display_pub.shown = shell.display_pub.shown, []
        shell.kernel = None  # a terminal
        asyncio.run(execute(prepared(server.url)))
    assert shown[0]["text/plain"].splitlines()[0].endswith("0/4 items  0 s")
    assert "4/4 items" in shown[-1]["text/plain"]
    assert 'value="4" max="4"' in shown[-1]["text/html"]
    assert "1 error: auth 1" in shown[-1]["text/html"]
    assert len(shell.display_pub.places) == 1
    assert shell.display_pub.shown == []


def test_names_of_models_are_no_markup_in_a_notebook(shell: Any) -> None:
    async def show() -> None:
        async with shown_in_notebook(lambda: Snapshot(slowed=[("<b>m</b>", "<i>")]), 2):
            pass

    asyncio.run(show())
    assert "slowed down, &lt;i&gt;" in shell.display_pub.shown[-1]["text/html"]
