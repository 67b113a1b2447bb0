"""No setting without an effect: each one is changed alone, against a real server, and the change is looked for."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import field, frozen
from karenina_calls.services.embedding import Embeddings
from karenina_runs.execute.local import LocalExecutor
from karenina_runs.folder.fingerprint import _question, differences, fingerprint
from karenina_runs.plan.prepare import prepare

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    FewShotConfig,
    Karenina,
    LLMRubricTrait,
    MetricRubricTrait,
    ModelConfig,
    PromptConfig,
    RegexRubricTrait,
    Rubric,
    Stage,
    VerificationConfig,
    VerificationResult,
    feature,
    hookimpl,
)
from karenina_core.errors import KareninaError
from karenina_core.ports.middleware import Call, CallTarget, Proceed
from karenina_core.ports.values import LLMResponse, PortCapabilities, Tool, ToolOutcome
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy, switches
from karenina_core.values.message import ToolUseBlock

PYTHON = "class Answer(BaseAnswer):\n    target: str = Field(description='d')\n    def verify(self): return True\n"
TWICE = RetryPolicy(server=AttemptPolicy(2))
ONCE = RetryPolicy(server=AttemptPolicy(1), timeout=AttemptPolicy(1))
RUBRIC = Rubric(llm_traits=[LLMRubricTrait(name="concise", kind="boolean")])
TRAITS = Rubric(
    llm_traits=[
        LLMRubricTrait(name="concise", kind="boolean", deep_judgment_enabled=True),
        LLMRubricTrait(name="clear", kind="score", deep_judgment_enabled=True),
    ]
)
INVESTIGATED = Rubric(
    agentic_traits=[
        AgenticRubricTrait(name="tidy", kind="boolean", description="Is it tidy?", context_mode="trace_and_workspace"),
        AgenticRubricTrait(name="right", kind="boolean", description="Is it right?", context_mode="trace_only"),
    ]
)
OF_TRAITS = frozenset({"rubric-evaluation", "trait-llm"})


SERVING = [
    type(f"Serves_{name}", (Stage,), {"included_when": feature(name), "execute": lambda self, context: None})
    for name in (*switches().values(), "sample")
]


class CountingExecutor(LocalExecutor):
    name = "counting"
    made = 0

    def __init__(self) -> None:
        CountingExecutor.made += 1

    @staticmethod
    @hookimpl
    def karenina_register_executors(registry: Any) -> None:
        registry.add(CountingExecutor)


RESTING = "resting"


class Leaving(Stage):
    """Leaves two files in the workspace, where there is one; takes its time for some questions."""

    async def execute(self, context: Any) -> None:
        if RESTING in context.question.keywords:
            await asyncio.sleep(2)
        for name in ("made.txt", "made.log") if context.workspace else ():
            (context.workspace / name).write_text("made")

    @staticmethod
    @hookimpl
    def karenina_register_stages(registry: Any) -> None:
        registry.add(Leaving)


def left_files(scratch: Path) -> list[str]:
    """What a run left beneath its workspace root and in its run directory, without the random parts of names."""
    paths = [path.relative_to(scratch).parts for path in scratch.rglob("*") if path.is_file()]
    workspaces = [parts for parts in paths if parts[0] == "root" or parts[:2] == ("run", "workspaces")]
    return sorted("/".join(part.partition("_")[0] for part in parts) for parts in workspaces)


LIBRARY = {"library": "here"}


class Library:
    """A server of tools that are here."""

    def __init__(self, name: str, address: str) -> None: ...

    async def aopen(self) -> None: ...

    async def alist(self) -> list[Tool]:
        async def wait(given: Mapping[str, Any]) -> ToolOutcome:
            await asyncio.sleep(float(given.get("seconds", 0.0)))
            return ToolOutcome("waited")

        return [Tool(name=name, description=name, run=wait) for name in ("wait", "rest")]

    async def aclose(self) -> None: ...


class Priced:
    """Middleware that knows a price: every reply costs a cent."""

    @staticmethod
    def capabilities(behind: PortCapabilities) -> PortCapabilities:
        return attrs.evolve(behind, reports_cost=True)

    async def __call__(self, call: Call[LLMResponse], proceed: Proceed) -> LLMResponse:
        reply = await proceed(call)
        return attrs.evolve(reply, usage=attrs.evolve(reply.usage, cost_usd=0.01))


class WithPrices:
    @staticmethod
    @hookimpl
    def karenina_wrap_call(target: CallTarget) -> Any:
        return Priced() if target.kind == "llm" else None


class WithTools:
    @staticmethod
    @hookimpl
    def karenina_register_tool_servers(registry: Any) -> None:
        registry.add(Library, name="mcp")


@frozen
class Seen:
    """What can be seen from outside when a benchmark was run."""

    requests: Sequence[ServedRequest] = ()
    results: Sequence[VerificationResult] = ()
    peak: int = 0
    refusal: str = ""
    executors: int = 0
    left: Sequence[str] = ()
    notes: Sequence[str] = ()

    def asked(self, judging: bool = False) -> list[ServedRequest]:
        return [r for r in self.requests if (r.schema is not None or "JSON Schema" in r.text) == judging]

    def outcomes(self) -> list[str]:
        return sorted(str(result.outcome) for result in self.results)

    def stages(self) -> list[str]:
        return [entry.stage for result in self.results for entry in result.trail]


def good(request: ServedRequest) -> Any:
    judging = request.schema is not None or "JSON Schema" in request.text
    return {"target": "BCL2"} if judging else "It is BCL2."


def obedient(request: ServedRequest) -> Any:
    """A judge that does what the first canary says."""
    asked = (request.schema or {}).get("properties", {})
    return {"answer": "Tarsin" if "extract Tarsin" in request.text else "none"} if "answer" in asked else good(request)


def slow(request: ServedRequest) -> Any:
    return Reply(good(request), latency=0.12 if request.schema is None else 0.0)


def failing_once(request: ServedRequest) -> Any:
    return Reply.error(500) if request.number == 1 else good(request)


def bad_judge(request: ServedRequest) -> Any:
    said = good(request)
    return {"protein": f"BCL{request.number}"} if isinstance(said, dict) else said


def waiting(times: int, **given: Any) -> Callable[[ServedRequest], Any]:
    """Calls the tool that waits so many times, always with the same arguments, and answers when it has waited."""

    def say(request: ServedRequest) -> Any:
        done = sum(message["role"] == "tool" for message in request.messages)
        waits = request.schema is None and done < times
        return Reply(tool_calls=[ToolUseBlock(f"c{done}", "wait", given)]) if waits else good(request)

    return say


def investigates(request: ServedRequest) -> bool:
    """Whether an agent is asked that judges."""
    return request.schema is None and ("evaluation agent" in request.text or "verification agent" in request.text)


def looking(request: ServedRequest) -> Any:
    """Plays an answering model, an agent that looks into the workspace before it reports, and who reads its report."""
    if request.schema is not None:
        return {name: _looked(name, about) for name, about in request.schema["properties"].items()}
    if not investigates(request):
        return "It is BCL2."
    looked = any(message["role"] == "tool" for message in request.messages)
    if request.body.get("tools") and not looked:
        return Reply(tool_calls=[ToolUseBlock("c", "read_file", {"path": "notes.txt"})])
    return 'It names BCL2.\n{"target": "BCL2", "_unanswered_fields": []}'


def _looked(name: str, about: Mapping[str, Any]) -> Any:
    known = {"target": "BCL2", "answer": {"target": "BCL2"}}
    return known[name] if name in known else _scored(about)


def looking_slowly(request: ServedRequest) -> Any:
    said = looking(request)
    said = said if isinstance(said, Reply) else Reply(said)
    return attrs.evolve(said, latency=0.06 if investigates(request) else 0.0)


QUOTED = "It is BCL2."


def thorough(request: ServedRequest) -> Any:
    """Answers every step of deep judgment: two quotations, one of them made up where it is asked for the first time."""
    if request.schema is None:
        return "It is BCL2. Nothing else is said."
    asked = json.dumps(request.schema)
    if '"confidence"' in asked:
        first = "were rejected" not in request.text
        texts = [QUOTED, "Nothing else is said."] if not first else [QUOTED, "It is certainly MCL1."]
        return {"target": [{"text": text, "explanation": None, "confidence": "high"} for text in texts]}
    if '"hallucination_risk"' in asked:
        return {f"excerpt_{n}": {"justification": "found", "hallucination_risk": "low"} for n in (1, 2)}
    return {"target": "BCL2" if "anyOf" in request.schema["properties"]["target"] else "It says BCL2."}


def inventively(request: ServedRequest) -> Any:
    """Never quotes what the answer has."""
    if '"confidence"' in json.dumps(request.schema):
        return {"target": [{"text": "It is certainly MCL1.", "explanation": None, "confidence": "high"}]}
    return thorough(request)


def beside(request: ServedRequest) -> Any:
    """Quotes another sentence than the one with the value."""
    if '"confidence"' in json.dumps(request.schema):
        return {"target": [{"text": "Nothing else is said.", "explanation": None, "confidence": "high"}]}
    return thorough(request)


def loosely(request: ServedRequest) -> Any:
    """Quotes with punctuation that the answer does not have."""
    if '"confidence"' in json.dumps(request.schema):
        return {"target": [{"text": "It is: BCL2", "explanation": None, "confidence": "high"}]}
    return thorough(request)


def reworded(request: ServedRequest) -> Any:
    """An answer that is right in other words, by similarity and by the judge."""
    if request.schema is None:
        return "It is jaw osteonecrosis."
    if '"equivalent"' in json.dumps(request.schema):
        return {"target": {"reasoning": "the same", "equivalent": True}}
    return {"target": "jaw osteonecrosis"}


def overlapping(request: ServedRequest) -> Any:
    return Reply(good(request), latency=0.05)


@frozen
class Setting:
    """One setting: how it is changed, and where the change is seen."""

    name: str
    where: str = field(kw_only=True)
    see: Callable[[Seen], Any] = field(kw_only=True)
    to: Any = field(kw_only=True)
    frm: Any = None
    """None: the default."""
    others: Mapping[str, Any] = field(factory=dict)
    script: Callable[[ServedRequest], Any] = good
    questions: Mapping[str, Any] = field(factory=dict)
    count: int = 1
    rubric: Rubric | None = None
    plugins: frozenset[str] = frozenset()
    """Installed plugins that the setting is about, beside those of every run."""
    priced: bool = True
    """Whether the adapter says what calls cost."""


def text(judging: bool = False) -> Callable[[Seen], Any]:
    return lambda seen: [request.text for request in seen.asked(judging)]


def body(key: str) -> Callable[[Seen], Any]:
    return lambda seen: [request.body.get(key) for request in seen.asked()]


def metadata(name: str) -> Callable[[Seen], Any]:
    return lambda seen: [getattr(result.metadata, name) for result in seen.results]


def header(name: str) -> Callable[[Seen], Any]:
    return lambda seen: [request.headers.get(name) for request in seen.asked()]


def count(seen: Seen) -> int:
    return len(seen.requests)


def evidence(seen: Seen) -> Any:
    return [(r.deep_judgment, r.checks) for r in seen.results]


def found(query: str) -> list[str]:
    return [f"about {query}"]


def found_elsewhere(query: str) -> list[str]:
    return [f"otherwise about {query}"]


@frozen
class Counting:
    """An embedder that counts letters; its plugin has two of them."""

    model: str
    letters: str = "aeioujkl"

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        vectors = tuple(tuple(1.0 + text.count(letter) for letter in self.letters) for text in texts)
        return Embeddings(vectors=vectors, model=f"{self.model} of {self.letters}")


class WithEmbedders:
    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(Counting, name="letters")
        registry.add(VowelCounting, name="vowels")


@frozen
class VowelCounting(Counting):
    letters: str = "aeiou"


def compared(seen: Seen) -> Any:
    parts = [r.template for r in seen.results if r.template]
    return [(p.embedding_check_performed, p.embedding_model_used, p.embedding_override_applied) for p in parts]


def scored(request: ServedRequest) -> Any:
    """Plays a judge of traits, step by step where it is asked for evidence: what it quotes first is made up."""
    if request.schema is None:
        return "It is BCL2. Nothing else is said."
    asked = request.schema["properties"]
    if "excerpts" in asked:
        first = "were rejected" not in request.text
        texts = ["It is certainly MCL1."] if first else [QUOTED, "Nothing else is said."]
        return {"excerpts": [{"text": text, "explanation": None, "confidence": "high"} for text in texts]}
    if "excerpt_1" in asked:
        return {name: {"justification": "found", "hallucination_risk": "low"} for name in asked}
    return {name: _scored(about) for name, about in asked.items()}


def _scored(about: Mapping[str, Any]) -> Any:
    return {"boolean": True, "integer": 2}.get(str(about.get("type")), "said")


def scored_slowly(request: ServedRequest) -> Any:
    return Reply(scored(request), latency=0.05 if request.schema is not None else 0.0)


def scored_loosely(request: ServedRequest) -> Any:
    """Quotes with punctuation that the answer does not have."""
    if request.schema is not None and "excerpts" in request.schema["properties"]:
        return {"excerpts": [{"text": "It is: BCL2", "explanation": None, "confidence": "high"}]}
    return scored(request)


def trait_evidence(seen: Seen) -> Any:
    return [r.deep_judgment_rubric for r in seen.results]


def of_traits(name: str, **facts: Any) -> Setting:
    """A setting of the evaluation of traits, which is the only one of its run."""
    others = {"evaluation_mode": "rubric_only", "deep_judgment_rubric_mode": "disabled", **facts.pop("others", {})}
    others.pop(name, None)
    script = facts.pop("script", scored)
    return Setting(name, others=others, script=script, rubric=TRAITS, plugins=OF_TRAITS | DEEP, **facts)


def deep_traits(name: str, **facts: Any) -> Setting:
    """A setting of deep judgment of traits, seen in the evidence."""
    others = {"deep_judgment_rubric_mode": "enable_all", **facts.pop("others", {})}
    return of_traits(name, others=others, where="the evidence", see=trait_evidence, **facts)


def of_investigations(name: str, **facts: Any) -> Setting:
    """A setting of agentic traits, seen in how the agents are asked."""
    others = {"evaluation_mode": "rubric_only", **facts.pop("others", {})}
    facts = {"script": looking, "where": "the investigations", "see": investigations, **facts}
    plugins = frozenset({"agentic-rubric-evaluation"})
    return Setting(
        name, others=others, rubric=INVESTIGATED, plugins=plugins, questions={"workspace_path": "river"}, **facts
    )


def of_agentic_parsing(name: str, **facts: Any) -> Setting:
    """A setting of the agent that fills a template in."""
    others = {"agentic_parsing": True, **facts.pop("others", {})}
    facts = {"script": looking, **facts}
    plugins = frozenset({"agentic-parse-template"})
    return Setting(name, others=others, plugins=plugins, questions={"workspace_path": "river"}, **facts)


def investigations(seen: Seen) -> list[str]:
    return sorted(request.text for request in seen.requests if investigates(request))


def of_workspaces(name: str, **facts: Any) -> Setting:
    """A setting of workspaces, seen in the files that are left."""
    facts = {"where": "the files that are left", "see": lambda seen: seen.left, **facts}
    return Setting(name, questions={"workspace_path": "river"}, **facts)


DEEP = frozenset({"deep-judgment", "deep-judgment-auto-fail", "search-tavily"})
EMBEDDING = frozenset({"embedding-check", "embedder-minilm"})
JAW = {
    "answer_template": json.dumps(
        {
            "fields": [
                {
                    "name": "target",
                    "type": "str",
                    "description": "What the response names",
                    "ground_truth": "osteonecrosis of the jaw",
                    "verify_with": {"type": "ExactMatch"},
                }
            ]
        }
    )
}


def deep(name: str, **facts: Any) -> Setting:
    """A setting of deep judgment, seen in the evidence that is kept or in what the judge is asked."""
    others = {"deep_judgment_enabled": True, **facts.pop("others", {})}
    return Setting(name, others=others, script=facts.pop("script", thorough), plugins=DEEP, **facts)


def by_meaning(name: str, **facts: Any) -> Setting:
    """A setting of the embedding check, seen in what was compared."""
    others = {"embedding_check_enabled": True, **facts.pop("others", {})}
    return Setting(name, others=others, script=reworded, plugins=EMBEDDING, questions=JAW, **facts)


def with_tools(name: str, **facts: Any) -> Setting:
    """A limit of a model that works with tools: its answer is cut off, or it is not."""
    others = {"mcp_urls_dict": LIBRARY, **facts.pop("others", {})}
    return Setting(name, others=others, where="why the verdict failed", see=reasons, **facts)


def reasons(seen: Seen) -> Any:
    """Every outcome, and the limits that the answers ran into."""
    limits = [(result.generation.agent_metrics or {}).get("limit") for result in seen.results]
    return seen.outcomes(), limits


def crowded(name: str, **facts: Any) -> Setting:
    """A setting that holds calls back, seen where more than two would be under way."""
    return Setting(
        name, count=4, script=overlapping, where="the calls in flight", see=lambda seen: seen.peak > 2, **facts
    )


def costs(seen: Seen) -> Any:
    return [result.generation.usage_metadata["generation"]["cost_usd"] for result in seen.results]


TWO = [ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url="URL") for name in ("a", "b")]
MODEL_SETTINGS = [
    Setting("id", to="mine", where="the model's identity in results", see=metadata("answering")),
    Setting("model_name", to="other", where="the request's body", see=body("model")),
    Setting("model_provider", to="other", where="the model's identity in results", see=metadata("answering")),
    Setting("interface", to="no_such", where="a refusal", see=lambda seen: bool(seen.refusal)),
    Setting("temperature", to=0.7, where="the request's body", see=body("temperature")),
    Setting(
        "max_tokens",
        to=77,
        where="the request's body",
        see=lambda seen: body("max_tokens")(seen) + body("max_completion_tokens")(seen),
    ),
    Setting("system_prompt", to="Be brief.", where="the prompt", see=text()),
    Setting("max_retries", to=1, frm=3, script=bad_judge, where="how often a judge is asked", see=count),
    Setting(
        "endpoint_base_url",
        to="URL/deeper",
        where="the request's path",
        see=lambda seen: [request.path for request in seen.asked()],
    ),
    Setting("endpoint_api_key", to="secret-key-1", where="the request's headers", see=header("authorization")),
    Setting("api_key_env", to="KARENINA_SETTING_KEY", where="the request's headers", see=header("authorization")),
    Setting(
        "request_timeout", to=0.03, script=slow, where="the outcome", see=Seen.outcomes, others={"retry_policy": ONCE}
    ),
    Setting("retry_policy", to=TWICE, frm=ONCE, script=failing_once, where="the number of calls", see=count),
    crowded("requests_per_minute", to=240),
    crowded("tokens_per_minute", to=12_000, others={"max_tokens": 10}),
    Setting(
        "input_cost_per_token",
        to=0.01,
        frm=0.02,
        others={"output_cost_per_token": 0.0},
        where="the cost",
        see=costs,
        priced=False,
    ),
    Setting(
        "output_cost_per_token",
        to=0.01,
        frm=0.02,
        others={"input_cost_per_token": 0.0},
        where="the cost",
        see=costs,
        priced=False,
    ),
    Setting("batch", to=True, where="a refusal without a run directory", see=lambda seen: bool(seen.refusal)),
    *(  # with batches, their effect is in test_batching.py
        Setting(name, to=7, where="a refusal without batches", see=lambda seen: bool(seen.refusal))
        for name in ("batch_max_calls", "batch_wait_seconds")
    ),
    Setting("extra_kwargs", to={"top_p": 0.5}, where="the request's body", see=body("top_p")),
    Setting("mcp_urls_dict", to=LIBRARY, where="the tools that are sent", see=body("tools")),
    Setting(
        "mcp_tool_filter",
        to=["wait"],
        where="the tools that are sent",
        see=body("tools"),
        others={"mcp_urls_dict": LIBRARY},
    ),
    Setting(
        "mcp_tool_description_overrides",
        to={"wait": "Waits for a while."},
        where="the tools that are sent",
        see=body("tools"),
        others={"mcp_urls_dict": LIBRARY},
    ),
    with_tools("agent_max_turns", to=1, script=waiting(1)),
    with_tools("agent_timeout", to=0.02, script=waiting(1, seconds=0.1)),
    with_tools("agent_max_tool_calls", to=1, script=waiting(2)),
    with_tools("agent_max_total_tokens", to=1, script=waiting(1)),
    with_tools("agent_max_cost_usd", to=0.01, script=waiting(1)),
    with_tools("agent_max_repeated_calls", to=1, script=waiting(3)),
    Setting(
        "manual_traces",
        to={"q0": "It is MCL1."},
        frm={"q0": "It is BCL2."},
        others={"interface": "manual"},
        where="the answer",
        see=lambda seen: [r.generation.raw_llm_response for r in seen.results],
    ),
]
RUN_SETTINGS = [
    Setting("answering_models", to=TWO, frm=TWO[:1], where="the number of results", see=lambda seen: len(seen.results)),
    Setting("parsing_models", to=TWO, frm=TWO[:1], where="the number of results", see=lambda seen: len(seen.results)),
    Setting("replicate_count", to=3, where="the number of results", see=lambda seen: len(seen.results)),
    Setting(
        "evaluation_mode", to="template_only", rubric=RUBRIC, plugins=OF_TRAITS, where="the stages", see=Seen.stages
    ),
    Setting("features", to=["sample"], where="the stages", see=Seen.stages),
    Setting("use_full_trace_for_template", to=True, where="the judge's prompt", see=text(judging=True)),
    Setting("include_extraction_hints", to=False, where="the judge's prompt", see=text(judging=True)),
    Setting(
        "request_timeout", to=0.03, script=slow, where="the outcome", see=Seen.outcomes, others={"retry_policy": ONCE}
    ),
    Setting("retry_policy", to=TWICE, frm=ONCE, script=failing_once, where="the number of calls", see=count),
    Setting("retry_max_elapsed_seconds", to=0.03, script=slow, where="the outcome", see=Seen.outcomes),
    Setting(
        "fail_fast",
        to=True,
        script=failing_once,
        others={"retry_policy": ONCE, "concurrency": 1, "replicate_count": 3},
        where="the number of results",
        see=lambda seen: len(seen.results),
    ),
    Setting("judge_with", to="a coin", where="a refusal", see=lambda seen: bool(seen.refusal)),
    Setting("canaries", to=True, script=obedient, where="the number of calls", see=count),
    Setting(
        "canary_threshold",
        to=0.1,
        script=obedient,
        others={"canaries": True},
        where="the notes",
        see=lambda seen: seen.notes,
    ),
    Setting("stage_idle_timeout", to=0.1, where="the outcome", see=Seen.outcomes, questions={"keywords": [RESTING]}),
    Setting(
        "concurrency", to=1, frm=4, count=4, script=overlapping, where="the calls in flight", see=lambda seen: seen.peak
    ),
    crowded("max_concurrent_requests", to=1),
    crowded("answerer_concurrency_limits", to=1),
    Setting("budget_usd", to=0.005, where="the outcome", see=Seen.outcomes),
    Setting("budget_tokens", to=1, where="the outcome", see=Seen.outcomes),
    Setting(
        "code_policy",
        to="trusted",
        where="a refusal",
        see=lambda seen: bool(seen.refusal),
        questions={"answer_template": PYTHON, "template_language": "python"},
    ),
    Setting(
        "task_ordering", to="random", count=12, others={"concurrency": 1}, where="the order of questions", see=text()
    ),
    Setting("executor", to="counting", where="who runs the items", see=lambda seen: seen.executors),
    Setting(
        "few_shot_config",
        to=FewShotConfig(global_examples=[{"question": "1+1?", "answer": "2"}]),
        where="the prompt",
        see=text(),
    ),
    Setting("prompt_config", to=PromptConfig(generation="Say it in one word."), where="the prompt", see=text()),
    deep("deep_judgment_mode", to="reasoning_only", where="the evidence", see=evidence),
    deep("deep_judgment_reasoning_only", to=True, where="the evidence", see=evidence),
    deep("deep_judgment_max_excerpts_per_attribute", to=1, where="the evidence", see=evidence),
    deep(
        "deep_judgment_fuzzy_match_threshold",
        to=0.2,
        frm=1.0,
        where="the evidence",
        see=evidence,
        script=loosely,
    ),
    deep("deep_judgment_excerpt_retry_attempts", to=0, where="the evidence", see=evidence),
    deep("deep_judgment_bind_values", to=True, where="the outcome", see=Seen.outcomes, script=beside),
    deep("deep_judgment_on_invented", to="error", where="the outcome", see=Seen.outcomes, script=inventively),
    deep(
        "deep_judgment_search_enabled",
        to=True,
        where="the evidence",
        see=evidence,
        others={"deep_judgment_search_tool": found},
    ),
    deep(
        "deep_judgment_search_tool",
        to=found_elsewhere,
        frm=found,
        where="the evidence",
        see=evidence,
        others={"deep_judgment_search_enabled": True},
    ),
    of_traits("rubric_evaluation_strategy", to="sequential", where="the number of calls", see=count),
    of_traits("rubric_trait_names", to=["clear"], where="the judge's prompt", see=text(judging=True)),
    of_traits(
        "rubric_concurrency",
        to=1,
        where="the calls in flight",
        see=lambda seen: seen.peak,
        script=scored_slowly,
        others={"rubric_evaluation_strategy": "sequential"},
    ),
    of_traits("use_full_trace_for_rubric", to=False, where="the judge's prompt", see=text(judging=True), script=scored),
    of_traits("deep_judgment_rubric_mode", to="disabled", where="the evidence", see=trait_evidence),
    deep_traits("deep_judgment_rubric_standard_scores", to=True),
    deep_traits("deep_judgment_rubric_global_excerpts", to=False),
    deep_traits(
        "deep_judgment_rubric_config",
        to={"global": {"clear": {}}},
        frm={"global": {}},
        others={"deep_judgment_rubric_mode": "custom"},
    ),
    deep_traits("deep_judgment_rubric_max_excerpts_default", to=1),
    deep_traits("deep_judgment_rubric_fuzzy_match_threshold_default", to=0.2, frm=1.0, script=scored_loosely),
    deep_traits("deep_judgment_rubric_excerpt_retry_attempts_default", to=0),
    deep_traits(
        "deep_judgment_rubric_search_tool",
        to=found_elsewhere,
        frm=found,
        others={
            "deep_judgment_rubric_mode": "custom",
            "deep_judgment_rubric_config": {"global": {"clear": {"search_enabled": True}}},
        },
    ),
    by_meaning("embedding_check_embedder", to="vowels", frm="letters", where="the model used", see=compared),
    by_meaning(
        "embedding_check_model",
        to="large",
        frm="small",
        where="the model used",
        see=compared,
        others={"embedding_check_embedder": "letters"},
    ),
    by_meaning("embedding_check_threshold", to=0.99, where="the override", see=compared),
    of_investigations("agentic_rubric_strategy", to="shared"),
    of_investigations(
        "agentic_rubric_parallel",
        to=True,
        where="the calls in flight",
        see=lambda seen: seen.peak,
        script=looking_slowly,
    ),
    of_investigations("agentic_rubric_by_context", to=True, others={"agentic_rubric_strategy": "shared"}),
    of_agentic_parsing("agentic_parsing_trigger", to="dynamic", where="the investigations", see=investigations),
    of_agentic_parsing("agentic_judge_context", to="trace_only", where="the investigations", see=investigations),
    of_agentic_parsing("agentic_parsing_max_turns", to=1, where="the outcome", see=Seen.outcomes),
    of_agentic_parsing(
        "agentic_parsing_timeout", to=0.03, where="the outcome", see=Seen.outcomes, script=looking_slowly
    ),
    of_agentic_parsing(
        "agentic_parsing_materialize_trace",
        to=True,
        where="the investigations",
        see=investigations,
        others={"agentic_judge_context": "trace_only"},
    ),
    of_agentic_parsing(
        "agentic_parsing_persist_trace",
        to=True,
        where="the files that are left",
        see=lambda seen: seen.left,
        others={
            "agentic_judge_context": "trace_only",
            "agentic_parsing_materialize_trace": True,
            "workspace_cleanup": False,
        },
    ),
    of_workspaces("workspace_copy", to=False),
    of_workspaces("workspace_cleanup", to=False),
    of_workspaces("workspace_output_mode", to="produced"),
    of_workspaces("workspace_output_exclude_patterns", to=["*.log"], others={"workspace_output_mode": "full"}),
    of_workspaces("workspace_max_bytes", to=1, where="a refusal", see=lambda seen: bool(seen.refusal)),
    of_workspaces("workspace_max_files", to=1, where="a refusal", see=lambda seen: bool(seen.refusal)),
    *(Setting(switch, to=True, where="the stages", see=Seen.stages) for switch in switches()),
]


def test_every_setting_is_in_the_lists() -> None:
    assert sorted(s.name for s in MODEL_SETTINGS) == sorted(a.name for a in attrs.fields(ModelConfig))
    listed = sorted(s.name for s in RUN_SETTINGS)
    assert listed == sorted(a.alias for a in attrs.fields(VerificationConfig) if a.alias)


def located(value: Any, url: str) -> Any:
    """The value with the server's address in place of `URL`."""
    if isinstance(value, list) and value and isinstance(value[0], ModelConfig):
        return [attrs.evolve(model, endpoint_base_url=url) for model in value]
    return value.replace("URL", url) if isinstance(value, str) else value


