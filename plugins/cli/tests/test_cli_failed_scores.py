"""A judge that gives no score: what the run says of it, and how it ends."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core.testing import Reply, ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
CLEAR, CITED = (
    {
        "@type": "Rating",
        "name": name,
        "description": f"Is it {name}?",
        "additionalType": f"karenina:Global{kind}Trait",
        "additionalProperty": [{"@type": "PropertyValue", "name": key, "value": value}],
    }
    for name, kind, key, value in (("clear", "Rubric", "kind", "boolean"), ("cited", "Regex", "pattern", "Paris"))
)
CLEAR |= {"bestRating": 1, "worstRating": 0}
NOTE = "every score of the llm traits failed (2 scores): openai_endpoint:the-answering-model, judged by "


class Judge:
    """Answers, extracts and scores; what it is asked about the trait is refused while `status` is not 200."""

    def __init__(self, status: int = 401) -> None:
        self.status = status

    def __call__(self, request: Any) -> Any:
        if request.schema is None:
            return "The capital is Paris."
        if "capital" in request.schema["properties"]:
            return {"capital": "Paris"}
        return Reply("no", status=self.status) if self.status != 200 else dict.fromkeys(_names(request), True)


def _names(request: Any) -> Any:
    return request.schema["properties"]


@pytest.fixture
def verified(run: Run, write_benchmark: Files, served: Any) -> Callable[..., Result]:
    def call(judge: Any, *rating: Any, mode: str = "rubric_only", out: str = "out") -> Result:
        path = write_benchmark("q0", "q1", rating=rating)
        with ScriptedServer(judge) as server:
            return run("verify", path, *served(server.url), "--mode", mode, "--out", out, "--json")

    return call


def test_where_nothing_could_be_scored_items_are_errors(verified: Callable[..., Result]) -> None:
    result = verified(Judge(), CLEAR)
    document = json.loads(result.stdout)
    (row,) = document["models"]
    assert result.exit_code == 3
    assert (row["outcomes"], row["errors"], row["items_without_scores"]) == ({"error": 2}, {"auth": 2}, 2)
    assert (row["completed"], row["pass_rate"], row["coverage"]) == (0, None, None)
    (note,) = document["notes"]
    assert note.startswith(NOTE)
    for line in Path("out", "results.jsonl").read_text("utf-8").splitlines():
        about = json.loads(line)["metadata"]
        assert (about["outcome"], about["outcome_detail"], about["completed_without_errors"]) == (
            "error",
            "auth",
            False,
        )
        assert about["error"].startswith("no trait has a score (clear: ")
    manifest = json.loads(Path("out", "manifest.json").read_text("utf-8"))
    assert manifest["summary"]["notes"] == [note]


def test_a_score_of_another_trait_is_a_score_and_the_run_tells_of_the_type_that_failed(
    verified: Callable[..., Result],
) -> None:
    result = verified(Judge(), CLEAR, CITED)
    document = json.loads(result.stdout)
    (row,) = document["models"]
    assert (row["outcomes"], row["items_without_scores"], result.exit_code) == ({"scored": 2}, 0, 3)
    assert [note.startswith(NOTE) for note in document["notes"]] == [True]


def test_a_dead_judge_of_the_rubric_is_reported_and_changes_no_verdict(
    verified: Callable[..., Result], run: Run
) -> None:
    result = verified(Judge(), CLEAR, mode="template_and_rubric")
    document = json.loads(result.stdout)
    (row,) = document["models"]
    assert (row["outcomes"], row["pass_rate"], result.exit_code) == ({"passed": 2}, 1.0, 3)
    assert [note.startswith(NOTE) for note in document["notes"]] == [True]
    assert verified(Judge(200), CLEAR, mode="template_and_rubric", out="good").exit_code == 0


def test_the_end_names_the_repair_by_which_the_scores_are_there(run: Run, write_benchmark: Files, served: Any) -> None:
    path, judge = write_benchmark("q0", "q1", rating=[CLEAR]), Judge()
    with ScriptedServer(judge) as server:
        first = run("verify", path, *served(server.url), "--mode", "template_and_rubric", "--out", "the run")
        printed, _, line = first.stderr.strip().splitlines()[-1].partition(", type: ")
        assert printed == "2 results without a score of some trait; to call the judges again"
        assert run(*shlex.split(line)[1:]).stderr.strip().splitlines()[-1].endswith(line)
        judge.status, asked = 200, len(server.requests)
        again = run(*shlex.split(line)[1:])
    assert (first.exit_code, again.exit_code) == (3, 0)
    assert "karenina repair" not in again.stderr
    assert not [r for r in server.requests[asked:] if r.schema is None]  # the answers stay


@pytest.mark.parametrize("status", [401, 503])
def test_no_repair_is_named_where_a_resume_makes_the_items_again(
    run: Run, write_benchmark: Files, served: Any, status: int
) -> None:
    path = write_benchmark("q0", rating=[CLEAR])
    once = ("--set", "run.retry_policy.server.max_attempts=1")
    with ScriptedServer(Judge(status)) as server:
        result = run("verify", path, *served(server.url), "--mode", "rubric_only", "--out", "out", *once)
    assert result.exit_code == 3
    assert "karenina repair" not in result.stderr


def test_such_an_item_is_tried_again_when_the_judge_is_back(run: Run, write_benchmark: Files, served: Any) -> None:
    path, judge = write_benchmark("q0", "q1", rating=[CLEAR]), Judge(503)
    with ScriptedServer(judge) as server:
        flags = (*served(server.url), "--mode", "rubric_only", "--out", "out", "--json")
        settings = ("--set", "run.retry_policy.server.max_attempts=1")
        first = json.loads(run("verify", path, *flags, *settings).stdout)
        assert first["models"][0]["errors"] == {"server": 2}
        judge.status, asked = 200, len(server.requests)
        second = run("resume", "out", "--json")
        again = json.loads(second.stdout)
    assert (again["outcomes"], again["notes"], second.exit_code) == ({"scored": 2}, [], 0)
    assert len(server.requests) == asked + 2  # the scores alone
