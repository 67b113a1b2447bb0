"""Callable traits: a Python function scores the text, in a thread of its own and within a time limit."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from karenina_vocabulary.evaluators import TraitCase, TraitEvaluator, TraitScore
from karenina_vocabulary.traits import CallableRubricTrait

from karenina_core import Karenina, VerificationConfig, hookimpl
from karenina_core.errors import Problem
from karenina_core.log import get_logger

from .apart import Apart, sandbox_of
from .code import CallableSettings, Code, load_function

AT_ONCE = 4
"""Functions of one item that run at the same time. Chosen, not measured."""
MOST_KEPT = 256
"""Functions that are remembered; those of which something runs or hangs are not forgotten. Chosen, not measured: more
than the traits of a benchmark."""
NO_CODE = "it has no code: the file keeps its place only; make it again with CallableRubricTrait.from_callable"
log = get_logger("karenina.rubric")


class CallableEvaluator(TraitEvaluator[CallableRubricTrait]):
    """Scores callable traits with the text that is scored as the only argument of their function.

    A trait that this program made (`CallableRubricTrait.from_callable`) has its function and is simply called. The code
    of a trait from a file runs in a sandbox; under the code policy `trusted`, in this process and with all its rights.
    """

    name = "callable"
    trait_class = CallableRubricTrait

    def __init__(self, settings: CallableSettings | None = None) -> None:
        self._settings = settings or CallableSettings()
        self._codes: dict[Hashable, Code] = {}
        self._lock = threading.Lock()
        self._apart = Apart(MOST_KEPT)
        self._announced: set[str] = set()
        """Runs for which the log has it that code of their file is run."""

    def check_config(
        self, traits: Sequence[CallableRubricTrait], config: VerificationConfig, app: Karenina
    ) -> Iterable[Problem]:
        apart = config.code_policy == "sandbox" and sandbox_of(app) is not None
        refused = [trait.name for trait in traits if not (apart or _may_run(trait, config))]
        if refused:
            names = ", ".join(dict.fromkeys(refused))
            yield Problem(
                "code_policy",
                f"these callable traits are Python code from the benchmark file, and {config.code_policy!r} does not "
                f"run it: {names}; if you trust this file, run it in this process with --trust (in Python: "
                "code_policy='trusted'), or remove these traits or leave them out (rubric_trait_names)",
            )

    async def evaluate(self, traits: Sequence[CallableRubricTrait], case: TraitCase) -> Mapping[str, TraitScore]:
        foreign = [trait.name for trait in traits if _is_foreign(trait) and _may_run(trait, case.context.config)]
        run_name = case.context.run_name  # an item without one is a run by itself
        if foreign and (run_name is None or run_name not in self._announced):
            self._announced |= set() if run_name is None else {run_name}
            log.info("code of the benchmark file is run in this process", traits=", ".join(foreign))
        places = asyncio.Semaphore(AT_ONCE)

        async def placed(trait: CallableRubricTrait) -> TraitScore:
            async with places:
                return await self.score(trait, case)

        return await case.each(traits, placed)

    async def score(self, trait: CallableRubricTrait, case: TraitCase) -> TraitScore:
        if trait.callable_code is None:
            return TraitScore(state="error", reason=NO_CODE)
        if not _may_run(trait, case.context.config):
            if case.context.config.code_policy == "sandbox" and (runtime := sandbox_of(case.context.app)):
                return await self._apart.score(runtime, trait, trait.callable_code, case.given.text)
            what = f"its code may not run under code_policy {case.context.config.code_policy!r}"
            return TraitScore(state="error", reason=f"{what}; if you trust the file, use --trust")
        return await self._code(trait, trait.callable_code).score(trait, case.given.text, self._settings)

    def _code(self, trait: CallableRubricTrait, code: bytes) -> Code:
        """The function of a trait, the same one every time."""
        function = trait.function
        # Code keeps the function, and so its id from being used again.
        key: Hashable = hashlib.sha256(code).digest() if function is None else id(function)
        with self._lock:
            if key not in self._codes:
                too_many = len(self._codes) - MOST_KEPT + 1
                unused = [known for known, code in self._codes.items() if too_many > 0 and code.unused]
                for known in unused[: max(0, too_many)]:  # the oldest first
                    del self._codes[known]
                self._codes[key] = Code(partial(load_function, code), function)
            return self._codes[key]


def _is_foreign(trait: CallableRubricTrait) -> bool:
    """Whether it has code that this program did not bring itself."""
    return trait.callable_code is not None and trait.function is None


def _may_run(trait: CallableRubricTrait, config: VerificationConfig) -> bool:
    return not _is_foreign(trait) or config.code_policy == "trusted"


@hookimpl
def karenina_register_traits(registry: Any) -> None:
    registry.add(CallableEvaluator)


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add(CallableSettings)
