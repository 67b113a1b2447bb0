"""Both checks against a real server: what is asked for fits the strict form, and every call is accounted for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karenina_core.testing import Reply, ScriptedServer

Verify = Callable[..., Any]


def answering(found: bool) -> Callable[[Any], Any]:
    def script(request: Any) -> Any:
        asked = list((request.schema or {}).get("properties", {}))
        if asked == ["answer", "disclaimer", "reasoning", "abstention_detected"]:
            return {"answer": None, "disclaimer": None, "reasoning": "it answers", "abstention_detected": False}
        if asked == ["fields", "reasoning", "sufficient"]:
            finding = {"evidence": "BCL2" if found else None, "found": found}
            return {"fields": {"target": finding}, "reasoning": "because", "sufficient": found}
        return {"target": "BCL2"} if asked else "It is BCL2."

    return script


@pytest.mark.parametrize(("found", "outcome"), [(True, "passed"), (False, "insufficient")])
def test_each_check_is_one_strict_call_under_its_own_name(verify: Verify, found: bool, outcome: str) -> None:
    with ScriptedServer(answering(found)) as server:
        done = verify(model={"interface": "openai_endpoint", "endpoint_base_url": server.url})
    assert done.outcome == outcome
    for check in ("abstention", "sufficiency"):
        usage = done.result.generation.usage_metadata[f"{check}_detection"]
        assert (usage["calls"], usage["attempts"], usage["repairs"], usage["channel"]) == (1, 1, 0, "json_schema")
    for request in server.requests[1:3]:
        assert request.body["response_format"]["json_schema"]["strict"] is True
        assert request.body["temperature"] == 0.0


def test_a_judge_that_cannot_be_reached_costs_no_verdict(verify: Verify) -> None:
    def script(request: Any) -> Any:
        checking = {"abstention_detected", "sufficient"} & set((request.schema or {}).get("properties", {}))
        return Reply.error(500) if checking else answering(True)(request)

    with ScriptedServer(script) as server:
        done = verify(model={"interface": "openai_endpoint", "endpoint_base_url": server.url})
    assert done.outcome == "passed"
    assert done.finding("abstention") == (False, False, False, None)
    assert done.finding("sufficiency") == (False, True, False, None)
    assert [warning.split(" check")[0] for warning in done.result.metadata.warnings] == [
        "the abstention",
        "the sufficiency",
    ]
    assert done.result.metadata.completed_without_errors
