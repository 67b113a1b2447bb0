"""What another run has paid for is not asked again: counted at the server that is asked."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field
from click.testing import CliRunner
from karenina_cli.root import karenina
from karenina_runs.journal.reader import JournalReader

from karenina_core import (
    ArtifactKeys,
    Benchmark,
    Karenina,
    LLMRubricTrait,
    ModelConfig,
    Rubric,
    Stage,
    VerificationConfig,
    VerificationContext,
    VerificationResultSet,
    hookimpl,
)
from karenina_core.errors import ConfigError, RunDirectoryError
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_reuse", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


targets = loaded("target_runs")
said, template, question, questions, trait = (
    getattr(targets, name) for name in ("said", "template", "question", "questions", "trait")
)

TIMES = frozenset({"timestamp", "execution_time", "seconds", "run_name", "result_id"})
CODE = """
from karenina_core.templates import BaseAnswer, ExactMatch, VerifiedField


class Answer(BaseAnswer):
    target: str = VerifiedField(
        description="The protein that the response names as the target", ground_truth={truth!r}, verify_with={how}
    )

    def verify(self):
        return {verdict}
"""
OWN = """
from karenina_core.templates import BaseAnswer
from pydantic import Field


class Answer(BaseAnswer):
    target: str = Field(description="The protein that the response names as the target")

    def model_post_init(self, context):
        self.correct = {{"target": {truth!r}}}

    def verify(self):
        return {verdict}
