"""The evaluator of `regex` traits: whether a pattern occurs in the text."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from attrs import field, frozen, validators

from karenina_core import Karenina, VerificationConfig, hookimpl
from karenina_core.errors import Problem, one_line
from karenina_core.model.rubric import RegexRubricTrait
from karenina_core.pipeline.traits import TraitCase, TraitEvaluator, TraitScore
from karenina_core.ports.threads import in_own_thread

from .dialect import as_regex

__all__ = ["RegexEvaluator", "RegexTraitSettings", "karenina_register_settings", "karenina_register_traits"]

THREAD = "karenina-trait-regex"
ENOUGH = 0.9
"""Of the time of a search: clocks are not exact."""


@frozen(kw_only=True)
class RegexTraitSettings:
    """`[plugins.trait-regex]`"""

    seconds: float = field(default=2.0, validator=[validators.gt(0), validators.le(3600)])
    """How long one pattern may search in one text, in seconds of processor time."""


class RegexEvaluator(TraitEvaluator[RegexRubricTrait]):
    """Searches in a thread of its own for every item: other work goes on. A pattern that takes too long is an error of
    its trait."""

    name = "regex"
    trait_class = RegexRubricTrait

    def __init__(self, settings: RegexTraitSettings | None = None) -> None:
        self.seconds = (settings or RegexTraitSettings()).seconds

    def check_config(
        self, traits: Sequence[RegexRubricTrait], config: VerificationConfig, app: Karenina
    ) -> Iterable[Problem]:
        for trait in traits:
            try:
                _compiled(trait.pattern, trait.case_sensitive)
            except Exception as error:  # the two engines raise a lot, and warnings may be errors
                yield Problem("rubric", f"trait {trait.name!r}: {_unusable(trait.pattern, error)}")

    async def evaluate(self, traits: Sequence[RegexRubricTrait], case: TraitCase) -> Mapping[str, TraitScore]:
        stopped = threading.Event()
        try:
            found = await in_own_thread(lambda: self._scores(traits, case.given.text, stopped), THREAD)
        finally:
            stopped.set()  # after a cancellation, the thread ends with the pattern that it is at
        if found.error is not None:
            raise found.error
        return found.value or {}

    def _scores(self, traits: Sequence[RegexRubricTrait], text: str, stopped: threading.Event) -> dict[str, TraitScore]:
        scores = {}
        for trait in traits:
            if stopped.is_set():
                break
            scores[trait.name] = self._score(trait, text, stopped)
        return scores

    def _score(self, trait: RegexRubricTrait, text: str, stopped: threading.Event) -> TraitScore:
        try:
            pattern = _compiled(trait.pattern, trait.case_sensitive)
            found = self._found(pattern, text, stopped)
        except TimeoutError:
            remedy = (
                "rewrite it so that no repetition holds another one, or raise `seconds` under [plugins.trait-regex]"
            )
            return TraitScore(state="error", reason=f"the pattern was stopped after {self.seconds:g} s; {remedy}")
        except Exception as error:  # as above
            return TraitScore(state="error", reason=_unusable(trait.pattern, error))
        return TraitScore(value=found is not trait.invert_result)

    def _found(self, pattern: Any, text: str, stopped: threading.Event) -> bool:
        """Raises TimeoutError once the search has had its time.

        The limit of `regex` counts the processor time of all threads: where others have used it up, there is more.
        """
        limit = self.seconds
        while True:
            began = time.thread_time()
            try:
                return pattern.search(text, concurrent=True, timeout=limit) is not None
            except TimeoutError:
                taken = time.thread_time() - began
                if stopped.is_set() or taken >= ENOUGH * self.seconds:
                    raise
            limit *= min(4.0, 1.2 * self.seconds / max(taken, 0.01 * self.seconds))  # 4: others may be done soon


def _unusable(pattern: str, error: BaseException) -> str:
    return f"the pattern {pattern!r:.200} cannot be used: {one_line(error)}; correct it in the benchmark"


@lru_cache(maxsize=1024)
def _compiled(pattern: str, case_sensitive: bool) -> Any:
    """Raises re.error, regex.error and ValueError, which have nothing in common, and what a parser may run into."""
    regex = _regex()
    flags = regex.VERSION0 if case_sensitive else regex.VERSION0 | regex.IGNORECASE
    return regex.compile(as_regex(pattern, ignore_case=not case_sensitive), flags)


def _regex() -> Any:
    import regex  # type: ignore[import-untyped]  # it brings no types; only runs with such traits pay for it

    return regex


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add(RegexTraitSettings)


@hookimpl
def karenina_register_traits(registry: Any) -> None:
    registry.add(RegexEvaluator)
