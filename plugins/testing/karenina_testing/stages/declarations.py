"""What can be checked about a stage without running it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import evolve

from karenina_core.errors import Problem, did_you_mean
from karenina_core.pipeline.declaration import Category, result_fields
from karenina_core.pipeline.keys import VERDICT_VIEWS, Key
from karenina_core.pipeline.stage import LISTS, PlanRequest, Stage
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig

from ..checks import Fault, Raised, attempt
from ..compare import difference, snapshot
from ..examples import every
from ..strategies.models import plan_requests
from ..watch.source_lines import file_of, line_of_attribute
from .examples import KNOWN_KEYS


def declaration_problems(stage: Stage) -> Iterator[tuple[str, str, str]]:
    """`(attribute, what is wrong, what to change)`."""
    name: Any = stage.name
    category: Any = stage.category
    if not isinstance(name, str) or not name.strip():
        yield "name", f"its name is {name!r}", "give it a name that plans and trails can show"
    if not isinstance(category, Category):
        yield "category", f"its category is {category!r}", "use a member of karenina_core.Category"
    for attribute in LISTS:
        # an instance may keep the settings of its plugin under the name of the declaration
        listed: Any = getattr(type(stage) if attribute == "settings" else stage, attribute)
        if isinstance(listed, str) or not all(isinstance(name, str) for name in listed):
            yield attribute, f"{attribute} is {listed!r}", "write a tuple of names or keys"
        elif len(set(listed)) < len(listed):
            yield attribute, f"{attribute} names something twice: {list(map(str, listed))}", "remove the second one"
    for attribute in ("requires", "reads", "produces"):
        for key in getattr(stage, attribute):
            yield from _key_problems(attribute, key)
    if both := set(stage.requires) & set(stage.reads):
        yield "reads", f"{', '.join(map(str, sorted(both)))} is required and read", "requires is enough; remove it"
    for attribute in ("result_fields", "revises", "extends"):
        for name in getattr(stage, attribute):
            if "." not in name and name not in result_fields():
                yield attribute, f"results have no field {str(name)!r}", f"call it 'yourplugin.{name}'"
            if name in VERDICT_VIEWS:
                yield attribute, f"{str(name)!r} is a view of the ledger", "call context.record(...) instead"
    for name in (*stage.after, *stage.before):
        if name == stage.name:
            yield "after", "it waits for itself", "remove its own name from after and before"


def _key_problems(attribute: str, key: str) -> Iterator[tuple[str, str, str]]:
    name, known = str(key), KNOWN_KEYS.get(str(key))
    if known is not None:
        member = f"use ArtifactKeys.{known.upper()}"
        if attribute == "produces" and not isinstance(key, Key):
            yield attribute, f"{name!r} has no type, so nothing checks what is written", member
        elif isinstance(key, Key) and key.type != known.type:
            yield attribute, f"{name!r} is declared with the type {key.type!r}, not {known.type!r}", member
        return
    plugin, dot, rest = name.partition(".")
    if not (plugin and dot and rest):
        hint = did_you_mean(name, KNOWN_KEYS)
        yield attribute, f"karenina has no artifact {name!r}{hint}", f"call one of your own 'yourplugin.{name}'"
    elif attribute == "produces" and not isinstance(key, Key):
        yield attribute, f"{name!r} has no type, so nothing checks what is written", f"write Key({name!r}, type)"


def careless_check(stage: Stage, app: Karenina, configs: Iterable[VerificationConfig]) -> Iterator[Fault]:
    """What is wrong with check_config: it raises, answers with something else, or not the same twice."""
    line = line_of_attribute(type(stage), "check_config")
    for config in configs:
        before = snapshot(config)
        answers = attempt(lambda config: [list(stage.check_config(config, app)) for _ in range(2)], config)
        if isinstance(answers, Raised):
            yield _raised(stage, "check_config", answers.error, "report what is wrong as a Problem", line)
            return
        if odd := [problem for problem in answers[0] if not isinstance(problem, Problem)]:
            yield Fault(f"check_config reported {odd[0]!r}", line, "report Problem('name of a setting', 'what to do')")
        if answers[0] != answers[1]:
            yield Fault("asked twice, check_config gave two answers", line, "let it depend on its arguments alone")
        if changed := difference(before, config):
            yield Fault(f"check_config changed the configuration: {changed}", line, "let it only read")


def impure_condition(stage: Stage, max_examples: int) -> Iterator[Fault]:
    """What keeps included_when from being a pure function of the plan request."""
    line = line_of_attribute(type(stage), "included_when")
    for request in (PlanRequest(), *every(plan_requests(stage.features), max_examples)):
        before = snapshot(request)
        answers = attempt(lambda request: [stage.included_when(request) for _ in range(2)], request)
        if isinstance(answers, Raised):
            fault = _raised(stage, "included_when", answers.error, "let it answer for every request", line)
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


def _raised(stage: Stage, method: str, error: BaseException, remedy: str, line: str) -> Fault:
    return Fault.raised(error, remedy, by=method, line=line, file=file_of(type(stage)))
