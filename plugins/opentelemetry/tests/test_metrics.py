"""Metrics of items and calls, as a reader of the SDK gets them."""

from __future__ import annotations

from typing import Any

import pytest
from karenina_opentelemetry.metrics import SECONDS, use_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

TEMPLATE = (
    '{"fields": [{"name": "target", "type": "str", "description": "The protein", "ground_truth": "BCL2", '
    '"verify_with": {"type": "ExactMatch"}}]}'
)
QUESTIONS = [
    Question(id=name, question=name, answer_template=TEMPLATE, template_language="karenina-template")
    for name in ("right", "wrong", "down")
]


def script(request: ServedRequest) -> Any:
    if "down" in request.text:
        return Reply.error(400)
    if request.channel == "text":
        return Reply("wrong" if "wrong" in request.text else "right", usage=(11, 3))
    return Reply({"target": "BCL2" if "right" in request.text else "MCL1"}, usage=(20, 5))


def verify(prices: dict[str, float] | None = None, **settings: Any) -> dict[str, list[Any]]:
    """The points of every metric, by name."""
    reader = InMemoryMetricReader()
    app = Karenina.installed(settings={"opentelemetry": settings})
    use_meter_provider(app, MeterProvider([reader], shutdown_on_exit=False))
    with ScriptedServer(script) as server:
        model = ModelConfig(
            model_name="small",
            interface="openai_endpoint",
            endpoint_base_url=server.url,
            **(prices or {}),
        )
        config = VerificationConfig(answering_models=[model], parsing_models=[model])
        Benchmark.create("targets").with_questions(QUESTIONS).run_verification(config, app=app)
    data = reader.get_metrics_data()
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
    return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


@pytest.fixture(scope="module")
def points() -> dict[str, list[Any]]:
    return verify(metrics=True)


def test_items_are_counted_by_outcome(points: dict[str, list[Any]]) -> None:
    counted = {point.attributes["karenina.outcome"]: point.value for point in points["karenina.items"]}
    assert counted == {"passed": 1, "failed": 1, "error": 1}


def test_tokens_are_counted_by_model_and_kind(points: dict[str, list[Any]]) -> None:
    sums: dict[str, int] = {}
    for point in points["gen_ai.client.token.usage"]:
        assert point.attributes["gen_ai.request.model"] == "small"
        assert point.attributes["gen_ai.provider.name"] == "openai"
        kind = point.attributes["gen_ai.token.type"]
        sums[kind] = sums.get(kind, 0) + point.sum
    assert sums == {"input": 2 * 11 + 2 * 20, "output": 2 * 3 + 2 * 5}


def test_every_call_has_a_duration_and_failures_their_kind(points: dict[str, list[Any]]) -> None:
    by_error = {point.attributes.get("error.type"): point for point in points["gen_ai.client.operation.duration"]}
    assert {kind: point.count for kind, point in by_error.items()} == {None: 4, "invalid_request": 1}
    assert by_error[None].attributes["gen_ai.operation.name"] == "chat"
    assert by_error[None].attributes["server.address"] == "127.0.0.1"
    assert by_error[None].explicit_bounds == SECONDS
    assert by_error[None].sum > 0


def test_costs_are_counted_by_task() -> None:
    points = verify({"input_cost_per_token": 0.001, "output_cost_per_token": 0.01}, metrics=True)["karenina.cost"]
    costs = {point.attributes["karenina.task"]: point.value for point in points}
    assert costs == pytest.approx({"generation": 2 * (0.011 + 0.03), "parsing": 2 * (0.02 + 0.05)})


def test_what_an_item_costs_is_unknown_where_no_price_is(points: dict[str, list[Any]]) -> None:
    assert "karenina.cost" not in points


@pytest.mark.parametrize("settings", [{}, {"enabled": False, "metrics": False}])
def test_nothing_is_measured_while_it_is_off(settings: dict[str, Any]) -> None:
    assert verify(**settings) == {}
