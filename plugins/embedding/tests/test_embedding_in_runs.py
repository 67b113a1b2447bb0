"""The embedding check in whole runs: a real model on this machine, real HTTP to the judge, real templates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from karenina_embedding import minilm

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.errors import ConfigError
from karenina_core.testing import ScriptedServer
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.convert import unstructure

NOWHERE = "http://127.0.0.1:9/v1"
ONCE = AttemptPolicy(1)
NO_RETRIES = RetryPolicy(rate_limited=ONCE, timeout=ONCE, connection=ONCE, server=ONCE)
ANSWER = "Venetoclax binds BCL-2."


def spec(*fields: tuple[str, str, Any, str], **facts: Any) -> str:
    """A template of `(name, type, expected, primitive)`."""
    rows = [
        {"name": n, "type": t, "description": f"the {n}", "ground_truth": e, "verify_with": {"type": p}}
        for n, t, e, p in fields
    ]
    return json.dumps({"class_name": "Answer", "fields": rows, **facts})


TARGET = spec(("target", "str", "BCL2", "ExactMatch"))


class Judge:
    """A server's script: what is extracted, which fields are equivalent, and what was asked about equivalence."""

    def __init__(self, extracted: Mapping[str, Any], *equivalent: str) -> None:
        self.extracted, self.equivalent = extracted, equivalent
        self.asked: list[str] = []

    def __call__(self, request: Any) -> Any:
        if not request.schema:
            return ANSWER
        properties = request.schema["properties"]
        if not any("equivalent" in str(schema) for schema in properties.values()):
            return self.extracted
        self.asked.append(json.dumps(request.body["messages"]))
        return {name: {"reasoning": "a spelling", "equivalent": name in self.equivalent} for name in properties}


def verified(
    url: str,
    template: str = TARGET,
    *,
    settings: Mapping[str, Any] | None = None,
    enabled: bool | None = True,
    **facts: Any,
) -> Any:
    language = "python" if "class Answer" in template else "karenina-template"
    question = Question(id="q", question="Target?", answer_template=template, template_language=language)
    model = ModelConfig(model_name="scripted", interface="openai_endpoint", endpoint_base_url=url)
    if enabled is not None:
        facts["embedding_check_enabled"] = enabled
    config = VerificationConfig(
        answering_models=[model],
        parsing_models=[model],
        retry_policy=NO_RETRIES,
        code_policy="trusted",
        **facts,
    )
    app = Karenina.installed(settings=settings)
    (result,) = Benchmark(name="b", questions=[question]).run_verification(config, run_name="fixed", app=app)
    return result


@pytest.fixture
def outcome() -> Callable[..., Any]:
    """`outcome(judge, template, **facts)`: the result of one item."""

    def of(judge: Judge, template: str = TARGET, **facts: Any) -> Any:
        with ScriptedServer(judge) as server:
            return verified(server.url, template, **facts)

    return of


def test_another_spelling_of_the_expected_answer_passes(outcome: Callable[..., Any]) -> None:
    judge = Judge({"target": "BCL-2"}, "target")
    result = outcome(judge)
    part = result.template
    assert str(result.outcome) == "passed"
    assert (part.embedding_check_performed, part.embedding_override_applied) == (True, True)
    assert part.embedding_similarity_score == pytest.approx(0.912, abs=0.002)
    assert part.embedding_model_used == "all-MiniLM-L6-v2"
    assert (part.verify_result, part.field_verification_result) == (True, True)
    assert (part.field_results, part.field_scores, part.verify_granular_result) == (
        {"target": True},
        {"target": 1.0},
        1.0,
    )
    assert part.parsed_llm_response == {"target": "BCL-2"}, "what was extracted is still recorded"
    assert [entry.stage for entry in result.ledger] == ["VerifyTemplate", "EmbeddingCheck"]
    assert result.ledger[-1].reason == "the same in other words: target (similarity 0.91; a spelling)"
    assert "overrode" in result.metadata.warnings[0]


