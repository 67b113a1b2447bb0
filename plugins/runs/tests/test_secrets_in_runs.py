"""Runs whose models repeat a secret, whose names hold one, and whose journals hold what cannot be read."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_calls.secrets.redaction import Secrets
from karenina_cli.output import print_parts
from karenina_cli.summary import run_parts
from karenina_runs.amend.repair import RepairSelection, repair_run
from karenina_runs.execute.item_verifier import run_single_model_verification
from karenina_runs.execute.runner import Destination
from karenina_runs.folder.recording import recording_lines
from karenina_runs.journal.check import check
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import JOURNAL, Done, JournalReader, run_number
from karenina_runs.journal.rows import CALLS, RESULTS, Table, parsed, row_of, sealed
from karenina_runs.journal.salvage import put_in_place, salvage
from karenina_runs.plan.prepare import check_identities
from karenina_runs.resume import resume_run
from karenina_vocabulary.prompt_config import FewShotConfig
from karenina_vocabulary.record_traits import TemplateKind

from karenina_core import (
    LLMRubricTrait,
    ModelConfig,
    PromptConfig,
    RegexRubricTrait,
    Rubric,
    VerificationConfig,
    VerificationResultSet,
)
from karenina_core.errors import ConfigError, PortError, RunDirectoryError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.ports.values import LLMResponse
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.message import UsageMetadata

Make = Callable[..., Any]
SECRET = 'pa"ss\\wörd-1234567'
NUMBER = "33333333"


def judge_of(field: str = "target") -> ScriptedLLM:
    """It says what it reads in the answer."""
    return ScriptedLLM(lambda call: {field: re.findall(r"it is (.+?) indeed", call.text)[-1]})


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]


def test_a_key_that_is_a_number_leaves_every_number_as_it_is(world: Make, tmp_path: Path) -> None:
    """Configured keys are always secrets; costs and fields with the same digits are none."""
    price = {"input_cost_per_token": 0.33333333, "output_cost_per_token": 0.0}
    answer = LLMResponse(content=f"it is {NUMBER} indeed", usage=UsageMetadata(1, 1, 2))
    port = {"name": "target", "type": "int", "description": "a number", "ground_truth": 5}
    template = {"class_name": "Answer", "fields": [{**port, "verify_with": {"type": "NumericExact"}}]}
    questions = [
        evolve(question, answer_template=json.dumps(template)) for question in world(questions=2).benchmark.questions
    ]
    here = world(
        questions=questions,
        answerer=ScriptedLLM(lambda call: answer),
        judge=ScriptedLLM(lambda call: json.dumps({"target": 33333333})),
    )
    model = ModelConfig(model_name="a", interface="answering", endpoint_api_key=NUMBER, **price)
    found = list(here.run(here.config(answering_models=[model]), Destination(run_dir=tmp_path / "run")))
    assert [result.metadata.outcome for result in found] == ["failed", "failed"]
    for row in lines(tmp_path / "run"):
        assert row["generation"]["usage_metadata"]["generation"]["cost_usd"] == 0.33333333
        assert row["template"]["parsed_llm_response"] == {"target": 33333333}
        assert row["generation"]["raw_llm_response"] == "it is [redacted] indeed"
        assert row["generation"]["text_flags"] == ["secret_removed", "secret_removed:endpoint_api_key"]
    with JournalReader.open(tmp_path / "run") as reader:
        assert [json.loads(line)["format"] for line in recording_lines(reader)] == [1] * 4
    assert check(tmp_path / "run").sound


def test_a_secret_in_a_judges_json_is_in_nothing_that_is_kept(world: Make, tmp_path: Path) -> None:
    """A reply is JSON within the JSON of its line, and the secret has all that is escaped."""
    here = world(
        answerer=ScriptedLLM(lambda call: "it is BCL2 indeed"),
        judge=ScriptedLLM(lambda call: json.dumps({"target": f"BCL2 {SECRET}"})),
    )
    model = ModelConfig(model_name="j", interface="judging", max_retries=0, endpoint_api_key=SECRET)
    (found,) = here.run(here.config(parsing_models=[model]), Destination(run_dir=tmp_path / "run"))
    assert found.template.parsed_llm_response == {"target": "BCL2 [redacted]"}
    assert found.generation.text_flags == (), "it is the judge who has said it"
    assert [warning for warning in found.metadata.warnings if "endpoint_api_key" in warning]
    with JournalReader.open(tmp_path / "run") as reader:
        told = "".join([*recording_lines(reader), *(result.line for result in reader.results())])
    assert "rd-1234567" not in told
    assert told.count("[redacted]") >= 2


def test_a_judge_reads_the_same_text_at_once_and_later(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between answer and judge, re-used, and given to the run from elsewhere: always the same."""
    monkeypatch.setenv("A_SECRET", SECRET)
    answerer = ScriptedLLM(lambda call: f"it is {SECRET} indeed")
    at_once = world(answerer=answerer, judge=judge_of())
    (now,) = at_once.run(destination=Destination(run_dir=tmp_path / "now"), run_name="same")

    def down(call: Any) -> Any:
        raise PortError("down", kind="server")

    world(answerer=answerer, judge=ScriptedLLM(down)).run(
        destination=Destination(run_dir=tmp_path / "later"), run_name="same"
    )
    later = world(answerer=answerer, judge=judge_of())
    (resumed,) = resume_run(tmp_path / "later", benchmark=later.benchmark, app=later.app)
    (reused,) = later.run(
        destination=Destination(run_dir=tmp_path / "reused", reuse=[tmp_path / "now"]), run_name="same"
    )
    raw = CachedAnswer(raw_llm_response=f"it is {SECRET} indeed")
    models = (ModelConfig(model_name=name, interface=kind) for name, kind in (("a", "answering"), ("j", "judging")))
    given = run_single_model_verification(later.benchmark.questions[0], *models, cached_answer_data=raw, app=later.app)
    for found in (now, resumed, reused, given):
        assert found.template.parsed_llm_response == {"target": "[redacted]"}
        assert found.generation.raw_llm_response == "it is [redacted] indeed"
        assert found.generation.text_flags == ("secret_removed", "secret_removed:A_SECRET")
        assert found.metadata.caveats == ("secret_removed",)
        assert len(found.metadata.warnings) == 1
        assert "A_SECRET" in found.metadata.warnings[0]


