"""Ways to judge traits from evidence that look right and are not: each law holds for ours and rejects the variant."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, fields_dict
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from karenina_testing.fakes import example_of
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.rubric_config import TraitEvidenceRules, evidence_rules
from karenina_vocabulary.traits import MetricRubricTrait

from karenina_core import (
    Benchmark,
    LLMRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    RubricTrait,
    VerificationConfig,
    VerificationResult,
    run_single_model_verification,
)
from karenina_core.testing import ScriptedCall, ScriptedLLM, application

few = settings(database=None, deadline=None, derandomize=True, max_examples=15, phases=[Phase.generate])
many = settings(few, max_examples=60)

# One answer through the pipeline: the judge finds what it is asked for, whichever way it is asked.

PLUGINS = (
    *("generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail", "finalize-result"),
    *("rubric-evaluation", "trait-llm", "trait-regex", "trait-metric", "deep-judgment"),
    *("deep-judgment-rubric-auto-fail", "local-executor"),
)
ANSWER = "Venetoclax targets BCL2 [1]. It may cause neutropenia."
RECORD = TemplateKind({"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]})
DEEP: list[LLMRubricTrait] = [
    LLMRubricTrait(name="safe", kind="boolean"),
    LLMRubricTrait(name="clear", kind="score", min_score=0, max_score=4),
]
SHALLOW: list[LLMRubricTrait] = [
    LLMRubricTrait(name="tone", kind="literal", classes={"dry": None, "warm": None}),
    LLMRubricTrait(name="facts", kind=RECORD),
]
PLAIN: list[RubricTrait] = [
    RegexRubricTrait(name="cites", pattern=r"\[\d+\]"),
    RegexRubricTrait(name="shouts", pattern="!"),
    MetricRubricTrait(name="coverage", metrics=("recall",), tp_instructions=("Names BCL2.",)),
]


def judge(call: ScriptedCall) -> Any:
    if call.task == "generation":
        return ANSWER
    if call.task == "dj_rubric_excerpt_extraction":
        return {"excerpts": [{"text": "It may cause neutropenia.", "explanation": None, "confidence": "high"}]}
    if call.task == "rubric_metric_trait":
        return {"tp_1": {"excerpts": ["targets BCL2"], "wrong_attempts": [], "covered": True}}
    assert call.output is not None
    return example_of(call.output.schema)


def judged(
    traits: Iterable[RubricTrait], says: Callable[[ScriptedCall], Any] = judge, **settings: Any
) -> VerificationResult:
    """The result of the answer under these traits, by the real stages."""
    config = VerificationConfig(**{"deep_judgment_rubric_mode": "enable_all", **settings})
    model = ModelConfig(model_name="m", interface="scripted", max_retries=0)
    return run_single_model_verification(
        Question(question="What is venetoclax?"),
        model,
        evolve(model, model_name="j"),
        rubric=Rubric.from_traits(traits),
        evaluation_mode="rubric_only",
        config=config,
        app=application(ScriptedLLM(says, channels=["json_schema"]), installed=PLUGINS),
    )


# As soon as one trait is judged deeply, only traits of its type are evaluated.

Evaluate = Callable[[list[RubricTrait]], VerificationResult]


def with_deep_judgment(traits: list[RubricTrait]) -> VerificationResult:
    return judged(traits)


def with_a_path_for_deep_judgment_alone(traits: list[RubricTrait]) -> VerificationResult:
    deep = any(isinstance(trait, LLMRubricTrait) and trait.kind in ("boolean", "score") for trait in traits)
    return judged([trait for trait in traits if trait.type_name in ("llm", "metric")] if deep else traits)


def scored_names(result: VerificationResult) -> dict[str, bool]:
    """Every trait of which the result says something, and whether it has a score."""
    assert result.rubric is not None
    return {name: state["state"] == "ok" for name, state in result.rubric.trait_states.items()}


def law_deep_judgment_of_one_trait_makes_no_other_vanish(evaluate: Evaluate) -> None:
    @given(st.lists(st.sampled_from([*DEEP, *SHALLOW, *PLAIN]), min_size=1, unique_by=lambda trait: trait.name))
    @few
    def law(traits: list[RubricTrait]) -> None:
        result = evaluate(traits)
        assert scored_names(result) == {trait.name: True for trait in traits}
        usual = judged(traits, deep_judgment_rubric_mode="disabled")
        assert result.rubric is not None
        assert usual.rubric is not None
        assert result.rubric.regex_trait_scores == usual.rubric.regex_trait_scores
        assert result.rubric.metric_trait_scores == usual.rubric.metric_trait_scores

    law()


def test_deep_judgment_of_one_trait_makes_no_other_vanish() -> None:
    law_deep_judgment_of_one_trait_makes_no_other_vanish(with_deep_judgment)


def test_the_law_of_vanishing_traits_rejects_a_path_of_its_own_for_deep_judgment() -> None:
    with pytest.raises(AssertionError):
        law_deep_judgment_of_one_trait_makes_no_other_vanish(with_a_path_for_deep_judgment_alone)


# The mode says that a trait is judged deeply, and nobody asks whether its kind can be.

Rules = Callable[[VerificationConfig, LLMRubricTrait, str], TraitEvidenceRules | None]


def whatever_the_kind(config: VerificationConfig, trait: LLMRubricTrait, question_id: str) -> TraitEvidenceRules | None:
    return evidence_rules(config, LLMRubricTrait(name=trait.name, kind="boolean"), question_id)


def law_kinds_that_deep_judgment_cannot_score_take_the_usual_path(rules_of: Rules) -> None:
    everything: Mapping[str, Any] = {trait.name: {} for trait in [*DEEP, *SHALLOW]}

    @given(st.sampled_from(["enable_all", "custom"]), st.sampled_from([*DEEP, *SHALLOW]))
    @many
    def law(mode: Any, trait: LLMRubricTrait) -> None:
        config = VerificationConfig(deep_judgment_rubric_mode=mode, deep_judgment_rubric_config={"global": everything})
        assert (rules_of(config, trait, "q") is not None) is (trait in DEEP)

    law()


def test_kinds_that_deep_judgment_cannot_score_take_the_usual_path() -> None:
    law_kinds_that_deep_judgment_cannot_score_take_the_usual_path(evidence_rules)


def test_the_law_of_kinds_rejects_rules_that_do_not_ask_for_the_kind() -> None:
    with pytest.raises(AssertionError):
        law_kinds_that_deep_judgment_cannot_score_take_the_usual_path(whatever_the_kind)


def test_a_literal_trait_keeps_its_class_and_a_template_kind_its_fields_beside_deep_judgment() -> None:
    result = judged([*DEEP, *SHALLOW])
    assert result.rubric is not None
    assert result.deep_judgment_rubric is not None
    assert result.rubric.llm_trait_scores == {"safe": True, "clear": 0, "tone": 0, "facts.year": 0}
    assert result.rubric.llm_trait_labels == {"tone": "dry"}
    part = result.deep_judgment_rubric
    assert set(part.deep_judgment_rubric_scores) == {trait.name for trait in DEEP}
    assert set(part.standard_rubric_scores) == {"tone", "facts.year"}
    assert part.total_deep_judgment_model_calls == 6


# What cannot be read is left out, and an answer fails for what the judge may have said in it.

Fails = Callable[[Sequence[Any]], bool]
"""Whether an answer fails after these replies about quotations for a trait, in turn."""
UNREADABLE = "I would rather talk."
MADE_UP, QUOTED = (
    {"excerpts": [{"text": text, "explanation": None, "confidence": "high"}]}
    for text in ("Take it with grapefruit juice.", "It may cause neutropenia.")
)
HONEST = {"excerpts": [{"text": "", "explanation": "no risk is named", "confidence": "none"}]}


def fails_by_deep_judgment(replies: Sequence[Any]) -> bool:
    said = iter(replies)

    def replied(call: ScriptedCall) -> Any:
        return next(said) if call.task == "dj_rubric_excerpt_extraction" else judge(call)

    retries = len(replies) - 1
    result = judged(DEEP[:1], replied, deep_judgment_rubric_excerpt_retry_attempts_default=retries)
    return str(result.outcome).startswith("auto_failed")


def fails_by_whatever_could_be_read(replies: Sequence[Any]) -> bool:
    readable = [reply for reply in replies if reply != UNREADABLE]
    return bool(readable) and QUOTED not in readable


def law_an_answer_fails_only_for_what_the_judge_said_last(fails: Fails) -> None:
    @given(st.lists(st.sampled_from([UNREADABLE, MADE_UP, QUOTED, HONEST]), min_size=1, max_size=3))
    @few
    def law(replies: list[Any]) -> None:
        ends = [n for n, reply in enumerate(replies) if reply in (QUOTED, HONEST, UNREADABLE)]
        last = replies[ends[0]] if ends else replies[-1]
        assert fails(replies) is (last in (MADE_UP, HONEST))

    law()


def test_an_answer_fails_only_for_what_the_judge_said_last() -> None:
    law_an_answer_fails_only_for_what_the_judge_said_last(fails_by_deep_judgment)


def test_the_law_of_last_words_rejects_leaving_out_what_cannot_be_read() -> None:
    with pytest.raises(AssertionError):
        law_an_answer_fails_only_for_what_the_judge_said_last(fails_by_whatever_could_be_read)


# Saving takes the settings of deep judgment away, and what the benchmark says about its traits means nothing any more.

Saved = Callable[[Benchmark], Benchmark]
JSONLD = application(installed=["jsonld"])


def saved(benchmark: Benchmark) -> Benchmark:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "benchmark.jsonld"
        benchmark.save(path, app=JSONLD)
        return Benchmark.load(path, app=JSONLD)


def saved_without_settings(benchmark: Benchmark) -> Benchmark:
    """A writer that thinks of them as settings of a run."""
    usual = fields_dict(LLMRubricTrait)
    stripped: dict[str, Any] = {name: usual[name].default for name in usual if name.startswith("deep_judgment_")}
    assert benchmark.rubric is not None
    traits = [evolve(trait, **stripped) for trait in benchmark.rubric.llm_traits]
    return saved(evolve(benchmark, rubric=evolve(benchmark.rubric, llm_traits=traits)))


OWN = st.builds(
    LLMRubricTrait,
    name=st.just("safe"),
    kind=st.sampled_from(["boolean", "score"]),
    deep_judgment_enabled=st.booleans(),
    deep_judgment_excerpt_enabled=st.booleans(),
    deep_judgment_max_excerpts=st.none() | st.integers(1, 9),
    deep_judgment_fuzzy_match_threshold=st.none() | st.sampled_from([0.0, 0.5, 1.0]),
    deep_judgment_excerpt_retry_attempts=st.none() | st.integers(0, 5),
    deep_judgment_search_enabled=st.booleans(),
)


def law_use_checkpoint_means_the_same_after_saving(save: Saved) -> None:
    config = VerificationConfig(deep_judgment_rubric_mode="use_checkpoint")

    @given(OWN)
    @many
    def law(trait: LLMRubricTrait) -> None:
        loaded = save(Benchmark(name="b", rubric=Rubric(llm_traits=[trait]))).rubric
        assert loaded is not None
        (found,) = loaded.llm_traits
        assert evidence_rules(config, found, "q") == evidence_rules(config, trait, "q")
        assert evolve(found, description=trait.description) == trait

    law()


def test_the_mode_use_checkpoint_means_the_same_after_saving() -> None:
    law_use_checkpoint_means_the_same_after_saving(saved)


def test_the_law_of_saving_rejects_a_writer_that_leaves_settings_out() -> None:
    with pytest.raises(AssertionError):
        law_use_checkpoint_means_the_same_after_saving(saved_without_settings)
