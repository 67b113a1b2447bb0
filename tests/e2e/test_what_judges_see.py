"""What investigating agents are shown and can reach: read off what the model's server received."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from karenina_core import AgenticRubricTrait, Karenina, ModelConfig, VerificationResult, hookimpl
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.ports.values import AgentConfig, AgentResult, LLMResponse, PortCapabilities, Tool
from karenina_core.testing import ScriptedServer, ServedRequest, application

TRACE_FILE = ".karenina/traces/trace_q0.txt"
TRACE_WORDS = "I added the amounts."
"""Stands in the trace of the answer, in no prompt otherwise."""
MODES = {
    "blind": ("workspace_only", False),
    "both": ("trace_and_workspace", False),
    "both-filed": ("trace_and_workspace", True),
    "trace": ("trace_only", False),
    "trace-filed": ("trace_only", True),
}
NOWHERE: frozenset[str] = frozenset()
SHOWN: Mapping[str, tuple[str, bool, bool, frozenset[str]]] = {
    # trace: in the prompt, as a file, or not at all; whether the workspace is named; what read_file gives
    "blind": ("none", True, True, frozenset({"data/sales.csv", "out/total.txt"})),
    "both": ("inline", True, True, frozenset({"data/sales.csv", "out/total.txt"})),
    "both-filed": ("file", True, True, frozenset({"data/sales.csv", "out/total.txt", TRACE_FILE})),
    "trace": ("inline", False, False, NOWHERE),
    "trace-filed": ("file", False, True, frozenset({TRACE_FILE})),
}
REACHED_FOR = ("data/sales.csv", "out/total.txt", TRACE_FILE, "../shop/data/sales.csv", "/etc/hostname", "./../..")


@pytest.fixture(scope="module")
def app() -> Karenina:
    return application(installed=True)


def reaching(office: Any) -> Callable[[ServedRequest], Any]:
    """A judge that reaches for everything with the tools that it has."""

    def looks(request: ServedRequest) -> Any:
        if not office.offered(request) or office.turn_of(request):
            return "I have seen enough."
        reads = [("read_file", {"path": path}) for path in REACHED_FOR]
        return office.calling(0, ("list_files", {"recursive": True}), ("search_files", {"text": "o"}), *reads)

    return looks


@define(eq=False)
class Seen:
    """The conversation of one investigation, as the server received it."""

    prompt: str
    tools: Sequence[str]
    listed: str = ""
    found: str = ""
    read: Mapping[str, str] = field(factory=dict)


def seen_by(requests: Sequence[ServedRequest], office: Any) -> dict[str, Seen]:
    """By trait, which is named in the system prompt."""
    found: dict[str, Seen] = {}
    for request in requests:
        if request.model != "judge" or request.schema is not None:
            continue
        (name,) = (name for name in MODES if f"Whether it is {name}." in request.text)
        if office.turn_of(request) == 0:
            found[name] = Seen(request.text, office.offered(request))
        else:
            found[name].listed, found[name].found, *rest = office.told(request)
            found[name].read = dict(zip(REACHED_FOR, rest, strict=True))
    return found


@pytest.fixture(scope="module")
def seen(office: Any, app: Karenina, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Seen]:
    """One run with a trait of every mode."""
    place = office.make_place(tmp_path_factory.mktemp("modes"))
    traits = [
        AgenticRubricTrait(
            name=name,
            kind="boolean",
            description=f"Whether it is {name}.",
            context_mode=mode,  # type: ignore[arg-type]  # those of the table
            materialize_trace=filed,
        )
        for name, (mode, filed) in MODES.items()
    ]
    with ScriptedServer(office.Office(looks=reaching(office), scores=office.approves)) as server:
        config = office.configured(server.url)
        (result,) = office.benchmark(*traits, root=place.root).run_verification(config, app=app)
        assert dict(result.rubric.agentic_trait_scores) == dict.fromkeys(MODES, True)
        assert place.clean()
        return seen_by(server.requests, office)


@pytest.mark.parametrize("name", MODES)
def test_an_agent_is_shown_and_can_reach_exactly_what_its_context_mode_says(
    name: str, seen: Mapping[str, Seen], office: Any
) -> None:
    trace, named, has_tools, readable = SHOWN[name]
    mine = seen[name]
    assert office.ASKED in mine.prompt
    assert (TRACE_WORDS in mine.prompt) == (trace == "inline")
    assert (f"trace is saved to: {TRACE_FILE}" in mine.prompt) == (trace == "file")
    assert ("Workspace directory: ." in mine.prompt) == named
    assert list(mine.tools) == (["list_files", "read_file", "search_files"] if has_tools else [])
    given = {path for path, text in mine.read.items() if "store,amount" in text or text.startswith(("42", "--- AI"))}
    assert given == readable
    assert (TRACE_WORDS in mine.read.get(TRACE_FILE, "")) == (trace == "file")


def test_an_agent_of_a_trace_alone_finds_no_file_of_the_workspace(seen: Mapping[str, Seen]) -> None:
    mine = seen["trace-filed"]
    paths = [line.split(" (")[0] for line in mine.listed.splitlines()]
    assert paths == [".karenina/", ".karenina/traces/", TRACE_FILE]
    assert all(line.startswith(f"{TRACE_FILE}:") for line in mine.found.splitlines())
    assert all("Lyon,30" not in text for path, text in mine.read.items() if path != TRACE_FILE)


def test_an_agent_that_was_not_given_the_trace_finds_none(seen: Mapping[str, Seen]) -> None:
    for name in ("blind", "both"):
        assert ".karenina" not in seen[name].listed
        assert ".karenina" not in seen[name].found
        assert TRACE_WORDS not in seen[name].listed + seen[name].read[TRACE_FILE]


# Judges and each other


NAMES = ("first", "second")


@define(eq=False)
class Vandal:
    """An agent with file tools of its own: it reports what it finds, and ruins it."""

    config: ModelConfig
    capabilities = PortCapabilities(supports_tools=True, supports_file_tools=True, needs_provider=False)

    async def arun(
        self,
        messages: Any,
        tools: Sequence[Tool] = (),
        mcp_servers: Any = None,
        config: AgentConfig | None = None,
        *,
        call: Any = None,
    ) -> AgentResult:
        assert config is not None
        folder = config.workspace_path
        assert folder is not None
        found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (folder / "ruined.txt").write_text(self.config.name)
        report = json.dumps({"total": found.get("out/total.txt", "").strip(), "files": sorted(found)})
        return AgentResult(final_response=report, raw_trace=report, turns=1)

    async def ainvoke(self, messages: Any, *, output: Any = None, **_: Any) -> LLMResponse:
        text = messages[-1].text
        data = {"result": "ruined" not in text and "out/total.txt" in text}
        wanted = output.schema["properties"] if output else {}
        return LLMResponse(content=json.dumps({"total": "42 EUR"} if "total" in wanted else data))

    async def aclose(self) -> None: ...


class Vandals:
    @hookimpl
    def karenina_register_adapters(self, registry: Any) -> None:
        registry.register(
            AdapterSpec(interface="vandal", llm_factory=Vandal, agent_factory=Vandal, agent_tier="deep_agent")
        )


@pytest.fixture(scope="module")
def vandals() -> Karenina:
    return application(Vandals(), installed=True)


@pytest.mark.parametrize("parallel", [False, True])
def test_every_investigation_of_every_judge_sees_the_folder_as_the_answer_left_it(
    parallel: bool, office: Any, place: Any, vandals: Karenina, tmp_path: Path
) -> None:
    traits = [AgenticRubricTrait(name=name, kind="boolean", description=f"Is it {name}?") for name in NAMES]
    judges = [ModelConfig(model_name=name, interface="vandal", max_retries=0) for name in ("j1", "j2")]
    with ScriptedServer(office.Office()) as server:
        config = office.configured(
            server.url,
            parsing_models=judges,
            features=["agentic_parsing"],
            workspace_output_mode="full",
            agentic_rubric_parallel=parallel,
            rubric_concurrency=4,
        )
        chosen = office.benchmark(*traits, root=place.root)
        results = list(chosen.run_verification(config, run_dir=tmp_path / "run", app=vandals))
        assert {request.model for request in server.requests} == {"answerer"}
    assert len(results) == 2
    there = ["data/sales.csv", "out/notes.md", "out/total.txt"]
    for result in results:
        check_unspoiled(result, there)
    rows = map(json.loads, (tmp_path / "run" / "workspaces" / "manifest.jsonl").read_text().splitlines())
    for row in rows:
        assert sorted(office.files(tmp_path / "run" / "workspaces" / row["destination"])) == there
    assert place.clean()


def check_unspoiled(result: VerificationResult, there: list[str]) -> None:
    assert str(result.outcome) == "passed"
    assert result.rubric is not None
    assert result.template is not None
    assert dict(result.rubric.agentic_trait_scores) == dict.fromkeys(NAMES, True)
    reports = [*result.rubric.agentic_trait_investigation_traces.values(), result.template.investigation_trace]
    assert [json.loads(report or "") for report in reports] == [{"total": "42 EUR", "files": there}] * 3
