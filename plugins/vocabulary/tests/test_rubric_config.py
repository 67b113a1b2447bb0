"""Which traits are judged deeply, and how: the four modes, whose value counts, and what a configuration refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from attrs import evolve, fields_dict
from hypothesis import given
from hypothesis import strategies as st
from karenina_runs.config.config_file import load_config
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.rubric_config import (
    DeepJudgmentRubricConfig,
    DeepJudgmentRubricMode,
    TraitDeepJudgment,
    TraitEvidenceRules,
    evidence_rules,
)

from karenina_core import LLMRubricTrait, VerificationConfig
from karenina_core.errors import ConfigError
from karenina_core.values.convert import structure, unstructure

MODES = get_args(DeepJudgmentRubricMode)
RULES = fields_dict(TraitEvidenceRules)
NAME, QUESTION = "Clarity", "urn:uuid:1"


@st.composite
def entries(draw: st.DrawFn) -> TraitDeepJudgment:
    excerpts = draw(st.booleans())
    return TraitDeepJudgment(
        enabled=draw(st.booleans()),
        excerpt_enabled=excerpts,
        max_excerpts=draw(st.none() | st.integers(1, 9)),
        fuzzy_match_threshold=draw(st.none() | st.floats(0, 1)),
        excerpt_retry_attempts=draw(st.none() | st.integers(0, 5)),
        search_enabled=excerpts and draw(st.booleans()),
    )


def trait_of(entry: TraitDeepJudgment, **facts: Any) -> LLMRubricTrait:
    """A trait that carries these settings itself."""
    given = {"kind": "score", "name": NAME, **facts}
    settings = {
        f"deep_judgment_{name}": getattr(entry, name)
        for name in (*fields_dict(TraitDeepJudgment),)
        if not (isinstance(given["kind"], TemplateKind) and name == "enabled")
    }
    return LLMRubricTrait(**given, **settings)


USUAL = st.fixed_dictionaries(
    {
        "deep_judgment_rubric_global_excerpts": st.booleans(),
        "deep_judgment_rubric_max_excerpts_default": st.integers(1, 9),
        "deep_judgment_rubric_fuzzy_match_threshold_default": st.floats(0, 1),
        "deep_judgment_rubric_excerpt_retry_attempts_default": st.integers(0, 5),
    }
)
TEMPLATE_OWN: dict[str, Any] = {
    "deep_judgment_max_excerpts_per_attribute": 99,
    "deep_judgment_fuzzy_match_threshold": 0.123,
    "deep_judgment_excerpt_retry_attempts": 99,
}
"""Settings of templates, which are none of a trait's business."""
CUSTOM = st.builds(
    lambda everywhere, here: DeepJudgmentRubricConfig(
        global_traits={NAME: everywhere} if everywhere else {},
        question_specific={QUESTION: {NAME: here}} if here else {},
    ),
    st.none() | entries(),
    st.none() | entries(),
)


def expected(mode: str, config: VerificationConfig, own: TraitDeepJudgment, question: str) -> TraitEvidenceRules | None:
    """The table of modes, once more and plainly."""
    custom = config.deep_judgment_rubric_config
    entry = None
    if mode == "enable_all":
        entry = TraitDeepJudgment(excerpt_enabled=config.deep_judgment_rubric_global_excerpts)
    elif mode == "use_checkpoint":
        entry = own
    elif mode == "custom" and custom is not None:
        here = custom.question_specific.get(question, {})
        entry = here[NAME] if NAME in here else custom.global_traits.get(NAME)
    if entry is None or entry.enabled is False:
        return None
    most, threshold, retries = (
        config.deep_judgment_rubric_max_excerpts_default,
        config.deep_judgment_rubric_fuzzy_match_threshold_default,
        config.deep_judgment_rubric_excerpt_retry_attempts_default,
    )
    return TraitEvidenceRules(
        excerpts=entry.excerpt_enabled,
        max_excerpts=most if entry.max_excerpts is None else entry.max_excerpts,
        threshold=threshold if entry.fuzzy_match_threshold is None else entry.fuzzy_match_threshold,
        retries=retries if entry.excerpt_retry_attempts is None else entry.excerpt_retry_attempts,
        search=entry.search_enabled,
    )