"""
QUICK = RetryPolicy(
    rate_limited=AttemptPolicy(2, 0.0, 0.01),
    timeout=AttemptPolicy(1),
    connection=AttemptPolicy(2, 0.0, 0.01),
    server=AttemptPolicy(2, 0.0, 0.01),
)


@define(eq=False)
class World:
    """Runs against one server; each in a directory of its own."""

    server: ScriptedServer
    app: Karenina
    folder: Path
    runs: int = 0
    before: int = 0
    asked: list[ServedRequest] = field(factory=list)
    """What the latest run asked for."""

    def model(self, name: str = "m", **facts: Any) -> ModelConfig:
        prices = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
        told = {"interface": "openai_endpoint", "endpoint_base_url": self.server.url, **prices, **facts}
        return ModelConfig(model_name=name, **told)

    def config(self, **facts: Any) -> VerificationConfig:
        facts = {
            "answering_models": [self.model("answerer")],
            "parsing_models": [self.model("judge")],
            "retry_policy": QUICK,
            "code_policy": "trusted",
            "concurrency": 32,
            **facts,
        }
        return VerificationConfig(**facts)

    def run(
        self,
        benchmark: Benchmark,
        config: VerificationConfig | None = None,
        *reuse: VerificationResultSet,
        **facts: Any,
    ) -> VerificationResultSet:
        self.runs += 1
        before = self.server.count
        about: dict[str, Any] = {"run_dir": self.folder / f"run{self.runs}", "app": self.app, **facts}
        folders = [found.run_dir for found in reuse if found.run_dir]
        results = benchmark.run_verification(config or self.config(), reuse=folders, **about)
        self.asked = self.server.requests[before:]
        return results

    @property
    def of_models(self) -> Counter[str]:
        """How many requests of the latest run each model got."""
        return Counter(request.model for request in self.asked)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """`made(*plugins, script=...)`."""
    servers: list[ScriptedServer] = []

    def make(*plugins: Any, script: Any = said) -> World:
        server = ScriptedServer(script)
        server.__enter__()
        servers.append(server)
        return World(server, application(*plugins, installed=True), tmp_path)

    yield make
    for server in servers:
        server.__exit__(None, None, None)


def rubric(*edited: LLMRubricTrait, count: int = 10) -> Rubric:
    """Ten traits, some of them as they are given here."""
    new = {one.name: one for one in edited}
    return Rubric.from_traits([new.get(one.name, one) for one in map(trait, range(count))])


def without_times(results: VerificationResultSet) -> list[Any]:
    """The results as plain data, in the order of the plan, without times and names of runs."""
    assert results.run_dir is not None
    lines = (results.run_dir / "results.jsonl").read_text("utf-8").splitlines()
    return [targets.bare(json.loads(line), TIMES) for line in lines]


def ledger_holds(results: VerificationResultSet) -> None:
    """The sums that the run tells are those of its journal."""
    assert results.run_dir is not None
    with JournalReader.open(results.run_dir) as reader:
        counted = reader.ledger()
    assert results.ledger == counted.to_dict()
    summary = results.get_summary()
    assert summary["reused_calls"] == counted.total.reused
    assert summary["paid"]["calls"] == counted.total.calls
    assert VerificationResultSet.load(results.run_dir).get_summary()["paid"] == summary["paid"]


# Traits


def test_editing_one_of_ten_traits_that_are_asked_one_by_one_costs_one_call_an_item(
    made: Callable[..., World], long: bool
) -> None:
    world, items = made(), 1000 if long else 5
    config = world.config(rubric_evaluation_strategy="sequential", evaluation_mode="template_and_rubric")
    before = world.run(questions(items).with_rubric(rubric()), config)
    assert len(world.asked) == 12 * items

    edited = questions(items).with_rubric(rubric(trait(3, "Whether the answer is short.")))
    after = world.run(edited, config, before)

    assert len(world.asked) == items
    assert all("Whether the answer is short." in request.text for request in world.asked)
    assert len(after) == items
    assert {result.metadata.outcome for result in after} == {"passed"}
    summary = after.get_summary()
    assert (summary["calls"], summary["reused_calls"]) == (12 * items, 11 * items)
    assert summary["paid"]["calls"] == items
    ledger_holds(after)


def test_editing_a_trait_of_a_batch_costs_the_batch_of_that_question_alone(made: Callable[..., World]) -> None:
    world = made()
    config = world.config(rubric_evaluation_strategy="batch", evaluation_mode="template_and_rubric")
    own = Benchmark(name="targets", questions=[question(number, question_rubric=rubric()) for number in range(4)])
    before = world.run(own, config)
    assert len(world.asked) == 3 * 4

    edited = own.with_questions([question(2, question_rubric=rubric(trait(3, "Whether the answer is short.")))])
    world.run(edited, config, before)

    assert len(world.asked) == 1
    assert "drug 2?" in world.asked[0].text
    assert "Whether the answer is short." in world.asked[0].text


def test_a_trait_of_another_kind_leaves_the_batch_of_the_others(made: Callable[..., World]) -> None:
    def script(request: ServedRequest) -> Any:
        if request.schema and "classification" in request.schema["properties"]:
            return {"classification": "plain"}
        return said(request)

    world = made(script=script)
    config = world.config(evaluation_mode="template_and_rubric")
    tone = LLMRubricTrait(name="tone", kind="literal", description="Tone", classes={"plain": "p", "ornate": "o"})
    before = world.run(questions(3).with_rubric(rubric()), config)
    world.run(questions(3).with_rubric(Rubric.from_traits([*rubric(), tone])), config, before)
    assert len(world.asked) == 3
    assert all("classification" in (request.schema or {})["properties"] for request in world.asked)


def test_the_order_of_traits_that_are_asked_one_by_one_is_no_part_of_what_is_asked(made: Callable[..., World]) -> None:
    world = made()
    config = world.config(rubric_evaluation_strategy="sequential", evaluation_mode="template_and_rubric")
    before = world.run(questions(3).with_rubric(rubric()), config)
    world.run(questions(3).with_rubric(Rubric.from_traits(reversed(list(rubric())))), config, before)
    assert world.asked == []


# Templates


@pytest.mark.parametrize(
    ("source", "language", "edited", "outcome"),
    [
        (template(), "karenina-template", template(ground_truth="TP53"), "failed"),
        (template(), "karenina-template", template(verify_with={"type": "ContainsAny", "substrings": ["B"]}), "passed"),
        (
            CODE.format(truth="BCL2", how="ExactMatch()", verdict="self.target == 'BCL2'"),
            "python",
            CODE.format(truth="TP53", how="ExactMatch(normalize=())", verdict="self.target == 'TP53'"),
            "failed",
        ),
        (
            OWN.format(truth="BCL2", verdict="self.target == self.correct['target']"),
            "python",
            OWN.format(truth="TP53", verdict="self.target.lower() == self.correct['target'].lower()"),
            "failed",
        ),
    ],
    ids=["ground truth", "primitive", "python", "python with its own check"],
)
def test_editing_how_a_template_verifies_calls_no_model(
    made: Callable[..., World], source: str, language: Any, edited: str, outcome: str, long: bool
) -> None:
    world, items = made(), 1000 if long else 5
    before = world.run(questions(items, answer_template=source, template_language=language))
    assert [result.metadata.outcome for result in before] == ["passed"] * items
    assert len(world.asked) == 2 * items

    after = world.run(questions(items, answer_template=edited, template_language=language), None, before)

    assert world.asked == []
    assert {result.metadata.outcome for result in after} == {outcome}
    assert after.get_summary()["paid"] == {
        "calls": 0,
        "failed_attempts": 0,
        "unknown_cost_attempts": 0,
        "cost_usd": 0.0,
        "tokens": {"input": 0, "output": 0, "total": 0},
    }
    ledger_holds(after)


def test_another_reference_answer_is_asked_about_only_where_the_judge_is_shown_it(made: Callable[..., World]) -> None:
    world = made()
    config = world.config(rubric_evaluation_strategy="sequential", evaluation_mode="template_and_rubric")
    shown = LLMRubricTrait(name="agrees", kind="boolean", description="It agrees.", include_ground_truth=True)
    traits = Rubric.from_traits([trait(0), shown])
    before = world.run(questions(3).with_rubric(traits), config)
    world.run(questions(3, raw_answer="The protein BCL2").with_rubric(traits), config, before)
    assert len(world.asked) == 3
    assert all("The protein BCL2" in request.text for request in world.asked)


def test_a_field_that_the_judge_is_told_otherwise_is_asked_for_again_and_the_answers_stay(
    made: Callable[..., World],
) -> None:
    world = made()
    before = world.run(questions(4))
    world.run(questions(4, answer_template=template(description="The gene that is named")), None, before)
    assert world.of_models == {"judge": 4}


# Models, replicates, questions


def test_another_judge_reads_the_answers_that_are_there(made: Callable[..., World]) -> None:
    world = made()
    before = world.run(questions(5))
    after = world.run(questions(5), world.config(parsing_models=[world.model("other judge")]), before)
    assert world.of_models == {"other judge": 5}
    assert [r.generation.raw_llm_response for r in after] == [r.generation.raw_llm_response for r in before]


def test_another_model_a_replicate_a_question_or_a_judge_more_costs_itself_alone(made: Callable[..., World]) -> None:
    world = made()
    before = world.run(questions(4))
    world.run(questions(4), world.config(replicate_count=2), before)
    assert world.of_models == {"answerer": 4, "judge": 4}
    world.run(questions(5), None, before)
    assert world.of_models == {"answerer": 1, "judge": 1}
    both = [world.model("answerer"), world.model("second")]
    world.run(questions(4), world.config(answering_models=both), before)
    assert world.of_models == {"second": 4}  # it says the same, and what it says is judged already
    world.run(questions(4), world.config(parsing_models=[world.model("judge"), world.model("more")]), before)
    assert world.of_models == {"more": 4}


def test_another_temperature_is_another_call(made: Callable[..., World]) -> None:
    world = made()
    before = world.run(questions(2))
    warm = world.config(answering_models=[world.model("answerer", temperature=0.7)])
    world.run(questions(2), warm, before)
    assert world.of_models == {"answerer": 2}


def test_settings_of_pace_patience_and_price_are_no_part_of_what_is_asked(made: Callable[..., World]) -> None:
    world = made()
    before = world.run(questions(3))
    patient = {"request_timeout": 77.0, "requests_per_minute": 9000, "max_retries": 7, "input_cost_per_token": 1.0}
    models = {f"{role}_models": [world.model(name, **patient)] for role, name in (("answering", "answerer"),)}
    world.run(questions(3), world.config(concurrency=1, task_ordering="random", **models), before)
    assert world.asked == []


# What a reused reply is


def test_a_run_that_reuses_everything_gives_the_same_results_and_pays_nothing(made: Callable[..., World]) -> None:
    world = made()
    config = world.config(rubric_evaluation_strategy="sequential", evaluation_mode="template_and_rubric")
    before = world.run(questions(6).with_rubric(rubric(count=3)), config)
    after = world.run(questions(6).with_rubric(rubric(count=3)), config, before)
    assert world.asked == []
    assert without_times(after) == without_times(before)
    told, first = after.get_summary(), before.get_summary()
    assert (told["calls"], told["cost_usd"]) == (first["calls"], first["cost_usd"])
    assert told["reused_calls"] == first["paid"]["calls"] == 30
    assert told["reused_cost_usd"] == pytest.approx(first["paid"]["cost_usd"])
    assert first["paid"]["cost_usd"] == pytest.approx(6 * (100e-6 + 40e-6) + 24 * (50e-6 + 20e-6))
    assert told["paid"]["cost_usd"] == 0.0
    assert first["reused_calls"] == 0
    ledger_holds(before)
    ledger_holds(after)


def test_what_was_reused_can_be_reused_from_the_new_run_alone(made: Callable[..., World]) -> None:
    world = made()
    first = world.run(questions(3))
    second = world.run(questions(3), None, first)
    assert first.run_dir is not None
    for file in first.run_dir.iterdir():
        file.unlink()
    world.run(questions(3), None, second)
    assert world.asked == []


def test_several_runs_are_looked_through_in_their_order(made: Callable[..., World]) -> None:
    world = made()
    all_questions = questions(6)
    first = world.run(all_questions, question_ids=["q0", "q1", "q2"])
    second = world.run(all_questions, question_ids=["q3", "q4", "q5"])
    after = world.run(all_questions, None, first, second)
    assert world.asked == []
    assert len(after) == 6


def test_a_run_is_reused_while_it_goes_on(made: Callable[..., World]) -> None:
    world = made()
    first, second = world.folder / "first", world.folder / "second"
    begun: list[VerificationResultSet] = []

    async def both() -> None:
        one = asyncio.create_task(
            questions(25).arun_verification(world.config(concurrency=1), run_dir=first, app=world.app)
        )
        await asyncio.to_thread(world.server.wait_for, 12)
        begun.append(await questions(5).arun_verification(world.config(), run_dir=second, reuse=[first], app=world.app))
        assert not one.done()
        await one

    asyncio.run(both())
    assert begun[0].get_summary()["reused_calls"] == 10
    assert world.server.count == 50


def test_failures_of_another_run_are_not_reused(made: Callable[..., World]) -> None:
    down = True

    def script(request: ServedRequest) -> Any:
        return Reply.error(500) if down and "drug 1?" in request.text else said(request)

    world = made(script=script)
    before = world.run(questions(3))
    assert before.get_summary()["outcomes"] == {"passed": 2, "error": 1}
    down = False
    after = world.run(questions(3), None, before)
    assert after.get_summary()["outcomes"] == {"passed": 3}
    assert world.of_models == {"answerer": 1, "judge": 1}


def test_a_damaged_reply_is_asked_for_again_and_told(made: Callable[..., World]) -> None:
    world = made()
    before = world.run(questions(3))
    assert before.run_dir is not None
    with sqlite3.connect(before.run_dir / "journal.sqlite") as journal:
        journal.execute("UPDATE calls SET crc = crc + 1 WHERE id = 1")
    journal.close()
    after = world.run(questions(3), None, before)
    assert len(world.asked) == 1
    assert after.get_summary()["outcomes"] == {"passed": 3}
    assert any("could not be reused" in note for note in after.notes)


def test_where_there_is_nothing_to_reuse_nothing_is_asked(made: Callable[..., World]) -> None:
    world = made()
    (world.folder / "empty").mkdir()
    about: dict[str, Any] = {"run_dir": world.folder / "new", "app": world.app}
    with pytest.raises(RunDirectoryError, match=r"empty has no journal .* give the directory of a run"):
        questions(2).run_verification(world.config(), reuse=[world.folder / "empty"], **about)
    (world.folder / "empty" / "journal.sqlite").write_text("this is no journal")
    with pytest.raises(RunDirectoryError, match=r"journal\.sqlite"):
        questions(2).run_verification(world.config(), reuse=[world.folder / "empty"], **about)
    with pytest.raises(ConfigError, match=r"reuse: .*give run_dir"):
        questions(2).run_verification(world.config(), reuse=[world.folder / "empty"], app=world.app)
    assert world.server.count == 0
    assert not (world.folder / "new").exists()


# Stages


class Remarks(Stage):
    """Asks the judge something of its own, the same as often as it is told to."""

    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    result_fields = ("remarks.said",)
    times = 1

    async def execute(self, context: VerificationContext) -> None:
        messages = context.parsing.prompt("remark", "Be brief.", "Say a word.")
        replies = [await context.parsing.invoke("remark", messages) for _ in range(self.times)]
        context.set_result_field("remarks.said", [reply.content for reply in replies])


def remarking(version: str = "1", times: int = 1) -> Any:
    own = type("Remark", (Remarks,), {"name": "Remark", "version": version, "times": times})

    class Plugin:
        @hookimpl
        def karenina_register_stages(self, registry: Any) -> None:
            registry.add(own)

    return Plugin()


def remarks(results: VerificationResultSet) -> list[list[str]]:
    return [list(result.extensions["remarks"]["said"]) for result in results]


def test_another_version_of_a_stage_asks_its_own_calls_again_and_no_others(made: Callable[..., World]) -> None:
    old, new = made(remarking("1")), made(remarking("2"))
    before = old.run(questions(4))
    assert old.of_models == {"answerer": 4, "judge": 8}
    new.folder = old.folder / "new"
    after = new.run(questions(4), None, before)
    assert [request.text for request in new.asked] == ["Be brief.\nSay a word."] * 4
    again = new.run(questions(4), None, before, after)
    assert new.asked == []
    assert again.get_summary()["reused_calls"] == 12
    assert again.get_summary()["outcomes"] == {"passed": 4}


# Equal calls


def numbered() -> Callable[[ServedRequest], Any]:
    """What is asked without a schema of the judge is another word every time."""
    words = map(str, range(1000))

    def script(request: ServedRequest) -> Any:
        return f"word {next(words)}" if "Say a word." in request.text else said(request)

    return script


def test_equal_calls_of_one_item_are_asked_each_by_itself_and_come_back_in_their_order(
    made: Callable[..., World],
) -> None:
    world = made(remarking(times=3), script=numbered())
    before = world.run(questions(4))
    assert len(world.asked) == 4 * 5
    assert len({word for words in remarks(before) for word in words}) == 12
    after = world.run(questions(4), None, before)
    assert world.asked == []
    assert remarks(after) == remarks(before)


def test_who_asks_more_often_than_before_gets_what_is_there_first(made: Callable[..., World]) -> None:
    script = numbered()
    old, new = made(remarking(times=2), script=script), made(remarking(times=3), script=script)
    before = old.run(questions(4))
    new.folder = old.folder / "new"
    after = new.run(questions(4), None, before)
    assert len(new.asked) == 4
    assert [words[:2] for words in remarks(after)] == remarks(before)


def test_equal_calls_that_are_made_at_the_same_time_are_asked_once(made: Callable[..., World]) -> None:
    def script(request: ServedRequest) -> Any:
        if request.schema is None:
            return Reply("It is BCL2.")
        return Reply({"target": "BCL2"}, latency=0.2)

    world = made(script=script)
    twins = [world.model("one"), world.model("two"), world.model("three")]
    results = world.run(questions(4), world.config(answering_models=twins))
    assert world.of_models == {"one": 4, "two": 4, "three": 4, "judge": 4}
    assert results.get_summary()["outcomes"] == {"passed": 12}
    assert results.get_summary()["calls"] == 24
    assert results.get_summary()["paid"]["calls"] == 16
    ledger_holds(results)


def test_questions_and_replicates_of_the_same_words_are_asked_each_by_itself(made: Callable[..., World]) -> None:
    world = made()
    twins = [evolve(question(0), id=name) for name in ("a", "b")]
    benchmark = Benchmark(name="twins", questions=twins)
    before = world.run(benchmark, world.config(replicate_count=3))
    assert world.of_models == {"answerer": 6, "judge": 6}
    world.run(benchmark, world.config(replicate_count=3), before)
    assert world.asked == []


def test_a_repair_is_reused_with_what_it_repaired(made: Callable[..., World]) -> None:
    def script(request: ServedRequest) -> Any:
        if request.schema is not None and len(request.messages) < 3:
            return "no JSON at all"
        return said(request)

    world = made(script=script)
    before = world.run(questions(3))
    assert world.of_models == {"answerer": 3, "judge": 6}
    assert [result.template.judge_repairs for result in before if result.template] == [1, 1, 1]
    after = world.run(questions(3), None, before)
    assert world.asked == []
    assert without_times(after) == without_times(before)


# The command


def test_the_command_reuses_runs_and_says_what_was_paid(made: Callable[..., World]) -> None:
    world = made()
    file = world.folder / "targets.jsonld"
    questions(3).save(file, app=world.app)
    settings = world.folder / "karenina.toml"
    settings.write_text(
        f"""
[models.one]
interface = "openai_endpoint"
model_name = "one"
endpoint_base_url = "{world.server.url}"
input_cost_per_token = 1e-6
output_cost_per_token = 2e-6

[run]
answering_models = ["one"]
parsing_models = ["one"]
"""
    )

    def verify(*options: str) -> str:
        ended = CliRunner().invoke(karenina, ["verify", str(file), "--config", str(settings), "--quiet", *options])
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    first, second, third = (str(world.folder / name) for name in ("first", "second", "third"))
    assert "Reused" not in verify("--out", first)
    asked = world.server.count
    assert asked == 6
    told = verify("--out", second, "--reuse", first)
    assert "Reused: 6 calls ($0.0006), made in this run: 0 calls ($0.0000)" in told
    document = json.loads(verify("--out", third, "--reuse", first, "--reuse", second, "--json"))
    assert document["reused_calls"] == 6
    assert document["paid"]["calls"] == 0
    assert json.loads((Path(third) / "manifest.json").read_text("utf-8"))["reuse"] == [first, second]
    assert world.server.count == asked
