"""Looking at one stage: at its declaration, and at its runs on one item, alone: twice, cancelled, after an error."""

from __future__ import annotations

import asyncio
import difflib
import inspect
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from attrs import define, evolve, field, frozen
from hypothesis.strategies import SearchStrategy

from karenina_core.errors import Problem, did_you_mean
from karenina_core.pipeline.artifact_keys import VERDICT_VIEWS, Key
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.declaration import Category, result_fields
from karenina_core.pipeline.stage import LISTS, PlanRequest, Stage
from karenina_core.values.config import VerificationConfig

from ..checks import Fault, Promises, Raised, attempt, attempt_async, difference, snapshot
from ..examples import every
from ..fakes import application
from ..strategies.models import plan_requests, verification_configs
from ..watch.loops import cancel, in_loop
from ..watch.source_lines import executing, file_of, line_of_attribute, line_of_waiting
from .examples import KNOWN_KEYS, corners
from .inputs import StageInput, WatchedContext

MakeContext = Callable[[StageInput], VerificationContext]
LONGEST_RUN = 5.0  # seconds; chosen for a busy machine: models answer at once
MOST_STEPS = 8  # chosen: a stage that asks more than eight things in turn is cut there
MOST_CONFIGS = 20
"""Configurations that a stage is asked about: each is copied and compared, which takes longer than to ask."""


@frozen(eq=False)
class Run:
    """What one stage did with one item."""

    given: StageInput
    """Its own copy of the item, as the stage left it."""
    context: WatchedContext
    before: dict[str, Any] = field(repr=False)
    answer: object = True
    """What should_run answered."""
    error: BaseException | None = None
    asking: bool = False
    """Whether the error came from should_run."""

    @property
    def finished(self) -> bool:
        """Whether the stage ran to its end without raising and without setting an error."""
        return bool(self.answer) and self.error is None and self.context.error == self.before["error"]

    @property
    def outcome(self) -> dict[str, Any]:
        """What anyone can see of the run afterwards."""
        raised = None if self.error is None else type(self.error).__name__
        return {**state(self.context), "raised": raised, "ran": bool(self.answer)}


def state(context: VerificationContext) -> dict[str, Any]:
    """Everything that a stage can change in a context."""
    return {
        "artifacts": dict(context._artifacts),
        "result fields": dict(context.result_fields),
        "effects": list(context.effects),
        "error": context.error,
        "warnings": list(context.warnings),
    }


@define(eq=False, slots=False)
class Trial:
    """One stage and one item. Every run has a copy of the item; they share the stage, as the items of a run do."""

    stage: Stage
    given: StageInput
    make_context: MakeContext
    file: str | None

    @cached_property
    def first(self) -> Run:
        return in_loop(self._run())

    @cached_property
    def second(self) -> Run:
        return in_loop(self._run())

    @cached_property
    def changed(self) -> str | None:
        """What the first run changed in the item that it was given."""
        return difference(self.given, self.first.given)

    @property
    def changing_line(self) -> str:
        """The first line after which the item was no longer as it was given."""
        given = snapshot(self.given)
        found: list[str] = []

        def executed(_: str, line: str) -> None:
            if not found and difference(self.given, given) is not None:
                found.append(line)

        with executing(self.file, executed):
            in_loop(self._run(given))
        return found[0] if found else ""

    @property
    def last_line(self) -> str:
        """The line with which execute ended."""
        lines: list[str] = []
        with executing(self.file, lambda name, line: lines.append(line) if name == "execute" else None):
            in_loop(self._run())
        return lines[-1] if lines else ""

    def asked(self, given: StageInput) -> tuple[Any, str | None, WatchedContext]:
        """What should_run answers to an item, and what it changed by being asked."""
        context = self._context(given)
        before = snapshot(state(context))
        with context.acting(self.stage):
            answer = self.stage.should_run(context)
            again = self.stage.should_run(context)
        if bool(answer) != bool(again):
            return (answer, f"asked twice, it answered {answer!r} and then {again!r}", context)
        return answer, difference(before, state(context)), context

    def fault(self, problem: str, remedy: str = "", *, method: str = "execute", line: str = "") -> Fault:
        """A fault of a method of the stage: at a line, or where the method begins."""
        return Fault(problem, line or line_of_attribute(type(self.stage), method), remedy)

    @cached_property
    def rerun(self) -> Run:
        """A run after others were cancelled."""
        return in_loop(self._run())

    def _context(self, given: StageInput) -> WatchedContext:
        context = self.make_context(given)
        if not isinstance(context, WatchedContext):
            raise TypeError("make_context must return given.context(...), perhaps with other arguments")
        return context

    async def _run(self, given: StageInput | None = None) -> Run:
        given = snapshot(self.given) if given is None else given
        context = self._context(given)
        before = snapshot(state(context))
        with context.acting(self.stage):
            answer = attempt(self.stage.should_run, context)
        if isinstance(answer, Raised):
            return Run(given, context, before, True, answer.error, asking=True)
        if not answer:
            return Run(given, context, before, answer)
        with context.acting(self.stage):
            task = asyncio.ensure_future(attempt_async(self._executed(context)))
            await asyncio.wait({task}, timeout=LONGEST_RUN)
        raised: BaseException | None = None
        if not task.done():
            task.cancel()
            raised = TimeoutError(f"execute took more than {LONGEST_RUN:g} s, with models that answer at once")
        elif task.cancelled():
            raised = RuntimeError("execute raised CancelledError though it was not cancelled")
        elif outcome := task.result():
            raised = outcome.error
        return Run(given, context, before, answer, raised)

    async def _executed(self, context: WatchedContext) -> None:
        stage = self.stage
        work = await asyncio.to_thread(stage.execute, context) if stage.blocking else stage.execute(context)
        if inspect.isawaitable(work):
            await work

    async def cancelled(self, steps: int) -> tuple[str, str] | None:
        """Cancel a run after that many turns of the event loop; None where it had ended by then.

        How it ended where the cancellation did not go through, and the line where the stage was waiting."""
        context = self._context(snapshot(self.given))
        with context.acting(self.stage):
            if not self.stage.should_run(context):
                return None
            work = attempt_async(self._executed(context))
            task = asyncio.ensure_future(work)
            for _ in range(steps):
                await asyncio.sleep(0)
            if task.done():
                return None
            line = line_of_waiting(work, self.file)
            return await cancel(task), line