@given(
    st.sampled_from(MODES),
    USUAL,
    entries(),
    CUSTOM,
    st.sampled_from(["boolean", "score"]),
    st.sampled_from([QUESTION, "urn:uuid:2"]),
)
def test_the_mode_says_whose_settings_count(
    mode: Any, usual: dict[str, Any], own: TraitDeepJudgment, custom: Any, kind: Any, question: str
) -> None:
    """None falls back to the defaults for rubrics, never to those for templates."""
    config = VerificationConfig(
        deep_judgment_rubric_mode=mode, deep_judgment_rubric_config=custom, **usual, **TEMPLATE_OWN
    )
    found = evidence_rules(config, trait_of(own, kind=kind), question)
    assert found == expected(mode, config, own, question)
    assert found is None or (found.threshold != 0.123 and 99 not in (found.max_excerpts, found.retries))


@given(entries(), CUSTOM)
def test_disabled_is_off_for_all_whatever_a_trait_itself_says(own: TraitDeepJudgment, custom: Any) -> None:
    config = VerificationConfig(deep_judgment_rubric_mode="disabled", deep_judgment_rubric_config=custom)
    assert evidence_rules(config, trait_of(evolve(own, enabled=True)), QUESTION) is None


@given(st.sampled_from(MODES), entries(), entries())
def test_literal_and_template_kinds_are_never_judged_deeply(
    mode: Any, own: TraitDeepJudgment, entry: TraitDeepJudgment
) -> None:
    custom = DeepJudgmentRubricConfig(global_traits={NAME: evolve(entry, enabled=True)})
    config = VerificationConfig(deep_judgment_rubric_mode=mode, deep_judgment_rubric_config=custom)
    literal = trait_of(evolve(own, enabled=True), kind="literal", classes={"good": None, "bad": None})
    template = trait_of(own, kind=TemplateKind({"type": "object", "properties": {"year": {"type": "integer"}}}))
    assert evidence_rules(config, literal, QUESTION) is None
    assert evidence_rules(config, template, QUESTION) is None


def test_the_defaults_are_those_for_rubrics() -> None:
    config = VerificationConfig(deep_judgment_rubric_mode="enable_all")
    found = evidence_rules(config, LLMRubricTrait(name=NAME, kind="boolean"), QUESTION)
    assert found == TraitEvidenceRules(excerpts=True, max_excerpts=7, threshold=0.8, retries=2, search=False)


def test_the_entry_of_a_question_replaces_the_global_one_as_a_whole() -> None:
    custom = DeepJudgmentRubricConfig.of(
        {
            "global": {NAME: {"max_excerpts": 2, "search_enabled": True}},
            "question_specific": {
                QUESTION: {NAME: {"excerpt_retry_attempts": 0}},
                "urn:off": {NAME: {"enabled": False}},
            },
        }
    )
    config = VerificationConfig(deep_judgment_rubric_mode="custom", deep_judgment_rubric_config=custom)
    trait = LLMRubricTrait(name=NAME, kind="boolean")
    everywhere, here = evidence_rules(config, trait, "urn:other"), evidence_rules(config, trait, QUESTION)
    assert everywhere == TraitEvidenceRules(max_excerpts=2, search=True)
    assert here == TraitEvidenceRules(max_excerpts=7, retries=0, search=False)
    assert evidence_rules(config, trait, "urn:off") is None
    assert evidence_rules(config, evolve(trait, name="Another"), QUESTION) is None


def test_a_trait_that_asks_for_a_search_without_quotations_is_judged_without_search() -> None:
    trait = LLMRubricTrait(
        name=NAME,
        kind="boolean",
        deep_judgment_enabled=True,
        deep_judgment_excerpt_enabled=False,
        deep_judgment_search_enabled=True,
    )
    config = VerificationConfig(deep_judgment_rubric_mode="use_checkpoint")
    assert evidence_rules(config, trait, QUESTION) == TraitEvidenceRules(excerpts=False, search=False)


# What is refused

