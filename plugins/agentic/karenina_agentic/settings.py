"""Settings of a run for agents that judge."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from karenina_core.values.sections import Section, flag, positive, switch, whole, word

AgenticContext = Literal["workspace_only", "trace_and_workspace", "trace_only"]
AgenticParsingTrigger = Literal["always", "dynamic"]
AgenticRubricStrategy = Literal["individual", "shared"]


@frozen(kw_only=True, slots=False)
class AgenticSettings(Section):
    """Agents as judges: who looks into what, and for how long."""

    agentic_rubric_strategy: AgenticRubricStrategy = word("individual", AgenticRubricStrategy)
    """Whether every agentic trait is investigated by its own agent, or all of them by one agent, from whose findings
    each trait is scored.
    """
    agentic_rubric_parallel: bool = flag(False, neutral=True)
    """Whether agentic traits of one item are evaluated at the same time, within `rubric_concurrency`."""
    agentic_rubric_by_context: bool = flag(False)
    """With `shared`: one investigation for each `context_mode`, so that no agent sees what one of its traits must not.
    """
    agentic_parsing_trigger: AgenticParsingTrigger = word("always", AgenticParsingTrigger)
    """With `agentic_parsing`: whether an agent always investigates, or (`dynamic`) only where the judge says that the
    final message alone does not give the values.
    """
    agentic_judge_context: AgenticContext = word("workspace_only", AgenticContext)
    """With `agentic_parsing`: what is shown to the agent that fills in the template."""
    agentic_parsing_max_turns: int = whole(15, least=1)
    """Limit on the replies of that agent."""
    agentic_parsing_timeout: float = positive(120.0)
    """Seconds for all its work."""
    agentic_parsing_materialize_trace: bool = flag(False)
    """Whether it is given the trace as a file to search instead of a part of the prompt."""
    agentic_parsing_persist_trace: bool = flag(False)
    """Whether that file is kept: with the result in the run directory, and in the workspace as long as that exists,
    under `.karenina/traces`.
    """
    _agentic_parsing: bool | None = switch("agentic_parsing")

    @property
    def agentic_parsing(self) -> bool:
        return "agentic_parsing" in self.features
