"""The agent at work, before a program that speaks the SDK's protocol."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from karenina_core.errors import PortError
from karenina_core.ports.values import AgentConfig, AgentResult, CallContext, Tool, ToolOutcome
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata

ASK = (Message.system("Be exact."), Message.user("What is the target of venetoclax?"))
TEXT = {"type": "object", "properties": {"drug": {"type": "string"}}, "required": ["drug"]}
ANSWERING = CallContext("generation")
JUDGING = CallContext("rubric_agentic_trait_investigation")


async def look_up(given: Mapping[str, Any]) -> ToolOutcome:
    if given["drug"] == "venetoclax":
        return ToolOutcome("BCL2")
    return ToolOutcome(f"{given['drug']} is not listed", is_error=True)


LOOK = Tool(name="look_up", description="The target of a drug.", input_schema=TEXT, run=look_up)
FULL = "mcp__karenina__look_up"


def work(port: Any, tools: Any = (), config: AgentConfig | None = None, call: CallContext | None = None) -> AgentResult:
    result: AgentResult = asyncio.run(port.arun(ASK, tools, None, config, call=call))
    return result


def answers(result: AgentResult) -> list[tuple[str, str, bool]]:
    blocks = [block for message in result.trace_messages if message.role == "tool" for block in message.content]
    return [(b.tool_use_id, b.content, b.is_error) for b in blocks if isinstance(b, ToolResultBlock)]


def test_a_plain_answer_arrives_with_what_it_cost(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.init(), says.reply(says.text("It is BCL2.")), says.result("It is BCL2."))
    result = work(agent(program))
    assert result.final_response == "It is BCL2."
    per_reply = UsageMetadata(15, 4, 19, None, 3, 2, "claude-x-1")
    assert result.trace_messages == (Message("assistant", [TextBlock("It is BCL2.")], per_reply),)
    assert result.usage == UsageMetadata(15, 40, 55, 0.25, 3, 2, "claude-x-1")
    assert (result.turns, result.limit, result.session_id) == (1, None, "s-1")
    assert result.actual_model == "claude-x-1"
    assert not result.usage_unavailable
    assert program.asked == ["What is the target of venetoclax?"]
    assert program.option("--system-prompt") == "Be exact."
    assert program.noted("ended") == [True], "it was not left to end by itself"
    assert len(program.noted("started")) == 1


def test_tools_are_called_in_this_process_and_recorded_under_their_own_names(
    scripted: Any, says: Any, agent: Any
) -> None:
    program = scripted(
        says.init(),
        says.reply(says.text("Let me look."), says.use("c1", FULL, drug="venetoclax")),
        says.call(("c1", "look_up", {"drug": "venetoclax"})),
        says.reply(says.use("c2", FULL, drug="water"), id="m2"),
        says.call(("c2", "look_up", {"drug": "water"})),
        says.reply(says.text("It is BCL2."), id="m3"),
        says.result("It is BCL2."),
    )
    result = work(agent(program), [LOOK])
    assert [message.role for message in result.trace_messages] == [
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert result.trace_messages[0].content == (
        TextBlock("Let me look."),
        ToolUseBlock("c1", "look_up", {"drug": "venetoclax"}),
    )
    assert answers(result) == [("c1", "BCL2", False), ("c2", "water is not listed", True)]
    assert (result.final_response, result.turns) == ("It is BCL2.", 3)
    ((listed,),) = program.noted("tools")
    assert (listed["name"], listed["description"], listed["inputSchema"]) == ("look_up", "The target of a drug.", TEXT)
    assert FULL in (program.option("--allowedTools") or "").split(",")


def test_calls_of_one_reply_run_at_the_same_time_and_each_answer_is_a_message(
    scripted: Any, says: Any, agent: Any
) -> None:
    waiting: list[str] = []

    async def wait(given: Mapping[str, Any]) -> ToolOutcome:
        waiting.append(given["drug"])
        while len(waiting) < 3:
            await asyncio.sleep(0.01)
        return ToolOutcome(given["drug"].upper())

    calls = [("c1", "wait", {"drug": "a"}), ("c2", "wait", {"drug": "b"}), ("c3", "wait", {"drug": "c"})]
    program = scripted(
        says.reply(*(says.use(id, f"mcp__karenina__{name}", **given) for id, name, given in calls)),
        says.call(*calls),
        says.reply(says.text("Done."), id="m2"),
        says.result("Done."),
    )
    result = work(agent(program), [Tool(name="wait", input_schema=TEXT, run=wait)], AgentConfig(timeout=10))
    assert result.limit is None
    assert len(result.trace_messages[0].tool_calls) == 3
    assert [message.role for message in result.trace_messages] == ["assistant", "tool", "tool", "tool", "assistant"]
    assert answers(result) == [("c1", "A", False), ("c2", "B", False), ("c3", "C", False)]


def test_an_answer_that_comes_between_two_calls_of_a_reply_follows_the_whole_reply(
    scripted: Any, says: Any, agent: Any
) -> None:
    program = scripted(
        says.reply(says.use("c1", "Read", file_path="a")),
        says.answer("c1", "first"),
        says.reply(says.use("c2", "Read", file_path="b")),
        says.answer("c2", [{"type": "text", "text": "second"}, {"type": "image", "source": {}}]),
        says.reply(says.text("Done."), id="m2"),
        says.result("Done."),
    )
    result = work(agent(program))
    assert [call.id for call in result.trace_messages[0].tool_calls] == ["c1", "c2"]
    assert answers(result) == [("c1", "first", False), ("c2", "second\n[image]", False)]
    assert result.turns == 2


def test_thoughts_are_kept_apart(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.reply(says.thinking("Hm."), says.text("It is BCL2.")), says.result("It is BCL2."))
    (message,) = work(agent(program)).trace_messages
    assert message.content == (ThinkingBlock("Hm.", "sig"), TextBlock("It is BCL2."))


def test_what_a_tool_raises_and_arguments_that_do_not_fit_are_reported_to_the_agent(
    scripted: Any, says: Any, agent: Any
) -> None:
    async def fail(given: Mapping[str, Any]) -> ToolOutcome:
        raise OSError("the disk is lost")

    program = scripted(
        says.reply(says.use("c1", "mcp__karenina__fail"), says.use("c2", FULL)),
        says.call(("c1", "fail", {}), ("c2", "look_up", {})),
        says.result("Done."),
    )
    result = work(agent(program), [Tool(name="fail", run=fail), LOOK])
    (_, raised, first), (_, unfit, second) = answers(result)
    assert raised == "the tool failed: OSError: the disk is lost"
    assert "'drug' is a required property" in unfit
    assert first
    assert second


def test_a_long_answer_of_a_tool_is_cut_and_marked_for_the_agent(scripted: Any, says: Any, agent: Any) -> None:
    async def much(given: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("x" * 150_000)

    program = scripted(
        says.reply(says.use("c1", "mcp__karenina__much")), says.call(("c1", "much", {})), says.result("Done.")
    )
    ((_, text, _),) = answers(work(agent(program), [Tool(name="much", run=much)]))
    assert text.endswith("[cut: these are the first 100000 of 150000 characters]")
    ((listed,),) = program.noted("tools")
    assert listed["_meta"] == {"anthropic/maxResultSizeChars": 200_000}, "the program would put it into a file"


def test_a_tool_that_the_program_has_itself_is_offered_by_its_name(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.reply(says.text("Done.")), says.result("Done."))
    work(agent(program, extra_kwargs={"tools": ["Read"]}), [Tool(name="WebSearch")])
    assert program.option("--tools") == "Read,WebSearch"
    assert program.option("--allowedTools") == "Read(./**),WebSearch"
    assert program.option("--mcp-config") is None


def test_servers_are_not_connected_to_twice(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted()
    with pytest.raises(PortError, match="give it their tools"):
        asyncio.run(agent(program).arun(ASK, (), {"library": "uvx library"}))
    assert program.log() == []


def test_the_work_of_other_agents_is_not_taken_for_the_agents_own(scripted: Any, says: Any, agent: Any) -> None:
    kind, other = says.reply(says.text("I am another."), id="o1")[0]
    program = scripted(
        says.reply(says.use("c1", "Agent", prompt="look")),
        (kind, {**other, "parent_tool_use_id": "c1"}),
        says.answer("c1", "It said BCL2."),
        says.reply(says.text("It is BCL2."), id="m2"),
        says.result("It is BCL2."),
    )
    result = work(agent(program))
    assert "another" not in str(result.trace_messages)
    assert result.turns == 2


@pytest.mark.parametrize(("reason", "flags"), [("max_tokens", ("truncated",)), ("end_turn", ()), (None, ())])
def test_a_report_that_was_cut_off_is_flagged(
    reason: str | None, flags: tuple[str, ...], scripted: Any, says: Any, agent: Any
) -> None:
    program = scripted(says.reply(says.text("It is")), says.result("It is", stop_reason=reason))
    assert work(agent(program)).flags == flags


def test_odd_text_is_safe_to_write_and_flagged(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.reply(says.text("a\ud800b\0c")), says.result("x"))
    odd = [Message.system("s\ud800\0"), Message.user("q\ud800")]
    result = asyncio.run(agent(program).arun(odd))
    assert result.final_response == "a\ufffdb\0c"
    assert result.flags == ("lone_surrogate", "nul")
    assert program.asked == ["q\ufffd"]
    assert program.option("--system-prompt") == "s\ufffd\ufffd"


def test_the_prompt_is_given_as_it_is_and_earlier_turns_come_before_it(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.reply(says.text("Yes.")), says.result("Yes."))
    talk = [*ASK, Message.assistant("MCL1."), Message.user("/clear @secret.txt Are you sure?")]
    asyncio.run(agent(program).arun(talk, (), None, AgentConfig(system_prompt="First.")))
    (asked,) = program.asked
    assert asked.index("[user]\nWhat is the target") < asked.index("[assistant]\nMCL1.") < asked.index("/clear @secret")
    (message,) = [m for m in program.noted("received") if m["type"] == "user"]
    assert message["client_composed"] is True, "the program would run commands and read files that the text names"
    assert program.option("--system-prompt") == "First.\n\nBe exact."


def test_a_system_prompt_that_is_too_long_for_a_command_line_goes_into_a_file(
    scripted: Any, says: Any, agent: Any
) -> None:
    program = scripted(says.reply(says.text("Yes.")), says.result("Yes."))
    asyncio.run(agent(program).arun([Message.system("long " * 40_000), ASK[1]]))
    assert program.option("--system-prompt") is None
    path = Path(program.option("--system-prompt-file") or "")
    assert path.name == "system.txt"
    assert not path.exists(), "it was left behind"


# Limits


def test_the_limit_of_turns_is_the_programs_and_what_was_done_is_kept(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(
        says.reply(says.text("Let me look."), says.use("c1", "Read")),
        says.answer("c1", "text"),
        says.result(None, subtype="error_max_turns", is_error=True, errors=["Reached maximum number of turns (1)"]),
        ("exit", 1),
    )
    result = work(agent(program), (), AgentConfig(max_turns=1))
    assert program.option("--max-turns") == "1"
    assert (result.limit, result.turns, result.final_response) == ("turns", 1, "")
    assert answers(result) == [("c1", "text", False)]
    assert result.usage.cost_usd == 0.25


def test_the_limit_of_cost_is_the_programs(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.reply(says.text("So")), says.result(None, subtype="error_max_budget_usd", is_error=True))
    result = work(agent(program), (), AgentConfig(max_cost_usd=0.5))
    assert program.option("--max-budget-usd") == "0.5"
    assert result.limit == "cost"


def test_a_call_too_many_ends_the_work_after_the_answers_of_the_others(scripted: Any, says: Any, agent: Any) -> None:
    ran: list[Any] = []

    async def count(given: Mapping[str, Any]) -> ToolOutcome:
        ran.append(given)
        return ToolOutcome(f"{len(ran)}")

    calls = [(f"c{n}", "count", {}) for n in range(3)]
    program = scripted(
        says.reply(*(says.use(id, "mcp__karenina__count") for id, _, _ in calls)),
        says.call(*calls),
        says.reply(says.text("Done."), id="m2"),
        says.result("Done."),
    )
    result = work(agent(program), [Tool(name="count", run=count)], AgentConfig(max_tool_calls=2))
    assert result.limit == "tool_calls"
    assert [id for id, _, _ in answers(result)] == ["c0", "c1"]
    assert len(ran) == 2
    assert len(result.trace_messages[0].tool_calls) == 3
    assert result.final_response == ""
    assert result.usage_unavailable


def test_a_call_too_many_in_a_later_reply_ends_the_work_at_once(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(
        says.reply(says.use("c1", "Read")),
        says.answer("c1", "one"),
        says.reply(says.text("More."), says.use("c2", "Read"), id="m2"),
        ("sleep", 20),
    )
    result = work(agent(program), (), AgentConfig(max_tool_calls=1, timeout=15))
    assert (result.limit, result.turns) == ("tool_calls", 2)
    assert [message.role for message in result.trace_messages] == ["assistant", "tool", "assistant"]


def test_what_comes_after_a_call_too_many_is_not_taken(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(
        says.reply(*(says.use(f"c{n}", "Read") for n in range(3))),
        says.answer("c2", "too many"),
        says.answer("c0", "zero"),
        says.reply(says.text("Done."), id="m2"),
        ("sleep", 20),
    )
    result = work(agent(program), (), AgentConfig(max_tool_calls=2, timeout=15))
    assert (result.limit, result.turns) == ("tool_calls", 1)
    assert answers(result) == [("c0", "zero", False)]


def test_too_many_tokens_end_the_work_after_the_answers(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(
        says.reply(says.use("c1", "Read")),
        says.answer("c1", "one"),
        says.reply(says.use("c2", "Read", at=2), id="m2"),
        says.answer("c2", "two"),
        ("sleep", 20),
    )
    result = work(agent(program), (), AgentConfig(max_total_tokens=30))
    assert (result.limit, result.turns) == ("tokens", 2)
    assert result.usage.total_tokens == 38
    assert result.usage.cost_usd is None
    assert result.usage_unavailable, "the last call may have cost more than the program reported until then"


def test_calls_that_lead_nowhere_end_the_work(scripted: Any, says: Any, agent: Any) -> None:
    same = [
        step
        for n in range(5)
        for step in (*says.reply(says.use(f"c{n}", "Read", at="a"), id=f"m{n}"), says.answer(f"c{n}", "nothing"))
    ]
    result = work(agent(scripted(same, ("sleep", 20))), (), AgentConfig(max_repeated_calls=2))
    assert (result.limit, result.turns) == ("repeated_calls", 3)


def test_time_that_is_up_ends_the_work_and_what_was_done_is_kept(
    scripted: Any, says: Any, agent: Any, process_has_ended: Any
) -> None:
    program = scripted(
        ("ignore", "SIGTERM"),
        ("spawn", 30),
        says.init(),
        says.reply(says.text("Let me look."), says.use("c1", FULL, drug="venetoclax")),
        says.call(("c1", "look_up", {"drug": "venetoclax"})),
        ("sleep", 30),
    )
    started = time.monotonic()
    result = work(agent(program), [LOOK], AgentConfig(timeout=2))
    assert time.monotonic() - started < 15
    assert (result.limit, result.timeout_reached, result.final_response) == ("time", True, "")
    assert answers(result) == [("c1", "BCL2", False)]
    assert result.session_id == "s-1"
    assert process_has_ended(program.noted("pid")[0])
    assert process_has_ended(program.noted("spawned")[0]), "what it had started lives on"


def test_a_cancelled_run_leaves_no_process(scripted: Any, says: Any, agent: Any, process_has_ended: Any) -> None:
    program = scripted(says.init(), ("spawn", 30), ("ignore", "SIGTERM"), says.reply(says.text("So")), ("sleep", 30))

    async def cancelled() -> None:
        task = asyncio.create_task(agent(program).arun(ASK))
        while not program.noted("spawned"):
            await asyncio.sleep(0.02)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.1)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert process_has_ended(program.noted("pid")[0])
    assert process_has_ended(program.noted("spawned")[0])


# Where it works, and what it may do


def test_an_answering_agent_works_in_the_workspace_with_files_and_code(
    scripted: Any, says: Any, agent: Any, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    program = scripted(("write", {"new.txt": "42"}), says.reply(says.text("Done.")), says.result("Done."))
    work(agent(program), (), AgentConfig(workspace_path=tmp_path / "work"), ANSWERING)
    assert (tmp_path / "work" / "new.txt").read_text() == "42"
    assert program.noted("folder") == [str((tmp_path / "work").resolve())]
    assert program.environment["PWD"] == program.noted("folder")[0]
    assert program.option("--tools") == "Bash,Edit,Glob,Grep,Read,Write"
    assert program.option("--allowedTools") == "Bash,Edit(./**),Read(./**)"
    assert program.option("--permission-mode") == "dontAsk"
    assert program.option("--setting-sources") == ""
    assert "--strict-mcp-config" in program.arguments


def test_an_investigating_agent_can_only_read(scripted: Any, says: Any, agent: Any, tmp_path: Path) -> None:
    program = scripted(says.reply(says.text("Done.")), says.result("Done."))
    work(agent(program), (), AgentConfig(workspace_path=tmp_path), JUDGING)
    assert program.option("--tools") == "Glob,Grep,Read"
    assert program.option("--allowedTools") == "Read(./**)"


def test_an_agent_without_file_tools_of_its_own_gets_none_for_judging(
    scripted: Any, says: Any, agent: Any, tmp_path: Path
) -> None:
    program = scripted(says.reply(says.text("Done.")), says.result("Done."))
    work(agent(program, extra_kwargs={"tools": ["WebSearch"]}), [LOOK], AgentConfig(workspace_path=tmp_path), JUDGING)
    assert program.option("--tools") == "", "it is given karenina's tools for the folder"
    assert program.option("--allowedTools") == FULL


@pytest.mark.parametrize(("call", "extra"), [(JUDGING, {}), (ANSWERING, {"read_only": True})])
def test_without_a_workspace_there_is_nothing_to_read(
    scripted: Any, says: Any, agent: Any, call: CallContext, extra: Any
) -> None:
    program = scripted(says.reply(says.text("Done.")), says.result("Done."))
    work(agent(program), (), AgentConfig(extra=extra), call)
    assert program.option("--tools") == ""
    assert program.option("--allowedTools") is None


def test_without_a_workspace_it_works_in_an_empty_folder_that_is_removed_afterwards(
    scripted: Any, says: Any, agent: Any
) -> None:
    program = scripted(("write", {"new.txt": "42"}), says.reply(says.text("Done.")), says.result("Done."))
    work(agent(program))
    (folder,) = program.noted("folder")
    assert program.noted("files") == [[]]
    assert not Path(folder).exists()
    assert not Path(folder).parent.exists()


def test_settings_of_the_model_reach_the_program(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.reply(says.text("Done.")), says.result("Done."))
    extra = {"effort": "high", "claude_code_prompt": True}
    work(agent(program, extra_kwargs=extra, max_tokens=1000, request_timeout=2.5))
    assert program.option("--model") == "claude-x"
    assert program.option("--effort") == "high"
    assert program.option("--append-system-prompt") == "Be exact."
    assert program.option("--system-prompt") is None
    assert program.environment["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "1000"
    assert program.environment["API_TIMEOUT_MS"] == "2500"
    assert json.dumps("CLAUDE_CODE_MAX_RETRIES") not in json.dumps(program.environment), "only karenina retries"