REFUSED: list[tuple[Any, str]] = [
    ({"globl": {}}, "unknown setting 'globl' (did you mean 'global'?)"),
    (
        {"global": {NAME: {"max_excerpt": 3}}},
        "global.Clarity: unknown setting 'max_excerpt' (did you mean 'max_excerpts'?)",
    ),
    ({"question_specific": {"q": {NAME: {"enable": True}}}}, "question_specific.q.Clarity: unknown setting 'enable'"),
    ({"global": {NAME: {"max_excerpts": 0}}}, "global.Clarity: 'max_excerpts' must be >= 1"),
    ({"global": {NAME: {"max_excerpts": 2.5}}}, "global.Clarity: max_excerpts must be a whole number"),
    ({"global": {NAME: {"excerpt_retry_attempts": True}}}, "excerpt_retry_attempts must be a whole number"),
    ({"global": {NAME: {"fuzzy_match_threshold": 1.1}}}, "'fuzzy_match_threshold' must be <= 1"),
    ({"global": {NAME: {"fuzzy_match_threshold": "0.5"}}}, "fuzzy_match_threshold must be a number"),
    ({"global": {NAME: {"enabled": "false"}}}, "enabled must be true or false, not 'false'"),
    ({"global": {NAME: {"excerpt_enabled": 0}}}, "excerpt_enabled must be true or false, not 0"),
    ({"global": {NAME: {"search_enabled": True, "excerpt_enabled": False}}}, "search_enabled needs excerpt_enabled"),
    ({"global": {NAME: True}}, "global.Clarity: expected a table of settings"),
    ({"global": [NAME]}, "global: expected a table of traits"),
    ({"global": {3: {}}}, "global: names are texts, not 3; write it in quotes"),
    ({"question_specific": {7: {}}}, "question_specific: names are texts, not 7"),
    ({"question_specific": {"q": {None: {}}}}, "question_specific.q: names are texts, not None"),
    ({"question_specific": [NAME]}, "question_specific: expected a table of questions"),
    ("all", "expected a table with global and question_specific"),
]


@pytest.mark.parametrize(("value", "message"), REFUSED)
def test_what_cannot_be_meant_is_refused_and_named(value: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        DeepJudgmentRubricConfig.of(value)
    assert message in str(refused.value)
    with pytest.raises(ConfigError) as problems:
        structure({"deep_judgment_rubric_config": value}, VerificationConfig)
    assert [problem.path for problem in problems.value.problems] == ["deep_judgment_rubric_config"]
    assert message in str(problems.value)


def test_custom_without_settings_and_unknown_modes_are_refused() -> None:
    with pytest.raises(ConfigError, match="custom needs deep_judgment_rubric_config"):
        VerificationConfig(deep_judgment_rubric_mode="custom")
    with pytest.raises(ConfigError, match="must be one of disabled, enable_all, use_checkpoint, custom"):
        VerificationConfig(deep_judgment_rubric_mode="all")  # type: ignore[arg-type]  # the mistake


# As data


@given(CUSTOM, USUAL, st.sampled_from(MODES))
def test_written_and_read_again_it_is_the_same(custom: Any, usual: dict[str, Any], mode: Any) -> None:
    config = VerificationConfig(deep_judgment_rubric_mode=mode, deep_judgment_rubric_config=custom, **usual)
    data = unstructure(config)
    assert set(data["deep_judgment_rubric_config"]) == {"global", "question_specific"}
    assert structure(data, VerificationConfig) == config
    assert DeepJudgmentRubricConfig.of(unstructure(custom)) == custom


FILE = """
[run]
deep_judgment_rubric_mode = "custom"
[run.deep_judgment_rubric_config.global.Clarity]
max_excerpts = 4
search_enabled = true
[run.deep_judgment_rubric_config.question_specific."urn:uuid:1"."Safe Response"]
excerpt_enabled = false
"""


def test_a_configuration_file_holds_it_as_tables(tmp_path: Path) -> None:
    path = tmp_path / "karenina.toml"
    path.write_text(FILE, "utf-8")
    config = load_config(path, models=False).config
    assert config.deep_judgment_rubric_config == DeepJudgmentRubricConfig(
        global_traits={"Clarity": TraitDeepJudgment(max_excerpts=4, search_enabled=True)},
        question_specific={"urn:uuid:1": {"Safe Response": TraitDeepJudgment(excerpt_enabled=False)}},
    )
    safe = LLMRubricTrait(name="Safe Response", kind="boolean")
    assert evidence_rules(config, safe, "urn:uuid:1") == TraitEvidenceRules(excerpts=False)
    assert evidence_rules(config, safe, "urn:uuid:2") is None


def test_a_mistake_in_the_file_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "karenina.toml"
    path.write_text(FILE.replace("max_excerpts", "max_excerpt"), "utf-8")
    with pytest.raises(ConfigError) as problems:
        load_config(path, models=False)
    (problem,) = (p for p in problems.value.problems if p.path == "run.deep_judgment_rubric_config")
    assert "global.Clarity: unknown setting 'max_excerpt' (did you mean 'max_excerpts'?)" in problem.message
    assert str(path) in problem.message
