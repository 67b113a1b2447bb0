"""What happens to be in the environment changes nothing: in a whole world of runs only secrets are gone, and are told.

A clean environment, one full of values that are no secrets whatever their variables are called, and one with a secret
that every model repeats, with all that JSON has to escape.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from click.testing import CliRunner
from karenina_cli.root import karenina
from karenina_runs.amend.repair import RepairSelection, repair_run
from karenina_runs.folder.recording import recording_lines
from karenina_runs.journal.reader import JournalReader
from karenina_runs.resume import resume_run

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig
from karenina_core.secrets import MASK, is_secret_name
from karenina_core.testing import Reply, ScriptedServer, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

SECRET = 'pa"ss\\wörd-1234567'
NO_SECRETS = {
    "POSTGRES_PASSWORD": "postgres",
    "DB_PASSWORD": "33333333",
    "B_TOKEN": "00000000",
    "X_TOKEN": "metadata",
    "Y_SECRET": "template",
    "Z_API_KEY": "generation",
    "SOME_KEY": "/usr/share/postgres",
    "A_PASSWORD": "True",
    "KARENINA_BUDGET_TOKENS": "50000000",
    "MAX_TOKENS": "the metadata of a template",
}
ENVIRONMENTS: dict[str, dict[str, str]] = {"clean": {}, "no secrets": NO_SECRETS, "a secret": {"A_SECRET": SECRET}}
TIMES = {"timestamp", "execution_time", "seconds", "created_at", "export_timestamp"}
TIMES |= {"start_time", "end_time", "total_duration"}
TOLD = {"text_flags", "warnings", "caveats"}
TAG = re.compile("untrusted-[0-9a-f]{16}")
"""Around an answer in a prompt: made of the answer."""
QUICK = RetryPolicy(server=AttemptPolicy(1), timeout=AttemptPolicy(1), connection=AttemptPolicy(1))
NOTE = "the value of A_SECRET"


def text_field(name: str, truth: str) -> dict[str, Any]:
    how = {"type": "ExactMatch"}
    return {"name": name, "type": "str", "description": f"The {name}", "ground_truth": truth, "verify_with": how}


PORT = {**text_field("port", ""), "type": "int", "ground_truth": 33333333}
TEMPLATES = {
    "q0": [text_field("db", "postgres"), text_field("part", "metadata"), PORT],
    "q1": [text_field("key", "none"), text_field("echo", "none"), text_field("db", "redis")],
    "q2": [text_field("db", "postgres"), text_field("code", "00000000"), text_field("never", "33333333")],
}
ANSWERS = {
    "q0": "Use postgres: the template of the generation has metadata. Its port is 33333333, not 50000000. (q0)",
    "q1": f"The key is {SECRET} and the database redis. (q1)",
    "q2": "Use postgres with the code 00000000. (q2)",
}


@define(eq=False)
class Models:
    """One that answers, and one that judges what it reads. While it is down, the judge has no word on the last one."""

    down: bool = True
    answered: int = 0

    def __call__(self, request: Any) -> Any:
        (name,) = set(re.findall(r"\((q\d)\)", request.text))
        if not request.schema:
            self.answered += 1
            return ANSWERS[name]
        if self.down and name == "q2":
            return Reply.error(503, f"no judge for {SECRET}")
        text = request.text
        found = {
            "db": (re.search(r"Use (\w+)|database (\w+)", text) or [""])[0].split()[-1],
            "part": "metadata" if "has metadata." in text else "gone",
            "port": int((re.search(r"port is (\d+),", text) or ["", "0"])[1]),
            "key": (re.search(r"The key is (.+?) and", text) or ["", "gone"])[1],
            "echo": f'{{"said": {json.dumps(SECRET)}}}',
            "code": (re.search(r"code (\d+)\.", text) or ["", "gone"])[1],
            "never": "0.33333333",
        }
        return {each: found[each] for each in request.schema["properties"]}


@define(eq=False)
class World:
    """The same runs in one environment."""

    folder: Path
    told: dict[str, Any] = field(factory=dict)

    def make(self) -> None:
        models = Models()
        with ScriptedServer(models) as server:
            self._runs(models, server.url)
        for name in ("run", "reused", "recorded", "replayed"):
            self._keep(name)
        for command in (["show", "run", "q1"], ["show", "run"], ["doctor", "run"], ["status", "run"]):
            self._command(*command)
        for suffix in ("csv", "json"):
            self._command("export", "run", "-o", f"run.{suffix}")
        self._command("report", "run", "-o", "run.html")
        with (self.folder / "run.csv").open(newline="", encoding="utf-8") as rows:
            self.told["csv"] = [
                {
                    name: without(json.loads(value), TIMES) if value[:1] in ("{", "[") else value
                    for name, value in row.items()
                    if name not in TIMES | TOLD
                }
                for row in csv.DictReader(rows)
            ]
        self.told["json"] = without(json.loads((self.folder / "run.json").read_text("utf-8")), TIMES)
        page = (self.folder / "run.html").read_text("utf-8")
        self.told["report"] = page.count(MASK)

    def _runs(self, models: Models, url: str) -> None:
        facts: dict[str, Any] = {"interface": "openai_endpoint", "endpoint_base_url": url, "max_retries": 0}
        facts |= {"input_cost_per_token": 1 / 300, "output_cost_per_token": 1 / 3}
        config = VerificationConfig(
            answering_models=[ModelConfig(model_name="a", **facts)],
            parsing_models=[ModelConfig(model_name="j", **facts), ModelConfig(model_name="k", **facts)],
            retry_policy=QUICK,
            retry_max_elapsed_seconds=5,
            concurrency=1,
        )
        benchmark = Benchmark(
            name="world",
            questions=[
                Question(
                    id=name,
                    question=f"Which one is it? ({name})",
                    raw_answer="x",
                    answer_template=json.dumps({"class_name": "Answer", "fields": fields}),
                    template_language="karenina-template",
                )
                for name, fields in TEMPLATES.items()
            ],
        )

        def verify(name: str, replay: dict[str, str] | None = None, **more: Any) -> list[Any]:
            app = application(installed=True, settings={"replay": replay} if replay else None)
            return list(
                benchmark.run_verification(config, run_dir=self.folder / name, run_name="world", app=app, **more)
            )

        first = verify("run")
        self.told["interrupted"] = [result.metadata.outcome for result in first]
        models.down = False
        resume_run(self.folder / "run", benchmark=benchmark, config=config, app=application(installed=True))
        self.told["resumed"] = lines(self.folder / "run")
        asked = models.answered
        verify("reused", reuse=[self.folder / "run"])
        verify("recorded", {"record": str(self.folder / "calls.jsonl")})
        verify("replayed", {"replay": str(self.folder / "calls.jsonl")})
        self.told["answers asked"] = (asked, models.answered)
        selection = RepairSelection(everything=True)
        repair_run(self.folder / "run", selection, benchmark=benchmark, config=config, app=application(installed=True))
        self.told["recording"] = without(
            [json.loads(line) for line in (self.folder / "calls.jsonl").read_text("utf-8").splitlines()],
            {*TIMES, "key", "flags", "removed"},
        )

    def _keep(self, name: str) -> None:
        self.told[name] = lines(self.folder / name)
        with JournalReader.open(self.folder / name) as reader:
            calls = [json.loads(line) for line in recording_lines(reader)]
        self.told[f"calls of {name}"] = without(calls, {"key", "flags", "removed"})

    def _command(self, *words: str) -> None:
        done = CliRunner().invoke(karenina, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        self.told[" ".join(words)] = done.exit_code, shown(done.stdout)

    @property
    def everything(self) -> bytes:
        """Every byte of every file, and what the bodies of the journals hold."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        bodies = []
        for path in files:
            if path.name == "journal.sqlite":
                with JournalReader.open(path) as reader:
                    bodies += [*recording_lines(reader), *(found.line for found in reader.results())]
        return b"".join([*(path.read_bytes() for path in files), *(body.encode() for body in bodies)])


