"""`karenina show` where agents worked: what they did, what judges looked at, and the files that were kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from karenina_generation.tool_answers import agent_metrics
from karenina_runs.workspaces.workspace_capture import CaptureRow, append_row
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.convert import unstructure
from karenina_core.values.message import Message, TextBlock, ToolUseBlock, trace_dicts
from karenina_core.values.result import GenerationPart, MetadataPart

Run = Callable[..., Result]
WORK = [
    Message("assistant", [TextBlock("Let me look."), ToolUseBlock("call_1", "read_file", {"path": "sales.csv"})]),
    Message.tool_result("call_1", "error: there is no such file", is_error=True),
]


def result_of(**parts: Any) -> VerificationResult:
    metadata = MetadataPart(
        question_id="q",
        template_id="t",
        result_id="r1",
        question_text="What do the sales add up to?",
        answering=ModelIdentity("openai_endpoint", "worker"),
        parsing=ModelIdentity("openai_endpoint", "judge"),
    )
    return VerificationResult(metadata=metadata, **parts)


@pytest.fixture
def shown(run: Run, tmp_path: Path) -> Callable[[VerificationResult], str]:
    def show(result: VerificationResult) -> str:
        (tmp_path / "results.jsonl").write_text(json.dumps(unstructure(result)) + "\n", "utf-8")
        ran = run("show", str(tmp_path), "q")
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    return show


def test_the_work_of_a_model_that_gave_no_answer_is_shown(shown: Callable[[VerificationResult], str]) -> None:
    metrics = agent_metrics(WORK, limit="tool_calls")
    printed = shown(result_of(generation=GenerationPart(trace_messages=trace_dicts(WORK), agent_metrics=metrics)))
    assert "(none; the work until then:)" in printed
    assert "Let me look." in printed
    assert '\n    calls read_file: {"path": "sales.csv"}\n' in printed
    assert "\n    tool failed: error: there is no such file\n" in printed
    assert "calls of tools" in printed
    assert "1 (read_file 1)" in printed
    assert "1 answer of tools (read_file)" in printed
    assert printed.index("ended by its limit of") < printed.index("tool_calls")


def test_a_model_that_did_nothing_has_no_work(shown: Callable[[VerificationResult], str]) -> None:
    printed = shown(result_of())
    assert "  (none)\n" in printed
    for absent in ("until then", "Work of", "Investigation", "Workspace"):
        assert absent not in printed


def test_investigations_are_shown_and_equal_ones_once(shown: Callable[[VerificationResult], str]) -> None:
    rubric = RubricPart(agentic_trait_investigation_traces={"neat": "It is neat.", "new": "It is neat.", "odd": ""})
    template = TemplatePart(investigation_trace="The sum is in out/total.txt.")
    printed = shown(result_of(rubric=rubric, template=template))
    assert "Investigation of the fields\n  The sum is in out/total.txt.\n" in printed
    assert "Investigation of the traits neat, new\n  It is neat.\n" in printed
    assert printed.count("It is neat.") == 1
    assert "Investigation of the trait odd\n  (there is no record of it)\n" in printed


def test_a_long_investigation_is_cut_in_its_middle_and_says_how_to_see_all(
    shown: Callable[[VerificationResult], str], run: Run, tmp_path: Path
) -> None:
    trace = "\n".join([*(f"line {number}" for number in range(100)), "x" * 700, "The finding."])
    printed = shown(result_of(rubric=RubricPart(agentic_trait_investigation_traces={"neat": trace})))
    assert "  line 0\n" in printed
    assert "  The finding.\n" in printed
    assert "line 50\n" not in printed
    assert "62 lines left out; --json prints all of it" in printed
    assert f"{'x' * 500}… (200 more characters)" in printed
    document = json.loads(run("show", str(tmp_path), "q", "--json").stdout)
    assert document["rubric"]["agentic_trait_investigation_traces"]["neat"] == trace


def test_a_tool_cannot_command_the_terminal(shown: Callable[[VerificationResult], str]) -> None:
    template = TemplatePart(investigation_trace="\x1b[2J\u202egone")
    printed = shown(result_of(template=template, generation=GenerationPart(agent_metrics={"limit": "\x1b[2J"})))
    assert "\x1b" not in printed
    assert "\u202e" not in printed


def row(**facts: Any) -> CaptureRow:
    usual = {"question_id": "q", "run_name": "r", "replicate": 1, "answering": "a", "parsing": "p"}
    return CaptureRow(**{"capture_mode": "full", "result_id": "r1", **usual, **facts})


def test_the_kept_workspace_is_named(shown: Callable[[VerificationResult], str], tmp_path: Path) -> None:
    folder = tmp_path / "workspaces"
    append_row(folder, row(result_id="another", destination="another", copied_file_count=9))
    append_row(folder, row(destination="q__r1", copied_file_count=1, copy_errors=("huge.bin is too large",)))
    with (folder / "manifest.jsonl").open("a") as file:
        file.write('{"result_id": "r1", "desti')  # the run was killed
    printed = shown(result_of())
    assert f"Workspace: {folder / 'q__r1'} (1 file)\n  not kept: huge.bin is too large\n" in printed
    assert "another" not in printed
    (folder / "manifest.jsonl").unlink()
    append_row(folder, row(status="skipped", skip_reason="it holds more than 5 bytes"))
    assert "Workspace: not kept: it holds more than 5 bytes" in shown(result_of())


SAID = Message("assistant", [TextBlock("They add up to 7.")])


def test_the_trace_of_an_agent_that_answered_follows_the_answer(shown: Callable[[VerificationResult], str]) -> None:
    rows = trace_dicts([*WORK, SAID])
    generation = GenerationPart(raw_llm_response="a trace as text", trace_messages=rows)
    printed = shown(result_of(generation=generation, evaluation_input="They add up to 7."))
    assert "Answer of openai_endpoint:worker, replicate 1, as read by the judge\n  They add up to 7.\n" in printed
    trace = printed.partition("Trace (3 messages)\n")[2]
    assert trace.startswith(
        '  assistant\n    Let me look.\n    calls read_file: {"path": "sales.csv"}\n'
        "  tool\n    tool failed: error: there is no such file\n  assistant\n    They add up to 7.\n"
    )
    assert "a trace as text" not in printed


def test_an_answer_that_is_all_there_is_has_no_trace(shown: Callable[[VerificationResult], str]) -> None:
    generation = GenerationPart(
        raw_llm_response="They add up to 7.\n",
        trace_messages=trace_dicts([SAID]),
        conversation_context=[Message.user("What do the sales add up to?").to_dict()],
    )
    printed = shown(result_of(generation=generation, evaluation_input="They add up to 7."))
    assert "Trace" not in printed
    assert "The whole reply" not in printed
    assert "Sent to the model" not in printed
    assert "as read by the judge" not in printed


def test_a_reply_without_messages_is_shown_beside_what_the_judge_read(
    shown: Callable[[VerificationResult], str],
) -> None:
    printed = shown(result_of(generation=GenerationPart(raw_llm_response="Well. Seven."), evaluation_input="Seven."))
    assert "The whole reply\n  Well. Seven.\n" in printed


def test_examples_in_the_prompt_are_shown(shown: Callable[[VerificationResult], str]) -> None:
    sent = [Message.system("Be brief."), Message.user("1 + 1?"), Message.assistant("2"), Message.user("2 + 2?")]
    generation = GenerationPart(raw_llm_response="4", conversation_context=[message.to_dict() for message in sent])
    printed = shown(result_of(generation=generation))
    assert "Sent to the model (4 messages)\n  system\n    Be brief.\n  user\n    1 + 1?\n" in printed


@pytest.mark.parametrize("odd", [{}, {"role": None, "content": 7}, {"content": [3, {"type": "image"}]}])
def test_messages_of_other_tools_are_shown_as_they_are(
    odd: dict[str, Any], shown: Callable[[VerificationResult], str]
) -> None:
    printed = shown(result_of(generation=GenerationPart(raw_llm_response="4", trace_messages=[odd])))
    assert "Trace (1 message)" in printed


def test_a_message_cannot_pass_for_another_one(shown: Callable[[VerificationResult], str]) -> None:
    rows = trace_dicts([Message("assistant", [TextBlock("Done.\ntool\n  all is well\n\nOutcome: passed")]), SAID])
    printed = shown(result_of(generation=GenerationPart(raw_llm_response="x", trace_messages=rows)))
    assert "\n  tool\n" not in printed
    assert printed.count("\nOutcome: ") == 1
