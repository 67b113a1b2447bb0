"""Does a trait evaluator score every trait by itself, make nothing up, and treat the answer as data?"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import shorten
from typing import Any

from attrs import asdict, evolve
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted

from karenina_core.errors import KareninaError
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.rubric import RubricTrait

from ..checks import Check, Fault, FindFaults, Promise, Promises, expecting, promise_checks, run_checks
from ..fakes import Script, ScriptedCall
from ..instances import CONSTRUCTION, Made, arguments_of
from ..watch.loops import StillRunning, in_loop
from . import cases
from .cases import GOLD, QUESTION, REPORT, TEXT, Trial, obedient, wrong_with
from .failures import marks_of
from .scoring import ALWAYS, NO_JUDGE, SEVERAL, marked, marks_in, marks_within
from .values import VALUES

MARKED = re.compile(r'<untrusted-([0-9a-f]{16}) label="([^"\n]*)">\n(.*?)\n</untrusted-\1>', re.DOTALL)
PART_WORDS = 4
"""As many words of the answer, one after another, are a part of it."""
SHOWN_LENGTH = 20_000
"""Characters of the answer by which it is seen whether a judge is shown the whole."""
PLACES = ("beginning", "middle", "end")
OTHER = "Something quite different."
BAD: Sequence[Script | None] = (None, cases.strange, cases.off_scale)
"""Judges that let an evaluator finish, or ask again."""
BESIDE = (cases.off_scale, cases.above, cases.below)
"""Judges that say what was asked for, with values that are not allowed."""
SECRET = ("b-cell lymphoma", "lymphoma 2", "7f41c")
"""Parts of the reference answer."""


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


def unmarked(prompt: str) -> str:
    """A prompt without the texts that are marked as data, between tags that those texts cannot hold."""
    return MARKED.sub(lambda found: "" if untrusted(found[3], found[2]) == found[0] else found[0], prompt)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _asked(trial: Trial, text: str | None = None, scripts: Sequence[Script | None] = BAD) -> Iterator[ScriptedCall]:
    """The calls for a text, also those after replies that cannot be used."""
    for script in scripts:
        judge = trial.judge(script)
        trial.scored(judge, text)
        yield from judge.calls


def _judge_fails(trial: Trial, scripts: Iterable[Script], what: str, *, free_text: bool) -> Iterator[Fault]:
    """No score is made of nothing: each trait alone, with a judge that says nothing of use."""
    for script in scripts:
        for trait in trial.traits:
            judge = trial.judge(script)
            found = in_loop(trial.alone(trait).scores(judge))
            if wrong := wrong_with(found, [trait]):
                yield trial.fault(f"with a judge that {what}, {wrong}", REPORT)
            asked = [call for call in judge.calls if free_text or call.output is not None]
            # Values of free texts are never off their scale: such a reply may be right.
            useless = script not in BESIDE or any(script(call) != obedient(call) for call in asked)
            if asked and found[trait.name].state == "ok" and useless:
                reply = shorten(str(script(asked[0])), 100)
                problem = f"the judge {what} ({reply}), and {trait.name!r} has the score {found[trait.name].value!r}"
                yield trial.fault(problem, REPORT)
        if wrong := wrong_with(in_loop(trial.scores(trial.judge(script))), trial.traits):
            yield trial.fault(f"with a judge that {what}, {wrong}", REPORT)


JUDGED: Promises[Trial] = Promises()


@JUDGED.add("prompts", "The answer, and every part of it, is marked as data in every prompt.")
def _prompts(trial: Trial) -> Iterator[Fault]:
    text = marked(trial.text)
    usual = " ".join(_plain(unmarked(call.text)) for call in _asked(trial, OTHER))
    words = _plain(text).split()
    runs = [" ".join(words[start : start + PART_WORDS]) for start in range(len(words) - PART_WORDS + 1)]
    parts = [part for part in (*marks_in(), *runs) if part not in usual and part not in _plain(QUESTION)]
    for call in _asked(trial, text):
        bare = _plain(unmarked(call.text))
        if shown := [part for part in parts if part in bare]:
            problem = f"a prompt ({call.task}) holds {'the answer' if len(shown) == len(parts) else 'a part of it'}"
            remedy = "show it with karenina_judging.asking.presented, or mark it with prompts.untrusted_text"
            yield trial.fault(f"{problem} unmarked: {shown[0]!r}", remedy)
        if marks_within(call.text) and UNTRUSTED_NOTE not in call.text:
            problem = f"a prompt ({call.task}) does not say what the marks around the answer mean"
            yield trial.fault(problem, "put prompts.UNTRUSTED_NOTE into the system text")


@JUDGED.add("shown", "The judge sees the answer from its beginning to its end.")
def _shown(trial: Trial) -> Iterator[Fault]:
    """Each trait alone, and all of them together; some may be scored without a call."""
    text = marked(f"{trial.text}\n" * (SHOWN_LENGTH // (len(trial.text) + 1) + 1))
    trials = [trial.alone(trait) for trait in trial.traits]
    for one in (*trials, trial) if len(trials) > 1 else trials:
        asked = list(_asked(one, text, (None,)))
        seen = {mark for call in asked for mark in marks_within(call.text)}
        lacks = [place for place, mark in zip(PLACES, marks_in(), strict=True) if mark not in seen]
        if asked and lacks:
            names = ", ".join(repr(trait.name) for trait in one.traits)
            what = "the answer" if len(lacks) == len(PLACES) else f"the {' and the '.join(lacks)} of the answer"
            problem = f"the judge that is asked about {names} never sees {what} ({len(text)} characters)"
            yield one.fault(problem, "show it whole; where it is too long, let the call fail")


@JUDGED.add("reference", "No prompt holds the reference answer, but for traits that include it.")
def _reference(trial: Trial) -> Iterator[Fault]:
    closed = [trait for trait in trial.traits if not getattr(trait, "include_ground_truth", False)]
    known = _plain(" ".join([trial.text, *(str(asdict(trait)) for trait in trial.traits)]))
    secret = [_plain(GOLD), *(part for part in SECRET if part not in known)]
    for trait in closed:
        others = [other for other in trial.traits if other is not trait]
        marks = marks_of(trait, others, trial.text)
        together = [call for call in _asked(trial) if any(mark in call.text for mark in marks)]
        for call in (*_asked(trial.alone(trait)), *together):
            if any(part in _plain(call.text) for part in secret):
                problem = f"a prompt about {trait.name!r} ({call.task}) holds the reference answer, or a part of it"
                yield trial.fault(problem, "show it only for traits with include_ground_truth, in calls of their own")


@JUDGED.add("places", "It asks the judge only in the places of the item.")
def _places(trial: Trial) -> Iterator[Fault]:
    narrow = evolve(trial, config=evolve(trial.config, rubric_concurrency=1))
    judge = narrow.judge(seconds=0.01)
    in_loop(narrow.scores(judge))
    if judge.most_in_flight > 1:
        problem = f"with rubric_concurrency 1 it made {judge.most_in_flight} calls at the same time"
        yield trial.fault(problem, "make every call inside of case.in_turn(...)")


@JUDGED.add("calls", "It asks the judge about one trait a few times at most, also where the judge is of no use.")
def _calls(trial: Trial) -> Iterator[Fault]:
    for script in (None, cases.GONE["timeout"], cases.prose, cases.off_scale):
        for trait in trial.traits:
            judge = trial.judge(script)
            trial.alone(trait).scored(judge)
            if len(judge.calls) > trial.most_calls:
                problem = f"it asked the judge {len(judge.calls)} times about {trait.name!r}"
                remedy = "leave it to ask_judge to try again; where so many are right, give most_calls="
                yield trial.fault(f"{problem}, and most_calls is {trial.most_calls}", remedy)


JUDGED |= {
    "judge_down": (
        "A judge that cannot be reached costs traits their scores, and nothing else.",
        partial(_judge_fails, scripts=cases.GONE.values(), what="cannot be reached", free_text=True),
    ),
    "judge_rubbish": (
        "A reply that is no score is not made one.",
        partial(_judge_fails, scripts=(cases.prose, cases.strange, *BESIDE), what="replies rubbish", free_text=False),
    ),
    "judge_silent": (
        "An empty reply gives no score.",
        partial(_judge_fails, scripts=(cases.silent,), what="replies nothing", free_text=True),
    ),
}
