"""Settings of agents and workspaces that were changed and have no effect are told before a run; others are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_agentic.strategies import notes as notes_on_traits
from karenina_runs.execute.local import LocalExecutor
from karenina_runs.plan.prepare import prepare

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    Karenina,
    LLMRubricTrait,
    ModelConfig,
    Rubric,
    Stage,
    feature,
    hookimpl,
)
from karenina_core import VerificationConfig as Config
from karenina_core.errors import ConfigError, Problem
from karenina_core.plugin.discovery import discover, load_all
from karenina_core.testing import application

Make = Callable[..., Any]
MODEL = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url="http://127.0.0.1:9")
JUDGED = Rubric(llm_traits=[LLMRubricTrait(name="clear", kind="boolean")])
AGENTIC = Rubric(agentic_traits=[AgenticRubricTrait(name="tidy", kind="boolean", description="Is it tidy?")])
FOLDER = {"workspace_path": "river"}
SHARED = {"agentic_rubric_strategy": "shared"}
SHOWN = {"agentic_judge_context": "trace_and_workspace"}
PARSING = {"agentic_parsing": True, **SHOWN}
FILED = {**PARSING, "agentic_parsing_materialize_trace": True, "agentic_parsing_persist_trace": True}
IN_PLACE = {"workspace_copy": False}
NO_AGENT = "feature agentic_parsing is off (--with agentic_parsing)"
NO_TRAITS = "the mode evaluates no rubric with agentic traits"
NO_WORKSPACE = "no question of this run has a workspace"
NO_COPY = "no workspace is copied or kept"


@pytest.fixture(scope="module")
def app() -> Karenina:
    return application(installed=True)


@pytest.fixture
def notes(app: Karenina, make_question: Make, tmp_path: Path) -> Callable[..., Sequence[str]]:
    """`notes({setting: value}, question=..., rubric=..., root=...)` of a run with one question."""
    (tmp_path / "river").mkdir()

    def told(
        facts: dict[str, Any], question: dict[str, Any] | None = None, rubric: Rubric | None = None, root: bool = True
    ) -> Sequence[str]:
        benchmark = Benchmark(name="b", questions=[make_question(0, **(question or {}))], rubric=rubric)
        config = Config(answering_models=[MODEL], parsing_models=[MODEL], **facts)
        return prepare(benchmark, config, app=app, workspace_root=tmp_path if root else None).notes

    return told


@pytest.mark.parametrize(
    ("facts", "rubric", "reason"),
    [
        (SHOWN, None, NO_AGENT),
        ({"agentic_parsing_max_turns": 3}, None, NO_AGENT),
        ({"agentic_parsing_timeout": 3.0}, None, NO_AGENT),
        ({"agentic_parsing_materialize_trace": True}, None, NO_AGENT),
        ({"agentic_parsing_persist_trace": True}, None, NO_AGENT),
        ({"agentic_parsing_persist_trace": True}, AGENTIC, NO_AGENT),
        (SHARED, None, NO_TRAITS),
        (SHARED, JUDGED, NO_TRAITS),
        ({"agentic_rubric_parallel": True}, JUDGED, NO_TRAITS),
        ({"agentic_rubric_by_context": True}, JUDGED, NO_TRAITS),
        ({"agentic_rubric_parallel": True, "evaluation_mode": "template_only"}, AGENTIC, NO_TRAITS),
        ({**SHARED, "rubric_trait_names": ["clear"]}, Rubric.merged([JUDGED, AGENTIC]), NO_TRAITS),
    ],
)
def test_settings_of_agents_that_judge_nothing_are_told(
    notes: Make, facts: dict[str, Any], rubric: Rubric | None, reason: str
) -> None:
    found = notes(facts, FOLDER, rubric)
    name = next(name for name in facts if name.startswith("agentic_"))
    idle = [note for note in found if "has no effect" in note]
    assert idle == [f"{name} has no effect: {reason}"]


@pytest.mark.parametrize(
    ("facts", "rubric"),
    [
        (PARSING, None),
        ({**PARSING, "agentic_parsing_max_turns": 3, "agentic_parsing_timeout": 3.0}, None),
        ({**PARSING, "agentic_parsing_trigger": "dynamic"}, None),
        (FILED, None),
        ({**FILED, "workspace_cleanup": False}, None),
        ({**FILED, "workspace_copy": False}, None),
        ({**SHARED, "agentic_rubric_parallel": True, "agentic_rubric_by_context": True}, AGENTIC),
        (SHARED, Rubric.merged([JUDGED, AGENTIC])),
    ],
)
def test_settings_of_agents_that_judge_are_not(notes: Make, facts: dict[str, Any], rubric: Rubric | None) -> None:
    assert notes(facts, FOLDER, rubric) == ()


def test_settings_that_another_one_switches_off_are_told(notes: Make) -> None:
    (said,) = notes({**PARSING, "agentic_parsing_persist_trace": True}, FOLDER)
    assert said == "agentic_parsing_persist_trace has no effect: agentic_parsing_materialize_trace is off"
    (said,) = notes({"agentic_rubric_by_context": True}, FOLDER, AGENTIC)
    assert said == "agentic_rubric_by_context has no effect with agentic_rubric_strategy individual"


def test_settings_of_a_feature_that_is_off_are_told(notes: Make) -> None:
    why = "has no effect: feature deep_judgment is off (--with deep_judgment)"
    assert notes({"deep_judgment_search_enabled": True, "deep_judgment_excerpt_retry_attempts": 5}) == (
        f"deep_judgment_excerpt_retry_attempts {why}",
        f"deep_judgment_search_enabled {why}",
    )
    (said,) = notes({"embedding_check_threshold": 0.5})
    assert said == "embedding_check_threshold has no effect: feature embedding_check is off (--with embedding_check)"
    assert notes({}) == ()


def test_a_setting_that_one_stage_of_the_plan_reads_has_an_effect(notes: Make) -> None:
    assert notes({"deep_judgment_on_invented": "error"}, rubric=JUDGED) == ()
    assert notes({"rubric_concurrency": 2}, FOLDER, AGENTIC) == ()
    (said,) = notes({"rubric_concurrency": 2, "evaluation_mode": "template_only"}, rubric=JUDGED)
    assert said.startswith("rubric_concurrency has no effect")
    (said,) = notes({"rubric_trait_names": ["clear"], "evaluation_mode": "template_only"}, rubric=JUDGED)
    assert said == "rubric_trait_names has no effect: no rubric is evaluated"


class Strange(Stage):
    """Another package's stage, which speaks about what was configured for it."""

    included_when = feature("strange")
    settings = ("include_extraction_hints",)

    def check_config(self, config: Config, app: Karenina) -> list[Problem]:
        return [Problem("concurrency", f"with {config.concurrency}, in the mode {config.evaluation_mode}", fatal=False)]

    def check_rubrics(self, rubrics: Sequence[Rubric], config: Config, app: Karenina) -> list[Problem]:
        return [Problem("", f"sees {len(rubrics)} rubrics", fatal=False)]

    def check_left_out(self, config: Config, app: Karenina) -> list[Problem]:
        return [Problem("concurrency", "is for the strange stage alone")] if config.concurrency == 3 else []

    def execute(self, context: object) -> None:
        """Does nothing."""


