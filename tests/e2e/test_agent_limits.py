"""Every limit of work with tools, in whole runs: just enough is an answer, one less ends the work and is data."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from karenina_core import Karenina
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application

LIMITS: dict[str, tuple[str, Any, Any]] = {
    # The work takes 4 replies and 5 tool calls, and has spent 36 tokens, 12 cents, before its last reply.
    # limit: its setting, what is just too little, what is just enough
    "turns": ("agent_max_turns", 3, 4),
    "tool_calls": ("agent_max_tool_calls", 4, 5),
    "tokens": ("agent_max_total_tokens", 36, 37),
    "cost": ("agent_max_cost_usd", 0.119, 0.121),
    "time": ("agent_timeout", 1.0, 30.0),
    "repeated_calls": ("agent_max_repeated_calls", 2, 3),
}
PRICES = {"input_cost_per_token": 0.003, "output_cost_per_token": 0.005}


@pytest.fixture(scope="module")
def app() -> Karenina:
    return application(installed=True)


def work(office: Any, limit: str) -> Any:
    """The usual work, or work that is slow in the middle, or that asks the same thing three times."""

    def repeats(request: ServedRequest) -> Any:
        turn = office.turn_of(request)
        return (
            office.calling(turn, ("list_files", {}))
            if turn < 3
            else Reply("The sales add up to 42 EUR.", usage=(20, 3))
        )

    def slow(request: ServedRequest) -> Any:
        usual = office.answers(request)
        return evolve(usual, latency=5.0) if office.turn_of(request) == 1 else usual

    return {"repeated_calls": repeats, "slow": slow}.get(limit, office.answers)


def run(office: Any, place: Any, app: Karenina, kind: str, **fields: Any) -> tuple[Any, int]:
    """The result, and how often the answering model was asked."""
    priced = {"interface": "litellm", "extra_kwargs": PRICES} if kind == "cost" else {}
    with ScriptedServer(office.Office(answers=work(office, kind))) as server:
        config = office.configured(server.url, **office.models(server.url, **priced, **fields))
        chosen = office.benchmark(office.TRAITS[0], root=place.root)
        (result,) = chosen.run_verification(config, app=app)
        return result, sum(request.model == "answerer" for request in server.requests)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_that_is_reached_ends_the_answer(limit: str, office: Any, place: Any, app: Karenina) -> None:
    """Those of the model are a wrong answer, and judged as far as they go; what the user grants is an error."""
    setting, too_little, _ = LIMITS[limit]
    result, asked = run(office, place, app, "slow" if limit == "time" else limit, **{setting: too_little})
    answer, kind = result.generation, {"time": "timeout", "tokens": "budget", "cost": "budget"}.get(limit)
    assert (answer.agent_metrics["limit"], answer.agent_metrics["limit_reached"]) == (limit, True)
    assert answer.recursion_limit_reached == (kind is None)
    if kind is None:
        assert str(result.outcome) == "auto_failed(RecursionLimitAutoFail)"
        assert result.metadata.error is None
        (reason,) = [effect.reason for effect in result.ledger if effect.stage == "RecursionLimitAutoFail"]
        assert limit.replace("_", " ") in reason
        assert result.rubric.trait_states["saved"]["state"] == "ok"
    else:
        assert str(result.outcome) == f"error({kind})"
        assert f"raise {setting}" in result.metadata.error
    usage = answer.usage_metadata["generation"]
    if limit != "time":
        assert asked == answer.agent_metrics["iterations"] == 3
        assert (usage["input_tokens"], usage["output_tokens"]) == (30, 6)
    assert answer.usage_unavailable == (limit == "time")  # the call that was given up has a price that nobody told
    assert answer.trace_messages[0]["tool_calls"]
    assert place.clean()


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_that_is_not_reached_changes_nothing(limit: str, office: Any, place: Any, app: Karenina) -> None:
    setting, _, enough = LIMITS[limit]
    result, asked = run(office, place, app, limit, **{setting: enough})
    assert str(result.outcome) == "passed"
    assert (result.generation.agent_metrics["limit"], asked) == (None, 4)
    if limit == "cost":
        assert result.generation.usage_metadata["generation"]["cost_usd"] == pytest.approx(
            0.12 + 20 * 0.003 + 3 * 0.005
        )


# Those who investigate


@pytest.mark.parametrize(
    ("limit", "fields"),
    [
        ("turns", {}),
        ("tool_calls", {"agent_max_tool_calls": 1}),
        ("tokens", {"agent_max_total_tokens": 20}),
        ("repeated_calls", {"agent_max_repeated_calls": 1}),
    ],
)
def test_an_investigation_that_reaches_a_limit_of_its_model_has_no_score(
    limit: str, fields: dict[str, Any], office: Any, place: Any, app: Karenina
) -> None:
    def looks(request: ServedRequest) -> Any:
        return office.calling(office.turn_of(request), *[("list_files", {})] * 2)

    trait = evolve(office.TRAITS[0], max_turns=2 if limit == "turns" else 15)
    with ScriptedServer(office.Office(looks=looks)) as server:
        config = office.configured(server.url)
        (judge,) = config.parsing_models
        config = evolve(config, parsing_models=[evolve(judge, **fields)])
        (result,) = office.benchmark(trait, root=place.root).run_verification(config, app=app)
    assert str(result.outcome) == "passed"
    part = result.rubric
    assert (part.agentic_trait_scores["saved"], part.trait_states["saved"]["state"]) == (None, "error")
    assert part.trait_details["saved"]["limit"] == limit
    assert "list_files" in part.agentic_trait_investigation_traces["saved"]
    assert place.clean()


@pytest.mark.parametrize("limit", ["turns", "time"])
def test_a_template_without_a_report_is_an_error_and_never_filled_in(
    limit: str, office: Any, place: Any, app: Karenina
) -> None:
    def looks(request: ServedRequest) -> Any:
        reply = office.calling(office.turn_of(request), ("list_files", {}))
        return evolve(reply, latency=5.0) if limit == "time" and office.turn_of(request) else reply

    small: Any = {"turns": {"agentic_parsing_max_turns": 2}, "time": {"agentic_parsing_timeout": 1.0}}[limit]
    with ScriptedServer(office.Office(looks=looks)) as server:
        config = office.configured(server.url, features=["agentic_parsing"], **small)
        (result,) = office.benchmark(root=place.root).run_verification(config, app=app)
    assert result.metadata.outcome == "error"
    assert f"ended by a limit ({limit})" in result.metadata.error
    assert f"raise {next(iter(small))}" in result.metadata.error
    assert result.template is None or not result.template.parsed_llm_response
    assert "list_files" in result.template.investigation_trace
    assert place.clean()


def test_a_model_that_hangs_at_once_has_given_no_answer(office: Any, place: Any, app: Karenina) -> None:
    with ScriptedServer(Reply.hang(20)) as server:
        config = office.configured(server.url, **office.models(server.url, agent_timeout=0.3))
        (result,) = office.benchmark(root=place.root).run_verification(config, app=app)
    assert str(result.outcome) == "error(timeout)"
    assert "raise agent_timeout" in result.metadata.error
    assert place.clean()