def lines(folder: Path) -> list[Any]:
    text = (folder / "results.jsonl").read_text("utf-8")
    return [without(json.loads(line), TIMES) for line in text.splitlines()]


def without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: without(item, names) for name, item in value.items() if name not in names}
    if isinstance(value, list):
        return [without(item, names) for item in value]
    return TAG.sub("untrusted", value) if isinstance(value, str) else value


def shown(text: str) -> str:
    """What a command prints, but for times, ids and how they are aligned."""
    text = re.sub(
        r"[0-9a-f]{32}|\d{4}-\d\d-\d\d[T ][\d:.]+\S*|\b\d\.\d{3}\b|\d+(\.\d+)? (s|ms|seconds? ago)\b", "#", text
    )
    return re.sub(r"[ \n]+|-{3,}|─+", " ", text)


def cleaned(value: Any) -> Any:
    """What it should be where the secret is gone: that text is another one, and nothing else."""
    if isinstance(value, dict):
        return {name: cleaned(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    if not isinstance(value, str):
        return value
    escaped = json.dumps(SECRET)[1:-1], json.dumps(SECRET, ensure_ascii=False)[1:-1]
    twice = tuple(json.dumps(form, ensure_ascii=ascii_)[1:-1] for form in escaped for ascii_ in (True, False))
    for form in (*twice, *escaped, SECRET):
        value = value.replace(form, MASK)
    return value


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], World]:
    """`worlds(name)`: that of an environment, made once."""
    made: dict[str, World] = {}

    def world(name: str) -> World:
        if name not in made:
            with pytest.MonkeyPatch.context() as patch:
                for variable in [v for v in os.environ if is_secret_name(v) or v.startswith("KARENINA_")]:
                    patch.delenv(variable)
                for variable, value in ENVIRONMENTS[name].items():
                    patch.setenv(variable, value)
                folder = tmp_path_factory.mktemp("world")
                patch.chdir(folder)
                found = World(folder)
                found.make()
                made[name] = found
        return made[name]

    return world