class Register:
    @hookimpl
    def karenina_register_stages(self, registry: Any) -> None:
        registry.add(Strange)


def test_a_stage_of_another_package_gives_notes_by_the_same_doors(make_question: Make) -> None:
    app = application(Register(), installed=True)
    questions = [make_question(number) for number in range(3)]
    benchmark = Benchmark(name="b", questions=questions, rubric=JUDGED)

    def told(**facts: Any) -> Sequence[str]:
        return prepare(benchmark, Config(answering_models=[MODEL], parsing_models=[MODEL], **facts), app=app).notes

    on = {"features": ["strange"], "include_extraction_hints": False}
    assert told(**on) == ("concurrency: with 8, in the mode template_and_rubric", "sees 3 rubrics")
    why = "feature strange is off (--with strange)"
    assert told(include_extraction_hints=False) == (f"include_extraction_hints has no effect: {why}",)
    with pytest.raises(ConfigError, match="concurrency: is for the strange stage alone"):
        told(concurrency=3)


def judged(name: str, **facts: Any) -> AgenticRubricTrait:
    return AgenticRubricTrait(name=name, kind="boolean", description="Is it?", **facts)


FILE, KEEP = {"materialize_trace": True}, {"persist_trace": True}


@pytest.mark.parametrize(
    ("traits", "idle"),
    [
        ([judged("a", **KEEP)], ["a"]),
        ([judged("a", **KEEP), judged("b", **KEEP), judged("c")], ["a", "b"]),
        ([judged("a", **KEEP, context_mode="workspace_only")], ["a"]),
        ([judged("a", **KEEP, **FILE)], []),
        ([judged("a", **KEEP), judged("b", **FILE)], []),
        ([judged("a", **FILE)], []),
    ],
)
def test_traits_that_keep_a_trace_that_is_no_file_are_told(
    notes: Make, traits: list[AgenticRubricTrait], idle: list[str]
) -> None:
    why = "has no effect: no agentic trait of its rubric has materialize_trace"
    stays = {"workspace_cleanup": False}
    assert list(notes(stays, FOLDER, Rubric.from_traits(traits))) == [
        f"persist_trace of the trait {name!r} {why}" for name in idle
    ]