ENOUGH = 50
"""Items that are drawn where fewer were asked for and none of them ran to the end: by then one does in each built-in
stage, with the oldest versions of what the kit needs too; by 30 it did not."""


@define(eq=False, slots=False)
class Survey:
    """Random items are tried once, for all checks together; only a failure is looked for again, to make it small."""

    stage: Stage
    inputs: SearchStrategy[StageInput]
    make_context: MakeContext
    max_examples: int
    described: frozenset[str]
    """Keys whose values the author describes."""
    config: VerificationConfig | None

    @property
    def key(self) -> str:
        """What items that break a promise are remembered by."""
        return f"stage {type(self.stage).__module__}.{type(self.stage).__qualname__}"

    @cached_property
    def trials(self) -> list[Trial]:
        few = self._trials(self.max_examples)
        enough = self.max_examples >= ENOUGH or any(trial.first.finished for trial in few)
        return few if enough else self._trials(ENOUGH)

    def _trials(self, count: int) -> list[Trial]:
        drawn = every(self.inputs, count, self.key)
        return [self.trial(given) for given in (*drawn, *corners(drawn, self.described))]

    def trial(self, given: StageInput) -> Trial:
        return Trial(self.stage, given, self.make_context, file_of(type(self.stage)))


DECLARED: Promises[Survey] = Promises()
MISSPELT = 0.85
"""From this likeness on (`difflib`) an attribute is a misspelling of another one: `require` is 0.93 like `requires`."""


@DECLARED.add("declaration", "Its declaration is complete: a name, typed keys, known result fields.")
def _declaration(survey: Survey) -> Iterator[Fault]:
    for attribute, problem, remedy in _problems(survey.stage):
        yield Fault(problem, line_of_attribute(type(survey.stage), attribute), remedy)


def _problems(stage: Stage) -> Iterator[tuple[str, str, str]]:
    """`(attribute, what is wrong, what to change)`."""
    yield from _misspelt(type(stage))
    name: Any = stage.name
    category: Any = stage.category
    if not isinstance(name, str) or not name.strip():
        yield ("name", f"its name is {name!r}", "give it a name that plans and trails can show")
    if not isinstance(category, Category):
        yield ("category", f"its category is {category!r}", "use a member of karenina_core.Category")
    for attribute in LISTS:
        # an instance may keep the settings of its plugin under the name of the declaration
        listed: Any = getattr(type(stage) if attribute == "settings" else stage, attribute)
        if isinstance(listed, str) or not all(isinstance(name, str) for name in listed):
            yield (attribute, f"{attribute} is {listed!r}", "write a tuple of names or keys")
        elif len(set(listed)) < len(listed):
            yield (attribute, f"{attribute} names something twice: {list(map(str, listed))}", "remove the second one")
    for attribute in ("requires", "reads", "produces"):
        for key in getattr(stage, attribute):
            yield from _key_problems(attribute, key)
    if both := set(stage.requires) & set(stage.reads):
        yield ("reads", f"{', '.join(map(str, sorted(both)))} is required and read", "requires is enough; remove it")
    for attribute in ("result_fields", "revises", "extends"):
        for name in getattr(stage, attribute):
            if "." not in name and name not in result_fields():
                yield (attribute, f"results have no field {str(name)!r}", f"call it 'yourplugin.{name}'")
            if name in VERDICT_VIEWS:
                yield (attribute, f"{str(name)!r} is a view of the ledger", "call context.record(...) instead")
    for name in (*stage.after, *stage.before):
        if name == stage.name:
            yield ("after", "it waits for itself", "remove its own name from after and before")


