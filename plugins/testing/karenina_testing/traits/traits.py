"""Does a trait evaluator score every trait by itself, make nothing up, and treat the answer as data?"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from karenina_core.errors import KareninaError
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.rubric import RubricTrait

from ..checks import Check, Fault, FindFaults, Promise, expecting, promise_checks, run_checks
from ..fakes import Script
from ..instances import CONSTRUCTION, Made, arguments_of
from ..watch.loops import StillRunning
from .asking import JUDGED
from .cases import TEXT, Trial
from .scoring import ALWAYS, NO_JUDGE, SEVERAL
from .values import VALUES


def trait_checks(
    evaluator: Any,
    traits: Sequence[RubricTrait],
    *,
    text: str = TEXT,
    reply: Script | None = None,
    broken: Sequence[RubricTrait] = (),
    config: VerificationConfig | None = None,
    app: Karenina | None = None,
    settings: Any = None,
    most_calls: int = 10,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """One check for every promise of a trait evaluator.

    `evaluator` is a class, which is made again for every check, with `settings` where it takes an argument, or an
    instance. It scores `traits` for `text`. Its judge obeys whatever JSON Schema it is asked for; where that is not
    enough, `reply(call)` says what it replies. `broken` are traits that cannot be evaluated, such as one whose code
    raises; without them each of `traits` is made to fail, where that is possible. The judge may be asked `most_calls`
    times about one trait. Some checks add copies of the traits, with other names and descriptions. The application is
    by default one of the installed plugins.
    Raises ValueError where there are no traits.
    """
    if not traits:
        raise ValueError("give some traits to score, better two than one: trait_checks(Evaluator, [MyTrait(...), ...])")
    trial = Trial(
        made=_made(evaluator, settings),
        traits=tuple(traits),
        broken=tuple(broken),
        text=text,
        reply=reply,
        config=config or VerificationConfig(),
        app=app,
        most_calls=most_calls,
    )
    promises = {**VALUES, **ALWAYS}
    promises |= {name: SEVERAL[name] for name in SEVERAL if len(traits) > 1 or (broken and name == "one_fails")}
    promises |= JUDGED if trial.asks_judge else NO_JUDGE
    checks = [*_checks(trial, promises), *_construction(trial.made)]
    return expecting(checks, expected_failures, (*SEVERAL, *JUDGED, *NO_JUDGE, *CONSTRUCTION))


def check_trait_evaluator(evaluator: Any, traits: Sequence[RubricTrait], **options: Any) -> None:
    """Run all checks of a trait evaluator; `options` are those of `trait_checks`. Raises an ExceptionGroup of what
    fails."""
    run_checks(trait_checks(evaluator, traits, **options))


def evaluator_checks(evaluator: Any, *, traits: Sequence[RubricTrait] = (), **options: Any) -> list[Check]:
    """Like `trait_checks`; without traits, the checks that need none."""
    if traits:
        return trait_checks(evaluator, traits, **options)
    made = _made(evaluator, options.get("settings"))
    return [*_checks(Trial(made=made, traits=()), {"name": VALUES["name"]}), *_construction(made)]


def _made(evaluator: Any, settings: Any) -> Made:
    cls = evaluator if isinstance(evaluator, type) else type(evaluator)
    methods = (name for base in cls.__mro__[:-1] for name in ("evaluate", "score") if name in vars(base))
    arguments = arguments_of(evaluator, settings)
    return Made("trait evaluator", evaluator, arguments, next(methods, "score"), (KareninaError,))


def _checks(trial: Trial, promises: Mapping[str, Promise[Trial]]) -> list[Check]:
    def fault_of(error: BaseException) -> Fault:
        if isinstance(error, StillRunning):
            return trial.made.fault(str(error), "end in time; do not call case.in_turn from within itself")
        remedy = "raise from score, where the error becomes that of one trait; let nothing out of evaluate"
        return Fault.raised(error, remedy, line=trial.made.line())

    quiet = {name: (promise, partial(_quietly, find_faults)) for name, (promise, find_faults) in promises.items()}
    return promise_checks(trial.made.name, trial, quiet, fault_of)


def _construction(made: Made) -> list[Check]:
    return promise_checks(made.name, made, CONSTRUCTION if isinstance(made.thing, type) else {}, made.fault_of)


def _quietly(find_faults: FindFaults[Trial], trial: Trial) -> Iterator[Fault]:
    """Keep the many failures that are provoked here out of karenina's own log; other loggers stay as they are."""
    logger = logging.getLogger("karenina")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield from find_faults(trial)
    finally:
        logger.setLevel(before)