def test_a_trait_that_keeps_a_trace_in_one_of_its_rubrics_is_not_told() -> None:
    rubrics = [
        Rubric.from_traits([judged("a", **KEEP)]),
        Rubric.from_traits([judged("a", **KEEP), judged("b", **FILE)]),
    ]
    assert list(notes_on_traits(Config(), rubrics)) == []
    assert list(notes_on_traits(Config(), rubrics[::-1])) == []
    assert len(list(notes_on_traits(Config(), rubrics[:1]))) == 1


CHANGED: dict[str, Any] = {
    "workspace_copy": False,
    "workspace_cleanup": False,
    "workspace_output_mode": "full",
    "workspace_output_exclude_patterns": ["*.log"],
    "workspace_max_bytes": 10**6,
    "workspace_max_files": 100,
}


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("rubric", [None, JUDGED])
def test_every_setting_of_workspaces_is_told_where_no_question_has_one(
    notes: Make, name: str, rubric: Rubric | None
) -> None:
    for root in (True, False):
        assert notes({name: CHANGED[name]}, rubric=rubric, root=root) == (f"{name} has no effect: {NO_WORKSPACE}",)


def test_an_agent_that_sees_no_workspace_because_there_is_no_root_has_none(notes: Make) -> None:
    no_root, idle = notes({"workspace_output_mode": "full"}, rubric=AGENTIC, root=False)
    assert "there is no workspace root" in no_root
    assert idle == f"workspace_output_mode has no effect: {NO_WORKSPACE}"


@pytest.mark.parametrize(
    ("facts", "question", "rubric", "told"),
    [
        ({"workspace_copy": False}, {}, AGENTIC, {"workspace_copy": "no question of this run has a folder of its own"}),
        ({"workspace_cleanup": False}, {}, AGENTIC, {}),
        (
            {**IN_PLACE, "workspace_cleanup": False},
            FOLDER,
            None,
            {"workspace_cleanup": "workspace_copy is off, and the questions' own folders are never removed"},
        ),
        (
            {"workspace_output_exclude_patterns": ["*.log"]},
            FOLDER,
            None,
            {"workspace_output_exclude_patterns": "workspace_output_mode is none"},
        ),
        ({**IN_PLACE, "workspace_max_bytes": 10**6}, FOLDER, None, {"workspace_max_bytes": NO_COPY}),
        ({**IN_PLACE, "workspace_max_files": 100}, FOLDER, None, {"workspace_max_files": NO_COPY}),
        ({**IN_PLACE, "workspace_max_files": 100}, FOLDER, AGENTIC, {}),
        ({**IN_PLACE, "workspace_max_files": 100, "workspace_output_mode": "full"}, FOLDER, None, {}),
        ({"workspace_max_bytes": 10**6, "workspace_max_files": 100, "workspace_cleanup": False}, FOLDER, None, {}),
        ({"workspace_output_mode": "produced", "workspace_output_exclude_patterns": ["*.log"]}, FOLDER, None, {}),
        (IN_PLACE, FOLDER, None, {}),
    ],
)
def test_settings_of_workspaces_are_told_exactly_when_they_are_idle(
    notes: Make, facts: dict[str, Any], question: dict[str, Any], rubric: Rubric | None, told: dict[str, str]
) -> None:
    assert notes(facts, question, rubric) == tuple(f"{name} has no effect: {why}" for name, why in told.items())


class Elsewhere(LocalExecutor):
    name = "elsewhere"

    @staticmethod
    @hookimpl
    def karenina_register_executors(registry: Any) -> None:
        registry.add(Elsewhere)


def test_settings_of_a_run_have_an_effect_without_the_local_executor(make_question: Make) -> None:
    sources = {source.name: source for source in discover()}
    blocked = evolve(sources.pop("local-executor").info, state="blocked")
    found, infos = load_all(sources.values())
    app = Karenina({**found, "elsewhere": Elsewhere}, infos=[*infos.values(), blocked])
    config = Config(answering_models=[MODEL], parsing_models=[MODEL], executor="elsewhere", concurrency=2)
    assert prepare(Benchmark(name="b", questions=[make_question(0)]), config, app=app).notes == ()