def _misspelt(cls: type[Stage]) -> Iterator[tuple[str, str, str]]:
    """Attributes that no one reads or calls."""
    own = {name for base in cls.__mro__[: cls.__mro__.index(Stage)] for name in vars(base)}
    known = [name for name in vars(Stage) if not name.startswith("_")]
    for name in sorted(own):
        close = [] if name in known or name.startswith("_") else difflib.get_close_matches(name, known, 1, MISSPELT)
        if close and close[0] not in own:
            yield (name, f"nothing reads its {name!r} (did you mean {close[0]!r}?)", f"call it {close[0]!r}")
    if cls.execute is Stage.execute:
        yield ("execute", "it has no execute", "write `def execute(self, context)`, or `async def`")
        return
    try:
        inspect.signature(cls.execute).bind(None, None)
    except TypeError as error:
        yield ("execute", f"execute cannot be called: {error}", "write `def execute(self, context)`")


def _key_problems(attribute: str, key: str) -> Iterator[tuple[str, str, str]]:
    name, known = str(key), KNOWN_KEYS.get(str(key))
    if known is not None:
        member = f"use ArtifactKeys.{known.upper()}"
        if attribute == "produces" and not isinstance(key, Key):
            yield (attribute, f"{name!r} has no type, so nothing checks what is written", member)
        elif isinstance(key, Key) and key.type != known.type:
            yield (attribute, f"{name!r} is declared with the type {key.type!r}, not {known.type!r}", member)
        return
    plugin, dot, rest = name.partition(".")
    if not (plugin and dot and rest):
        hint = did_you_mean(name, KNOWN_KEYS)
        yield (attribute, f"karenina has no artifact {name!r}{hint}", f"call one of your own 'yourplugin.{name}'")
    elif attribute == "produces" and not isinstance(key, Key):
        yield (attribute, f"{name!r} has no type, so nothing checks what is written", f"write Key({name!r}, type)")


@DECLARED.add("included_when", "included_when is a pure function of the plan request.")
def _included_when(survey: Survey) -> Iterator[Fault]:
    stage = survey.stage
    line = line_of_attribute(type(stage), "included_when")
    for request in (PlanRequest(), *every(plan_requests(stage.features), survey.max_examples)):
        before = snapshot(request)
        answers = attempt(lambda request: [stage.included_when(request) for _ in range(2)], request)
        if isinstance(answers, Raised):
            by, file = "included_when", file_of(type(stage))
            fault = Fault.raised(answers.error, "let it answer for every request", by=by, line=line, file=file)
            yield evolve(fault, problem=f"{fault.problem} for {request}")
            return
        first, second = answers
        if first not in (True, False):
            yield Fault(f"included_when answered {first!r}", line, "return True or False")
        if first is not second:
            problem = f"asked twice about {request}, included_when returned {first} and then {second}"
            yield Fault(problem, line, "let it depend on the mode, the features and the rubric of the request alone")
        if changed := difference(before, request):
            yield Fault(f"included_when changed the request: {changed}", line, "let it only read")


@DECLARED.add("check_config", "check_config reports problems, and nothing else.")
def _check_config(survey: Survey) -> Iterator[Fault]:
    stage, app = survey.stage, application(installed=True)
    line = line_of_attribute(type(stage), "check_config")
    some = verification_configs(with_models=False)
    for config in [survey.config] if survey.config else every(some, min(survey.max_examples, MOST_CONFIGS)):
        before = snapshot(config)
        answers = attempt(lambda config: [list(stage.check_config(config, app)) for _ in range(2)], config)
        if isinstance(answers, Raised):
            by, file = "check_config", file_of(type(stage))
            yield Fault.raised(answers.error, "report what is wrong as a Problem", by=by, line=line, file=file)
            return
        if odd := [problem for problem in answers[0] if not isinstance(problem, Problem)]:
            yield Fault(f"check_config reported {odd[0]!r}", line, "report Problem('name of a setting', 'what to do')")
        if answers[0] != answers[1]:
            yield Fault("asked twice, check_config gave two answers", line, "let it depend on its arguments alone")
        if changed := difference(before, config):
            yield Fault(f"check_config changed the configuration: {changed}", line, "let it only read")
