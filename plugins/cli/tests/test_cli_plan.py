"""`karenina plan`: which stages, in which order, and why not the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core import Karenina
from karenina_core.plugin.markers import hookimpl

Run = Callable[..., Result]
Files = Callable[..., Path]
KEYS = {"mode", "features", "stages", "left_out", "problems", "notes"}
STAGE = {"name", "plugin", "category", "requires", "reads", "produces"}
TRAIT = {
    "@type": "Rating",
    "name": "Brief",
    "bestRating": 1,
    "worstRating": 0,
    "additionalType": "karenina:GlobalRegexTrait",
    "additionalProperty": [{"@type": "PropertyValue", "name": "pattern", "value": "^.{1,80}$"}],
}
JUDGED_TRAIT = {
    "@type": "Rating",
    "name": "concise",
    "description": "Is it concise?",
    "additionalType": "karenina:GlobalRubricTrait",
    "bestRating": 1,
    "worstRating": 0,
    "additionalProperty": [{"@type": "PropertyValue", "name": "kind", "value": "boolean"}],
}
AGENTIC_TRAIT = {
    "@type": "Rating",
    "name": "sound",
    "description": "Do the files hold what the answer says?",
    "additionalType": "karenina:GlobalAgenticRubricTrait",
    "bestRating": 1,
    "worstRating": 0,
    "additionalProperty": [{"@type": "PropertyValue", "name": "kind", "value": "boolean"}],
}
SHINY_STAGE = """\
from karenina_core import Category, Stage, hookimpl
from karenina_core.pipeline.stage import feature

class Shiny(Stage):
    category = Category.RUBRIC
    included_when = feature("shine")

    def execute(self, context):
        pass

@hookimpl
def karenina_register_stages(registry):
    registry.add(Shiny)
