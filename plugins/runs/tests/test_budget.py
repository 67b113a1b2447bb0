"""A budget is never overshot by more than the calls under way take; an unknown price is unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.limits.budget import Budget, Estimate, Experience, check_limits, tokens_of
from karenina_calls.limits.limiter import Gateway
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.prices import cost_of, may_have_cost, price_error, priced
from karenina_calls.records.requests import Request
from karenina_testing.virtual_time import run_in_virtual_time

from karenina_core import ModelConfig, VerificationConfig
from karenina_core.errors import ConfigError, ParseError, PortError
from karenina_core.ports.values import AgentResult, LLMResponse, ParsePortResult
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.message import UsageMetadata

DEAR: dict[str, Any] = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.002}


def model(name: str = "m", **facts: Any) -> ModelConfig:
    return ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url="http://host/v1", **facts)


def call(text: str = "", task: str = "generation") -> StoredCall:
    return StoredCall("key", 0, Request("llm", {}, task, 1, ({"role": "user", "content": text},)))


def facts(sent: int, said: int, cost: float | None = None, *, untold: bool = False) -> CallFacts:
    return CallFacts(usage=UsageMetadata(sent, said, sent + said, cost), usage_unavailable=untold)


Takes = Sequence[tuple[float, CallFacts | None]]


async def spend(way: Gateway, asked: ModelConfig, takes: Takes) -> tuple[int, list[Any]]:
    """Make these calls at once. How many were under way when the budget was found to be used up, and the errors."""
    lane, at_the_end = way.lane(asked), -1

    async def one(seconds: float, took: CallFacts | None) -> None:
        nonlocal at_the_end
        place = await lane.enter(call())
        await asyncio.sleep(seconds)
        under_way = way.under_way
        place.leave(took, None if took else PortError("no", kind="server"))
        if way.exhausted and at_the_end < 0:
            at_the_end = under_way

    found = await asyncio.gather(*(one(*facts) for facts in takes), return_exceptions=True)
    return at_the_end, [error for error in found if error is not None]


COSTS = st.lists(st.tuples(st.floats(0.1, 3.0), st.integers(0, 50), st.integers(0, 400)), min_size=1, max_size=40)


@given(COSTS, st.floats(0.05, 5.0), st.integers(1, 8), st.booleans())
@settings(max_examples=80, deadline=None)
def test_a_budget_is_overshot_by_no_more_than_the_calls_under_way_took(
    costs: list[tuple[float, int, int]], budget: float, most: int, by_adapter: bool
) -> None:
    async def main() -> tuple[Gateway, int, list[Any]]:
        asked = model() if by_adapter else model(**DEAR)
        way = Gateway(VerificationConfig(budget_usd=budget, max_concurrent_requests=most))
        made = [(seconds, facts(a, b, cost_of(model(**DEAR), a, b))) for seconds, a, b in costs]
        return way, *await spend(way, asked, made)

    way, under_way, errors = run_in_virtual_time(main())
    dearest = max(cost_of(model(**DEAR), a, b) or 0.0 for _, a, b in costs)
    assert way.budget.spent_usd <= budget + max(under_way, 0) * dearest + 1e-9
    assert bool(errors) == (way.budget.calls < len(costs))
    assert all(isinstance(error, PortError) and error.kind == "budget" for error in errors)
    if errors:
        assert way.budget.spent_usd >= budget * (1 - 1e-6), "as long as there is something left, it is spent"


@given(COSTS, st.integers(1, 4000))
@settings(max_examples=60, deadline=None)
def test_a_budget_of_tokens_works_in_the_same_way(costs: list[tuple[float, int, int]], budget: int) -> None:
    async def main() -> tuple[Gateway, int, list[Any]]:
        way = Gateway(VerificationConfig(budget_tokens=budget, max_concurrent_requests=5))
        return way, *await spend(way, model(), [(seconds, facts(a, b)) for seconds, a, b in costs])

    way, under_way, errors = run_in_virtual_time(main())
    assert way.budget.spent_tokens <= budget + max(under_way, 0) * max(a + b for _, a, b in costs)
    assert not errors or way.budget.spent_tokens >= budget


def test_with_good_estimates_nothing_is_overshot_however_many_could_be_under_way() -> None:
    async def main() -> Gateway:
        way = Gateway(VerificationConfig(budget_usd=1.0))
        cost = cost_of(model(**DEAR), 0, 40)
        await spend(way, model(**DEAR), [(1.0, facts(0, 40, cost))])
        await spend(way, model(**DEAR), [(1.0, facts(0, 40, cost))] * 60)
        return way

    way = run_in_virtual_time(main())
    assert 1.0 <= way.budget.spent_usd < 1.0 + 0.08 + 1e-9


@pytest.mark.parametrize(
    ("limit", "aside", "fills", "over"),
    [
        ({"usd": 0.3}, Estimate(0, 0, 0.1), Estimate(0, 0, 0.2), Estimate(0, 0, 0.2001)),  # 0.1 + 0.2 is more than 0.3
        ({"tokens": 100}, Estimate(45, 45), Estimate(4, 6), Estimate(5, 6)),
    ],
    ids=["dollars", "tokens"],
)
def test_a_call_whose_estimate_fills_the_budget_exactly_begins_at_once(
    limit: dict[str, Any], aside: Estimate, fills: Estimate, over: Estimate
) -> None:
    budget = Budget(**limit)
    budget.set_aside(aside)
    assert budget.fits(fills)
    assert not budget.fits(over)
    budget.set_aside(fills)
    assert budget.fits(Estimate(0, 0, 0.0))
    assert not budget.fits(Estimate(1, 0, 0.001))


def test_a_budget_knows_whether_it_limits_anything_and_whether_a_call_is_under_way() -> None:
    assert [budget.limited for budget in (Budget(), Budget(usd=1.0), Budget(tokens=1))] == [False, True, True]
    budget = Budget(tokens=100)
    assert budget.idle is True
    for _ in range(2):
        budget.set_aside(Estimate(20, 20, 0.5))
    assert not budget.fits(Estimate(20, 20))
    budget.give_back(Estimate(20, 20, 0.5))
    assert budget.idle is False
    assert budget.fits(Estimate(20, 20, 0.5))
    budget.give_back(Estimate(20, 20, 0.5))
    assert budget.idle is True


def test_what_is_spent_set_aside_and_estimated_is_added_up() -> None:
    dollars, tokens, unknown = Budget(usd=10.0), Budget(tokens=100), Estimate(0, 0)
    for budget, full in ((dollars, Estimate(0, 0, 5.0)), (tokens, Estimate(25, 25))):
        budget.spent_before(2.0, 20, 3)
        budget.set_aside(Estimate(15, 15, 3.0))
        assert budget.fits(full)
        assert not budget.fits(Estimate(26, 25, 5.1))
        budget.settle(unknown, facts(0, 0), model(), replied=False)
        assert budget.fits(full), "nothing was taken"
    dollars.settle(Estimate(9, 9, 4.0), facts(1, 2, 1.0), model())
    assert dollars.fits(Estimate(0, 0, 4.0))
    assert not dollars.fits(Estimate(0, 0, 4.1))
    counted = tokens.settle(Estimate(5, 5), facts(4, 3, untold=True), model())
    assert counted.estimated_tokens == 3
    assert tokens.fits(Estimate(20, 20))
    assert not tokens.fits(Estimate(20, 21))
    assert tokens.settle(Estimate(1, 1), facts(4, 3, untold=True), model()).estimated_tokens == 0


def test_what_is_set_aside_in_dollars_is_given_back_and_an_unknown_price_sets_nothing_aside() -> None:
    budget, half, unknown = Budget(usd=1.0), Estimate(0, 0, 0.5), Estimate(0, 0)
    budget.set_aside(unknown)
    assert budget.fits(Estimate(0, 0, 1.0))
    budget.set_aside(half)
    budget.set_aside(half)
    assert not budget.fits(half)
    budget.give_back(half)
    budget.give_back(unknown)
    assert budget.fits(half)
    assert not budget.fits(Estimate(0, 0, 0.6))
    budget.give_back(half)
    budget.set_aside(half)
    assert budget.fits(half)


def test_a_reply_without_a_price_ends_a_budget_of_dollars() -> None:
    budget = Budget(usd=1.0)
    budget.settle(Estimate(0, 0), facts(1, 1), model())
    assert "the cost of calls" in budget.exhausted


@pytest.mark.parametrize("limit", [{"usd": 2.0}, {"tokens": 20}])
def test_a_budget_that_was_used_up_before_the_run_was_continued_is_used_up(limit: dict[str, Any]) -> None:
    budget = Budget(**limit)
    budget.spent_before(1.0, 10, 2)
    assert budget.exhausted == ""
    budget.spent_before(1.0, 10, 3)
    assert "in 5 calls" in budget.exhausted


def test_limits_that_cannot_be_kept_are_refused_before_the_run() -> None:
    app = application(installed=["openai_endpoint", "manual"])
    named = {"answering_models": [model("a")], "parsing_models": [model("j", **DEAR)]}

    def problems(*overrides: ModelConfig, **config: Any) -> list[tuple[str, str]]:
        try:
            check_limits(app, VerificationConfig(**{**named, **config}), overrides)
        except ConfigError as error:
            return [(problem.path, problem.message.partition(":")[0]) for problem in error.problems]
        return []

    assert problems() == problems(budget_tokens=5) == problems(answerer_concurrency_limits={"a": 1}) == []
    assert problems(answerer_concurrency_limits={"j": 1, "a": 2}) == [
        ("answerer_concurrency_limits.j", "no answering model has this id; they are 'a'")
    ]
    priced_model = {"answering_models": [model("a", **DEAR)], "budget_usd": 1.0}
    assert problems(**priced_model) == []
    assert problems(budget_usd=1.0) == problems(model("a"), budget_usd=1.0) == [("budget_usd", "openai_endpoint")]
    assert problems(ModelConfig(interface="manual", manual_traces={"q": "a"}), **priced_model) == []
    assert problems(model("o"), **priced_model) == [("budget_usd", "openai_endpoint")]


class ScriptedParser(ScriptedLLM):
    """It is never asked: only what it says of itself is looked at."""

    async def aparse(self, messages: Any, schema: Any, *, call: Any = None) -> ParsePortResult:
        raise NotImplementedError


def test_one_way_of_asking_a_model_that_does_not_tell_what_it_costs_is_enough_to_refuse_a_budget() -> None:
    telling, silent = ScriptedParser(), ScriptedParser()
    telling.capabilities = evolve(telling.capabilities, reports_cost=True)
    judge = ModelConfig(model_name="m", interface="two")
    config = VerificationConfig(answering_models=[model("a", **DEAR)], parsing_models=[judge], budget_usd=1.0)
    for other in (telling, silent):
        adapter = telling.adapter("two", parser_factory=lambda asked, other=other: other)
        app = application(adapter, installed=["openai_endpoint"])
        with nullcontext() if other is telling else pytest.raises(ConfigError, match="does not report what calls cost"):
            check_limits(app, config)


def test_an_exhausted_budget_says_what_was_spent_and_how_to_go_on() -> None:
    budget = Budget(usd=0.5)
    budget.settle(Estimate(1, 1, 0.1), facts(1, 1, 0.51), model())
    assert "0.5 US dollars" in budget.exhausted
    assert "0.51 in 1 call" in budget.exhausted
    assert "--budget-usd" in budget.exhausted
    budget = Budget(tokens=100)
    budget.settle(Estimate(1, 1), facts(90, 20), model())
    assert "the budget of 100 tokens is used up (110 in 1 call)" in budget.exhausted
    assert "--budget-tokens" in budget.exhausted


def test_a_price_that_nobody_tells_ends_a_budget_of_dollars_after_one_call() -> None:
    async def main() -> tuple[Gateway, list[Any]]:
        way = Gateway(VerificationConfig(budget_usd=100.0))
        return way, (await spend(way, model(), [(1.0, facts(10, 10))] * 20))[1]

    way, errors = run_in_virtual_time(main())
    assert (way.budget.calls, way.budget.spent_usd) == (1, 0.0)
    assert len(errors) == 19
    assert "input_cost_per_token" in str(errors[0])
    assert "budget_tokens" in str(errors[0])


def test_a_reply_whose_tokens_are_not_told_counts_as_it_was_estimated() -> None:
    budget = Budget(usd=1.0)
    budget.settle(Estimate(10, 10, 0.6), facts(0, 0, untold=True), model(**DEAR))
    assert not budget.exhausted
    budget.settle(Estimate(10, 10, 0.6), facts(0, 0, untold=True), model(**DEAR))
    assert "used up" in budget.exhausted
    tokens = Budget(tokens=30)
    tokens.settle(Estimate(10, 30), facts(0, 0, untold=True), model())
    assert tokens.exhausted


def test_what_a_call_counts_as_is_told_where_nobody_says_what_it_took() -> None:
    budget = Budget(tokens=1000)
    assert budget.settle(Estimate(10, 20, 0.5), facts(1, 2, 0.1), model()) == facts(1, 2, 0.1)
    untold = budget.settle(Estimate(10, 20, 0.5), facts(0, 0, untold=True), model())
    assert (untold.estimated_tokens, untold.estimated_usd) == (30, 0.5)
    partly = budget.settle(Estimate(10, 20, 0.5), facts(4, 2, 0.1, untold=True), model())
    assert (partly.estimated_tokens, partly.estimated_usd) == (24, None)


@pytest.mark.parametrize("limits", [{"budget_tokens": 1}, {}])
def test_a_call_counts_as_something_although_no_budget_was_set_when_it_was_made(limits: dict[str, Any]) -> None:
    async def main() -> CallFacts | None:
        place = await Gateway(VerificationConfig(**limits)).lane(model(**DEAR)).enter(call("x" * 400))
        return place.leave(facts(0, 0, untold=True), None)

    counted = run_in_virtual_time(main())
    assert counted is not None
    assert counted.estimated_tokens == 1103
    assert counted.estimated_usd == pytest.approx(2.103)


def ends_in(error: BaseException, took: CallFacts | None = None, **limits: Any) -> tuple[Gateway, CallFacts | None]:
    async def main() -> tuple[Gateway, CallFacts | None]:
        way = Gateway(VerificationConfig(**limits))
        place = await way.lane(model(**DEAR)).enter(call())
        return way, place.leave(took, error)

    return run_in_virtual_time(main())


def test_what_an_agent_took_that_failed_is_spent() -> None:
    way, counted = ends_in(PortError("broken", kind="agent"), facts(10, 20, 5.0), budget_usd=1.0)
    assert "5 in 1 call" in way.exhausted
    assert (way.budget.calls, way.budget.spent_usd, way.budget.spent_tokens) == (1, 5.0, 30)
    assert counted == facts(10, 20, 5.0)


@pytest.mark.parametrize("kind", ["timeout", "bad_response", "too_large", "agent"])
def test_a_failed_attempt_that_may_be_billed_counts_as_it_was_estimated(kind: Any) -> None:
    way, counted = ends_in(PortError("no", kind=kind), budget_tokens=500)
    assert "used up" in way.exhausted
    assert counted is not None
    assert counted.estimated_tokens == 1003
    assert counted.estimated_usd == pytest.approx(2.003)
    assert ends_in(asyncio.CancelledError(), budget_tokens=500)[0].exhausted


@pytest.mark.parametrize("kind", ["rate_limited", "connection", "server", "auth", "invalid_request"])
def test_an_attempt_that_was_refused_or_never_arrived_counts_nothing(kind: Any) -> None:
    way, counted = ends_in(PortError("no", kind=kind), budget_tokens=500)
    assert (way.exhausted, counted) == ("", None)


def test_an_attempt_that_failed_does_not_end_a_budget_because_its_price_is_unknown() -> None:
    async def main() -> str:
        way = Gateway(VerificationConfig(budget_usd=5.0))
        place = await way.lane(model()).enter(call())
        place.leave(None, PortError("late", kind="timeout"))
        return way.exhausted

    assert run_in_virtual_time(main()) == ""


def test_calls_that_failed_give_back_what_was_set_aside() -> None:
    async def main() -> Gateway:
        way = Gateway(VerificationConfig(budget_usd=1.0, max_concurrent_requests=4))
        assert (await spend(way, model(**DEAR), [(1.0, None)] * 50))[1] == []
        return way

    way = run_in_virtual_time(main())
    assert (way.budget.calls, way.budget.spent_usd, way.budget.spent_tokens) == (0, 0.0, 0)


# Estimates


def test_what_a_call_will_take_is_learnt_task_by_task() -> None:
    experience = Experience()
    assert experience.estimate(50, "generation", model(max_tokens=70)) == Estimate(50, 70, None)
    assert experience.estimate(50, "generation", model(max_tokens=None)) == Estimate(50, 1000, None)
    experience.learn("generation", facts(50, 300, 0.5))
    experience.learn("generation", facts(50, 500, 1.5))
    assert experience.estimate(60, "generation", model()) == Estimate(60, 400, 1.0)
    assert experience.estimate(60, "parsing", model()) == Estimate(60, 400, 1.0), "better than nothing"
    experience.learn("parsing", facts(50, 20, 0.1))
    assert experience.estimate(60, "parsing", model()) == Estimate(60, 20, 0.1)
    assert experience.estimate(60, "parsing", model(**DEAR)).usd == pytest.approx(60 * 0.001 + 20 * 0.002)
    experience.learn("parsing", facts(0, 0, untold=True))
    assert experience.estimate(60, "parsing", model()).output_tokens == 20, "what is not told is not nothing"


def test_every_text_of_a_request_counts() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "x" * 400}]}
    plain = Request("llm", {}, "t", 1, (message,))
    assert 100 <= tokens_of(plain) <= 110
    assert tokens_of(Request("llm", {}, "t", 1, (message,), {"description": "x" * 400})) >= tokens_of(plain) + 100
    tools = {"tools": [{"name": "look", "description": "x" * 400}]}
    assert tokens_of(Request("llm", {}, "t", 1, (message,), parameters=tools)) >= tokens_of(plain) + 100
    assert tokens_of(Request("llm", {}, "t", 1, ({"content": "語" * 400},))) >= 300


# Prices


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 0.01), st.floats(0, 0.01))
def test_prices_give_the_cost_of_every_kind_of_reply(sent: int, said: int, dear: float, dearer: float) -> None:
    asked = model(input_cost_per_token=dear, output_cost_per_token=dearer)
    usage = UsageMetadata(sent, said, sent + said)
    error = ParseError("no")
    error.usage = usage
    price_error(error, asked)
    costs = [
        priced(LLMResponse(content="", usage=usage), asked).usage.cost_usd,
        priced(ParsePortResult(data={}, usage=usage), asked).usage.cost_usd,
        priced(AgentResult(final_response="", usage=usage), asked).usage.cost_usd,
        getattr(error.usage, "cost_usd", None),
    ]
    assert costs == [sent * dear + said * dearer] * 4


def test_the_adapter_knows_better_and_what_nobody_knows_stays_unknown() -> None:
    told = LLMResponse(content="", usage=UsageMetadata(1, 1, 2, cost_usd=0.0))
    assert priced(told, model(**DEAR)) is told
    untold = LLMResponse(content="", usage_unavailable=True)
    assert priced(untold, model(**DEAR)) is untold
    unpriced = LLMResponse(content="", usage=UsageMetadata(1, 1, 2))
    assert priced(unpriced, model()) is unpriced
    assert priced("anything", model(**DEAR)) == "anything"


def test_a_useless_reply_of_which_nobody_says_what_it_took_has_no_price() -> None:
    untold, silent = ParseError("no"), ParseError("no")
    untold.usage, untold.usage_unavailable = UsageMetadata(1, 1, 2), True
    for error in (untold, silent):
        before = error.usage
        price_error(error, model(**DEAR))
        assert error.usage is before


def test_what_was_given_up_may_have_cost_something_and_what_was_refused_has_not() -> None:
    given_up = [PortError("late", kind="timeout"), ParseError("no"), asyncio.CancelledError(), KeyboardInterrupt()]
    refused = [None, PortError("no", kind="rate_limited"), PortError("no", kind="auth"), ValueError("a bug")]
    assert [may_have_cost(error) for error in (*given_up, *refused)] == [True] * 4 + [False] * 4


@pytest.mark.parametrize("price", ["input_cost_per_token", "output_cost_per_token"])
def test_one_price_alone_is_refused_and_a_price_of_nothing_is_one(price: str) -> None:
    alone: dict[str, Any] = {price: 0.1}
    with pytest.raises(ConfigError, match="both prices"):
        model(**alone)
    assert cost_of(model(input_cost_per_token=0, output_cost_per_token=0), 5, 5) == 0.0
