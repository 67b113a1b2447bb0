"""`karenina verify` in this process: what it runs, prints, and returns."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core.testing import Reply, ScriptedServer

PYTHON = """\
from karenina.schemas.entities import BaseAnswer
from pydantic import Field

print("a template that prints")


class Answer(BaseAnswer):
    capital: str = Field(description="The capital that the response names")

    def verify(self) -> bool:
        print("and prints again")
        return self.capital == "Paris"
"""
SUMMARY = {
    *("run_dir", "outcomes", "models", "left_out", "notes", "caveats", "calls", "cost_usd", "usage_unavailable"),
    "canaries",
    *("failed_attempts", "unknown_cost_attempts", "reused_calls", "reused_cost_usd", "paid"),
    *("num_results", "num_completed", "num_with_template", "num_with_rubric", "num_with_judgment"),
    *("num_questions", "num_models", "num_parsing_models", "num_replicates"),
    *(
        "tokens",
        "cached_input_tokens",
        "usage",
        "rubric_traits",
        "replicate_stats",
        "tool_usage_stats",
        "trace_length_stats",
    ),
}
ROW = {
    *("answering", "parsing", "items", "outcomes", "errors", "traits", "items_without_scores"),
    *("pass_rate", "pass_rate_low", "pass_rate_high", "answered_accuracy", "coverage", "absent", "has_parts"),
    *("partial_credit", "partial_credit_low", "partial_credit_high", "failures", "caveats"),
    *("completed", "tokens"),
}

Run = Callable[..., Result]
Files = Callable[..., Path]


def city(request: Any, name: str = "Paris") -> Any:
    """A model that says `name`, and a judge that reads it."""
    return {"capital": name} if request.schema else f"The capital is {name}."


def by_question(cities: dict[str, str]) -> Callable[[Any], Any]:
    """Another city for every question id that stands in the prompt."""
    return lambda request: city(request, next((v for k, v in cities.items() if f"({k})" in request.text), "Paris"))


def test_a_good_run(run: Run, write_benchmark: Files, served: Any, tmp_path: Path) -> None:
    with ScriptedServer(city) as server:
        result = run("verify", write_benchmark("q0", "q1"), *served(server.url), "--out", "out")
    assert result.exit_code == 0, result.stderr
    assert "openai_endpoint:the-answering-model, judged by openai_endpoint:the-parsing-model" in result.stdout
    assert re.search(r"pass rate +100\.0 % \(95 %: 34\.2 % to 100\.0 %\)", result.stdout)
    assert re.search(r"outcomes +passed 2", result.stdout)
    assert "Calls: 4, cost: unknown\n" in result.stdout
    assert "Results: out\n" in result.stdout
    assert "Not passed" not in result.stdout
    assert "2 items (2 questions x 1 answering model x 1 judge x 1 replicate), mode template_only" in result.stderr
    assert "2/2 items" in result.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    assert (manifest["status"], manifest["items"]) == ("completed", 2)
    assert manifest["benchmark"]["path"] == str(tmp_path / "capitals.jsonld")
    assert len((tmp_path / "out" / "results.jsonl").read_text("utf-8").splitlines()) == 2


def test_json_is_one_document_and_nothing_else(run: Run, write_benchmark: Files, served: Any) -> None:
    with ScriptedServer(by_question({"q1": "Rome"})) as server:
        result = run("verify", write_benchmark("q0", "q1"), *served(server.url), "--json")
    document = json.loads(result.stdout)
    assert set(document) == SUMMARY
    assert set(document["models"][0]) == ROW
    assert document["outcomes"] == {"passed": 1, "failed": 1}
    assert document["models"][0]["pass_rate"] == 0.5
    assert Path(document["run_dir"]).parent == Path("karenina-runs")
    assert Path(document["run_dir"]).name.startswith("capitals-")
    assert (Path(document["run_dir"]) / "results.jsonl").exists()
    assert result.exit_code == 0


def test_wrong_answers_are_listed_with_their_reason(run: Run, write_benchmark: Files, served: Any) -> None:
    ids = [f"q{i}" for i in range(12)]
    with ScriptedServer(lambda request: city(request, "Rome")) as server:
        result = run("verify", write_benchmark(*ids), *served(server.url), "--out", "o u t")
    assert result.exit_code == 0
    listed = result.stdout.partition("Not passed")[2].partition("and 2 more")[0]
    assert len(re.findall(r"q\d+ +failed +wrong: capital", listed)) == 10
    line = result.stdout.partition("Details of one item: ")[2].splitlines()[0]
    assert shlex.split(line)[:3] == ["karenina", "show", "o u t"]
    assert run(*shlex.split(line)[1:]).exit_code == 0


def test_errors_of_items_are_exit_code_3(run: Run, write_benchmark: Files, served: Any) -> None:
    def script(request: Any) -> Any:
        return Reply.error(401) if "(q1)" in request.text else city(request)

    with ScriptedServer(script) as server:
        result = run("verify", write_benchmark("q0", "q1"), *served(server.url))
    assert result.exit_code == 3
    assert re.search(r"errors +auth 1", result.stdout)
    assert re.search(r"q1 +error\(auth\) +\S+", result.stdout)
    assert "1 error: auth 1" in result.stderr


def test_a_failing_sink_is_exit_code_3(run: Run, write_benchmark: Files, served: Any, install: Files) -> None:
    source = (
        "from karenina_core import hookimpl\n"
        "class Leaky:\n"
        "    def __init__(self, target): self.target = target\n"
        "    async def open(self, run): pass\n"
        "    async def write(self, result): raise OSError('the pipe leaks')\n"
        "    async def close(self, summary): pass\n"
        "@hookimpl\n"
        "def karenina_register_sinks(registry): registry.add(Leaky, name='leaky')\n"
    )
    install("karenina-leaky", {"leaky": "leaky_sink"}, group="karenina.plugins", leaky_sink=source)
    with ScriptedServer(city) as server:
        result = run("verify", write_benchmark("q0"), *served(server.url), "--sink", "leaky:x", "--json")
    assert result.exit_code == 3
    assert "Error: the sink 'leaky:x' failed" in result.stderr
    assert "the pipe leaks" in result.stderr
    assert json.loads(result.stdout)["outcomes"] == {"passed": 1}


def test_another_sink_gets_the_results_too(run: Run, write_benchmark: Files, served: Any, tmp_path: Path) -> None:
    with ScriptedServer(city) as server:
        run("verify", write_benchmark("q0"), *served(server.url), "--sink", f"jsonl:{tmp_path / 'copy.jsonl'}")
    assert json.loads((tmp_path / "copy.jsonl").read_text("utf-8"))["metadata"]["question_id"] == "q0"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--answering-interface", "openai_endpont"], "did you mean 'openai_endpoint'?"),
        (["--with", "astention"], "no installed stage serves the feature 'astention'"),
        (["--set", "run.executor=lokal"], "did you mean 'local'?"),
        (["--set", "run.code_policy=trusted"], "verify --trust"),
        (["--questions", "q7,0-9"], "Error: 2 problems"),
        (["--config", "no.toml"], "there is no configuration file no.toml"),
        (["--answering-api-key-env", "KEY_THAT_IS_NOT_SET"], "set the environment variable KEY_THAT_IS_NOT_SET"),
        (["--sink", "sqlte:x"], "no sink is called 'sqlte'"),
        (["--mode", "rubric_only"], "nothing to verify"),
    ],
)
def test_what_cannot_be_run_is_exit_code_1(
    flags: list[str], message: str, run: Run, write_benchmark: Files, served: Any
) -> None:
    with ScriptedServer(city) as server:
        result = run("verify", write_benchmark("q0", "q1"), *served(server.url), *flags)
        assert server.count == 0
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_sink_that_cannot_be_made_or_opened_is_no_run(
    run: Run, write_benchmark: Files, served: Any, tmp_path: Path
) -> None:
    with ScriptedServer(city) as server:
        for number, (sink, message) in enumerate(
            (("sqlte:x", "no sink is called"), ("jsonl:no/such/folder", "cannot be opened"))
        ):
            out = tmp_path / f"out-{number}"
            result = run("verify", write_benchmark("q0"), *served(server.url), "--sink", sink, "--out", out)
            assert result.exit_code == 1
            assert message in result.stderr
            assert not out.exists() or json.loads((out / "manifest.json").read_text("utf-8"))["status"] == "failed"
        assert server.count == 0


def test_a_benchmark_that_is_not_there(run: Run) -> None:
    result = run("verify", "no.jsonld", "--answering-model", "m", "--parsing-model", "j")
    assert (result.exit_code, result.stderr) == (1, "Error: there is no file no.jsonld; check the path\n")


def test_a_judge_must_be_named(run: Run, write_benchmark: Files) -> None:
    result = run("verify", write_benchmark("q0"), "--answering-model", "m")
    assert result.exit_code == 1
    assert "--parsing-model" in result.stderr


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["b.jsonld", "--replicates", "0"],
        ["b.jsonld", "--concurrency", "many"],
        ["b.jsonld", "--mode", "x"],
        ["b.jsonld", "--set", "run.concurrency"],
        ["b.jsonld", "--no-such-option"],
    ],
)
def test_wrong_usage_is_exit_code_2(flags: list[str], run: Run) -> None:
    result = run("verify", *flags)
    assert result.exit_code == 2
    assert "Usage: karenina verify" in result.stderr


def test_a_run_directory_that_is_not_empty_is_exit_code_74(
    run: Run, write_benchmark: Files, served: Any, tmp_path: Path
) -> None:
    path = write_benchmark("q0")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with ScriptedServer(city) as server:
        for out in ("full", path / "below a file"):
            result = run("verify", path, *served(server.url), "--out", out)
            assert result.exit_code == 74
            assert "--out DIR" in result.stderr
        assert server.count == 0


def test_questions_and_replicates_and_a_matrix(run: Run, write_benchmark: Files, served: Any) -> None:
    path = write_benchmark(*(f"q{i}" for i in range(5)), unfinished=["q3"])
    with ScriptedServer(city) as server:
        flags = [*served(server.url), "--answering-model", "second", "--questions", "q1,3-4", "--replicates", "2"]
        result = run("verify", path, *flags, "--json")
    document = json.loads(result.stdout)
    assert document["left_out"] == [{"question_id": "q3", "reason": "not finished"}]
    assert [(row["answering"], row["items"]) for row in document["models"]] == [
        ("openai_endpoint:the-answering-model", 4),
        ("openai_endpoint:second", 4),
    ]
    assert document["calls"] == 16


def test_left_out_questions_and_warnings_are_shown(run: Run, write_benchmark: Files, served: Any) -> None:
    rating = [{"@type": "Rating", "name": "odd", "additionalType": "karenina:GlobalNoSuchTrait"}]
    path = write_benchmark("q0", "q1", unfinished=["q1"], rating=rating)
    with ScriptedServer(city) as server:
        result = run("verify", path, *served(server.url), "--mode", "template_only")
        as_json = run("verify", path, *served(server.url), "--mode", "template_only", "--json")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"Left out\n +q1 +not finished", result.stdout)
    assert "Warnings of the benchmark" in result.stdout
    assert json.loads(as_json.stdout)["left_out"]
    assert "Warning: " in as_json.stderr


def test_a_plugin_that_fails_to_resolve_a_model_is_named(run: Run, write_benchmark: Files, install: Files) -> None:
    source = "from karenina_core import hookimpl\n@hookimpl\ndef karenina_resolve_model(model): raise KeyError(model)\n"
    install("karenina-lost", {"a-lost": "lost_plugin"}, group="karenina.plugins", lost_plugin=source)
    result = run("verify", write_benchmark("q0"), "--answering-model", "provider/name", "--parsing-model", "j")
    assert result.exit_code == 1
    assert (
        "a plugin failed to resolve the model 'provider/name': karenina_resolve_model of plugin 'a-lost'"
        in result.stderr
    )


def test_quiet_is_silent_about_progress_only(run: Run, write_benchmark: Files, served: Any) -> None:
    with ScriptedServer(city) as server:
        result = run("verify", write_benchmark("q0"), *served(server.url), "--quiet")
    assert result.stderr == ""
    assert "pass rate" in result.stdout


def test_without_a_sandbox_python_templates_need_trust_and_the_line_to_type_works(
    run: Run, write_benchmark: Files, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARENINA_DISABLE", "sandbox-runtime")
    path = write_benchmark("q0", template=PYTHON, language="Python", name="it's mine.jsonld")
    with ScriptedServer(city) as server:
        refused = run("verify", path, *served(server.url), "--json")
        assert (refused.exit_code, refused.stdout, server.count) == (1, "", 0)
        line = refused.stderr.strip().splitlines()[-1].strip()
        words = shlex.split(line)
        assert words[:3] == ["karenina", "verify", "--trust"]
        assert words[3] == str(path)
        result = run(*words[1:])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["outcomes"] == {"passed": 1}
    assert "a template that prints" in result.stderr
    assert "and prints again" in result.stderr


def test_a_configuration_file_and_the_flags_above_it(
    run: Run, write_benchmark: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sesame-open")
    monkeypatch.setenv("KARENINA_REPLICATE_COUNT", "3")
    with ScriptedServer(city) as server:
        (tmp_path / "settings.toml").write_text(
            f'[run]\nanswering_models = ["a"]\nparsing_models = ["j"]\nconcurrency = 2\nreplicate_count = 4\n'
            f'[models.a]\nmodel_name = "m"\ninterface = "openai_endpoint"\nendpoint_base_url = "{server.url}"\n'
            f'[models.j]\nmodel_name = "m"\ninterface = "openai_endpoint"\nendpoint_base_url = "{server.url}"\n'
            f'api_key_env = "JUDGE_KEY"\ntemperature = 0.7\n',
            "utf-8",
        )
        flags = [
            "--config",
            "settings.toml",
            "--concurrency",
            "1",
            "--set",
            "models.j.temperature=0.25",
            "--out",
            "out",
        ]
        result = run("verify", write_benchmark("q0"), *flags)
        judged = [request for request in server.requests if request.schema]
    assert result.exit_code == 0, result.stderr
    config = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))["config"]
    assert (config["concurrency"], config["replicate_count"]) == (1, 3)
    assert "openai_endpoint:m (a), judged by openai_endpoint:m (j)" in result.stdout
    assert {request.body["temperature"] for request in judged} == {0.25}
    assert {request.headers["authorization"] for request in judged} == {"Bearer sesame-open"}
    assert "sesame-open" not in result.output


def test_recorded_answers_need_no_server(run: Run, write_benchmark: Files, write_answers: Files) -> None:
    answers = write_answers(q0="Paris", q1="Rome")
    flags = ["--answering-interface", "manual", "--manual-traces", answers]
    result = run("verify", write_benchmark("q0", "q1"), *flags, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["outcomes"] == {"passed": 1, "failed": 1}
    assert document["models"][0]["parsing"] == "manual:manual"


def test_nothing_in_a_benchmark_or_an_answer_reaches_the_terminal(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    def script(request: Any) -> Any:
        return Reply.error(400, "\x1b]0;owned\x07 \u202e") if request.schema else "\x1b[31mParis\x9b"

    with ScriptedServer(script) as server:
        result = run("verify", write_benchmark("q\x1b[2J", "[red]q"), *served(server.url), "--out", "out")
    assert result.exit_code == 3
    shown, listed = run("show", "out", "q\x1b[2J"), run("show", "out")
    for text in (result.stdout, result.stderr, shown.stdout, listed.stdout):
        assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert "q\\x1b[2J" in result.stdout
    assert "[red]q" in listed.stdout
    assert "\\x1b[31mParis" in shown.stdout


def test_a_recorded_run_is_replayed_without_its_server(
    run: Run, write_benchmark: Files, served: Any, tmp_path: Path
) -> None:
    benchmark, calls = write_benchmark("q0", "q1"), tmp_path / "calls.jsonl"
    with ScriptedServer(city) as server:
        flags = served(server.url)
        recorded = run("verify", benchmark, *flags, "--record", calls, "--json", "--out", tmp_path / "live")
    replayed = run("verify", benchmark, *flags, "--replay", calls, "--json", "--out", tmp_path / "again")
    assert (recorded.exit_code, replayed.exit_code) == (0, 0)
    documents = [json.loads(result.stdout) for result in (recorded, replayed)]
    assert {**documents[0], "run_dir": ""} == {**documents[1], "run_dir": ""}


def test_recording_over_a_file_and_replaying_nothing_are_refused(
    run: Run, write_benchmark: Files, served: Any, tmp_path: Path
) -> None:
    benchmark, calls = write_benchmark("q0"), tmp_path / "calls.jsonl"
    with ScriptedServer(city) as server:
        flags = served(server.url)
        assert "--record" in run("verify", benchmark, *flags, "--replay", calls).stderr
        calls.write_text("")
        again = run("verify", benchmark, *flags, "--record", calls)
        assert again.exit_code == 74
        assert "exists" in again.stderr
        both = run("verify", benchmark, *flags, "--record", calls, "--replay", calls)
        assert both.exit_code == 1
        assert "not both" in both.stderr
        assert server.count == 0


def test_a_run_says_that_nobody_told_what_its_calls_took(run: Run, write_benchmark: Files, served: Any) -> None:
    def say(request: Any) -> Reply:
        return Reply(by_question({"q1": "Rome"})(request), usage=None)

    with ScriptedServer(say) as server:
        path = write_benchmark("q0")
        printed = run("verify", path, *served(server.url)).stdout
        assert "cost: unknown (the tokens of some calls are unknown)" in " ".join(printed.split())
        document = json.loads(run("verify", path, *served(server.url), "--json").stdout)
        assert (document["usage_unavailable"], document["cost_usd"]) == (True, None)
