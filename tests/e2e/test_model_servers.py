"""A benchmark against real HTTP servers, good ones and broken ones, through every adapter that speaks HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from karenina_core import Benchmark, ModelConfig, VerificationConfig, VerificationResultSet, extend_run
from karenina_core.errors import ConfigError
from karenina_core.testing import Reply, ScriptedServer

INTERFACES = ("openai_endpoint", "litellm")
Config = Callable[..., VerificationConfig]
Bench = Callable[[int], Benchmark]

FAULTS: Mapping[str, tuple[Callable[[], Reply], set[str]]] = {
    "429": (lambda: Reply.error(429, retry_after=0.01), {"rate_limited"}),
    "500": (lambda: Reply.error(500), {"server"}),
    "502 page": (lambda: Reply.error(502, html=True), {"server"}),
    "401": (lambda: Reply.error(401), {"auth"}),
    "400": (lambda: Reply.error(400, "no such parameter"), {"invalid_request"}),
    "garbage": (Reply.garbage, {"bad_response"}),
    "nothing": (Reply.empty, {"bad_response"}),
    "no choices": (Reply.no_choices, {"bad_response"}),
    "invalid UTF-8": (Reply.invalid_utf8, {"bad_response"}),
    "reset": (Reply.reset, {"connection"}),
    "truncated": (Reply.truncated, {"connection"}),
    "50 MB": (lambda: Reply.huge(50), {"too_large"}),
}


def honest(target: str = "BCL2") -> Callable[[Any], Any]:
    """Answers a question with a sentence and a schema with the target."""

    def script(request: Any) -> Any:
        return {"target": target} if request.schema else f"Venetoclax binds {target}."

    return script


@pytest.mark.parametrize("interface", INTERFACES)
def test_the_interface_is_a_matter_of_configuration(interface: str, benchmark_of: Bench, config_for: Config) -> None:
    with ScriptedServer(honest()) as server:
        results = benchmark_of(3).run_verification(config_for(interface, server.url))
    assert [result.metadata.outcome for result in results] == ["passed"] * 3
    assert {result.template.judge_channel for result in results if result.template} == {"json_schema"}
    assert server.count == 6


def test_a_judge_that_nobody_provides_is_told_before_an_answer_is_paid_for(
    tmp_path: Path, benchmark_of: Bench, config_for: Config
) -> None:
    with ScriptedServer(honest()) as server:
        good = config_for("openai_endpoint", server.url)
        lost = evolve(good, parsing_models=[ModelConfig(model_name="gpt-x")])
        with pytest.raises(ConfigError, match="litellm knows no provider for 'gpt-x': write the name as PROVIDER/NAME"):
            benchmark_of(2).run_verification(lost, run_dir=tmp_path / "run")
        assert server.count == 0
        assert not (tmp_path / "run").exists()
        benchmark_of(2).run_verification(good, run_dir=tmp_path / "run")
        asked = server.count
        both = evolve(good, parsing_models=[*good.parsing_models, *lost.parsing_models])
        with pytest.raises(ConfigError, match="litellm knows no provider for 'gpt-x'"):
            extend_run(tmp_path / "run", run_dir=tmp_path / "more", benchmark=benchmark_of(2), config=both)
        assert server.count == asked
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_wrong_answer_is_failed_and_says_which_field(interface: str, benchmark_of: Bench, config_for: Config) -> None:
    with ScriptedServer(honest("MCL1")) as server:
        (result,) = benchmark_of(1).run_verification(config_for(interface, server.url))
    assert str(result.outcome) == "failed"
    assert result.ledger[-1].reason == "wrong: target"
    assert result.metadata.completed_without_errors


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_broken_answering_server_is_an_error_of_its_kind(
    interface: str, fault: str, benchmark_of: Bench, config_for: Config
) -> None:
    reply, kinds = FAULTS[fault]
    with ScriptedServer(lambda request: reply()) as server:
        (result,) = benchmark_of(1).run_verification(config_for(interface, server.url))
    assert result.metadata.outcome == "error"
    assert result.metadata.outcome_detail in kinds, result.metadata.error
    assert result.template is not None
    assert result.template.verify_result is None
    assert result.metadata.error
    assert not result.metadata.completed_without_errors


@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "400"])
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_broken_judge_is_never_a_wrong_answer(
    interface: str, fault: str, benchmark_of: Bench, config_for: Config
) -> None:
    reply, kinds = FAULTS[fault]
    with ScriptedServer(lambda request: reply() if request.schema else "BCL2") as server:
        (result,) = benchmark_of(1).run_verification(config_for(interface, server.url))
    assert result.metadata.outcome == "error"
    assert result.metadata.outcome_detail in kinds, result.metadata.error
    assert result.generation.raw_llm_response == "BCL2"
    assert result.template is not None
    assert result.template.verify_result is None


@pytest.mark.parametrize(
    "said",
    ["I would rather not.", "{}", '{"aim": "BCL2"}', '{"target": "BCL2"} or {"target": "MCL1"}', "[]", '{"target": 7}'],
)
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_useless_judge_is_asked_again_and_then_an_error(
    interface: str, said: str, benchmark_of: Bench, config_for: Config
) -> None:
    with ScriptedServer(lambda request: Reply(said) if request.schema else "BCL2") as server:
        (result,) = benchmark_of(1).run_verification(config_for(interface, server.url))
    assert str(result.outcome) == "error(judge)"
    assert server.count == 3  # the answer, the judge, the judge once more
    assert "cannot be used" in server.requests[-1].text
    assert result.generation.usage_metadata["parsing"]["total_tokens"] > 0


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_judge_that_corrects_itself_counts(interface: str, benchmark_of: Bench, config_for: Config) -> None:
    replies = iter(["not json", {"target": "BCL2"}])
    with ScriptedServer(lambda request: next(replies) if request.schema else "BCL2") as server:
        (result,) = benchmark_of(1).run_verification(config_for(interface, server.url))
    assert str(result.outcome) == "passed"
    assert result.template is not None
    assert result.template.judge_repairs == 1


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_server_without_json_schema_is_asked_through_the_next_channel(
    interface: str, benchmark_of: Bench, config_for: Config
) -> None:
    def script(request: Any) -> Any:
        if request.channel == "json_schema":
            return Reply.error(400, "response_format is not supported")
        return {"target": "BCL2"} if request.channel == "tool_call" else "BCL2"

    with ScriptedServer(script) as server:
        results = benchmark_of(2).run_verification(config_for(interface, server.url, concurrency=1))
    assert [result.metadata.outcome for result in results] == ["passed", "passed"]
    assert {result.template.judge_channel for result in results if result.template} == {"tool_call"}
    assert server.count == 5  # what works is remembered: one refusal for two items


@pytest.mark.parametrize("interface", INTERFACES)
def test_odd_text_is_kept_flagged_and_written(
    interface: str, benchmark_of: Bench, config_for: Config, tmp_path: Path
) -> None:
    odd = "BCL2 \ud800 and \0 and \u202e and 🧬"
    with ScriptedServer(lambda request: {"target": "BCL2"} if request.schema else odd) as server:
        results = benchmark_of(1).run_verification(config_for(interface, server.url), run_dir=tmp_path / "run")
    (result,) = VerificationResultSet.load(tmp_path / "run")
    assert result == results[0]
    assert result.generation.raw_llm_response == odd.replace("\ud800", "\ufffd")
    assert set(result.generation.text_flags) == {"lone_surrogate", "nul", "bidi_control"}
    assert str(result.outcome) == "passed"


@pytest.mark.parametrize("interface", INTERFACES)
def test_odd_text_in_extracted_fields_is_writable_too(
    interface: str, benchmark_of: Bench, config_for: Config, tmp_path: Path
) -> None:
    with ScriptedServer(lambda request: Reply('{"target": "a\\ud800b"}') if request.schema else "BCL2") as server:
        benchmark_of(1).run_verification(config_for(interface, server.url), run_dir=tmp_path / "run")
    (result,) = VerificationResultSet.load(tmp_path / "run")
    assert result.template is not None
    assert result.template.parsed_llm_response == {"target": "a\ufffdb"}
    assert str(result.outcome) == "failed"


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_slow_server_ends_at_the_time_limit(interface: str, benchmark_of: Bench, config_for: Config) -> None:
    with ScriptedServer(lambda request: Reply.drip(0.2)) as server:
        config = config_for(interface, server.url)
        quick = (evolve(config.answering_models[0], request_timeout=0.5),)
        (result,) = benchmark_of(1).run_verification(evolve(config, answering_models=quick, parsing_models=quick))
    assert str(result.outcome) == "error(timeout)"
    assert result.metadata.execution_time < 3


def test_two_judges_read_one_answer(benchmark_of: Bench, config_for: Config) -> None:
    with ScriptedServer(honest()) as server:
        config = config_for("openai_endpoint", server.url)
        (model,) = config.answering_models
        judges = (evolve(model, id="first"), evolve(model, id="second"))
        results = benchmark_of(2).run_verification(evolve(config, parsing_models=judges))
        asked = [request for request in server.requests if not request.schema]
    assert len(results) == 4
    assert len(asked) == 2
    assert results.get_summary()["calls"] == server.count == 6
    assert {row["parsing"] for row in results.get_summary()["models"]} == {
        "openai_endpoint:scripted (first)",
        "openai_endpoint:scripted (second)",
    }


def test_the_judge_never_sees_the_ground_truth(benchmark_of: Bench, config_for: Config) -> None:
    with ScriptedServer(honest("MCL1")) as server:
        benchmark_of(1).run_verification(config_for("openai_endpoint", server.url))
    assert not any("BCL2" in json.dumps(request.body) for request in server.requests)
