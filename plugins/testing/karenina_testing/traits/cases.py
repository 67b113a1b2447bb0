"""Evaluating traits outside of a run: an evaluator, its traits, one answer, and a judge whose prompts are not known."""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args

from attrs import evolve, field, frozen
from karenina_calls.ports.client import ModelClient
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitCase, TraitEvidence, TraitScore, TraitState
from karenina_vocabulary.traces import EvaluationInput

from karenina_core.errors import ErrorKind, PortError, one_line
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric, RubricTrait

from ..checks import Fault, Raised, attempt
from ..fakes import WORDS, Schema, Script, ScriptedCall, ScriptedLLM, ScriptedReply, Swap, fitting
from ..instances import Made
from ..stages.inputs import StageInput, asked_once
from ..watch.loops import StillRunning, in_loop, within

CONTENTS = ("properties", "required", "items", "minItems")
"""What a schema of an object or a list states about the values in it."""
OWN_KINDS = ("template", "stage", "cancelled")
"""What no provider is the cause of."""
LONGEST = 30.0
"""Seconds for one answer; the judge replies at once."""
QUESTION = "Which protein does venetoclax inhibit, and how well is that known?"
GOLD = "B-cell lymphoma 2 (reference 7f41c)"
"""The reference answer, which no answer holds."""
TEXT = (
    "Venetoclax inhibits BCL2 [1]. It binds with a Ki below 0.01 nM (doi:10.1038/nm.3048). "
    "It is approved since 2016; I am not sure about every indication."
)
REPORT = "give such a trait a TraitScore with a state, a reason and no value"
CROWD = 5
"""Traits that there are at least in checks which need several."""
STATES = get_args(TraitState)


def obedient(call: ScriptedCall, *, most: bool = False, swap: Swap | None = None) -> ScriptedReply:
    """A reply that fits what is asked for; a sentence where no data is asked for."""
    if call.output is None:
        return WORDS
    found: Mapping[str, Any] = fitting(call.output.schema, most=most, swap=swap)
    return found


def _gone(kind: ErrorKind) -> Script:
    return lambda call: PortError(f"the judge cannot be asked ({kind})", kind=kind)


GONE: Mapping[str, Script] = {kind: _gone(kind) for kind in get_args(ErrorKind) if kind not in OWN_KINDS}
"""Providers that fail, in every way that a call can."""


def prose(call: ScriptedCall) -> ScriptedReply:
    """A text where data is asked for."""
    return "I would rather talk about {the weather}.\0"


def strange(call: ScriptedCall) -> ScriptedReply:
    """Data that was not asked for."""
    return {"something_else": [1, None]}


def silent(call: ScriptedCall) -> ScriptedReply:
    """An empty reply."""
    return ""


def _off_scale(schema: Schema) -> tuple[Any, ...]:
    fit = fitting({key: value for key, value in schema.items() if key not in CONTENTS})
    if isinstance(fit, bool):
        return ("perhaps",)
    if isinstance(fit, int | float):
        return (fit + 100_000,)
    return ("none of these",) if "enum" in schema else ()


off_scale = partial(obedient, swap=_off_scale)
"""Data of the right shape whose values are not allowed: numbers far outside, words that are no class."""
above = partial(obedient, swap=lambda schema: (schema["maximum"] + 1,) if "maximum" in schema else ())
"""Data whose numbers are one more than the greatest that was asked for."""
below = partial(obedient, swap=lambda schema: (schema["minimum"] - 1,) if "minimum" in schema else ())
"""Data whose numbers are one less than the least that was asked for."""