def test_the_world_is_what_it_should_be(worlds: Callable[[str], World]) -> None:
    """Else nothing that is compared says anything."""
    told = worlds("clean").told
    assert told["interrupted"] == ["passed", "passed", "failed", "failed", "error", "error"]
    assert [row["metadata"]["outcome"] for row in told["resumed"]] == ["passed"] * 2 + ["failed"] * 4
    assert told["resumed"][4]["template"]["verify_granular_result"] == pytest.approx(2 / 3)
    assert told["answers asked"] == (3, 6), "reused and replayed ones are not asked for"
    assert SECRET.encode() in worlds("clean").everything
    assert told["doctor run"][0] == 0
    assert len(told["csv"]) == 6
    for name in ("reused", "recorded", "replayed", "run"):
        assert [row["metadata"]["outcome"] for row in told[name]] == ["passed"] * 2 + ["failed"] * 4, name


def test_values_that_are_no_secrets_change_nothing(worlds: Callable[[str], World]) -> None:
    clean, hostile = worlds("clean").told, worlds("no secrets").told
    assert clean.keys() == hostile.keys()
    for name in clean:
        assert hostile[name] == clean[name], name


def test_a_secret_is_gone_and_nothing_else(worlds: Callable[[str], World]) -> None:
    clean, hostile = worlds("clean").told, worlds("a secret").told
    assert hostile["report"] > clean["report"] == 0
    for name in ("interrupted", "answers asked", "doctor run", "status run"):
        assert hostile[name] == clean[name], name
    for name in ("resumed", "run", "reused", "recorded", "replayed", "recording", "csv", "json"):
        assert cleaned(without(clean[name], TOLD)) == without(hostile[name], TOLD), name
    for name in ("calls of run", "calls of recorded"):
        assert cleaned(clean[name]) == hostile[name], name


def test_a_secret_is_in_no_byte_of_any_file(worlds: Callable[[str], World]) -> None:
    everything = worlds("a secret").everything
    once = [json.dumps(SECRET, ensure_ascii=ascii_)[1:-1] for ascii_ in (True, False)]
    twice = [json.dumps(form, ensure_ascii=ascii_)[1:-1] for form in once for ascii_ in (True, False)]
    for form in (SECRET, *once, *twice, "rd-1234567"):
        assert form.encode() not in everything, form


@pytest.mark.parametrize("name", ["resumed", "run", "reused", "recorded", "replayed"])
def test_every_path_tells_what_is_gone(worlds: Callable[[str], World], name: str) -> None:
    rows = worlds("a secret").told[name]
    flagged = [row for row in rows if row["generation"]["text_flags"]]
    assert [row["metadata"]["question_id"] for row in flagged] == ["q1", "q1"], "of both judges"
    for row in flagged:
        assert row["generation"]["text_flags"] == ["secret_removed", "secret_removed:A_SECRET"]
        assert row["generation"]["raw_llm_response"] == f"The key is {MASK} and the database redis. (q1)"
        assert row["template"]["parsed_llm_response"]["key"] == MASK
        assert sum(NOTE in warning for warning in row["metadata"]["warnings"]) == 1
    quiet = [row for row in rows if row["metadata"]["question_id"] == "q0"]
    assert all(row["metadata"]["warnings"] == [] for row in quiet)


def test_commands_print_what_is_gone_and_not_the_secret(worlds: Callable[[str], World]) -> None:
    told = worlds("a secret").told
    assert NOTE in told["show run q1"][1]
    for name, found in told.items():
        if isinstance(found, tuple) and isinstance(found[1], str):
            assert "rd-1234567" not in found[1], name
