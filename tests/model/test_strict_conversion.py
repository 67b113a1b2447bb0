"""The converter guesses nothing: what it takes comes back equal, and every wrong type is an error with its path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_vocabulary.prompt_config import FewShotQuestion

from karenina_core import (
    AgenticRubricTrait,
    CallableRubricTrait,
    FewShotConfig,
    LLMRubricTrait,
    MetricRubricTrait,
    ModelConfig,
    PromptConfig,
    RegexRubricTrait,
    Rubric,
    VerificationConfig,
)
from karenina_core.errors import ConfigError
from karenina_core.values.config import AttemptPolicy, RetryPolicy, switches
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.rubric import TRAIT_LISTS

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
WORD = st.text("abcdefgh-é🧬", min_size=1, max_size=6)
SCALAR = st.none() | st.booleans() | st.integers(-9, 9) | TEXT
VALUES = SCALAR | st.lists(SCALAR, max_size=2) | st.dictionaries(TEXT, SCALAR, max_size=2)
NUMBER = st.floats(0, 1e6) | st.integers(0, 10**6)
POLICY = st.builds(AttemptPolicy, st.integers(1, 9), NUMBER, NUMBER, st.floats(1, 9))
POLICIES = st.builds(RetryPolicy, rate_limited=POLICY, timeout=POLICY, connection=POLICY, server=POLICY)
MODELS = st.builds(
    ModelConfig,
    id=st.none() | WORD,
    model_name=WORD,
    model_provider=st.none() | WORD,
    interface=WORD.filter(lambda name: name != "manual"),
    temperature=st.none() | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 9999),
    system_prompt=st.none() | TEXT,
    max_retries=st.integers(0, 5),
    endpoint_base_url=st.none() | TEXT,
    api_key_env=st.none() | WORD,
    request_timeout=st.none() | st.floats(0.1, 99),
    retry_policy=st.none() | POLICIES,
    extra_kwargs=st.dictionaries(
        TEXT, SCALAR | st.lists(SCALAR, max_size=2) | st.dictionaries(TEXT, SCALAR, max_size=2)
    ),
    mcp_urls_dict=st.dictionaries(WORD, TEXT, max_size=2),
)
PICKS = st.lists(st.integers(0, 5) | WORD, max_size=3)
FEW_SHOT_QUESTION = st.builds(
    FewShotQuestion, k=st.none() | st.integers(1, 9), selected_examples=PICKS, excluded_examples=PICKS
)
FEW_SHOT = st.builds(
    FewShotConfig,
    source=st.sampled_from(["disabled", "question_pool", "global", "both"]),
    pool_mode=st.sampled_from(["all", "k-shot", "custom"]),
    pool_k=st.integers(1, 9),
    question_configs=st.dictionaries(
        WORD,
        st.builds(FewShotQuestion, k=st.none() | st.integers(1, 9), selected_examples=PICKS, excluded_examples=PICKS),
    ),
    global_examples=st.lists(st.fixed_dictionaries({"question": TEXT, "answer": TEXT}), max_size=2),
)
PROMPTS = st.builds(PromptConfig, **{a.name: st.none() | TEXT for a in attrs.fields(PromptConfig)})
SWITCHES = {name: st.none() | st.booleans() for name in switches()}
CONFIGS = st.builds(
    VerificationConfig,
    answering_models=st.lists(MODELS, max_size=2, unique_by=lambda model: str(model.identity)),
    parsing_models=st.lists(MODELS, max_size=2, unique_by=lambda model: str(model.identity)),
    replicate_count=st.integers(1, 9),
    evaluation_mode=st.sampled_from([None, "template_only", "template_and_rubric", "rubric_only"]),
    features=st.sets(WORD, max_size=3),
    use_full_trace_for_template=st.booleans(),
    request_timeout=st.floats(0.1, 999),
    retry_policy=POLICIES,
    concurrency=st.integers(1, 99),
    code_policy=st.sampled_from(["sandbox", "trusted", "refuse"]),
    few_shot_config=st.none() | FEW_SHOT,
    prompt_config=PROMPTS,
    **SWITCHES,
)


@given(CONFIGS)
@settings(deadline=None, max_examples=2 * settings().max_examples // 3, suppress_health_check=[HealthCheck.too_slow])
def test_a_configuration_survives_json(config: VerificationConfig) -> None:
    data = json.loads(json.dumps(unstructure(config), allow_nan=False))
    assert structure(data, VerificationConfig) == config


@given(MODELS)
@settings(deadline=None)
def test_a_model_survives_json(model: ModelConfig) -> None:
    assert structure(json.loads(json.dumps(unstructure(model))), ModelConfig) == model


TEMPLATE = {"type": "template", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
RUBRIC = Rubric(
    llm_traits=[
        LLMRubricTrait(name="a", kind="boolean"),
        LLMRubricTrait(name="b", kind="score", min_score=2, max_score=7),
        LLMRubricTrait(name="c", kind="literal", classes={"low": "not", "high": None}),
        LLMRubricTrait(name="d", kind=TEMPLATE),
    ],
    regex_traits=[RegexRubricTrait(name="e", pattern=r"\[\d+\]")],
    callable_traits=[CallableRubricTrait(name="f", kind="boolean", callable_code=b"\x00\xff")],
    metric_traits=[MetricRubricTrait(name="g", metrics=["f1"], tp_instructions=["x"])],
    agentic_traits=[AgenticRubricTrait(name="h", description="d", kind=TEMPLATE)],
)


def test_a_rubric_survives_json() -> None:
    data = json.loads(json.dumps(unstructure(RUBRIC)))
    kept = [trait for name in TRAIT_LISTS for trait in data[name]]
    assert [structure(plain, type(trait)) for plain, trait in zip(kept, RUBRIC, strict=True)] == list(RUBRIC)


def test_secrets_and_recorded_answers_are_never_written() -> None:
    model = ModelConfig(model_name="m", endpoint_api_key="planted-0123456789")
    manual = ModelConfig(interface="manual", manual_traces={"q": "planted-answer"})
    text = json.dumps(unstructure(VerificationConfig(answering_models=[model, manual]))) + repr(model) + repr(manual)
    assert "planted" not in text
    read = structure({"model_name": "m", "endpoint_api_key": "planted"}, ModelConfig)
    assert read.api_key() == "planted"


# Every wrong type, everywhere

PICK = "few_shot_config.question_configs['q'].selected_examples"
PLACES: list[tuple[str, Any, dict[str, Any]]] = []
for value_, path_ in [
    ("yes", "include_extraction_hints"),
    (1, "include_extraction_hints"),
    ("8", "concurrency"),
    (8.0, "concurrency"),
    (True, "concurrency"),
    (None, "concurrency"),
    ("120", "request_timeout"),
    (True, "request_timeout"),
    ([], "executor"),
    (3, "executor"),
    ("abstention", "features"),
    ({"abstention": True}, "features"),
    ([1], "features[0]"),
    ("template", "evaluation_mode"),
    (1, "evaluation_mode"),
    ("all", "code_policy"),
    ("m", "answering_models"),
    ({}, "answering_models"),
    (["m"], "answering_models[0]"),
    ([3], "answering_models[0]"),
    ([None], "answering_models[0]"),
    ([{"model_name": 3}], "answering_models[0].model_name"),
    ([{"model_name": "m", "temperature": "0"}], "answering_models[0].temperature"),
    ([{"model_name": "m", "temperature": -1}], "answering_models[0].temperature"),
    ([{"model_name": "m", "max_tokens": 1.5}], "answering_models[0].max_tokens"),
    ([{"model_name": "m", "extra_kwargs": "x"}], "answering_models[0].extra_kwargs"),
    ([{"model_name": "m", "mcp_urls_dict": {"a": 1}}], "answering_models[0].mcp_urls_dict['a']"),
    ([{"model_name": "m"}, {}], "answering_models[1].model_name"),
    ("fast", "retry_policy"),
    ({"timeout": 3}, "retry_policy.timeout"),
    ({"timeout": {"max_attempts": "3"}}, "retry_policy.timeout.max_attempts"),
    ({"timeout": {"max_attempts": 0}}, "retry_policy.timeout.max_attempts"),
    ({"pool_mode": "some"}, "few_shot_config.pool_mode"),
    (
        {"question_configs": {"q": {"selected_examples": [None]}}},
        "few_shot_config.question_configs['q'].selected_examples[0]",
    ),
    (
        {"question_configs": {"q": {"selected_examples": [True]}}},
        "few_shot_config.question_configs['q'].selected_examples[0]",
    ),
    ({"global_examples": [{"question": 1}]}, "few_shot_config.global_examples[0]['question']"),
    ({"parsing": 3}, "prompt_config.parsing"),
    ("no", "abstention_enabled"),
    (0, "deep_judgment_enabled"),
    (None, "sufficiency_enabled"),
]:
    PLACES.append((path_, value_, {path_.split(".")[0].split("[")[0]: value_}))


@pytest.mark.parametrize(("path", "value", "data"), PLACES, ids=[f"{p}={v!r}" for p, v, _ in PLACES])
def test_every_wrong_type_is_an_error_with_its_path(path: str, value: Any, data: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        structure(data, VerificationConfig)
    paths = [problem.path for problem in caught.value.problems]
    assert path in paths, caught.value.problems
    assert all(problem.message for problem in caught.value.problems)


@pytest.mark.parametrize("value", [None, 3, "abc", [], True, 1.5])
def test_what_is_no_table_is_refused(value: Any) -> None:
    for cls in (VerificationConfig, ModelConfig, PromptConfig):
        with pytest.raises(ConfigError) as caught:
            structure(value, cls, "here")
        assert [problem.path for problem in caught.value.problems] == ["here"]


def test_all_problems_at_once_each_with_a_suggestion() -> None:
    data = {
        "concurency": 4,
        "replicate_count": 0,
        "use_full_trace_for_template": "yes",
        "abstention_enabled": "yes",
        "sufficiency_enable": True,
        "code_policy": "trust",
        "parsing_models": [{"model_name": "m", "temprature": 0}, {"model_nam": "m"}],
    }
    with pytest.raises(ConfigError) as caught:
        structure(data, VerificationConfig, "run")
    told = {problem.path: problem.message for problem in caught.value.problems}
    assert told["run.concurency"] == "unknown setting (did you mean 'concurrency'?)"
    assert told["run.sufficiency_enable"] == "unknown setting (did you mean 'sufficiency_enabled'?)"
    assert told["run.parsing_models[0].temprature"] == "unknown setting (did you mean 'temperature'?)"
    assert "run.parsing_models[1].model_nam" in told
    assert told["run.use_full_trace_for_template"] == "expected true or false, got 'yes'"
    assert told["run.abstention_enabled"] == "expected true or false, got 'yes'"
    assert "did you mean 'trusted'?" in told["run.code_policy"]


@pytest.mark.parametrize("name", list(switches()))
def test_switches_are_views_of_the_features(name: str) -> None:
    on = structure({name: True}, VerificationConfig)
    assert on.features == {switches()[name]}
    assert getattr(on, name) is True
    assert on == structure({"features": [switches()[name]]}, VerificationConfig)
    assert structure({name: False, "features": [switches()[name]]}, VerificationConfig).features == frozenset()
    assert attrs.evolve(on, concurrency=3).features == on.features


@given(st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner, max_size=3)))
@settings(deadline=None)
def test_any_data_is_either_taken_or_refused(data: Any) -> None:
    for cls in (VerificationConfig, FewShotConfig, Rubric):
        try:
            made = structure(data, cls)
        except ConfigError:
            continue
        assert isinstance(data, Mapping)
        assert structure(unstructure(made), cls) == made
