"""Settings of a run for deep judgment of templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from attrs import frozen
from karenina_vocabulary.rubric_config import search_tool, tool_name

from karenina_core.errors import Problem
from karenina_core.values.sections import Section, flag, fraction, setting, switch, view, whole, word

DeepJudgmentMode = Literal["disabled", "reasoning_only", "full"]
OnInvented = Literal["fail", "error"]


def _of_mode(mode: Any) -> Mapping[str, Any]:
    allowed = get_args(DeepJudgmentMode)
    if mode not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}, not {mode!r}")
    return {
        "deep_judgment_enabled": mode != "disabled",
        "deep_judgment_reasoning_only": mode == "reasoning_only",
    }


@frozen(kw_only=True, slots=False)
class DeepJudgmentSettings(Section):
    """Deep judgment of templates. `deep_judgment_mode` (`disabled`, `reasoning_only`, `full`) is a view of its feature
    and of `deep_judgment_reasoning_only`.
    """

    deep_judgment_reasoning_only: bool = flag(False, environment=False)
    """Deep judgment without excerpts: the judge reasons, then fills the template. `deep_judgment_mode` reads and
    writes it together with the feature.
    """
    deep_judgment_max_excerpts_per_attribute: int = whole(3, least=1)
    deep_judgment_fuzzy_match_threshold: float = fraction(0.80)
    """How similar (0 to 1) a quotation must be to a passage of the text that the judge read, in addition to having its
    words in order. Typos count, and a third of what the quotation leaves out."""
    deep_judgment_excerpt_retry_attempts: int = whole(2, least=0)
    """How often the judge is asked again for quotations that do not occur in what it read."""
    deep_judgment_on_invented: OnInvented = word("fail", OnInvented, environment=False)
    """What happens to an answer if the judge's quotations for a field or a trait are all not in it: it fails like one
    without evidence (`fail`), or the item is an error of the judge (`error`)."""
    deep_judgment_bind_values: bool = flag(False, environment=False)
    """Whether an extracted text, number or date has to occur in one of the excerpts of its field, checked by code;
    otherwise the value is unsupported and the answer fails."""
    deep_judgment_search_enabled: bool = flag(False)
    """Whether every excerpt is looked up with the search tool, and assessed as true or made up from the results."""
    deep_judgment_search_tool: Any = setting("tavily", search_tool, write=tool_name)
    """The name of an installed search tool, or any function or tool object: a query to results."""
    _deep_judgment_enabled: bool | None = switch("deep_judgment")
    _deep_judgment_mode: DeepJudgmentMode | None = view(_of_mode)

    @property
    def deep_judgment_enabled(self) -> bool:
        return "deep_judgment" in self.features

    @property
    def deep_judgment_mode(self) -> DeepJudgmentMode:
        if not self.deep_judgment_enabled:
            return "disabled"
        return "reasoning_only" if self.deep_judgment_reasoning_only else "full"

    def check_settings(self) -> Iterable[Problem]:
        if self.deep_judgment_bind_values and self.deep_judgment_mode != "full":
            what = "values are looked for in excerpts, and only deep judgment has them; set deep_judgment_mode to full"
            yield Problem("deep_judgment_bind_values", what)
        if self.deep_judgment_mode == "reasoning_only" and self.deep_judgment_search_enabled:
            what = "reasoning_only finds no excerpts to search for; use the mode full, or switch the search off"
            yield Problem("deep_judgment_search_enabled", what)
