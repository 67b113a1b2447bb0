"""Values as the report shows them. Nothing here makes HTML: the templates escape."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from attrs import evolve, fields
from karenina_calls.secrets.redaction import redactor
from karenina_cli.output import printable
from karenina_cli.summary import shown_cost, shown_tokens
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import VerificationResult
from karenina_core.secrets import is_secret_name, secrets_in
from karenina_core.values.fields import is_number

LONGEST = 40_000
"""Characters of one text; of a longer one the page shows the beginning and says how much is missing."""
SECRET = "(not shown)"
NOTHING: Mapping[str, Any] = MappingProxyType({})
OF_TRAITS = tuple(
    found.name
    for found in fields(RubricPart)
    if found.name.startswith(("llm_", "regex_", "callable_", "metric_", "agentic_trait_", "extra_", "trait_details"))
)
"""Of a rubric's scores, what there is for each type of trait."""
OF_HEADERS = ("authorization", "cookie")


def shown(text: str) -> str:
    """Any text as the page may show it: what reorders or hides text, and what is no character, is written out."""
    return printable(redaction()(text)) if text else text


@cache
def redaction() -> Any:
    """What takes the secrets of the environment out of a text. A page that is begun clears the cache."""
    return redactor(secrets_in(os.environ))


def cut(text: str, limit: int = LONGEST) -> tuple[str, int]:
    """The beginning of a text, and how many characters it leaves out."""
    return text[:limit], max(len(text) - limit, 0)


def number(found: Any, digits: int = 2) -> str:
    """A number; whole ones with thin spaces between thousands."""
    if isinstance(found, int) and not isinstance(found, bool):
        return f"{found:,}".replace(",", "\u202f")
    return f"{found:.{digits}f}" if is_number(found) and math.isfinite(found) else "n/a"


def span(ends: tuple[float, float] | None, written: Callable[[float], str]) -> str:
    """An interval; empty where there is none."""
    return "" if ends is None else f"{written(ends[0]).removesuffix(' %')} to {written(ends[1])}"


tokens = partial(shown_tokens, written=number)


def seconds(found: float | None) -> str:
    """A duration with the unit that suits it."""
    if found is None:
        return "n/a"
    if found < 1:
        return f"{1000 * found:.0f} ms" if found >= 0.001 or found == 0 else "< 1 ms"
    return f"{found:.1f} s" if found < 120 else f"{found / 60:.1f} min"


def usage_cells(row: Mapping[str, Any], counts: Sequence[str] = ("calls", "attempts")) -> tuple[str, ...]:
    """The `counts` of one task, its tokens in and out, its time and its cost."""
    unknown = bool(row.get("usage_unavailable"))
    return (
        *(number(row.get(key)) for key in counts),
        *(tokens(row.get(key), unknown) for key in ("input_tokens", "output_tokens")),
        seconds(row.get("seconds")),
        shown_cost(row.get("cost_usd")),
    )


def without_secrets(found: Any, name: str = "") -> Any:
    """The same data without values whose names say that they are secret.

    A run keeps none of its own; this is for manifests of other tools.
    """
    if isinstance(found, Mapping):
        return {str(key): without_secrets(item, str(key)) for key, item in found.items()}
    if isinstance(found, list | tuple):
        return [without_secrets(item, name) for item in found]
    is_secret = is_secret_name(name) or any(mark in name.lower() for mark in OF_HEADERS)
    return SECRET if is_secret and isinstance(found, str) and found else found


class WithoutTexts:
    """Results without what the overview does not look at and what is most of them: what was sent and replied, times and
    reasons of the trail, and values of items that did not fail. What many results have alike they share: a result that
    is read has texts of its own for every name in it."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def __call__(self, result: VerificationResult) -> VerificationResult:
        about = result.metadata
        names = ("answering", "parsing", "outcome", "evaluation_mode")
        about = evolve(about, timestamp="", **{name: self._once(getattr(about, name)) for name in names})
        usage = {
            self._once(task): self._named(row) if isinstance(row, Mapping) else row
            for task, row in result.generation.usage_metadata.items()
        }
        generation = evolve(
            result.generation,
            raw_llm_response="",
            trace_messages=(),
            conversation_context=(),
            agent_metrics=None,
            usage_metadata=usage,
        )
        stages = tuple((entry.stage, entry.status) for entry in result.trail)
        if (trail := self._known.get(stages)) is None:
            trail = self._known[stages] = tuple(evolve(entry, seconds=0.0, reason="") for entry in result.trail)
        changed: dict[str, Any] = {"evaluation_input": None, "trail": trail}
        if (rubric := result.rubric) is not None:
            changed["rubric"] = self._rubric(rubric)
        if (template := result.template) is not None:
            changed["template"] = self._template(template, failed=about.outcome == "failed")
        if (checks := result.checks) is not None:
            checks = evolve(checks, abstention_reasoning=None, sufficiency_reasoning=None)
            changed["checks"] = self._once(checks)
        return evolve(result, metadata=about, generation=generation, **changed)

    def _rubric(self, rubric: RubricPart) -> RubricPart:
        found = {name: getattr(rubric, name) for name in OF_TRAITS}
        kept: dict[str, Any] = {name: self._named(value) if value else NOTHING for name, value in found.items()}
        alike = {name: self._data(getattr(rubric, name)) for name in ("trait_scales", "trait_provenance")}
        return evolve(rubric, **kept, **alike, trait_states=self._states(rubric.trait_states))

    def _states(self, states: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those that say no reason are the same in most results."""
        reasons = [isinstance(state, Mapping) and state.get("reason") for state in states.values()]
        return states if any(reasons) else self._data(states)

    def _template(self, template: TemplatePart, *, failed: bool) -> TemplatePart:
        named: dict[str, Any] = {
            name: self._named(value)
            for name in ("field_results", "field_scores")
            if (value := getattr(template, name)) is not None
        }
        # what was extracted tells a wrong value from one that was not found
        values: dict[str, Any] = {} if failed else {"parsed_gt_response": None, "parsed_llm_response": None}
        return evolve(template, **named, **values, investigation_trace=None)

    def _once(self, value: Hashable) -> Any:
        return self._known.setdefault(value, value)

    def _named(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {self._once(name): item for name, item in value.items()}

    def _data(self, value: Any) -> Any:
        return self._known.setdefault(repr(value), value)
