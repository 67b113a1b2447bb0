"""Whole runs in this process against a server that misbehaves. Loaded by path; no test is in here."""

from __future__ import annotations

import importlib.util
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import FAILURES

from karenina_core import (
    Benchmark,
    Karenina,
    ModelConfig,
    Question,
    VerificationConfig,
    VerificationResultSet,
    hookimpl,
)
from karenina_core.ports.middleware import Call, CallTarget, Proceed
from karenina_core.ports.values import LLMResponse
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

NAME = "target"
TEMPLATE = json.dumps(
    {
        "class_name": "Answer",
        "fields": [
            {
                "name": NAME,
                "type": "str",
                "description": "The protein that the response names",
                "ground_truth": "BCL2",
                "verify_with": {"type": "ExactMatch"},
                "extraction_hint": "a gene symbol",
            }
        ],
    }
)
PLUGINS = {
    *("validate-template", "generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail"),
    *("parse-template", "verify-template", "standard-judgment", "primitives", "finalize-result", "jsonl"),
    *("declarative-runtime", "in-process-runtime", "local-executor", "openai_endpoint"),
}
KINDS = ("rate_limited", "timeout", "connection", "server")
Script = Callable[[ServedRequest], Any]


def load(name: str) -> Any:
    """A module of this folder, by its name."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


invariants = load("invariants")


def tried(times: int, least: float = 0.02, most: float = 0.2) -> RetryPolicy:
    """So many attempts for every kind of failure that is tried again."""
    return RetryPolicy(**dict.fromkeys(KINDS, AttemptPolicy(times, least, most)))


def benchmark_of(questions: int, **facts: Any) -> Benchmark:
    facts = {"answer_template": TEMPLATE, "template_language": "karenina-template", "raw_answer": "BCL2"} | facts
    asked = [Question(id=f"q{n}", question=f"What is the target of drug {n}?", **facts) for n in range(questions)]
    return Benchmark(name="targets", questions=asked)


def number_of(request: ServedRequest) -> int:
    """Which question it is about."""
    found = re.search(r"drug (\d+)|answer (\d+)", request.text)
    assert found is not None, request.text
    return int(found[1] or found[2])


def judged(request: ServedRequest) -> bool:
    return request.schema is not None


def right(request: ServedRequest) -> Any:
    """What a good model says."""
    return {NAME: "BCL2"} if judged(request) else f"It is BCL2 (answer {number_of(request)})."


def faulty(faults: Mapping[int, Callable[[], Reply]], *, latency: float = 0.0) -> Script:
    """The answers to these questions are faults; everything else is answered well."""

    def script(request: ServedRequest) -> Any:
        if not judged(request) and (fault := faults.get(number_of(request))):
            return fault()
        return Reply(right(request), latency=latency)

    return script


@frozen
class Attempt:
    """One attempt at a call, as it is seen from within the program."""

    begun: float
    ended: float
    error: BaseException | None
    asked: str = ""


@define(eq=False)
class Watch:
    """A plugin that sees every attempt."""

    attempts: list[Attempt] = field(factory=list)

    @hookimpl
    def karenina_wrap_call(self, target: CallTarget) -> Any:
        return self.around if target.kind == "llm" else None

    async def around(self, call: Call[LLMResponse], proceed: Proceed) -> LLMResponse:
        begun, failure = time.monotonic(), None
        try:
            return await proceed(call)
        except BaseException as error:
            failure = error
            raise
        finally:
            self.attempts.append(Attempt(begun, time.monotonic(), failure, call.request.key))

    @property
    def undercut(self) -> list[float]:
        """Seconds by which attempts began too early: before a wait was over that was asked of the call."""
        until, early = dict[str, float](), []
        events = [(attempt.begun, 1, attempt) for attempt in self.attempts]
        events += [(attempt.ended, 0, attempt) for attempt in self.attempts]
        for at, begins, attempt in sorted(events, key=lambda event: event[:2]):
            wait = getattr(attempt.error, "retry_after", None)
            if not begins and wait is not None:
                until[attempt.asked] = at + wait
            elif begins and at < until.get(attempt.asked, 0.0) - 1e-6:
                early.append(until[attempt.asked] - at)
        return early


@define(eq=False)
class World:
    """One benchmark, one configuration and a run directory."""

    folder: Path
    questions: int = 8
    plugins: tuple[Any, ...] = ()
    installed: frozenset[str] = frozenset()
    benchmark: Benchmark = field(init=False)
    watch: Watch = field(factory=Watch)

    def __attrs_post_init__(self) -> None:
        self.benchmark = benchmark_of(self.questions)

    def app(self) -> Karenina:
        return application(self.watch, *self.plugins, installed=PLUGINS | self.installed)

    def config(self, url: str, *, model: Mapping[str, Any] | None = None, **facts: Any) -> VerificationConfig:
        about = {"interface": "openai_endpoint", "endpoint_base_url": url, "request_timeout": 60.0, **(model or {})}
        facts = {"retry_policy": tried(2), "concurrency": self.questions} | facts
        facts.setdefault("answering_models", [ModelConfig(model_name="a", **about)])
        facts.setdefault("parsing_models", [ModelConfig(model_name="j", **about)])
        return VerificationConfig(**facts)

    def run(self, config: VerificationConfig, **facts: Any) -> VerificationResultSet:
        app = self.app()
        try:
            return self.benchmark.run_verification(config, run_dir=self.folder, app=app, **facts)
        finally:
            app.loop.close()

    def resume(self, config: VerificationConfig, **facts: Any) -> VerificationResultSet:
        from karenina_core import resume_run

        app = self.app()
        try:
            return resume_run(self.folder, benchmark=self.benchmark, config=config, app=app, **facts)
        finally:
            app.loop.close()

    def check(self, config: VerificationConfig, server: ScriptedServer, *, complete: bool = True, **facts: Any) -> None:
        """Everything that holds for every run. `facts` are those of `assert_run`."""
        folder = self.folder
        asked = [f"q{number_of(request)}" for request in server.requests if judged(request)]
        invariants.assert_run(folder, judged=asked, complete=complete, **facts)
        again = folder.with_name(f"{folder.name} again")
        app = self.app()
        given = {"benchmark": self.benchmark, "config": config, "app": app}
        try:
            invariants.assert_replayed(folder, again, lambda: server.count, **given)
        finally:
            app.loop.close()

    def outcomes(self) -> Counter[str]:
        return Counter(map(str, self.by_question().values()))

    def by_question(self) -> dict[int, str]:
        with JournalReader.open(self.folder) as reader:
            told = [json.loads(found.line)["metadata"] for found in reader.results()]
        return {
            int(about["question_id"][1:]): f"{about['outcome']}({about['outcome_detail']})"
            if about["outcome_detail"]
            else about["outcome"]
            for about in told
        }

    def failures(self) -> list[tuple[str, str | None]]:
        """Of every attempt that failed: the kind, and what came back."""
        with JournalReader.open(self.folder) as reader:
            return [
                (
                    row["error"],
                    json.loads(reader.bodies.unpacked(row.body))["error"]["raw"] or None if row.body else None,
                )
                for row in reader.rows(FAILURES)
            ]

    def manifest(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text("utf-8"))
        return told
