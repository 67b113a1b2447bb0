"""Whatever one plugin, model or stage does: the others go on, and what is finished can be read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.writer import Writer

from karenina_core import (
    ArtifactKeys,
    Benchmark,
    Category,
    Karenina,
    ModelConfig,
    Stage,
    VerificationConfig,
    VerificationResultSet,
    hookimpl,
)
from karenina_core.errors import ContractError, RunDirectoryError
from karenina_core.ports.values import LLMResponse
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.result import VerificationResult

Bench = Callable[[int], Benchmark]


def answering(call: Any) -> Any:
    return {"target": "BCL2"} if call.task == "parsing" else "It binds BCL2."


def run(
    benchmark: Benchmark,
    *plugins: Any,
    llm: Any = None,
    run_dir: Path | None = None,
    sinks: Sequence[str] = (),
    **model: Any,
) -> VerificationResultSet:
    app = application(llm or ScriptedLLM(answering), *plugins, installed=True)
    config = ModelConfig(model_name="m", interface="scripted", max_retries=1, **model)
    return benchmark.run_verification(
        VerificationConfig(answering_models=[config], parsing_models=[config]), app=app, run_dir=run_dir, sinks=sinks
    )


def only(results: VerificationResultSet) -> VerificationResult:
    (result,) = results
    return result


@pytest.mark.parametrize("exit_", [KeyboardInterrupt, SystemExit])
def test_a_stage_that_wants_to_leave_costs_one_item_and_not_the_program(exit_: Any, benchmark_of: Bench) -> None:
    class Leaving(Stage):
        requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

        def execute(self, context: Any) -> None:
            raise exit_

    assert str(only(run(benchmark_of(1), Leaving)).outcome) == "error(stage)"
    assert str(only(run(benchmark_of(1))).outcome) == "passed"


def test_a_guard_of_another_package_decides_like_one_of_ours(benchmark_of: Bench) -> None:
    class TooShort(Stage):
        category = Category.GUARD
        requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

        def execute(self, context: Any) -> None:
            context.record(verdict=False, reason="too short")

    llm = ScriptedLLM(answering)
    result = only(run(benchmark_of(1), TooShort, llm=llm))
    assert str(result.outcome) == "auto_failed(TooShort)"
    assert not llm.asked("parsing")  # nothing is paid for once it is decided
    assert {entry.stage: entry.reason for entry in result.trail}["ParseTemplate"] == "TooShort has decided already"


def test_a_plugin_that_needs_settings_fails_alone(benchmark_of: Bench) -> None:
    @frozen
    class Needs:
        token: str

    class Plugin:
        @hookimpl
        def karenina_register_settings(self, registry: Any) -> None:
            registry.add(Needs)

    app = Karenina({"needy": Plugin()})
    assert app.plugin("needy").state == "failed"
    assert "[plugins.needy]" in app.plugin("needy").reason
    assert Karenina({"needy": Plugin()}, settings={"needy": {"token": "x"}}).settings("needy") == Needs("x")


def test_a_plugin_that_forgot_to_mark_its_hooks_says_so() -> None:
    class Unmarked:
        def karenina_register_stages(self, registry: Any) -> None: ...

    assert "@hookimpl" in Karenina({"unmarked": Unmarked()}).plugin("unmarked").reason


def test_a_broken_runtime_and_a_broken_primitive_matter_to_those_who_need_them(benchmark_of: Bench) -> None:
    class Broken:
        @hookimpl
        def karenina_register_template_runtimes(self, registry: Any) -> None:
            registry.add("no_such_module:Runtime", name="broken-runtime")

        @hookimpl
        def karenina_register_primitives(self, registry: Any) -> None:
            registry.add("no_such_module:Match", name="BrokenMatch")

    assert str(only(run(benchmark_of(1), Broken())).outcome) == "passed"
    (question,) = benchmark_of(1).questions
    template = (question.answer_template or "").replace("ExactMatch", "BrokenMatch")
    needing = Benchmark(name="b", questions=[evolve(question, answer_template=template)])
    result = only(run(needing, Broken()))
    assert str(result.outcome) == "error(template)"
    assert "BrokenMatch: " in str(result.metadata.error)


def test_a_replaced_sink_answers_to_the_old_name(benchmark_of: Bench, tmp_path: Path) -> None:
    written: list[str] = []

    class Memory:
        def __init__(self, target: str) -> None: ...

        async def open(self, run: Any) -> None: ...

        async def write(self, result: VerificationResult) -> None:
            written.append(result.metadata.question_id)

        async def close(self, summary: Any) -> None: ...

    class Plugin:
        @hookimpl
        def karenina_register_sinks(self, registry: Any) -> None:
            registry.add(Memory, name="memory", replaces="jsonl")

    run(benchmark_of(2), Plugin(), run_dir=tmp_path / "run", sinks=["jsonl"])
    assert sorted(written) == ["q0", "q1"]


@pytest.mark.parametrize("rubbish", [None, 7, LLMResponse(content="x", usage={"a": 1})])  # type: ignore[arg-type]
def test_a_reply_that_is_none_is_an_error_of_the_adapter(rubbish: Any, benchmark_of: Bench) -> None:
    class Wrong(ScriptedLLM):
        async def ainvoke(self, *arguments: Any, **options: Any) -> Any:
            return rubbish

    result = only(run(benchmark_of(1), llm=Wrong()))
    assert str(result.outcome) == "error(plugin)"
    assert "'scripted'" in str(result.metadata.error)


@pytest.mark.parametrize(
    ("name", "value"),
    [("embedding_similarity_score", "high"), ("odd.key", {("a", 1): 2}), ("odd.key", {1, 2}), ("judge_channel", 5)],
)
def test_a_value_that_could_not_be_read_back_is_refused_at_once(
    name: str, value: Any, benchmark_of: Bench, tmp_path: Path
) -> None:
    class Odd(Stage):
        requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
        category = Category.GUARD
        result_fields = (name,)

        def execute(self, context: Any) -> None:
            context.set_result_field(name, value)

    results = run(benchmark_of(2), Odd, run_dir=tmp_path / "run")
    assert {str(result.outcome) for result in results} == {"error(stage)"}
    assert name in str(results[0].metadata.error)
    assert len(VerificationResultSet.load(tmp_path / "run")) == 2


@pytest.mark.parametrize(
    "declaration",
    [{"category": "guard"}, {"produces": (1,)}, {"name": ""}, {"result_fields": ("a.",)}, {"requires": ("",)}],
)
def test_a_declaration_that_cannot_work_is_refused_where_it_is_written(declaration: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        type("Odd", (Stage,), declaration)


def test_a_stage_that_would_never_run_is_refused() -> None:
    def execute(self: Any, context: Any) -> Any:
        yield

    with pytest.raises(ContractError, match="yield"):
        type("Odd", (Stage,), {"execute": execute})


def test_a_line_that_was_cut_off_costs_no_other_result(benchmark_of: Bench, tmp_path: Path) -> None:
    run(benchmark_of(3), run_dir=tmp_path / "run")
    file = tmp_path / "run" / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-50])
    loaded = VerificationResultSet.load(tmp_path / "run")
    assert len(loaded) == 2
    assert "line 3 was cut off" in loaded.notes[0]


def test_nothing_more_is_paid_for_once_results_cannot_be_kept(
    benchmark_of: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = count(1)

    def full(writer: Writer) -> None:
        if next(commits) > 6:
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Writer, "_before_commit", full)
    llm = ScriptedLLM(answering)
    with pytest.raises(RunDirectoryError, match="can no longer be written"):
        run(benchmark_of(200), llm=llm, run_dir=tmp_path / "run")
    assert len(llm.calls) < 60
    assert json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))["status"] == "failed"
    with JournalReader.open(tmp_path / "run") as reader:
        kept = [done.result_id for done in reader.results()]
    assert 0 < len(kept) < 60
    assert [r.metadata.result_id for r in VerificationResultSet.load(tmp_path / "run")] == kept


def test_a_cut_off_answer_is_flagged_and_a_filtered_one_is_no_answer(benchmark_of: Bench) -> None:
    def saying(reason: str) -> Any:
        def script(call: Any) -> Any:
            return answering(call) if call.task == "parsing" else LLMResponse(content="BCL2 is", finish_reason=reason)

        return ScriptedLLM(script)

    assert only(run(benchmark_of(1), llm=saying("length"))).generation.text_flags == ("truncated",)
    assert str(only(run(benchmark_of(1), llm=saying("content_filter"))).outcome) == "error(content_filter)"


def test_a_judge_hears_its_own_system_prompt_and_failures_keep_what_was_tried(benchmark_of: Bench) -> None:
    llm = ScriptedLLM(lambda call: "no idea" if call.task == "parsing" else "BCL2")
    result = only(run(benchmark_of(1), llm=llm, system_prompt="You know proteins."))
    assert all("You know proteins." in call.text for call in llm.asked("parsing"))
    assert str(result.outcome) == "error(judge)"
    assert result.template is not None
    assert (result.template.judge_channel, result.template.judge_repairs) == ("text", 1)


def test_keys_in_addresses_and_headers_are_not_written(benchmark_of: Bench, tmp_path: Path) -> None:
    secret, other = "canary-in-the-address", "canary-in-a-header"
    run(
        benchmark_of(1),
        run_dir=tmp_path / "run",
        endpoint_base_url=f"http://127.0.0.1:9/v1?key={secret}",
        extra_kwargs={"extra_headers": {"X-Auth": other}},
    )
    everything = b"".join(path.read_bytes() for path in (tmp_path / "run").iterdir())
    assert secret.encode() not in everything
    assert other.encode() not in everything