"""


def test_without_a_benchmark(run: Run) -> None:
    result = run("plan", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert set(document) == KEYS
    assert document["mode"] == "template_only"
    assert all(set(stage) == STAGE for stage in document["stages"])
    names = [stage["name"] for stage in document["stages"]]
    assert names[0] == "ValidateTemplate"
    assert names.index("GenerateAnswer") < names.index("ParseTemplate") < names.index("VerifyTemplate")
    assert names[-1] == "FinalizeResult"


BEGIN = ["ValidateTemplate", "GenerateAnswer", "RecursionLimitAutoFail", "TraceValidationAutoFail"]


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ((), [*BEGIN, "ParseTemplate", "VerifyTemplate", "EmbeddingCheck", "FinalizeResult"]),
        (
            ("abstention", "sufficiency", "deep_judgment"),
            [
                *(*BEGIN, "AbstentionCheck", "SufficiencyCheck", "ParseTemplate", "VerifyTemplate"),
                *("EmbeddingCheck", "DeepJudgmentAutoFail", "FinalizeResult"),
            ],
        ),
        (
            ("agentic_parsing",),
            [*BEGIN, "AgenticParseTemplate", "VerifyTemplate", "EmbeddingCheck", "FinalizeResult"],
        ),
    ],
    ids=["8 stages", "11 stages", "8 stages, one of them an agent's"],
)
def test_the_published_lists_of_template_only(run: Run, features: tuple[str, ...], expected: list[str]) -> None:
    """With the plugins that are installed and nothing else."""
    words = [word for feature in features for word in ("--with", feature)]
    document = json.loads(run("plan", "--json", *words).stdout)
    assert [stage["name"] for stage in document["stages"]] == expected
    assert document["features"] == sorted(features)


def test_for_people(run: Run) -> None:
    result = run("plan")
    assert result.exit_code == 0
    assert re.search(r"Mode template_only\n\n +1 ValidateTemplate +\(setup, plugin validate-template\)", result.stdout)
    assert "produces  raw_llm_response" in result.stdout


def test_features_are_switched_and_explained(run: Run, install: Files) -> None:
    install("karenina-shine", {"shine": "shine_stage"}, group="karenina.plugins", shine_stage=SHINY_STAGE)
    off = json.loads(run("plan", "--json").stdout)
    assert {"name": "Shiny", "reason": "feature shine is off (--with shine)"} in off["left_out"]
    on = json.loads(run("plan", "--with", "shine", "--json").stdout)
    assert on["features"] == ["shine"]
    assert "Shiny" in [stage["name"] for stage in on["stages"]]
    Path("settings.toml").write_text('[run]\nfeatures = ["shine"]\n', "utf-8")
    assert json.loads(run("plan", "--config", "settings.toml", "--json").stdout)["features"] == ["shine"]
    assert json.loads(run("plan", "--config", "settings.toml", "--without", "shine", "--json").stdout)["features"] == []
    refused = run("plan", "--with", "shiny")
    assert refused.exit_code == 1
    assert "did you mean 'shine'?" in refused.stderr


def test_a_benchmark_s_questions(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", "q1", unfinished=["q1"], rating=[TRAIT])
    document = json.loads(run("plan", path, "--json").stdout)
    assert set(document) == KEYS | {"questions", "unusable_templates", "warnings"}
    assert document["mode"] == "template_and_rubric"
    assert document["questions"] == [
        {"id": "q0", "traits": ["regex"], "left_out": None},
        {"id": "q1", "traits": [], "left_out": "not finished"},
    ]
    shown = run("plan", path)
    assert shown.exit_code == 0
    assert "Mode template_and_rubric, traits regex, 1 question" in shown.stdout
    assert re.search(r"Questions left out\n.*\n +q1 +not finished", shown.stdout)
    only_templates = json.loads(run("plan", path, "--mode", "template_only", "--json").stdout)
    assert (only_templates["mode"], only_templates["questions"][0]["traits"]) == ("template_only", [])


TEMPLATES = ["ValidateTemplate", "GenerateAnswer", "RecursionLimitAutoFail", "TraceValidationAutoFail"]
JUDGED = ["ParseTemplate", "VerifyTemplate", "EmbeddingCheck"]
SCORED = ["RubricEvaluation", "DeepJudgmentRubricAutoFail"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--mode", "template_only"], [*TEMPLATES, *JUDGED, "FinalizeResult"]),
        (["--mode", "template_and_rubric"], [*TEMPLATES, *JUDGED, *SCORED, "FinalizeResult"]),
        (["--mode", "rubric_only"], [*TEMPLATES[1:], *SCORED, "FinalizeResult"]),
        (["--with", "abstention"], [*TEMPLATES, "AbstentionCheck", *JUDGED, *SCORED, "FinalizeResult"]),
    ],
)
def test_the_published_lists_with_a_rubric(
    run: Run, write_benchmark: Files, words: list[str], expected: list[str]
) -> None:
    """Of a benchmark with a boolean trait for the judge and a pattern, with the plugins that are installed."""
    path = write_benchmark("q0", rating=[TRAIT, JUDGED_TRAIT])
    document = json.loads(run("plan", path, "--json", *words).stdout)
    assert [stage["name"] for stage in document["stages"]] == expected


WITH_AGENTS = [SCORED[0], "AgenticRubricEvaluation", SCORED[1]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--mode", "template_only"], [*TEMPLATES, *JUDGED, "FinalizeResult"]),
        ([], [*TEMPLATES, *JUDGED, *WITH_AGENTS, "FinalizeResult"]),
        (["--mode", "rubric_only"], [*TEMPLATES[1:], *WITH_AGENTS, "FinalizeResult"]),
        (
            ["--with", "agentic_parsing"],
            [*TEMPLATES, "AgenticParseTemplate", *JUDGED[1:], *WITH_AGENTS, "FinalizeResult"],
        ),
    ],
)
def test_the_published_lists_with_agents(
    run: Run, write_benchmark: Files, words: list[str], expected: list[str]
) -> None:
    """Of a benchmark with a trait for agents too, with the plugins that are installed and nothing else."""
    path = write_benchmark("q0", rating=[JUDGED_TRAIT, AGENTIC_TRAIT])
    document = json.loads(run("plan", path, *words, "--json").stdout)
    assert [stage["name"] for stage in document["stages"]] == expected
    assert "agentic" in document["questions"][0]["traits"] or "template_only" in words
    left_out = {entry["name"]: entry["reason"] for entry in document["left_out"]}
    replaced = "ParseTemplate" if "agentic_parsing" in words else "AgenticParseTemplate"
    assert replaced in left_out


def test_agentic_traits_alone_bring_the_stage_of_agents_alone(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", rating=[AGENTIC_TRAIT])
    document = json.loads(run("plan", path, "--mode", "rubric_only", "--json").stdout)
    assert [stage["name"] for stage in document["stages"]] == [*TEMPLATES[1:], WITH_AGENTS[1], "FinalizeResult"]


def test_one_plan_for_every_combination_of_traits(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", "q1", "q2")
    document = json.loads(path.read_text("utf-8"))
    own = {**TRAIT, "additionalType": "karenina:QuestionSpecificRegexTrait"}
    document["dataFeedElement"][2]["item"]["rating"] = [own]
    path.write_text(json.dumps(document), "utf-8")
    shown = run("plan", path).stdout
    assert re.findall(r"^Mode .*$", shown, re.M) == [
        "Mode template_and_rubric, 2 questions",
        "Mode template_and_rubric, traits regex, 1 question",
    ]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_plan_that_cannot_run_is_shown_and_is_exit_code_1(
    as_json: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARENINA_DISABLE", "generate-answer")
    result = run("plan", *["--json"] * as_json)
    assert result.exit_code == 1
    assert "ParseTemplate" in result.stdout
    assert "raw_llm_response" in result.stderr
    assert "generate-answer (blocked" in result.stderr
    if as_json:
        assert set(json.loads(result.stdout)) == KEYS


def test_nothing_to_verify_is_exit_code_1(run: Run, write_benchmark: Files) -> None:
    result = run("plan", write_benchmark("q0", unfinished=["q0"]))
    assert result.exit_code == 1
    assert "nothing to verify" in result.stderr
    assert "q0" in result.stdout


def test_an_empty_benchmark_and_clashing_traits_are_reported(run: Run, write_benchmark: Files) -> None:
    result = run("plan", write_benchmark())
    assert result.exit_code == 1
    assert "nothing to verify" in result.stderr
    path = write_benchmark("q0", rating=[TRAIT])
    document = json.loads(path.read_text("utf-8"))
    own = {**TRAIT, "additionalType": "karenina:QuestionSpecificRegexTrait"}
    document["dataFeedElement"][0]["item"]["rating"] = [own]
    path.write_text(json.dumps(document), "utf-8")
    result = run("plan", path)
    assert result.exit_code == 1
    assert "Error: question q0: " in result.stderr
    assert re.search(r"q0 +its traits clash", result.stdout)


def missing_trait(kind: str) -> dict[str, Any]:
    return {**TRAIT, "name": "Certain", "additionalType": f"karenina:{kind}"}


def test_a_trait_type_that_is_not_installed_is_refused_with_the_ways_on(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", rating=[TRAIT, missing_trait("GlobalHedgingTrait")])
    refused = run("plan", path)
    assert refused.exit_code == 1
    sentence = " ".join(refused.stderr.split())
    for part in (
        "(trait 'Certain')",
        "'karenina:GlobalHedgingTrait' is unknown",
        "install the package that provides it",
    ):
        assert part in sentence
    for way in (["--mode", "template_only"], ["--set", 'run.rubric_trait_names=["Brief"]']):
        assert way[-1].split("=")[0].removeprefix("run.") in sentence
        assert run("plan", path, *way).exit_code == 0
    said = run("verify", path, "--answering-model", "m", "--parsing-model", "m")
    assert (said.exit_code, "GlobalHedgingTrait" in run("benchmark", "validate", path).stderr) == (1, True)


def test_adapters_and_sinks_that_are_not_installed_are_named(run: Run) -> None:
    Path("settings.toml").write_text(
        '[run]\nanswering_models = ["m"]\n[models.m]\ninterface = "acme"\n[models.other]\ninterface = "idle"\n', "utf-8"
    )
    result = run("plan", "--config", "settings.toml", "--sink", "tables:x.sqlite", "--sink", "jsonl:x.jsonl")
    assert result.exit_code == 1
    for part in ("models.m.interface: no adapter serves the interface 'acme'", "--sink: no sink is called 'tables'"):
        assert part in result.stderr
    assert "idle" not in result.stderr
    assert result.stderr.count("to use another one, install its package") == 2


def test_models_of_a_file_are_not_needed(run: Run) -> None:
    Path("settings.toml").write_text('[run]\nanswering_models = ["m"]\n[models.m]\ninterface = "manual"\n', "utf-8")
    assert run("plan", "--config", "settings.toml").exit_code == 0


def test_the_planning_is_data(write_benchmark: Files) -> None:
    from karenina_cli.planning import planned

    from karenina_core import VerificationConfig

    class Empty:
        @hookimpl
        def karenina_register_stages(self, registry: Any) -> None: ...

    found = planned(Karenina({"empty": Empty()}), VerificationConfig())
    assert any("no stage produces 'final_result'" in problem for problem in found.problems)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["--with", "agentic_parsing", "--with", "deep_judgment"], "deep_judgment_enabled"),
        (["--set", 'run.agentic_parsing_trigger="dynamic"'], "agentic_parsing_trigger"),
        (["--with", "agentic_parsing", "--mode", "rubric_only"], "agentic_parsing"),
        (
            ["--with", "agentic_parsing", "--set", "run.agentic_parsing_materialize_trace=true"],
            "agentic_parsing_materialize_trace",
        ),
    ],
)
def test_a_configuration_that_no_run_would_take_is_reported_with_its_plan(
    words: list[str], path: str, as_json: bool, run: Run
) -> None:
    result = run("plan", *words, *["--json"] * as_json)
    assert result.exit_code == 1
    assert f"Error: {path}: " in result.stderr
    assert "GenerateAnswer" in result.stdout
    if as_json:
        printed = json.loads(result.stdout)["problems"]
        assert len([problem for problem in printed if problem.startswith(f"{path}: ")]) == 1


def test_a_plan_needs_no_models_keys_or_files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedder without its model, a search without its key and a judge without its own are for `verify` to see."""
    for name in ("TAVILY_API_KEY", "JUDGE_KEY"):
        monkeypatch.delenv(name, raising=False)
    Path("settings.toml").write_text(
        '[run]\nparsing_models = ["m"]\nembedding_check_model = "no/such-model"\n'
        'deep_judgment_search_enabled = true\ndeep_judgment_mode = "full"\n'
        '[models.m]\nmodel_name = "m"\ninterface = "openai_endpoint"\nendpoint_base_url = "http://127.0.0.1:9/v1"\n'
        'api_key_env = "JUDGE_KEY"\n'
    )
    result = run("plan", "--config", "settings.toml", "--with", "embedding_check", "--json")
    assert (result.exit_code, json.loads(result.stdout)["problems"]) == (0, []), result.stderr


def test_a_stage_that_cannot_check_a_plan_without_models_is_left_to_the_run(run: Run, install: Files) -> None:
    careless = SHINY_STAGE.replace(
        '    included_when = feature("shine")\n',
        '    included_when = feature("shine")\n\n'
        "    def check_config(self, config, app):\n        return [config.parsing_models[0]] and []\n",
    )
    assert careless != SHINY_STAGE
    install("karenina-shine", {"shine": "shine_stage"}, group="karenina.plugins", shine_stage=careless)
    result = run("plan", "--with", "shine", "--json")
    assert (result.exit_code, json.loads(result.stdout)["problems"]) == (0, [])
