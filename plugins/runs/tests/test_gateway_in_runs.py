"""Whole runs against a real server: limits, waits, budgets and prices hold in them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_runs.execute.item_verifier import arun_single_model_verification

from karenina_core import (
    Benchmark,
    Karenina,
    LLMRubricTrait,
    ModelConfig,
    Rubric,
    VerificationConfig,
    VerificationResult,
    VerificationResultSet,
    resume_run,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

PRICES: dict[str, Any] = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.002}
ONE_AT_A_TIME: dict[str, Any] = {"concurrency": 4, "max_concurrent_requests": 1}
AGAIN = RetryPolicy(rate_limited=AttemptPolicy(3), server=AttemptPolicy(3))


def answered(request: ServedRequest) -> Any:
    return {"target": "BCL2"} if request.schema is not None else "It is BCL2."


def slowly(request: ServedRequest) -> Reply:
    return Reply(answered(request), latency=0.05)


@pytest.fixture
def make_app(plugin_names: set[str]) -> Callable[[], Karenina]:
    return lambda: application(installed={*plugin_names, "openai_endpoint"})


@contextmanager
def closing_application(installed: set[str]) -> Iterator[Karenina]:
    app = application(installed=installed)
    try:
        yield app
    finally:
        app.loop.close()


def model(server: ScriptedServer, name: str = "m", **facts: Any) -> ModelConfig:
    return ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url=server.url, **facts)


def verified(
    server: ScriptedServer,
    app: Karenina,
    questions: list[Any],
    *models: ModelConfig,
    judge: ModelConfig | None = None,
    run_dir: Path | None = None,
    **facts: Any,
) -> VerificationResultSet:
    config = VerificationConfig(
        answering_models=models or [model(server)], parsing_models=[judge or model(server, "j")], **facts
    )
    try:
        benchmark = Benchmark(name="b", questions=questions)
        return benchmark.run_verification(config, run_dir=run_dir, app=app)
    finally:
        app.loop.close()


def test_no_more_requests_are_under_way_than_allowed_of_both_roles_together(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    with ScriptedServer(slowly) as server:
        questions = [make_question(n) for n in range(12)]
        results = verified(server, make_app(), questions, concurrency=12, max_concurrent_requests=3)
        assert len(results) == 12
        assert server.peak == 3


def test_a_model_that_answers_and_judges_has_one_limit_for_both(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    with ScriptedServer(slowly) as server:
        questions = [make_question(n) for n in range(6)]
        judge = model(server, temperature=0.0)
        verified(server, make_app(), questions, judge=judge, concurrency=6, answerer_concurrency_limits={"m": 2})
        assert server.peak == 2


def test_a_call_that_waits_for_its_next_attempt_holds_no_place(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karenina_calls.ports.retry.random.uniform", lambda least, most: most)
    patient = RetryPolicy(server=AttemptPolicy(2, 600.0, 600.0))

    def script(request: ServedRequest) -> Any:
        first = request.schema is None and "target 0" in request.text
        return Reply.error(500) if first and request.number == 1 else answered(request)

    async def main(server: ScriptedServer, app: Karenina) -> int:
        config = VerificationConfig(
            answering_models=[model(server)],
            parsing_models=[model(server, "j")],
            retry_policy=patient,
            retry_max_elapsed_seconds=1000.0,
            concurrency=2,
            max_concurrent_requests=1,
        )
        questions = [make_question(n) for n in range(5)]
        run = asyncio.create_task(Benchmark(name="b", questions=questions).arun_verification(config, app=app))
        await asyncio.to_thread(server.wait_for, 9, 120.0)  # the failed attempt, and all of the four others
        run.cancel()
        await asyncio.wait({run})
        return server.count

    with ScriptedServer(script) as server:
        assert asyncio.run(main(server, make_app())) == 9


def test_a_wait_for_a_place_counts_against_no_time_limit(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    with ScriptedServer(lambda request: Reply(answered(request), latency=0.1)) as server:
        questions = [make_question(n) for n in range(6)]
        results = verified(
            server,
            make_app(),
            questions,
            concurrency=6,
            max_concurrent_requests=1,
            request_timeout=0.5,
            retry_max_elapsed_seconds=0.5,
        )
        assert [str(result.outcome) for result in results] == ["passed"] * 6
        usage = [row["seconds"] for result in results for row in result.generation.usage_metadata.values()]
        assert max(usage) < 0.5, "nor does it count as what the call took"


def test_a_server_s_wait_is_kept_by_the_call_that_it_refused_fractions_included(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    arrived: list[tuple[float, bool, str]] = []

    def script(request: ServedRequest) -> Any:
        refused = request.number == 3
        arrived.append((time.monotonic(), refused, str(request.body["messages"])))
        return Reply.error(429, retry_after=0.65) if refused else answered(request)

    with ScriptedServer(script) as server:
        questions = [make_question(n) for n in range(4)]
        judge = model(server, temperature=0.0)
        results = verified(server, make_app(), questions, judge=judge, retry_policy=AGAIN, **ONE_AT_A_TIME)
        assert [str(result.outcome) for result in results] == ["passed"] * 4
    refused, asked = next((at, text) for at, no, text in arrived if no)
    assert min(at for at, no, text in arrived if text == asked and not no) - refused >= 0.65
    assert len(arrived) == 9


def test_an_item_that_waits_for_a_retry_after_gives_its_place_to_another(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    arrived: list[tuple[float, bool, str]] = []
    together: list[int] = []

    def script(request: ServedRequest) -> Any:
        refused = request.number == 2
        arrived.append((time.monotonic(), refused, str(request.body["messages"])))
        together.append(server.in_flight)
        return Reply.error(429, retry_after=1.0) if refused else Reply(answered(request), latency=0.01)

    with ScriptedServer(script) as server:
        questions = [make_question(n) for n in range(6)]
        judge = model(server, temperature=0.0)
        results = verified(server, make_app(), questions, judge=judge, retry_policy=AGAIN, concurrency=1)
        assert [str(result.outcome) for result in results] == ["passed"] * 6
    refused, asked = next((at, text) for at, no, text in arrived if no)
    back = min(at for at, no, text in arrived if text == asked and not no)
    assert back - refused >= 1.0
    assert sum(refused < at < back for at, *_ in arrived) >= 2, "another item is worked on meanwhile"
    assert max(together) <= 2, "one at a time, as it was set, and the one that had waited"
    assert len(arrived) == 13


def test_a_provider_that_takes_five_calls_a_second_loses_no_item_and_refuses_few_calls(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    taken: list[float] = []
    refused: list[float] = []

    def script(request: ServedRequest) -> Any:
        now = time.monotonic()
        if taken and now - taken[-1] < 0.2:
            refused.append(now)
            return Reply.error(429, retry_after=1)
        taken.append(now)
        return answered(request)

    with ScriptedServer(script) as server:
        questions = [make_question(n) for n in range(12)]
        judge = model(server, temperature=0.0)
        results = verified(server, make_app(), questions, judge=judge, concurrency=8)
    assert [str(result.outcome) for result in results] == ["passed"] * 12
    assert len(taken) == 24
    assert len(refused) <= len(taken), "half of the attempts, on a machine that has other work; 35 % on a quiet one"


def test_a_run_stops_asking_when_its_budget_is_spent_and_says_how_to_go_on(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedServer(slowly) as server:
        questions = [make_question(n) for n in range(30)]
        asked, judge = model(server, **PRICES), model(server, "j", **PRICES)
        run_dir = tmp_path / "run"
        results = verified(
            server, make_app(), questions, asked, judge=judge, run_dir=run_dir, budget_usd=0.5, concurrency=4
        )
        outcomes = [str(result.outcome) for result in results]
        requests = server.count
    totals = [result.generation.usage_metadata.get("total", {"calls": 0, "cost_usd": 0.0}) for result in results]
    assert sum(total["calls"] for total in totals) == requests, "calls that were not made are not counted"
    spent = sum(total["cost_usd"] for total in totals)
    assert len(results) < 30, "nothing new is begun"
    assert 2 <= requests < 60
    assert spent >= 0.5 * 0.9
    assert set(outcomes) == {"passed", "error(budget)"}
    assert outcomes.count("error(budget)") <= 4, "only items that were under way"
    assert json.loads((run_dir / "manifest.json").read_text("utf-8"))["status"] == "interrupted"
    assert any("--budget-usd" in note for note in results.notes)


JUDGED = Rubric(llm_traits=[LLMRubricTrait(name=f"trait {n}", kind="boolean", summary=f"sort {n}") for n in range(2)])
EACH = 15
"""Tokens of a call."""


def judged(request: ServedRequest) -> Reply:
    if request.schema is None:
        return Reply("It is BCL2.", usage=(10, 5))
    said = {
        "target": "BCL2",
        "abstention_detected": False,
        "reasoning": "It answers.",
        "answer": None,
        "disclaimer": None,
    }
    return Reply({name: said.get(name, True) for name in request.schema["properties"]}, usage=(10, 5))


def errors_of_traits(result: VerificationResult) -> Mapping[str, str]:
    return result.rubric.trait_errors if result.rubric is not None else {}


def what_came_of(results: VerificationResultSet) -> list[Any]:
    return [
        (
            result.metadata.result_id,
            str(result.outcome),
            result.checks,
            result.rubric,
            result.ledger,
            {task: row["calls"] for task, row in result.generation.usage_metadata.items()},
        )
        for result in results
    ]


@pytest.mark.parametrize(("questions", "concurrency"), [(1, 1), (2, 3)])
def test_at_whichever_call_a_budget_is_used_up_the_run_that_is_gone_on_with_is_the_whole_one(
    plugin_names: set[str],
    make_question: Callable[..., Any],
    tmp_path: Path,
    questions: int,
    concurrency: int,
    long: bool,
) -> None:
    installed = {*plugin_names, "openai_endpoint", "abstention-check", "rubric-evaluation", "trait-llm"}
    benchmark = Benchmark(name="b", questions=[make_question(n) for n in range(questions)]).with_rubric(JUDGED)
    with closing_application(installed) as app, ScriptedServer(judged) as server:
        config = VerificationConfig(
            answering_models=[model(server)],
            parsing_models=[model(server, "j"), model(server, "k")],
            features=["abstention"],
            rubric_evaluation_strategy="sequential",
            concurrency=concurrency,
        )
        facts: dict[str, Any] = {"app": app, "run_name": "the run"}
        whole = benchmark.run_verification(config, run_dir=tmp_path / "whole", **facts)
        calls = server.count
        assert calls == questions * (1 + 2 * 4)
        lacking = 0
        budgets = range(1, calls, questions if long or questions == 1 else 2 * questions + 1)
        for most in budgets:
            run_dir = tmp_path / f"{most}"
            part = benchmark.run_verification(evolve(config, budget_tokens=most * EACH), run_dir=run_dir, **facts)
            assert {str(result.outcome) for result in part} <= {"passed", "error(budget)"}
            assert not any(errors_of_traits(result) for result in part if str(result.outcome) == "passed")
            lacking += any(note.startswith("left until") for note in part.notes)
            rest = resume_run(run_dir, benchmark=benchmark, config=config, app=app)
            assert what_came_of(rest) == what_came_of(whole)
        assert lacking > 0
        assert server.count == calls * (1 + len(budgets)), "what was paid for is not paid for again"


def test_without_a_directory_a_trait_that_was_too_dear_says_so(
    plugin_names: set[str], make_question: Callable[..., Any]
) -> None:
    installed = {*plugin_names, "openai_endpoint", "rubric-evaluation", "trait-llm"}
    benchmark = Benchmark(name="b", questions=[make_question(0)]).with_rubric(JUDGED)
    with closing_application(installed) as app, ScriptedServer(judged) as server:
        config = VerificationConfig(
            answering_models=[model(server)], parsing_models=[model(server, "j")], budget_tokens=2 * EACH
        )
        (result,) = benchmark.run_verification(config, app=app)
    assert str(result.outcome) == "passed"
    errors = errors_of_traits(result)
    assert set(errors) == {"trait 0", "trait 1"}
    assert all("budget_tokens" in reason for reason in errors.values())


def test_a_budget_of_dollars_is_refused_where_nobody_would_tell_what_calls_cost(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    with ScriptedServer(answered) as server:
        with pytest.raises(ConfigError) as caught:
            verified(server, make_app(), [make_question(0)], model(server, **PRICES), budget_usd=1.0)
        assert server.count == 0
    (problem,) = caught.value.problems
    assert problem.path == "budget_usd"
    assert "openai_endpoint:j" in problem.message
    assert "input_cost_per_token" in problem.message


def test_the_manifest_says_how_many_calls_each_model_was_given_at_the_same_time(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    def script(request: ServedRequest) -> Any:
        return Reply.error(429, retry_after=0.01) if request.number == 1 else answered(request)

    with ScriptedServer(script) as server:
        asked = model(server, endpoint_api_key="canary-of-the-lane")
        questions = [make_question(n) for n in range(3)]
        facts: dict[str, Any] = {"answerer_concurrency_limits": 5, "retry_policy": AGAIN}
        verified(server, make_app(), questions, asked, run_dir=tmp_path / "run", **facts)
    text = (tmp_path / "run" / "manifest.json").read_text("utf-8")
    (process,) = json.loads(text)["processes"]
    assert (process["status"], process["began_at"] < process["ended_at"]) == ("completed", True)
    lanes = process["lanes"]
    names = [f"openai_endpoint:{name} at {server.url}" for name in ("m", "j")]
    assert sorted(lanes) == sorted(names)
    assert [moment["why"] for moment in lanes[names[0]]] == ["start", "rate_limited", "now"]
    before, after = (moment["limit"] for moment in lanes[names[0]][:2])
    assert (before, after < 5.0) == (5.0, True)
    assert "canary-of-the-lane" not in text


def test_limits_of_a_model_that_does_not_answer_are_refused(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    with ScriptedServer(answered) as server, pytest.raises(ConfigError) as caught:
        verified(server, make_app(), [make_question(0)], answerer_concurrency_limits={"m": 1, "j": 1})
    assert [problem.path for problem in caught.value.problems] == ["answerer_concurrency_limits.j"]


def test_prices_give_results_their_cost_and_without_them_it_is_unknown(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    with ScriptedServer(answered) as server:
        (priced,) = verified(server, make_app(), [make_question(0)], model(server, **PRICES))
        (unpriced,) = verified(server, make_app(), [make_question(0)])
    row = priced.generation.usage_metadata["generation"]
    assert row["cost_usd"] == pytest.approx(0.001 * row["input_tokens"] + 0.002 * row["output_tokens"])
    assert row["cost_usd"] > 0
    assert unpriced.generation.usage_metadata["generation"]["cost_usd"] is None


def test_limits_hold_in_a_single_verification_too(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    async def main(server: ScriptedServer, app: Karenina) -> Any:
        config = VerificationConfig(budget_tokens=1)
        return await arun_single_model_verification(
            make_question(0), model(server), model(server, "j"), config=config, app=app
        )

    with ScriptedServer(answered) as server:
        result = asyncio.run(main(server, make_app()))
        assert server.count == 1
        with pytest.raises(ConfigError, match="budget_usd"):
            asyncio.run(
                arun_single_model_verification(
                    make_question(0),
                    model(server),
                    model(server, "j"),
                    config=VerificationConfig(budget_usd=1.0),
                    app=make_app(),
                )
            )
    assert "budget" in str(result.outcome)