def test_its_calls_are_accounted_for_with_those_of_the_item(outcome: Callable[..., Any]) -> None:
    usage = outcome(Judge({"target": "BCL-2"}, "target")).generation.usage_metadata
    assert usage["embedding"]["model"] == "minilm:all-MiniLM-L6-v2"
    assert usage["embedding"]["input_tokens"] > 4
    assert usage["embedding"]["cost_usd"] == 0.0
    assert usage["embedding_equivalence"]["calls"] == 1
    assert usage["total"]["total_tokens"] == sum(
        usage[task]["total_tokens"] for task in ("generation", "parsing", "embedding", "embedding_equivalence")
    )


def test_close_is_not_enough(outcome: Callable[..., Any]) -> None:
    judge = Judge({"target": "BRCA2"})
    result = outcome(judge, spec(("target", "str", "BRCA1", "ExactMatch")))
    assert str(result.outcome) == "failed"
    assert result.template.embedding_similarity_score == pytest.approx(0.883, abs=0.002)
    assert (len(judge.asked), result.template.embedding_override_applied) == (1, False)
    assert result.template.field_results == {"target": False}


def test_another_thing_is_not_even_asked_about(outcome: Callable[..., Any]) -> None:
    judge = Judge({"target": "MCL1"}, "target")
    result = outcome(judge)
    assert (str(result.outcome), judge.asked) == ("failed", [])
    assert result.template.embedding_similarity_score == pytest.approx(0.484, abs=0.002)


# Lists of texts


def listed(expected: list[str], primitive: str, **facts: Any) -> str:
    field = {"name": "drugs", "type": "list_str", "description": "the drugs", "ground_truth": expected}
    return json.dumps({"class_name": "Answer", "fields": [{**field, "verify_with": {"type": primitive, **facts}}]})


@pytest.mark.parametrize(
    ("primitive", "extracted", "same", "passes"),
    [
        ("SetContainment", ["acetylsalicylic acid", "heparin"], ["drugs.1"], True),
        ("SetContainment", ["heparin", "acetylsalicylic acid"], ["drugs.2"], True),
        ("SetContainment", ["heparin", "acetylsalicylic acid"], [], False),
        ("OrderedMatch", ["acetylsalicylic acid", "heparin"], ["drugs.1"], True),
        ("OrderedMatch", ["heparin", "acetylsalicylic acid"], ["drugs.2"], False),
        ("SetContainment", ["acetylsalicylic acid"], ["drugs.1"], False),
        ("SetContainment", ["acetylsalicylic acid", "heparin", "ibuprofen"], ["drugs.1", "drugs.3"], False),
        ("SetContainment", ["acetylsalicylic acid", "unfractionated heparin"], ["drugs.1", "drugs.2"], True),
        ("SetContainment", ["unfractionated heparin", "acetylsalicylic acid"], ["drugs.1", "drugs.2"], True),
        ("SetContainment", ["acetylsalicylic acid", "unfractionated heparin"], ["drugs.2"], False),
        ("SetContainment", ["acetylsalicylic acid", "aspirin"], ["drugs.1"], False),
    ],
)
def test_lists_are_compared_text_by_text_and_the_template_decides_about_order_and_number(
    outcome: Callable[..., Any], primitive: str, extracted: list[str], same: list[str], passes: bool
) -> None:
    judge = Judge({"drugs": extracted}, *same)
    result = outcome(judge, listed(["aspirin", "heparin"], primitive), embedding_check_threshold=0.3)
    assert str(result.outcome) == ("passed" if passes else "failed"), result.metadata.error
    part = result.template
    assert part.embedding_override_applied is passes
    assert part.embedding_check_performed
    assert part.parsed_llm_response == {"drugs": extracted}, "what was extracted is still recorded"
    assert part.field_results == {"drugs": passes}
    if passes:
        assert all(key in result.ledger[-1].reason for key in same)
        assert len(judge.asked) == 1