def test_the_end_of_a_run_says_that_secrets_were_removed(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", SECRET)
    monkeypatch.setenv("B_SECRET", other := "of-the-judge-0815")
    here = world(
        questions=3,
        answerer=ScriptedLLM(lambda call: f"it is {SECRET} indeed" if "target 0" in call.text else "it is BCL2 indeed"),
        judge=ScriptedLLM(lambda call: {"target": f"x {other}"}),
    )
    ran = here.run(destination=Destination(run_dir=tmp_path / "run"))
    loaded = VerificationResultSet.load(tmp_path / "run")
    for summary in (ran.get_summary(), loaded.get_summary()):
        assert summary["caveats"]["secret_removed"] == summary["models"][0]["caveats"]["secret_removed"] == 3
        first, second = (note for note in summary["notes"] if "was removed" in note)
        assert first.startswith("the value of A_SECRET was removed from the texts of 1 item (")
        assert second.startswith("the value of B_SECRET was removed from the texts of 3 items (")
        assert "rd-1234567" not in first
    print_parts(run_parts(ran, tmp_path / "run"), terminal := StringIO())
    shown = terminal.getvalue()
    assert "secret_removed 3" in shown
    assert "the value of A_SECRET was removed" in shown
    assert "secret_removed" not in str(world().run().get_summary()), "and only where something was removed"


def test_what_was_no_secret_when_it_was_kept_is_not_read_now(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answerer = ScriptedLLM(lambda call: f"it is {SECRET} indeed")
    world(answerer=answerer, judge=judge_of()).run(destination=Destination(run_dir=tmp_path / "before"))
    monkeypatch.setenv("A_SECRET", SECRET)
    here = world(answerer=answerer, judge=judge_of())
    here.run(destination=Destination(run_dir=tmp_path / "run", reuse=[tmp_path / "before"]))
    assert here.answerer.calls == answerer.calls == [answerer.calls[0]], "the answer is that of before"
    (row,) = lines(tmp_path / "run")
    assert row["template"]["parsed_llm_response"] == {"target": "[redacted]"}
    with JournalReader.open(tmp_path / "run") as reader:
        assert "rd-1234567" not in "".join(recording_lines(reader))


NAMED = "acme-secret-0815"


@pytest.mark.parametrize("place", ["question", "run", "model", "model id", "trait", "field"])
def test_a_run_whose_names_hold_a_secret_is_refused(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("ACME_TOKEN", NAMED)
    here = world()
    questions, facts, more = list(here.benchmark.questions), {}, {}
    model: dict[str, Any] = {"model_name": "a", "interface": "answering"}
    if place == "question":
        questions = [evolve(questions[0], id=f"x {NAMED}")]
    elif place == "field":
        questions = [evolve(questions[0], answer_template=questions[0].answer_template.replace("BCL2", NAMED))]
    elif place == "trait":
        facts["rubric"] = Rubric(llm_traits=[LLMRubricTrait(name=NAMED, description="x", kind="boolean")])
    elif place == "run":
        more["run_name"] = f"{NAMED}-2"
    else:
        model["id" if place == "model id" else "model_name"] = NAMED
    here = world(questions=questions, **facts)
    everything = application(here.answerer.adapter("answering"), here.judge.adapter("judging"), installed=True)
    here = evolve(here, app=everything)
    with pytest.raises(ConfigError) as caught:
        here.run(here.config(answering_models=[ModelConfig(**model)]), Destination(run_dir=tmp_path / "run"), **more)
    assert "the value of ACME_TOKEN" in str(caught.value)
    assert "unset the variable" in str(caught.value)
    assert NAMED not in str(caught.value)
    assert not (tmp_path / "run").exists()
    assert here.answerer.calls == []


def test_a_single_verification_is_refused_as_well(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_TOKEN", NAMED)
    here = world()
    models = (ModelConfig(model_name=name, interface=kind) for name, kind in ((NAMED, "answering"), ("j", "judging")))
    with pytest.raises(ConfigError, match="ACME_TOKEN"):
        run_single_model_verification(here.benchmark.questions[0], *models, app=here.app)


def test_other_names_that_a_run_goes_by_are_looked_at() -> None:
    model = ModelConfig(model_name="m", interface="i", model_provider="p", mcp_urls_dict={NAMED: "http://h/mcp"})
    config = VerificationConfig(answering_models=[model], parsing_models=[])
    with pytest.raises(ConfigError, match="the name of a tool server holds the value of ACME_TOKEN"):
        check_identities(Secrets({NAMED: "ACME_TOKEN"}), config, [], [], {})
    with pytest.raises(ConfigError, match="a word of every result holds the value of endpoint_api_key"):
        check_identities(Secrets({"rate_limited": "endpoint_api_key"}), config, [], [], {})
    check_identities(Secrets({"something-else-1": "A"}), config, [], [None], {"run name": ["r"]})


LABEL = {"name": "t", "description": "x"}
SCHEMA = {"type": "object", "properties": {"label": {"type": "string", "enum": [NAMED, "other"]}}}


@pytest.mark.parametrize(
    ("what", "facts"),
    [
        ("the pattern of a trait", {"regex_traits": [RegexRubricTrait(**LABEL, pattern=f"a|{NAMED}")]}),
        ("the pattern of a trait", {"regex_traits": [RegexRubricTrait(**LABEL, pattern=re.escape(NAMED))]}),
        (
            "the name of a class of a trait",
            {"llm_traits": [LLMRubricTrait(**LABEL, kind="literal", classes={NAMED: "one", "other": "two"})]},
        ),
        ("the schema of a trait", {"llm_traits": [LLMRubricTrait(**LABEL, kind=TemplateKind(SCHEMA))]}),
    ],
)
def test_a_run_whose_traits_compare_with_a_secret_is_refused(
    world: Make, monkeypatch: pytest.MonkeyPatch, what: str, facts: dict[str, Any]
) -> None:
    """Else the score of an answer that is right would depend on a variable."""
    monkeypatch.setenv("ACME_TOKEN", NAMED)
    here = world(rubric=Rubric(**facts))
    everything = application(here.answerer.adapter("answering"), here.judge.adapter("judging"), installed=True)
    here = evolve(here, app=everything)
    with pytest.raises(ConfigError, match=f"{what} holds the value of ACME_TOKEN") as caught:
        here.run()
    assert NAMED not in str(caught.value)
    assert here.answerer.calls == []


@pytest.mark.parametrize(
    ("what", "facts", "trait"),
    [
        ("prompt_config", {"prompt_config": PromptConfig(parsing=f"Log in with {NAMED}.")}, {}),
        (
            "few_shot_config",
            {"few_shot_config": FewShotConfig(global_examples=[{"question": NAMED, "answer": ""}])},
            {},
        ),
        ("the description of a trait", {}, {"kind": "boolean", "description": f"as {NAMED}"}),
        (
            "the description of a class of a trait",
            {},
            {"kind": "literal", "description": "x", "classes": {"one": NAMED, "two": "x"}},
        ),
    ],
)
def test_a_run_is_refused_whose_prompts_would_send_a_secret(
    world: Make, monkeypatch: pytest.MonkeyPatch, what: str, facts: dict[str, Any], trait: dict[str, Any]
) -> None:
    monkeypatch.setenv("ACME_TOKEN", NAMED)
    here = world(rubric=Rubric(llm_traits=[LLMRubricTrait(name="t", **trait)] if trait else []))
    everything = application(here.answerer.adapter("answering"), here.judge.adapter("judging"), installed=True)
    here = evolve(here, app=everything)
    with pytest.raises(ConfigError, match=f"{what} holds the value of ACME_TOKEN") as caught:
        here.run(here.config(**facts))
    assert NAMED not in str(caught.value)
    assert here.answerer.calls == []


def test_a_run_is_refused_whose_keywords_or_embedder_hold_a_secret(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TOKEN", NAMED)
    here = world(questions=[evolve(world().benchmark.questions[0], keywords=["a", NAMED])])
    with pytest.raises(ConfigError, match="a keyword of question 1 holds the value of ACME_TOKEN"):
        here.run()
    config = VerificationConfig(answering_models=[], parsing_models=[], embedding_check_model=f"x/{NAMED}")
    with pytest.raises(ConfigError, match="embedding_check_model holds the value of ACME_TOKEN"):
        check_identities(Secrets({NAMED: "ACME_TOKEN"}), config, [], [], {})


# What cannot be read


def spoil(folder: Path, table: Table, which: int, cut: Callable[[str], str]) -> None:
    """Another text in the body of a row, with a checksum that fits."""
    with JournalReader.open(folder) as reader:
        row = list(reader.rows(table))[which]
        body = cut(reader.bodies.unpacked(row.body)).encode()
        run = run_number(reader.run_id)
    values = sealed(table, row.id, run, tuple(row.facts.values()), body)
    connection = sqlite3.connect(folder / JOURNAL)
    connection.execute(f"REPLACE INTO {table.name} VALUES ({','.join('?' * len(values))})", values)
    connection.commit()
    connection.close()
    with JournalReader.open(folder) as reader:  # else nothing was spoilt
        assert reader.damaged.total() == 0
    assert row_of(table, values) is not None


def cut_number(text: str) -> str:
    return text.replace('"input_tokens":', '"input_tokens":0.[redacted]', 1)


def test_a_stored_reply_that_cannot_be_read_is_asked_for_again(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    here.run(destination=Destination(run_dir=tmp_path / "run"), run_name="same")
    before = lines(tmp_path / "run")
    spoil(tmp_path / "run", CALLS, 0, cut_number)
    health = check(tmp_path / "run")
    assert health.problems == ("1 row of the table calls cannot be read: not JSON",)
    assert health.rows["calls"] == 5
    again = world(questions=3)
    found = again.run(destination=Destination(run_dir=tmp_path / "again", reuse=[tmp_path / "run"]), run_name="same")
    assert [result.metadata.outcome for result in found] == ["passed"] * 3
    assert len(again.answerer.calls) + len(again.judge.calls) == 1
    assert [row["metadata"]["result_id"] for row in before] == [
        row["metadata"]["result_id"] for row in lines(tmp_path / "again")
    ]
    assert check(tmp_path / "again").sound


def test_a_resumed_run_asks_again_for_what_cannot_be_read(world: Make, tmp_path: Path) -> None:
    def down(call: Any) -> Any:
        raise PortError("down", kind="server")

    world(judge=ScriptedLLM(down), questions=2).run(destination=Destination(run_dir=tmp_path / "run"))
    spoil(tmp_path / "run", CALLS, 1, lambda text: text[:-2])
    again = world(questions=2)
    found = resume_run(tmp_path / "run", benchmark=again.benchmark, app=again.app)
    assert [result.metadata.outcome for result in found] == ["passed"] * 2
    assert len(again.answerer.calls) == 1
    once_more = world(questions=2)
    resume_run(tmp_path / "run", benchmark=once_more.benchmark, app=once_more.app)
    assert once_more.answerer.calls == []


def test_a_result_that_cannot_be_read_is_made_again_of_what_was_paid_for(world: Make, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    world(questions=3).run(destination=Destination(run_dir=folder))
    spoil(folder, RESULTS, 1, lambda text: text.replace("1", "[redacted]"))
    assert check(folder).problems == ("1 row of the table results cannot be read: not JSON",)
    here = world(questions=3)
    with pytest.raises(RunDirectoryError, match="karenina doctor DIR --replace"):
        repair_run(folder, RepairSelection(everything=True), benchmark=here.benchmark, app=here.app)
    put_in_place(folder, salvage(folder / JOURNAL, folder / "saved.sqlite", check(folder).run_id))
    found = resume_run(folder, benchmark=here.benchmark, app=here.app)
    assert [result.metadata.outcome for result in found] == ["passed"] * 3
    assert here.answerer.calls == here.judge.calls == []
    assert check(folder).sound


def test_what_is_no_json_is_kept_so_that_it_can_be_read(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        await journal.put_result(Done("t", 1, "r", "passed"), '{"a": 0.[redacted]}')
        await journal.aclose()

    asyncio.run(work())
    with JournalReader.open(tmp_path) as reader:
        (found,) = reader.results()
    assert json.loads(found.line) == {"unreadable": '{"a": 0.[redacted]}'}
    assert check(tmp_path).sound
    for text in ("", "{}", '"x"', "[1]"):
        assert parsed(text) == text
    for text in ("{", "{} {}", "x"):
        assert json.loads(parsed(text)) == {"unreadable": text}
