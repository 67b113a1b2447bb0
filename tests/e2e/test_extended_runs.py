"""Finished runs that are extended: what is there stays to the byte, and only what is missing is asked for.

Counted at the server that is asked.
"""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from karenina_runs.amend.extension import extend_run
from karenina_runs.folder.fingerprint import Changed
from karenina_runs.folder.status import read_status

from karenina_core import (
    Benchmark,
    DynamicRubric,
    Karenina,
    LLMRubricTrait,
    MetricRubricTrait,
    ModelConfig,
    RegexRubricTrait,
    Rubric,
    VerificationConfig,
    VerificationResultSet,
    resume_run,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_extended", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


targets = loaded("target_runs")
template, question, questions, trait = (
    getattr(targets, name) for name in ("template", "question", "questions", "trait")
)

TIMES = frozenset({"timestamp", "execution_time", "seconds", "run_dir"})
CHANGED = ("metadata", "generation", "rubric", "trail")
"""Parts of a result that more traits add something to."""
ONCE = AttemptPolicy(1)
NEVER_AGAIN = RetryPolicy(rate_limited=ONCE, timeout=ONCE, connection=ONCE, server=ONCE)
LAW = settings(deadline=None, phases=[Phase.generate])


def said(request: ServedRequest) -> Any:
    """Every model answers in its own way."""
    return targets.said(request, request.model)


@define(eq=False)
class World:
    """Runs against one server; each in a directory of its own."""

    server: ScriptedServer
    app: Karenina
    folder: Path
    runs: int = 0
    asked: list[ServedRequest] = field(factory=list)
    """What the latest run asked for."""

    def models(self, *names: str, **facts: Any) -> list[ModelConfig]:
        told = {"interface": "openai_endpoint", "endpoint_base_url": self.server.url, **facts}
        return [ModelConfig(model_name=name, **told) for name in names]

    def config(self, answering: Sequence[str] = ("a0",), parsing: Sequence[str] = ("j0",), **facts: Any) -> Any:
        facts = {
            "answering_models": self.models(*answering),
            "parsing_models": self.models(*parsing),
            "retry_policy": NEVER_AGAIN,
            "rubric_evaluation_strategy": "sequential",
            "concurrency": 16,
            **facts,
        }
        return VerificationConfig(**facts)

    def run(self, benchmark: Benchmark, config: VerificationConfig | None = None, **facts: Any) -> Any:
        about = {"run_dir": self.place(), "app": self.app, "run_name": "the run", **facts}
        return self.counted(lambda: benchmark.run_verification(config or self.config(), **about))

    def extend(self, run: VerificationResultSet, benchmark: Benchmark, config: Any = None, **facts: Any) -> Any:
        folder = run.run_dir
        assert folder is not None
        about = {"run_dir": self.place(), "app": self.app, "config": config or self.config(), **facts}
        before = every_file(folder)
        found = self.counted(lambda: extend_run(folder, benchmark=benchmark, **about))
        assert every_file(folder) == before, "the finished run was written to"
        return found

    def place(self) -> Path:
        self.runs += 1
        return self.folder / f"run{self.runs}"

    def counted(self, work: Callable[[], Any]) -> Any:
        before = self.server.count
        try:
            return work()
        finally:
            self.asked = self.server.requests[before:]

    @property
    def of_models(self) -> Counter[str]:
        """How many requests of the latest run each model got."""
        return Counter(request.model for request in self.asked)


@pytest.fixture
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., World]]:
    """`made(*plugins, script=...)`."""
    servers: list[ScriptedServer] = []

    def make(*plugins: Any, script: Any = said) -> World:
        server = ScriptedServer(script)
        server.__enter__()
        servers.append(server)
        return World(server, application(*plugins, installed=True), tmp_path_factory.mktemp("runs"))

    yield make
    for server in servers:
        server.__exit__(None, None, None)


