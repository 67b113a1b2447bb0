"""`--judge-with reference`: questions without a template, judged against their reference answers, and marked so."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from karenina_cli.root import karenina as root

from karenina_core import Benchmark, Question
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

CAVEAT = "judged_against_reference"
GENE = {"name": "gene", "type": "str", "description": "The gene that the response names", "ground_truth": "CFTR",
        "verify_with": {"type": "ExactMatch"}}  # fmt: skip
ANSWERS = {"twinkle": "Moving air bends their light.", "sonnet": "A song.", "gene": "It is CFTR.", "odd": "Who knows?"}
REFERENCES = {"twinkle": "Turbulence of the atmosphere refracts their light.", "sonnet": "A poem of 14 lines",
              "gene": "CFTR", "odd": "Something odd"}  # fmt: skip
JUDGED = {"twinkle": "agrees", "sonnet": "contradicts", "odd": "perhaps"}


def karenina(*line: object) -> Result:
    return CliRunner().invoke(root, [str(argument) for argument in line], catch_exceptions=False)


def script(request: ServedRequest) -> Reply | str:
    topic = next(name for name in ANSWERS if f"about {name}" in request.text)
    if request.schema is None:
        return ANSWERS[topic]
    if "gene" in request.schema["properties"]:
        return Reply({"gene": "CFTR"})
    return Reply({"reasoning": "Look at the light.", "agreement": JUDGED[topic]})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(script) as found:
        yield found


def benchmark(folder: Path, *topics: str) -> Path:
    questions = [
        Question(
            id=topic,
            question=f"A question about {topic}?",
            raw_answer=REFERENCES[topic],
            answer_template={"fields": [GENE]} if topic == "gene" else None,
            answer_notes="The light counts." if topic == "twinkle" else None,
        )
        for topic in topics
    ]
    return Benchmark.create("Some plain").with_questions(questions).save(folder / "plain.jsonld")


def verify(path: Path, out: Path, server: ScriptedServer, *more: object) -> Result:
    models = [
        argument
        for role in ("answering", "parsing")
        for argument in (f"--{role}-model", role, f"--{role}-interface", "openai_endpoint",
                         f"--{role}-base-url", server.url)
    ]  # fmt: skip
    return karenina("verify", path, *models, "--out", out, "--quiet", *more)


def results(out: Path) -> dict[str, Any]:
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text("utf-8").splitlines()]
    return {row["metadata"]["question_id"]: row for row in rows}


def test_what_was_judged_against_a_reference_counts_and_is_marked_everywhere(
    tmp_path: Path, server: ScriptedServer
) -> None:
    path, run = benchmark(tmp_path, "twinkle", "sonnet", "gene"), tmp_path / "run"
    ended = verify(path, run, server, "--judge-with", "reference")
    assert ended.exit_code == 0, ended.stderr
    assert "pass rate             66.7 %" in ended.stdout
    assert "judged_against_reference 2" in ended.stdout
    assert "2 questions without a template: judged by reference (weaker evidence)" in ended.stdout
    found = results(run)
    assert {name: row["metadata"]["outcome"] for name, row in found.items()} == {
        "twinkle": "passed", "sonnet": "failed", "gene": "passed",
    }  # fmt: skip
    assert {name for name, row in found.items() if CAVEAT in row["metadata"]["caveats"]} == {"twinkle", "sonnet"}
    assert found["sonnet"]["template"]["parsed_llm_response"] == {"agreement": "contradicts"}
    shown = karenina("show", run, "twinkle").stdout
    assert CAVEAT in shown
    assert "Look at the light." in shown
    assert karenina("export", run, "-o", tmp_path / "all.csv").exit_code == 0
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        assert {row["question_id"] for row in csv.DictReader(file) if CAVEAT in row["caveats"]} == {"twinkle", "sonnet"}
    assert karenina("report", run, "-o", tmp_path / "report.html").exit_code == 0
    assert "the judge saw the reference answer and decided itself" in (tmp_path / "report.html").read_text("utf-8")


def test_only_the_judge_of_such_a_question_sees_its_reference(tmp_path: Path, server: ScriptedServer) -> None:
    path = benchmark(tmp_path, "twinkle", "gene")
    assert verify(path, tmp_path / "run", server, "--judge-with", "reference").exit_code == 0
    for request in server.requests:
        sees = request.schema is not None and "agreement" in request.schema["properties"]
        assert (REFERENCES["twinkle"] in request.text) is sees
        assert ("The light counts." in request.text) is sees
        assert REFERENCES["twinkle"] not in json.dumps(request.schema)
    (asked,) = [request.text for request in server.requests if REFERENCES["twinkle"] in request.text]
    for text in (REFERENCES["twinkle"], ANSWERS["twinkle"]):
        assert asked[: asked.index(text)].rpartition("\n")[0].rpartition("\n")[2].startswith("<untrusted-")


def test_a_reply_that_cannot_be_read_is_no_verdict(tmp_path: Path, server: ScriptedServer) -> None:
    ended = verify(benchmark(tmp_path, "odd"), tmp_path / "run", server, "--judge-with", "reference")
    assert ended.exit_code == 3
    metadata = results(tmp_path / "run")["odd"]["metadata"]
    assert (metadata["outcome"], metadata["outcome_detail"]) == ("error", "judge")
    assert "agreement must be one of agrees, contradicts, incomplete, unanswered, not 'perhaps'" in metadata["error"]


def test_checks_that_look_for_values_leave_it_alone(tmp_path: Path, server: ScriptedServer) -> None:
    """There is nothing in an answer that a judgment could be compared with."""
    path, run = benchmark(tmp_path, "sonnet"), tmp_path / "run"
    ended = verify(path, run, server, "--judge-with", "reference", "--with", "sufficiency")
    assert (ended.exit_code, server.count) == (0, 2), ended.stderr
    (row,) = results(run).values()
    assert row["metadata"]["outcome"] == "failed"
    assert "a judgment is compared, and no text" in json.dumps(row["trail"])


def test_nothing_to_verify_names_both_ways_and_they_are_lines_to_type(tmp_path: Path, server: ScriptedServer) -> None:
    ended = verify(benchmark(tmp_path, "twinkle"), tmp_path / "run", server)
    assert (ended.exit_code, server.count) == (1, 0)
    assert "karenina benchmark draft BENCHMARK -o drafted.jsonld --model MODEL" in ended.stderr
    assert "karenina verify BENCHMARK --judge-with reference" in ended.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--judge-with", "referense"], "(did you mean 'reference'?); available: holistic, reference"),
        (["--judge-with", "reference", "--with", "agentic_parsing"], "is not what the agent of agentic_parsing does"),
    ],
)  # fmt: skip
def test_what_cannot_judge_is_said_before_anything_is_asked(
    options: list[str], problem: str, tmp_path: Path, server: ScriptedServer
) -> None:
    ended = verify(benchmark(tmp_path, "twinkle"), tmp_path / "run", server, *options)
    assert (ended.exit_code, server.count) == (1, 0)
    assert problem in ended.stderr


def test_recorded_answers_have_no_judge_that_compares(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text('{"twinkle": "Air."}')
    recorded = ("--answering-interface", "manual", "--manual-traces", tmp_path / "answers.json")
    ended = karenina("verify", benchmark(tmp_path, "twinkle"), *recorded, "--judge-with", "reference")
    assert ended.exit_code == 1
    assert "cannot serve the task 'reference_judgment'; name a judge model (--parsing-model)" in ended.stderr


def test_plan_and_resume_know_the_setting_and_compare_refuses_items_of_the_other_kind(
    tmp_path: Path, server: ScriptedServer
) -> None:
    path, run = benchmark(tmp_path, "twinkle", "gene"), tmp_path / "run"
    document = json.loads(karenina("plan", path, "--judge-with", "reference", "--json").stdout)
    assert [row["left_out"] for row in document["questions"]] == [None, None]
    estimated = verify(path, run, server, "--judge-with", "reference", "--estimate", "--json")
    assert (estimated.exit_code, server.count) == (0, 0), estimated.stderr
    calls = {row["task"]: row["calls"] for row in json.loads(estimated.stdout)["rows"]}
    assert calls["reference_judgment"] == {"low": 1, "expected": 1, "high": 1}
    assert verify(path, run, server, "--judge-with", "reference").exit_code == 0
    asked = server.count
    again = karenina("resume", run)
    assert (again.exit_code, server.count) == (0, asked), again.stderr
    template = {"fields": [{**GENE, "ground_truth": "air"}]}
    with_template = Question(id="twinkle", question="A question about twinkle?", raw_answer=REFERENCES["twinkle"],
                             answer_template=template)  # fmt: skip
    other = Benchmark.load(path).with_questions([with_template]).save(tmp_path / "other.jsonld")
    compared = karenina("compare", run, run)
    assert (compared.exit_code, "B: 1 item judged against a reference answer" in compared.stdout) == (0, True)
    verify(other, tmp_path / "third", server)
    refused = karenina("compare", run, tmp_path / "third")
    assert refused.exit_code == 1
    assert "twinkle (another template)" in refused.stderr