def run(setting: Setting, value: Any, make_question: Callable[..., Any], names: set[str], *, of_model: bool) -> Seen:
    changed = {} if value is None else {setting.name: value}
    with ScriptedServer(setting.script) as server, tempfile.TemporaryDirectory() as folder:
        facts = {k: located(v, server.url) for k, v in {**setting.others, **changed}.items()}
        model_facts = {"model_name": "m", "interface": "openai_endpoint", "endpoint_base_url": server.url}
        model_facts |= facts if of_model else {}
        if model_facts["interface"] == "manual":
            model_facts.pop("endpoint_base_url")
        judge = ModelConfig(
            model_name="j",
            interface="openai_endpoint",
            endpoint_base_url=server.url,
            max_retries=model_facts.get("max_retries", 2),
        )
        installed = names | {"openai_endpoint", "manual"} | setting.plugins
        here = (CountingExecutor, WithEmbedders(), WithTools(), Leaving, *([WithPrices()] if setting.priced else []))
        app = application(*SERVING, *here, installed=installed)
        questions = [make_question(i, **setting.questions) for i in range(setting.count)]
        scratch = Path(folder)
        (scratch / "root" / "river" / "deep").mkdir(parents=True)
        (scratch / "root" / "river" / "notes.txt").write_text("long")
        benchmark = Benchmark(name="b", questions=questions, rubric=setting.rubric, workspace_root=scratch / "root")
        run_dir = scratch / "run" if "workspace_path" in setting.questions else None
        before = CountingExecutor.made
        try:
            run_facts = {
                "answering_models": [ModelConfig(**model_facts)],
                "parsing_models": [judge],
                **({} if of_model else facts),
            }
            results = benchmark.run_verification(VerificationConfig(**run_facts), run_dir=run_dir, app=app)
        except KareninaError as error:
            return Seen(refusal=str(error))
        finally:
            app.loop.close()
        made, left = CountingExecutor.made - before, left_files(scratch)
        return Seen(server.requests, list(results), server.peak, "", made, left, results.notes)