def rubric(*numbers: int) -> Rubric:
    return Rubric.from_traits(map(trait, numbers))


def every_file(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def lines(results: VerificationResultSet) -> dict[str, str]:
    """The results as they are written, by id."""
    assert results.run_dir is not None
    rows = (results.run_dir / "results.jsonl").read_text("utf-8").splitlines()
    found = {json.loads(row)["metadata"]["result_id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def without_times(results: VerificationResultSet, *more: str) -> dict[str, Any]:
    return {name: targets.bare(json.loads(row), TIMES.union(more)) for name, row in lines(results).items()}


def parsed(results: VerificationResultSet) -> dict[str, Any]:
    return {name: json.loads(row) for name, row in lines(results).items()}


def is_answer(request: ServedRequest) -> bool:
    return request.schema is None


def manifest(results: VerificationResultSet) -> Any:
    assert results.run_dir is not None
    return json.loads((results.run_dir / "manifest.json").read_text("utf-8"))


# More questions, models, judges and replicates


def test_an_extended_run_has_the_rows_of_a_whole_one_and_asks_for_exactly_the_missing_ones(
    made: Callable[..., World], long: bool
) -> None:
    @settings(LAW, max_examples=60 if long else 3)
    @given(
        before=st.tuples(*[st.integers(1, 2)] * 4),
        more=st.tuples(*[st.integers(0, 2 if long else 1)] * 4).filter(any),
        turned=st.booleans(),
        concurrency=st.integers(1, 6),
    )
    def law(before: Any, more: Any, turned: bool, concurrency: int) -> None:
        def config(world: World, count: Any) -> Any:
            answering, parsing = [f"a{n}" for n in range(count[1])], [f"j{n}" for n in range(count[2])]
            if turned:  # models that are added need not come last
                answering, parsing = answering[::-1], parsing[::-1]
            return world.config(answering, parsing, replicate_count=count[3], concurrency=concurrency)

        world, union = made(), tuple(a + b for a, b in zip(before, more, strict=True))
        first = world.run(questions(before[0]), config(world, before))
        found = world.extend(first, questions(union[0]), config(world, union), questions="all")
        asked = world.of_models
        extended, priors = lines(found), lines(first)
        assert {name: extended[name] for name in priors} == priors
        assert {result.metadata.run_name for result in found} == {"the run"}

        whole = world.run(questions(union[0]), config(world, union))
        told_otherwise = ["usage_metadata"] if turned else []  # it says which judge's result has what an answer took
        assert without_times(found, *told_otherwise) == without_times(whole, *told_otherwise)
        assert list(lines(found)) == list(lines(whole))
        answers = [count[0] * count[1] * count[3] for count in (before, union)]
        judged = [count * of[2] for count, of in zip(answers, (before, union), strict=True)]
        assert sum(n for name, n in asked.items() if name.startswith("a")) == answers[1] - answers[0]
        assert sum(n for name, n in asked.items() if name.startswith("j")) == judged[1] - judged[0]
        assert found.get_summary()["outcomes"] == {"passed": judged[1]}
        assert found.get_summary()["paid"]["calls"] == asked.total()
        assert manifest(found)["extends"] == {**manifest(found)["extends"], "run_id": manifest(first)["run_id"]}

    law()


def test_going_from_one_replicate_to_two_gives_two_results_of_each_kind(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(2))
    found = world.extend(first, questions(2), world.config(replicate_count=2))
    assert Counter(result.metadata.replicate for result in found) == {1: 2, 2: 2}
    assert len(lines(found)) == 4
    assert world.of_models == {"a0": 2, "j0": 2}


def test_an_extended_run_is_extended_again(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(2))
    second = world.extend(first, questions(2), world.config(parsing=("j0", "j1")))
    third = world.extend(second, questions(3), world.config(parsing=("j0", "j1")), questions=["q2"])
    assert world.of_models == {"a0": 1, "j0": 1, "j1": 1}
    assert {name: lines(third)[name] for name in lines(second)} == lines(second)


def test_a_fork_of_an_extended_run_knows_what_all_of_them_have_asked(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(2))
    second = world.extend(first, questions(2), world.config(parsing=("j0", "j1")))
    config = world.config(parsing=("j0", "j1"), replicate_count=2)
    third = world.extend(second, questions(2), config)
    about: Any = {"benchmark": questions(2), "app": world.app, "config": config}
    found = world.counted(lambda: resume_run(third.run_dir, fork=world.place(), **about))
    assert world.asked == []
    assert len(found) == 8


# More traits


def test_results_get_the_traits_that_are_new_and_nothing_else_is_asked(made: Callable[..., World], long: bool) -> None:
    @settings(LAW, max_examples=60 if long else 3)
    @given(
        before=st.tuples(*[st.integers(1, 2)] * 4),
        more=st.tuples(*[st.integers(0, 1)] * 4),
        had=st.sampled_from([(), (0,), (0, 1)]),
        scope=st.sampled_from(["global", "question"]),
        strategy=st.sampled_from(["sequential", "batch"]),
    )
    def law(before: Any, more: Any, had: Any, scope: str, strategy: str) -> None:
        def config(world: World, count: Any) -> Any:
            answering, parsing = [f"a{n}" for n in range(count[1])], [f"j{n}" for n in range(count[2])]
            return world.config(answering, parsing, replicate_count=count[3], rubric_evaluation_strategy=strategy)

        def benchmark(count: int, traits: Any) -> Benchmark:
            if scope == "global":
                return questions(count).with_rubric(rubric(*traits) if traits else None)
            return questions(count, question_rubric=rubric(*traits) if traits else None)

        world, union = made(), tuple(a + b for a, b in zip(before, more, strict=True))
        first = world.run(benchmark(before[0], had), config(world, before))
        traits = (*had, 7, 8)
        found = world.extend(first, benchmark(union[0], traits), config(world, union), questions="all")
        asked = list(world.asked)
        whole = world.run(benchmark(union[0], traits), config(world, union))
        assert without_times(found, "trail", "usage_metadata") == without_times(whole, "trail", "usage_metadata")
        items = [count[0] * count[1] * count[2] * count[3] for count in (before, union)]
        new = items[1] - items[0]
        calls = {"sequential": (2, 1 + len(traits)), "batch": (1, 2)}[strategy]
        answers = [count[0] * count[1] * count[3] for count in (before, union)]
        assert sum(map(is_answer, asked)) == answers[1] - answers[0]
        assert sum(not is_answer(request) for request in asked) == calls[0] * items[0] + calls[1] * new
        for name, row in parsed(first).items():
            changed = parsed(found)[name]
            assert {**row, **dict.fromkeys(CHANGED)} == {**changed, **dict.fromkeys(CHANGED)}
            assert row["metadata"]["timestamp"] == changed["metadata"]["timestamp"]
            assert row["metadata"]["result_id"] == changed["metadata"]["result_id"]
            scores = (row["rubric"] or {}).get("llm_trait_scores", {})
            assert changed["rubric"]["llm_trait_scores"] == {**scores, "quality 7": True, "quality 8": True}
        summary = found.get_summary()
        assert summary["calls"] == whole.get_summary()["calls"] + (items[0] if strategy == "batch" and had else 0)
        assert summary["paid"]["calls"] == len(asked)

    law()


def test_traits_of_every_kind_are_added(made: Callable[..., World]) -> None:
    def script(request: ServedRequest) -> Any:
        names = (request.schema or {}).get("properties", {})
        if "classification" in names:
            return {"classification": "plain"}
        if "tp" in names:
            return {"tp": ["BCL2"], "fn": [], "fp": []}
        return said(request)

    world = made(script=script)
    first = world.run(questions(2).with_rubric(rubric(0)))
    more = [
        *rubric(0),
        LLMRubricTrait(name="tone", kind="literal", description="Tone", classes={"plain": "p", "ornate": "o"}),
        LLMRubricTrait(name="marks", kind="score", description="Marks", min_score=1, max_score=5),
        RegexRubricTrait(name="names it", pattern="BCL2"),
        MetricRubricTrait(name="found", metrics=["precision"], tp_instructions=["BCL2"]),
    ]
    found = world.extend(first, questions(2).with_rubric(Rubric.from_traits(more)))
    whole = world.run(questions(2).with_rubric(Rubric.from_traits(more)))
    told = ("trail", "usage_metadata", "warnings")
    assert without_times(found, *told) == without_times(whole, *told)
    assert len(found[0].rubric.rows()) == 5


def test_dynamic_traits_are_added_where_the_answer_takes_them_up(made: Callable[..., World]) -> None:
    def script(request: ServedRequest) -> Any:
        names = (request.schema or {}).get("properties", {})
        if "trait_1" in names:
            return {"trait_1": "drug 0" in request.text}
        return said(request)

    world = made(script=script)
    first = world.run(questions(2))
    newer = questions(2).with_dynamic_rubric(DynamicRubric.from_traits([trait(1)]))
    found = world.extend(first, newer)
    assert [result.rubric.trait_states["quality 1"]["state"] for result in found] == ["ok", "skipped"]
    assert found[0].rubric.trait_provenance == {"quality 1": "dynamic"}
    assert len(world.asked) == 3  # whether they are there, twice, and the one that is


def test_a_run_without_templates_gets_more_traits(made: Callable[..., World]) -> None:
    world = made()
    only = {"evaluation_mode": "rubric_only"}
    first = world.run(questions(2).with_rubric(rubric(0)), world.config(**only))
    found = world.extend(first, questions(2).with_rubric(rubric(0, 1)), world.config(**only))
    whole = world.run(questions(2).with_rubric(rubric(0, 1)), world.config(**only))
    assert without_times(found, "trail") == without_times(whole, "trail")


def test_checks_of_the_answer_are_not_made_again_for_traits(made: Callable[..., World]) -> None:
    def script(request: ServedRequest) -> Any:
        names = (request.schema or {}).get("properties", {})
        if "abstention_detected" in names:
            return {"reasoning": "It answers.", "answer": None, "disclaimer": None, "abstention_detected": False}
        return said(request)

    world = made(script=script)
    config = world.config(features=["abstention"])
    first = world.run(questions(2), config)
    assert len(world.asked) == 6
    found = world.extend(first, questions(2).with_rubric(rubric(0)), config)
    assert len(world.asked) == 2
    assert [result.checks for result in found] == [result.checks for result in first]


def test_what_the_traits_took_is_added_to_what_the_result_took(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(1).with_rubric(rubric(0)))
    found = world.extend(first, questions(1).with_rubric(rubric(0, 1)))
    before, now = (run[0].generation.usage_metadata["total"] for run in (first, found))
    assert (before["calls"], now["calls"]) == (3, 4)
    assert now["total_tokens"] == before["total_tokens"] + 60
    rubric_stage = [next(t for t in run[0].trail if t.stage == "RubricEvaluation") for run in (first, found)]
    assert rubric_stage[1].reason == f"{rubric_stage[0].reason}; then 1 of 1 traits have a score"
    assert [t.stage for t in found[0].trail] == [t.stage for t in first[0].trail]


def test_a_trait_that_fails_costs_no_other_score_and_no_verdict(made: Callable[..., World]) -> None:
    def script(request: ServedRequest) -> Any:
        return Reply("no", status=400) if "quality 1" in request.text else said(request)

    world = made(script=script)
    first = world.run(questions(2).with_rubric(rubric(0)))
    found = world.extend(first, questions(2).with_rubric(rubric(0, 1, 2)))
    for result in found:
        assert {name: state["state"] for name, state in result.rubric.trait_states.items()} == {
            "quality 0": "ok",
            "quality 1": "error",
            "quality 2": "ok",
        }
        assert result.metadata.outcome == "passed"


# Errors


def test_errors_that_may_be_gone_are_tried_again_and_others_stay(made: Callable[..., World]) -> None:
    broken = [True]

    def script(request: ServedRequest) -> Any:
        if broken[0] and request.schema and "drug 0" in request.text:
            return Reply("later", status=503)
        if request.schema and "drug 1" in request.text:
            return Reply("no")
        return said(request)

    world = made(script=script)
    first = world.run(questions(3))
    assert [result.metadata.outcome_detail for result in first][:2] == ["server", "judge"]
    broken[0] = False
    found = world.extend(first, questions(3).with_rubric(rubric(0)))
    assert [result.metadata.outcome for result in found] == ["passed", "error", "passed"]
    assert world.of_models == {"j0": 3}  # the first is read and scored, the last is scored
    assert parsed(found)[first[1].metadata.result_id] == parsed(first)[first[1].metadata.result_id]
    assert found[0].generation.usage_metadata["total"]["calls"] == 3
    assert found.get_summary()["outcomes"] == {"passed": 2, "error": 1}


def test_a_run_that_was_resumed_is_extended_like_any_other(made: Callable[..., World]) -> None:
    broken = [True]
    world = made(script=lambda asked: Reply("later", status=503) if broken[0] and asked.schema else said(asked))
    first = world.run(questions(2))
    assert {result.metadata.outcome for result in first} == {"error"}
    broken[0] = False
    about: Any = {"benchmark": questions(2), "app": world.app, "config": world.config()}
    resumed = resume_run(first.run_dir, **about)
    found = world.extend(resumed, questions(2), world.config(replicate_count=2))
    assert world.of_models == {"a0": 2, "j0": 2}
    assert found.get_summary()["outcomes"] == {"passed": 4}


def test_an_answer_that_failed_for_good_is_told_before_judges_that_are_added_ask_for_it(
    made: Callable[..., World],
) -> None:
    def script(request: ServedRequest) -> Any:
        return Reply("no", status=400) if is_answer(request) and "drug 0" in request.text else said(request)

    world = made(script=script)
    first = world.run(questions(2))
    found = world.extend(first, questions(2), world.config(parsing=("j0", "j1")))
    assert world.of_models == {"a0": 1, "j1": 1}
    assert any("1 answer failed with a permanent error" in note for note in found.get_summary()["notes"])
    assert [result.metadata.outcome for result in found] == ["error", "error", "passed", "passed"]


# Interruptions


def test_a_budget_that_is_used_up_while_traits_are_scored_leaves_a_run_that_goes_on(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(6).with_rubric(rubric(0)))
    newer = questions(6).with_rubric(rubric(0, 1))
    config = world.config(budget_tokens=200, concurrency=1)
    found = world.extend(first, newer, config)
    assert found.run_dir is not None
    assert 0 < len(found) < 6
    assert all(set(result.rubric.llm_trait_scores) == {"quality 0", "quality 1"} for result in found)
    assert read_status(found.run_dir).is_resumable
    paid = len(world.asked)
    rest = world.counted(
        lambda: resume_run(found.run_dir, benchmark=newer, app=world.app, config=evolve(config, budget_tokens=None))
    )
    assert len(rest) == 6
    assert paid + len(world.asked) == 6
    assert manifest(rest)["extends"]["taken_over"] is True
    assert all(result.metadata.outcome == "passed" for result in rest)


def test_while_results_are_to_be_taken_over_the_finished_run_is_needed(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(6).with_rubric(rubric(0)))
    newer = questions(6).with_rubric(rubric(0, 1))
    found = world.extend(first, newer, world.config(budget_tokens=200, concurrency=1))
    assert first.run_dir is not None
    away = first.run_dir.rename(first.run_dir.with_name("elsewhere"))
    about: Any = {"benchmark": newer, "app": world.app, "config": world.config()}
    with pytest.raises(ConfigError, match="still have to be taken over, so put it back"):
        resume_run(found.run_dir, **about)
    away.rename(first.run_dir)
    rest = resume_run(found.run_dir, **about)
    first.run_dir.rename(away)
    assert len(rest) == 6
    assert len(resume_run(found.run_dir, **about)) == 6


# What cannot be extended


SAME = questions(2).with_rubric(rubric(0))


@pytest.mark.parametrize(
    ("benchmark", "facts", "told"),
    [
        (SAME, {"answering": ("a1",)}, "the answering model openai_endpoint:a0 is gone"),
        (SAME, {"parsing": ("j1",)}, "the parsing model openai_endpoint:j0 is gone"),
        (SAME, {"replicate_count": 1}, "replicate_count was 2 and is 1; it may only grow"),
        (SAME, {"features": ["abstention"]}, "the setting features was"),
        (SAME.without_questions(["q1"]), {}, "the question 'q1' is gone"),
        (
            SAME.with_questions([question(0, answer_template=template(ground_truth="ABL1"))]),
            {},
            "the question 'q0' has another template",
        ),
        (questions(2).with_rubric(rubric(1)), {}, "'q0' and 1 more have no trait 'quality 0' any more"),
        (questions(2), {}, "'q0' and 1 more have no trait 'quality 0' any more"),
        (
            questions(2).with_rubric(Rubric.from_traits([trait(0, "Another meaning")])),
            {},
            "'q0' and 1 more have another trait 'quality 0'; give it a name that no trait had",
        ),
        (questions(2).with_rubric(rubric(0, 1)), {"rubric_evaluation_strategy": "batch"}, "rubric_evaluation_strategy"),
    ],
)
def test_what_is_not_an_addition_is_named_and_nobody_is_asked(
    made: Callable[..., World], benchmark: Benchmark, facts: Any, told: str
) -> None:
    world = made()
    first = world.run(SAME, world.config(replicate_count=2))
    with pytest.raises(Changed) as caught:
        world.extend(first, benchmark, world.config(**{"replicate_count": 3, **facts}))
    assert any(told in problem.message for problem in caught.value.problems), caught.value.problems
    assert world.asked == []
    assert not (world.folder / f"run{world.runs}").exists()


def test_two_traits_of_one_name_are_refused_before_a_call(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(2).with_rubric(rubric(0)))
    clash = questions(2, question_rubric=rubric(0)).with_rubric(rubric(0))
    with pytest.raises(ConfigError, match="clash on llm:quality 0"):
        world.extend(first, clash)
    assert world.asked == []


def test_a_run_is_not_extended_by_nothing(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(2))
    with pytest.raises(ConfigError, match="nothing is added"):
        world.extend(first, questions(3))
    assert world.asked == []


def test_a_damaged_result_is_found_before_a_call(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(2))
    assert first.run_dir is not None
    with sqlite3.connect(first.run_dir / "journal.sqlite") as connection:
        connection.execute("UPDATE results SET outcome = 'failed' WHERE id = 1")
    connection.close()
    with pytest.raises(ConfigError, match=r"of 1 item .* has no result .*karenina doctor"):
        world.extend(first, questions(2), world.config(replicate_count=2))
    assert world.asked == []


def test_what_is_no_run_directory_is_refused(made: Callable[..., World], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a run directory"):
        extend_run(tmp_path, run_dir=tmp_path / "more")


def test_a_setting_that_tells_how_traits_are_scored_may_change_where_there_were_none(
    made: Callable[..., World],
) -> None:
    world = made()
    first = world.run(questions(2), world.config(rubric_evaluation_strategy="batch"))
    found = world.extend(first, questions(2).with_rubric(rubric(0, 1)), world.config())
    assert len(world.asked) == 4
    assert {result.metadata.evaluation_mode for result in found} == {"template_and_rubric"}