@frozen(kw_only=True, eq=False)
class Trial:
    """What is examined, and with what."""

    made: Made
    traits: tuple[Any, ...]
    broken: tuple[Any, ...] = ()
    """Traits that cannot be evaluated."""
    text: str = TEXT
    reply: Script | None = None
    config: VerificationConfig = field(factory=VerificationConfig)
    app: Karenina | None = None
    most_calls: int = 10
    """How often the judge may be asked about one trait."""

    @property
    def cls(self) -> Any:
        return self.made.thing if isinstance(self.made.thing, type) else type(self.made.thing)

    @property
    def asks_judge(self) -> bool:
        return bool(getattr(self.cls, "asks_judge", False))

    def judge(self, script: Script | None = None, *, most: bool = False, seconds: float = 0.0) -> ScriptedLLM:
        """By default the caller's, or else an obedient one."""
        replies = script or self.reply or partial(obedient, most=most)
        return ScriptedLLM(replies, channels=("json_schema", "text"), seconds=seconds)

    def case(self, judge: ScriptedLLM, text: str | None = None, traits: Sequence[Any] | None = None) -> TraitCase:
        """A fresh context whose parsing model is this judge; what fails is not tried again."""
        answer = self.text if text is None else text
        question = Question(question=QUESTION, raw_answer=GOLD)
        calls: list[Any] = []
        context = StageInput(
            question=question,
            config=self.config,
            mode="template_and_rubric",
            rubric=Rubric.from_traits(self.traits if traits is None else traits).labelled("global"),
            artifacts={ArtifactKeys.RAW_LLM_RESPONSE: answer},
        ).context(
            app=self.app,
            calls=calls,
            parsing=ModelClient(asked_once("judge", judge), calls, question.id, question.question),
        )
        return TraitCase(context, EvaluationInput(answer, True), asyncio.Semaphore(self.config.rubric_concurrency))

    async def scores(
        self,
        judge: ScriptedLLM | None = None,
        *,
        evaluator: Any = None,
        text: str | None = None,
        traits: Sequence[Any] | None = None,
        rubric: Sequence[Any] | None = None,
    ) -> Mapping[str, TraitScore]:
        """What a new evaluator, or this one, returns. Raises what it raises, and StillRunning.

        `rubric` are the traits that the context knows; by default those that are scored.
        """
        case = self.case(judge or self.judge(), text, traits if rubric is None else rubric)
        given = self.traits if traits is None else traits
        thing = evaluator or self.made.fresh()
        found: Mapping[str, TraitScore] = await within(thing.evaluate(list(given), case), LONGEST)
        return found

    def scored(self, judge: ScriptedLLM, text: str | None = None) -> Mapping[str, TraitScore]:
        """The scores; none where it raises, which other checks report. Raises StillRunning."""
        outcome = attempt(lambda: in_loop(self.scores(judge, text=text)))
        if not isinstance(outcome, Raised):
            return outcome
        if isinstance(outcome.error, StillRunning):
            raise outcome.error
        return {}

    def crowded(self) -> Trial:
        """The same with five traits or more: where there are fewer, copies that have other names and descriptions."""
        copies = []
        for number in range(CROWD - len(self.traits)):
            trait = self.traits[number % len(self.traits)]
            copy = _copied(trait, f"Something else {number + 1}", f"What number {number + 1} is about.")
            copies += [] if copy is trait else [copy]
        return evolve(
            self, traits=(*self.traits, *copies), reply=self._tolerant if self.reply and copies else self.reply
        )

    def _tolerant(self, call: ScriptedCall) -> Any:
        """The caller does not know of copies: where its function fails, an obedient judge replies."""
        outcome = attempt(self.reply or obedient, call)
        return obedient(call) if isinstance(outcome, Raised) else outcome

    def renamed(self, suffix: str) -> tuple[Any, ...]:
        """The traits under other names, in their order; the same ones where one of them cannot be renamed."""
        copies = tuple(_copied(trait, f"{trait.name} {suffix}", trait.description) for trait in self.traits)
        return self.traits if any(map(operator.is_, copies, self.traits)) else copies

    def alone(self, trait: Any) -> Trial:
        return evolve(self, traits=(trait,))

    def fault(self, problem: str, remedy: str) -> Fault:
        return Fault(problem, self.made.line(), remedy)


def _copied(trait: Any, name: str, description: str | None) -> Any:
    """The trait itself where it cannot be copied: its class may allow some names only."""
    copy = attempt(partial(evolve, trait, name=name, description=None if trait.description is None else description))
    return trait if isinstance(copy, Raised) else copy


def comparable(found: Mapping[str, TraitScore]) -> dict[str, tuple[Any, ...]]:
    """What must be the same when the same is asked again."""
    return {name: (score.value, score.state, score.label) for name, score in sorted(found.items())}


def differs(first: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """The first trait, by name, whose score is another one."""
    for name in sorted(first.keys() | other.keys()):
        if first.get(name) != other.get(name):
            return f"{name!r} became {other.get(name)!r} instead of {first.get(name)!r} (score, state, label)"
    return None


def wrong_with(found: object, traits: Sequence[RubricTrait]) -> str | None:
    """What breaks the rules of scores: one for each trait, by its name, and of the right form."""
    if not isinstance(found, Mapping):
        return f"evaluate returned {type(found).__name__}"
    names = [trait.name for trait in traits]
    if missing := [name for name in names if name not in found]:
        return f"it gave no score for {missing[0]!r}"
    if strange := [name for name in found if name not in names]:
        return f"it gave a score for {strange[0]!r}, which is no trait that it was given"
    return next((f"{name!r}: {wrong}" for name in names if (wrong := _wrong_score(found[name]))), None)


def _wrong_score(score: object) -> str | None:
    if not isinstance(score, TraitScore):
        return f"its score is {type(score).__name__}, no TraitScore"
    state: object = score.state
    if state not in STATES:
        return f"its state is {state!r}"
    if score.state != "ok" and score.value is not None:
        return f"its state is {score.state}, and it has the score {score.value!r}"
    if score.state != "ok" and not (isinstance(score.reason, str) and score.reason.strip()):
        return f"its state is {score.state}, and there is no reason"
    if score.state == "ok" and score.value is None:
        return "its state is ok, and it has no score"
    for name in ("value", "details"):
        if problem := not_json(getattr(score, name)):
            return f"its {name} {problem}"
    label: object = score.label
    evidence: object = score.evidence
    if not isinstance(label, str | None) or not isinstance(evidence, TraitEvidence | None):
        return f"its label is {label!r} and its evidence {type(evidence).__name__}"
    return None


def not_json(value: object) -> str:
    """Why a value cannot be stored as JSON and read back; nothing where it can."""
    try:
        again = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        return f"cannot be JSON: {one_line(error)}"
    return "" if _listed(value) == again else "is not the same when it is read back from JSON"


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _listed(inner) for key, inner in value.items()}
    return [_listed(inner) for inner in value] if isinstance(value, list | tuple) else value
