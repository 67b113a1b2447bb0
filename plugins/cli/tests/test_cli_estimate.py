"""`karenina verify --estimate` and `karenina plan --estimate`: what they say is what the run then does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core.testing import Reply, ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
PRICED = ("--set", "models.judge.input_cost_per_token=0.001", "--set", "models.judge.output_cost_per_token=0.002")
ALL_MODELS = ("run.answering_models=['one','two']", "run.parsing_models=['judge','other']")


def trait(name: str, kind: str = "RubricTrait", scope: str = "Global", **more: Any) -> dict[str, Any]:
    properties = [{"@type": "PropertyValue", "name": key, "value": value} for key, value in more.items()]
    bounds = {"bestRating": 1, "worstRating": 0}
    about = {"name": name, "description": f"Is it {name}?", "additionalType": f"karenina:{scope}{kind}"}
    return {"@type": "Rating", **about, **bounds, "additionalProperty": properties}


METRIC = trait("covered", "MetricRubricTrait", tp_instructions=["names Paris"], metrics=["recall"])
TRAITS = [trait("clear"), trait("kind"), trait("cited", "RegexTrait", pattern="Paris"), METRIC]


def filled(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Any:
    """Data of a schema: whatever is asked about is there, and is Paris."""
    if "$ref" in schema:
        return filled(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "enum" in schema:
        return schema["enum"][0]
    for kind in ("anyOf", "allOf", "oneOf"):
        if kind in schema:
            return filled(schema[kind][0], defs)
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        return {name: filled(part, defs) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [filled(schema["items"], defs)]
    return {"string": "Paris", "boolean": True, "integer": 1, "number": 1.0, "null": None}[kind]


def model(request: Any) -> Any:
    """Answers, and says yes to whatever is asked about the answer; the longer the question's id, the more it says."""
    longer = 3 * sum(request.text.count(f"(q{number})") for number in range(3, 6))
    usage = (200 + len(request.text) // 4 + longer, 30 + longer)
    if request.schema is None:
        return Reply(f"The capital is Paris. {'Indeed. ' * longer}", usage=usage)
    data = filled(request.schema, request.schema.get("$defs", {}))
    if "abstention_detected" in data:
        data |= {"abstention_detected": False, "disclaimer": None}
    return Reply(data, usage=usage)


def models(url: str) -> list[str]:
    names = ("one", "two", "judge", "other")
    sets = [f"models.{name}.interface=openai_endpoint" for name in names]
    sets += [f"models.{name}.endpoint_base_url={url}" for name in names]
    sets += [f"models.{name}.model_name=model-{name}" for name in names]
    return [part for setting in sets for part in ("--set", setting)]


def said(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def made(summary: Mapping[str, Any]) -> dict[str, int]:
    return {task: row["calls"] for task, row in summary["usage"].items()}


def planned(estimate: Mapping[str, Any], bound: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in estimate["rows"]:
        if row["calls"][bound]:
            found[row["task"]] = found.get(row["task"], 0) + row["calls"][bound]
    return found


@pytest.mark.parametrize(
    ("exact", "words"),
    [
        (True, ("--replicates", "2", *(part for setting in ALL_MODELS for part in ("--set", setting)))),
        (True, ("--mode", "rubric_only", "--set", "run.rubric_evaluation_strategy=sequential")),
        (False, ("--with", "sufficiency", "--set", "run.deep_judgment_rubric_mode=enable_all")),
        (False, ("--with", "deep_judgment", "--with", "embedding_check", "--with", "abstention")),
        (
            True,
            ("--with", "deep_judgment", "--set", "run.deep_judgment_reasoning_only=true", "--mode", "template_only"),
        ),
    ],
)
def test_calls_are_those_of_the_run_and_tokens_near_them_by_an_earlier_one(
    run: Run, write_benchmark: Files, exact: bool, words: tuple[str, ...]
) -> None:
    usual = () if "run.answering_models=['one','two']" in words else ("--answering-model", "one")
    usual = (*usual, "--parsing-model", "judge") if usual else ()
    few, many = (write_benchmark(*ids, name=f"b{len(ids)}.jsonld", rating=TRAITS) for ids in (IDS[:4], IDS))
    with ScriptedServer(model) as server:
        common = (*models(server.url), *usual, *words, *PRICED, "--json")
        earlier = said(run("verify", few, *common, "--out", "earlier", "--quiet"))
        asked = server.count
        blind = said(run("verify", many, *common, "--estimate"))
        seeing = said(run("verify", many, *common, "--estimate", "--from", "earlier"))
        assert (server.count, sorted(Path().glob("karenina-runs"))) == (asked, [])
        done = said(run("verify", many, *common, "--out", "out", "--quiet"))
    assert earlier["outcomes"] == {"passed": earlier["num_results"]} or "rubric_only" in words
    assert seeing["items"] == done["num_results"]
    actual = made(done)
    for estimate in (blind, seeing):
        assert all(actual[task] >= count for task, count in planned(estimate, "low").items())
        assert all(actual.get(task, 0) <= count for task, count in planned(estimate, "high").items())
        assert set(actual) <= set(planned(estimate, "high"))
        if estimate["exact"]:
            assert planned(estimate, "low") == actual
            assert estimate["calls"]["low"] == estimate["calls"]["high"] == sum(actual.values())
        for way in ("input", "output", "total"):
            span = estimate["tokens"][way]
            assert span["low"] <= done["tokens"][way] <= span["high"]
    assert planned(seeing, "expected") == actual
    for way in ("input", "output", "total"):
        assert seeing["tokens"][way]["expected"] == pytest.approx(done["tokens"][way], rel=0.15)
    assert blind["exact"] == exact


IDS = tuple(f"q{number}" for number in range(6))


def test_the_cost_is_that_of_known_prices_and_the_share_of_the_others_is_told(
    run: Run, write_benchmark: Files, tmp_path: Path
) -> None:
    path = write_benchmark("q0", "q1", "q2")
    with ScriptedServer(
        lambda request: Reply({"capital": "Paris"} if request.schema else "Paris", usage=(100, 10))
    ) as s:
        words = ("verify", path, *models(s.url), "--answering-model", "one", "--parsing-model", "judge")
        half = said(run(*words, *PRICED, "--estimate", "--json"))
        none = said(run(*words, "--estimate", "--json"))
        said(run(*words, *PRICED, "--out", "out", "--quiet", "--json"))
        found = said(run(*words, *PRICED, "--estimate", "--from", "out", "--json"))
        shown = run(*words, *PRICED, "--estimate", "--from", tmp_path / "out").stdout
        assert s.count == 6
    assert (half["unknown_price_share"], none["unknown_price_share"], none["cost_usd"]) == (0.5, 1.0, None)
    assert half["cost_usd"]["low"] < half["cost_usd"]["high"]
    assert found["cost_usd"]["expected"] == pytest.approx(3 * (100 * 0.001 + 10 * 0.002))
    assert found["tokens"]["total"] == {"low": 660, "expected": 660, "high": 660}
    assert "calls   6\n" in shown
    assert "0.3600 US dollars, without 50% of the calls, whose cost is unknown" in shown
    assert "at most 6; in the earlier run 0.00 for each call" in shown


def test_answers_that_are_given_are_not_asked_for_and_canaries_are_counted(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    path = write_benchmark("q0", "q1")
    with ScriptedServer(model) as server:
        words = ("verify", path, *served(server.url), "--json")
        said(run(*words, "--out", "out", "--quiet"))
        again, parsed = (said(run(*words, "--estimate", "--answers", "out", *more)) for more in ((), ("--parsed",)))
        canaries = said(run(*words, "--estimate", "--canaries"))
        asked = server.count
        done = said(run(*words, "--canaries", "--out", "canaries", "--quiet"))
    assert (planned(again, "low"), again["given_answers"]) == ({"parsing": 2}, 2)
    assert planned(parsed, "low") == {}
    assert planned(canaries, "low") == {"generation": 2, "parsing": 12}
    assert server.count - asked == canaries["calls"]["low"] == 14
    assert made(done) == {"generation": 2, "parsing": 2}


def test_a_plan_is_estimated_too_and_mistakes_say_what_to_do(run: Run, write_benchmark: Files, served: Any) -> None:
    path = write_benchmark("q0", template="class Answer(BaseAnswer):\n    capital: str\n", language="python")
    words = models("http://[::1]:9")
    roles = ("--set", "run.answering_models=['one']", "--set", "run.parsing_models=['judge']")
    found = said(run("plan", path, *words, *roles, "--estimate", "--json"))
    assert planned(found, "low") == {"generation": 1, "parsing": 1}
    missing = run("plan", path, "--estimate")
    assert missing.exit_code != 0
    assert "model" in missing.stderr
    for wrong, text in (
        (("plan", path, "--from", path), "add --estimate"),
        (("verify", path, *served("http://[::1]:9"), "--from", path), "add --estimate"),
        (("plan", "--estimate"), "karenina plan FILE --estimate"),
        (("plan", path, *words, *roles, "--estimate", "--from", path), "no results"),
    ):
        refused = run(*wrong)
        assert refused.exit_code != 0
        assert text in refused.stderr


STRANGER = """\
from karenina_core import Category, Stage, hookimpl
from karenina_vocabulary.planned_calls import PlannedCall


class {name}(Stage):
    category = Category.ENHANCEMENT
    requires = ("raw_llm_response",)
    {calls}

    def execute(self, context):
        return None


@hookimpl
def karenina_register_stages(registry):
    registry.add({name})
"""
SAYS = """def calls(self, question, rubric, config, app):
        yield PlannedCall(task="acme.second-look", least=2, most=3)
"""


@pytest.mark.parametrize(
    ("calls", "low", "note"),
    [
        (SAYS, {"generation": 1, "parsing": 1, "acme.second-look": 2}, ""),
        ("", {"generation": 1, "parsing": 1}, "Look (plugin odd) does not say how often it asks a model"),
        ("calls = (1).real", {"generation": 1, "parsing": 1}, "Look could not say"),
    ],
)
def test_the_stage_of_another_package_says_how_often_it_asks(
    run: Run, write_benchmark: Files, served: Any, install: Any, calls: str, low: dict[str, int], note: str
) -> None:
    install("karenina-odd", {"odd": "odd_look"}, "karenina.plugins", odd_look=STRANGER.format(name="Look", calls=calls))
    words = ("verify", write_benchmark("q0"), *served("http://[::1]:9"), "--estimate", "--json")
    found = said(run(*words))
    assert planned(found, "low") == low
    assert any(text.startswith(note) for text in found["notes"]) == bool(note)
    assert (found["unknown_stages"] == ["Look"]) == bool(note)