def test_texts_of_lists_that_are_in_both_are_neither_embedded_nor_shown(outcome: Callable[..., Any]) -> None:
    judge = Judge({"drugs": ["heparin", "1987", "acetylsalicylic acid"]}, "drugs.3")
    template = listed(["aspirin", "1987", "heparin"], "SetContainment")
    result = outcome(judge, template, embedding_check_threshold=0.3)
    assert str(result.outcome) == "passed"
    (asked,) = judge.asked
    assert "drugs.3" in asked
    assert "drugs.1" not in asked
    assert "heparin" not in asked


def test_of_a_list_the_threshold_holds_for_every_text(outcome: Callable[..., Any]) -> None:
    judge = Judge({"drugs": ["acetylsalicylic acid", "unfractionated heparin"]}, "drugs.1", "drugs.2")
    result = outcome(judge, listed(["aspirin", "heparin"], "SetContainment"), embedding_check_threshold=0.5)
    assert (str(result.outcome), judge.asked) == ("failed", [])
    assert result.template.embedding_similarity_score == pytest.approx(0.394, abs=0.002)


def test_lists_of_other_things_and_very_long_ones_are_not_compared(outcome: Callable[..., Any]) -> None:
    many = [f"drug {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(31)]
    for expected, extracted in ((["aspirin"], []), (["1987"], ["1988"]), (many, ["another"]), (["aspirin"], many)):
        judge = Judge({"drugs": extracted}, *(f"drugs.{n}" for n in range(1, 40)))
        result = outcome(judge, listed(expected, "SetContainment"), embedding_check_threshold=0.0)
        assert (str(result.outcome), judge.asked) == ("failed", [])
        assert result.template.embedding_check_performed is False


def test_the_feature_can_be_switched_on_for_a_benchmark_by_the_environment(
    outcome: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDING_CHECK", "true")
    result = outcome(Judge({"target": "BCL-2"}, "target"), enabled=None)
    assert str(result.outcome) == "passed"
    monkeypatch.setenv("EMBEDDING_CHECK_THRESHOLD", "0.95")
    result = outcome(Judge({"target": "BCL-2"}, "target"), enabled=None)
    assert (str(result.outcome), result.template.embedding_check_performed) == ("failed", True)


def test_switched_off_nothing_of_it_is_loaded(outcome: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "_encoded", lambda _: pytest.fail("the model was loaded"))
    monkeypatch.setattr(minilm, "_networks", [])
    result = outcome(Judge({"target": "BCL-2"}, "target"), enabled=False)
    assert (str(result.outcome), result.template.embedding_check_performed) == ("failed", False)
    assert result.template.embedding_similarity_score is None


def test_a_pattern_that_failed_stays_failed(outcome: Callable[..., Any]) -> None:
    template = """
class Answer(BaseAnswer):
    target: str = VerifiedField(description="the target", ground_truth="BCL2", verify_with=ExactMatch())

    def model_post_init(self, _):
        self.regex = {"cited": {"pattern": "doi:[0-9]+", "expected": "doi:10", "match_type": "contains"}}
"""
    result = outcome(Judge({"target": "BCL-2"}, "target"), template)
    assert str(result.outcome) == "failed", result.metadata.error
    assert (result.template.field_verification_result, result.template.verify_result) == (True, False)
    assert result.template.regex_overall_success is False


def test_numbers_beside_the_text_still_decide(outcome: Callable[..., Any]) -> None:
    template = spec(("target", "str", "BCL2", "ExactMatch"), ("dose", "int", 5, "NumericExact"))
    judge = Judge({"target": "BCL-2", "dose": 6}, "target", "dose")
    result = outcome(judge, template)
    assert (str(result.outcome), judge.asked) == ("failed", [])
    right = outcome(Judge({"target": "BCL-2", "dose": 5}, "target"), template)
    assert (str(right.outcome), right.template.verify_granular_result) == ("passed", 1.0)


@pytest.mark.parametrize(
    ("primitive", "expected", "extracted"),
    [
        ({"type": "ContainsAny", "substrings": ["BCL2"]}, "N/A", "BCL-2"),
        ({"type": "RegexMatch", "pattern": "BCL2"}, "not applicable", "BCL-2"),
    ],
)
def test_a_placeholder_is_never_compared(
    outcome: Callable[..., Any], primitive: dict[str, Any], expected: str, extracted: str
) -> None:
    row = {"name": "target", "type": "str", "description": "x", "ground_truth": expected, "verify_with": primitive}
    judge = Judge({"target": extracted}, "target")
    result = outcome(judge, json.dumps({"class_name": "Answer", "fields": [row]}))
    assert (str(result.outcome), judge.asked) == ("failed", []), result.metadata.error
    assert result.template.embedding_check_performed is False
    assert result.metadata.warnings == (), "it was left out, and did not fail"


def test_a_placeholder_does_not_keep_the_other_field_from_being_rescued(outcome: Callable[..., Any]) -> None:
    fields = [
        {
            "name": "cited",
            "type": "str",
            "description": "x",
            "ground_truth": "N/A",
            "verify_with": {"type": "RegexMatch", "pattern": "^doi"},
        },
        {
            "name": "target",
            "type": "str",
            "description": "x",
            "ground_truth": "osteonecrosis of the jaw",
            "verify_with": {"type": "ExactMatch"},
        },
    ]
    checks = [{"type": "field_check", "field": row["name"]} for row in fields]
    template = json.dumps({"fields": fields, "verify_strategy": {"type": "any_of", "conditions": checks}})
    judge = Judge({"cited": "none at all", "target": "jaw osteonecrosis"}, "target")
    result = outcome(judge, template)
    assert str(result.outcome) == "passed", result.metadata.error
    assert len(judge.asked) == 1
    assert "none at all" not in judge.asked[0]
    assert result.template.field_results == {"cited": False, "target": True}


def test_a_choice_is_no_text(outcome: Callable[..., Any]) -> None:
    template = """
from typing import Literal

class Answer(BaseAnswer):
    target: Literal["BCL2", "BCL-2"] = VerifiedField(
        description="the target", ground_truth="BCL2", verify_with=LiteralMatch()
    )
"""
    judge = Judge({"target": "BCL-2"}, "target")
    result = outcome(judge, template)
    assert (str(result.outcome), judge.asked) == ("failed", []), result.metadata.error


def test_a_template_with_code_of_its_own_decides_about_the_accepted_text(outcome: Callable[..., Any]) -> None:
    template = """
class Answer(BaseAnswer):
    target: str = Field(description="the target")
    dose: int = Field(description="the dose")

    def model_post_init(self, _):
        self.correct = {"target": "BCL2", "dose": 5}

    def verify(self):
        return self.target == self.correct["target"] and self.dose == self.correct["dose"]

    def verify_granular(self):
        return (float(self.target == self.correct["target"]) + float(self.dose == self.correct["dose"])) / 2
"""
    result = outcome(Judge({"target": "BCL-2", "dose": 5}, "target"), template)
    assert str(result.outcome) == "passed", result.metadata.error
    assert (result.template.field_results, result.template.verify_granular_result) == ({}, 1.0)
    wrong = outcome(Judge({"target": "BCL-2", "dose": 6}, "target"), template)
    assert (str(wrong.outcome), wrong.template.verify_granular_result) == ("failed", 0.0)


STRATEGIES: Mapping[str, tuple[Any, dict[str, bool]]] = {
    "any": (
        {"type": "any_of", "conditions": [{"type": "field_check", "field": f} for f in ("a", "b")]},
        {"a": True, "b": False},
    ),
    "two": (
        {"type": "at_least_n", "n": 2, "conditions": [{"type": "field_check", "field": f} for f in ("a", "b", "c")]},
        {"a": True, "b": False, "c": True},
    ),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_strategy_of_the_template_decides_what_an_accepted_text_is_worth(
    outcome: Callable[..., Any], strategy: str
) -> None:
    tree, results = STRATEGIES[strategy]
    fields = [("a", "str", "BCL2", "ExactMatch"), ("b", "str", "photosynthesis", "ExactMatch")]
    extracted = {"a": "BCL-2", "b": "the process of photosynthesis"}
    if "c" in results:
        fields.append(("c", "str", "gout", "ExactMatch"))
        extracted["c"] = "gout"
    result = outcome(Judge(extracted, "a"), spec(*fields, verify_strategy=tree))
    assert str(result.outcome) == "passed", result.metadata.error
    assert result.template.field_results == results
    assert result.template.field_scores == {name: float(right) for name, right in results.items()}


def semantic(threshold: float, *more: dict[str, Any]) -> str:
    row = {
        "name": "scene",
        "type": "str",
        "description": "what is seen",
        "ground_truth": "The cat sits on the mat.",
        "verify_with": {"type": "SemanticMatch", "threshold": threshold},
    }
    return json.dumps({"class_name": "Answer", "fields": [row, *more]})


@pytest.mark.parametrize(("threshold", "verdict"), [(0.57, "passed"), (0.58, "failed")])
def test_a_semantic_field_is_decided_by_its_own_threshold_alone(
    outcome: Callable[..., Any], threshold: float, verdict: str
) -> None:
    judge = Judge({"scene": "A feline is resting on a rug."}, "scene")
    for enabled in (True, False):
        result = outcome(judge, semantic(threshold), enabled=enabled, embedding_check_threshold=0.1)
        assert (str(result.outcome), judge.asked) == (verdict, []), result.metadata.error
        assert result.template.embedding_check_performed is False


def test_a_semantic_field_keeps_its_result_beside_a_text_that_is_accepted(outcome: Callable[..., Any]) -> None:
    text = json.loads(TARGET)["fields"][0]
    judge = Judge({"scene": "A feline is resting on a rug.", "target": "BCL-2"}, "target", "scene")
    right = outcome(judge, semantic(0.5, text))
    assert (str(right.outcome), right.template.field_results) == ("passed", {"scene": True, "target": True})
    wrong = outcome(judge, semantic(0.6, text))
    assert (str(wrong.outcome), wrong.template.field_results) == ("failed", {"scene": False, "target": False})
    assert len(judge.asked) == 1
    assert "feline" not in judge.asked[0]


def test_an_embedder_that_cannot_work_ends_the_run_before_any_call() -> None:
    with ScriptedServer(Judge({})) as server:
        with pytest.raises(ConfigError, match="has all-MiniLM-L6-v2 and no other model"):
            verified(server.url, embedding_check_model="text-embedding-3-small")
        with pytest.raises(ConfigError, match="sentence-transformers is not installed"):
            verified(server.url, embedding_check_embedder="sentence_transformers")
        assert server.count == 0


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "timestamp", "execution_time")}
    return [timeless(v) for v in value] if isinstance(value, list | tuple) else value


@pytest.fixture
def unloadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "_networks", [])
    monkeypatch.setattr(minilm, "_encoded", lambda _: pytest.fail("the model was loaded"))
    monkeypatch.setattr(minilm, "PACKAGES", ("no_such_package",))


def test_a_recorded_run_is_replayed_without_the_model(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    file = str(tmp_path / "calls.jsonl")
    with ScriptedServer(Judge({"target": "BCL-2"}, "target")) as server:
        live = verified(server.url, settings={"replay": {"record": file}})
    assert str(live.outcome) == "passed"
    request.getfixturevalue("unloadable")
    replayed = verified(NOWHERE, settings={"replay": {"replay": file}})
    assert timeless(unstructure(replayed)) == timeless(unstructure(live))
