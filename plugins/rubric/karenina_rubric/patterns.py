"""The evaluator of `regex` traits: whether a pattern occurs in the text."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen, validators
from karenina_template.language.searches import SECONDS, Expression, expression
from karenina_vocabulary.evaluators import TraitCase, TraitEvaluator, TraitScore
from karenina_vocabulary.traits import RegexRubricTrait

from karenina_core import Karenina, VerificationConfig, hookimpl
from karenina_core.errors import Problem, one_line
from karenina_core.ports.threads import in_own_thread

THREAD = "karenina-trait-regex"


@frozen(kw_only=True)
class RegexTraitSettings:
    """`[plugins.trait-regex]`"""

    seconds: float = field(default=SECONDS, validator=[validators.gt(0), validators.le(3600)])
    """How long one pattern may search in one text, in seconds of CPU time; a text of a million characters gives it two
    more."""


class RegexEvaluator(TraitEvaluator[RegexRubricTrait]):
    """Searches in a thread of its own for every item: other work continues. A pattern that takes too long is an error
    of its trait."""

    name = "regex"
    trait_class = RegexRubricTrait

    def __init__(self, settings: RegexTraitSettings | None = None) -> None:
        self.seconds = (settings or RegexTraitSettings()).seconds

    def check_config(
        self, traits: Sequence[RegexRubricTrait], config: VerificationConfig, app: Karenina
    ) -> Iterable[Problem]:
        for trait in traits:
            try:
                _compiled(trait)
            except Exception as error:  # the two engines raise a lot, and warnings may be errors
                yield Problem("rubric", f"trait {trait.name!r}: {_unusable(trait.pattern, error)}")

    async def evaluate(self, traits: Sequence[RegexRubricTrait], case: TraitCase) -> Mapping[str, TraitScore]:
        stopped = threading.Event()
        try:
            found = await in_own_thread(lambda: self._scores(traits, case.given.text, stopped), THREAD)
        finally:
            stopped.set()  # after a cancellation, the thread ends with the pattern that it is at
        return found.result()

    def _scores(self, traits: Sequence[RegexRubricTrait], text: str, stopped: threading.Event) -> dict[str, TraitScore]:
        scores = {}
        for trait in traits:
            if stopped.is_set():
                break
            try:
                found = _compiled(trait).search(text, self.seconds, stopped) is not None
            except TimeoutError as error:
                reason = f"{error}, or raise `seconds` under [plugins.trait-regex]"
                scores[trait.name] = TraitScore(state="error", reason=reason)
            except Exception as error:  # as above
                scores[trait.name] = TraitScore(state="error", reason=_unusable(trait.pattern, error))
            else:
                scores[trait.name] = TraitScore(value=found is not trait.invert_result)
        return scores


def _compiled(trait: RegexRubricTrait) -> Expression:
    return expression(trait.pattern, 0 if trait.case_sensitive else re.IGNORECASE)


def _unusable(pattern: str, error: BaseException) -> str:
    return f"the pattern {pattern!r:.200} cannot be used: {one_line(error)}; correct it in the benchmark"


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add(RegexTraitSettings)


@hookimpl
def karenina_register_traits(registry: Any) -> None:
    registry.add(RegexEvaluator)