def unchanged(setting: Setting, of_model: bool) -> Hashable:
    """All that a run depends on before the setting is changed: many settings have it in common."""
    facts = {**setting.others} if setting.frm is None else {**setting.others, setting.name: setting.frm}
    given = repr(sorted(facts.items(), key=lambda item: item[0])), repr(setting.questions)
    return setting.script, *given, setting.count, setting.rubric, setting.plugins, setting.priced, of_model


BEFORE: dict[Hashable, Seen] = {}
AGAIN: dict[Hashable, Seen] = {}
"""A run of each kind before a change, and one after the first change: a setting holds for its own run alone."""


def differs(setting: Setting, *given: Any, of_model: bool) -> None:
    kind = unchanged(setting, of_model)
    before = BEFORE.get(kind) or run(setting, setting.frm, *given, of_model=of_model)
    after = run(setting, setting.to, *given, of_model=of_model)
    again = AGAIN.get(kind) or run(setting, setting.frm, *given, of_model=of_model)
    BEFORE[kind], AGAIN[kind] = before, again
    assert setting.see(before) != setting.see(after), f"{setting.name} should be seen in {setting.where}"
    assert setting.see(before) == setting.see(again), "what is looked at changes by itself"


@pytest.mark.parametrize("setting", MODEL_SETTINGS, ids=lambda s: f"{s.name} in {s.where}")
def test_settings_of_a_model(
    setting: Setting, make_question: Callable[..., Any], plugin_names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARENINA_SETTING_KEY", "secret-key-2")
    differs(setting, make_question, plugin_names, of_model=True)


@pytest.mark.parametrize("setting", RUN_SETTINGS, ids=lambda s: f"{s.name} in {s.where}")
def test_settings_of_a_run(setting: Setting, make_question: Callable[..., Any], plugin_names: set[str]) -> None:
    differs(setting, make_question, plugin_names, of_model=False)


# What the numbers of a run depend on

CALLS_FAIL = "a call that fails is an error, which is tried again when the run goes on; no reply is another one"
WHEN = "when and where items are made, and how many at once"
SPENT = "what is not asked any more is an error, and made when the run goes on"
KEPT = "what is kept after the results are there"
PAID = "what a call is said to cost; it decides nothing unless agent_max_cost_usd is set (test_fingerprint.py)"
WITHOUT_EFFECT_ON_NUMBERS = {
    **dict.fromkeys(("request_timeout", "retry_policy", "retry_max_elapsed_seconds"), CALLS_FAIL),
    "stage_idle_timeout": "a stage that does not end is an error, as a call that fails is; no result is another one",
    **dict.fromkeys(
        ("concurrency", "rubric_concurrency", "agentic_rubric_parallel", "executor", "task_ordering"), WHEN
    ),
    **dict.fromkeys(("max_concurrent_requests", "answerer_concurrency_limits"), WHEN),
    **dict.fromkeys(("requests_per_minute", "tokens_per_minute"), WHEN),
    **dict.fromkeys(("batch", "batch_max_calls", "batch_wait_seconds"), WHEN),
    **dict.fromkeys(("budget_usd", "budget_tokens", "fail_fast"), SPENT),
    **dict.fromkeys(("workspace_cleanup", "workspace_output_mode", "workspace_output_exclude_patterns"), KEPT),
    **dict.fromkeys(("input_cost_per_token", "output_cost_per_token"), PAID),
    **dict.fromkeys(("endpoint_api_key", "api_key_env"), "who pays; the model is the same"),
    **dict.fromkeys(("canaries", "canary_threshold"), "they are in no number of the benchmark (test_canaries.py)"),
    "code_policy": "code that may not run ends the run before it begins; whose models traits ask is in the rubrics",
    "replicate_count": "more answers change none that is there; resume compares it by itself (test_cli_resume.py)",
}
"""Why a run may go on with another value of these settings."""


@cache
def asking_nobody(installed: frozenset[str], priced: bool) -> Karenina:
    here = (CountingExecutor, WithEmbedders(), WithTools(), Leaving, *([WithPrices()] if priced else []))
    return application(*SERVING, *here, installed=installed)


def depends_on(
    setting: Setting, value: Any, make_question: Callable[..., Any], names: set[str], folder: Path, *, of_model: bool
) -> Any:
    """The fingerprint of a run with this value, or why it is refused."""
    changed = {} if value is None else {setting.name: value}
    facts = {name: located(told, "http://127.0.0.1:9/v1") for name, told in {**setting.others, **changed}.items()}
    model_facts = {"model_name": "m", "interface": "openai_endpoint", "endpoint_base_url": "http://127.0.0.1:9/v1"}
    model_facts |= facts if of_model else {}
    if model_facts["interface"] == "manual":
        model_facts.pop("endpoint_base_url")
    app = asking_nobody(frozenset(names | {"openai_endpoint", "manual"} | setting.plugins), setting.priced)
    judge = ModelConfig(model_name="j", interface="openai_endpoint", endpoint_base_url="http://127.0.0.1:9/v1")
    questions = [make_question(0, **{"workspace_path": None, **setting.questions})]
    benchmark = Benchmark(name="b", questions=questions, rubric=setting.rubric, workspace_root=folder)
    try:
        run_facts = {} if of_model else facts
        config = {"answering_models": [ModelConfig(**model_facts)], "parsing_models": [judge], **run_facts}
        prepared = prepare(benchmark, VerificationConfig(**config), app=app)
        return json.loads(json.dumps(fingerprint(prepared), default=str))
    except KareninaError as error:
        return str(error)


KNOWN: dict[Hashable, tuple[Any, Any]] = {}
"""What runs of each kind depend on, before the first change and after it."""


def noticed(setting: Setting, *given: Any, of_model: bool) -> bool:
    kind = unchanged(setting, of_model)
    before, again = KNOWN.get(kind) or (depends_on(setting, setting.frm, *given, of_model=of_model), None)
    now = depends_on(setting, setting.to, *given, of_model=of_model)
    again = again or depends_on(setting, setting.frm, *given, of_model=of_model)
    KNOWN[kind] = before, again
    if isinstance(before, str) or isinstance(now, str):
        return bool(before != now)
    assert differences(before, again) == []
    return bool(differences(before, now))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing is written there: no run begins."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "river").mkdir()
    return folder


@pytest.mark.parametrize(
    ("setting", "of_model"),
    [*((setting, True) for setting in MODEL_SETTINGS), *((setting, False) for setting in RUN_SETTINGS)],
    ids=lambda it: it.name if isinstance(it, Setting) else "model" if it else "run",
)
def test_a_run_goes_on_only_where_no_setting_changed_that_can_change_a_number(
    setting: Setting,
    of_model: bool,
    make_question: Callable[..., Any],
    plugin_names: set[str],
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KARENINA_SETTING_KEY", "secret-key-2")
    seen_in_fingerprint = noticed(setting, make_question, plugin_names, root, of_model=of_model)
    if setting.name in WITHOUT_EFFECT_ON_NUMBERS:
        assert not seen_in_fingerprint or setting.where.startswith("a refusal")
    else:
        assert seen_in_fingerprint


def test_settings_that_change_no_number_are_settings() -> None:
    assert WITHOUT_EFFECT_ON_NUMBERS.keys() <= {setting.name for setting in (*MODEL_SETTINGS, *RUN_SETTINGS)}


OTHERS = (3, "other", 0.5, ["other"], {"other": "text"}, ModelConfig(model_name="x"))


def other_values(thing: Any) -> list[tuple[str, Any]]:
    """Every field of a trait or a question, with another value that it may have."""
    found = []
    for attribute in attrs.fields(type(thing)):
        old = getattr(thing, attribute.name)
        for new in (True, False, *OTHERS):
            try:
                changed = attrs.evolve(thing, **{attribute.alias: new})
            except (TypeError, ValueError, AttributeError):
                continue
            if getattr(changed, attribute.name) != old:
                found.append((attribute.name, changed))
                break
    return found


SOME_TRAITS = [
    LLMRubricTrait(name="t", kind="boolean"),
    LLMRubricTrait(name="t", kind="score"),
    LLMRubricTrait(name="t", kind="literal", classes={"a": "A", "b": "B"}),
    RegexRubricTrait(name="t", pattern="a"),
    MetricRubricTrait(name="t", metrics=["precision"], tp_instructions=["a"]),
    AgenticRubricTrait(name="t", kind="boolean", description="d", context_mode="trace_and_workspace"),
    AgenticRubricTrait(name="t", kind="score", description="d"),
]


@pytest.mark.parametrize("trait", SOME_TRAITS, ids=lambda trait: f"{trait.type_name} {getattr(trait, 'kind', '')}")
def test_every_field_of_a_trait_is_part_of_its_rubric(trait: Any, make_question: Callable[..., Any]) -> None:
    changed, question = other_values(trait), make_question(0)
    assert len(changed) >= 3
    before = _question(question, Rubric.from_traits([trait]), None)["rubric"]
    for name, other in changed:
        assert _question(question, Rubric.from_traits([other]), None)["rubric"] != before, name


NOT_READ = {"id", "keywords", "author", "sources", "custom_metadata", "answer_notes", "date_created", "date_modified"}
"""What a question is found by, and what is told of it: no model reads it, and no code decides by it."""
LEFT_OUT = {"finished", "placeholder_template"}
"""What leaves a question out, which is a difference of another kind."""


def test_every_field_of_a_question_that_is_asked_or_judged_by_is_part_of_it(make_question: Callable[..., Any]) -> None:
    asked = make_question(0)
    before = _question(asked, None, None)
    examples = attrs.evolve(asked, few_shot_examples=[{"question": "1?", "answer": "1"}])
    changed = [pair for pair in other_values(asked) if pair[0] != "few_shot_examples"]
    seen = {
        name for name, other in [*changed, ("few_shot_examples", examples)] if _question(other, None, None) != before
    }
    of_rubrics = {"question_rubric", "question_dynamic_rubric"}  # see the test of traits
    assert {a.name for a in attrs.fields(type(asked))} - NOT_READ - LEFT_OUT - of_rubrics == seen
