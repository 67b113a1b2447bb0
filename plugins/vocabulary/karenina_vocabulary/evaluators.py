"""Evaluating rubric traits: what an evaluator is given, and what it gives back. Evaluators are plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from attrs import define, field, frozen

from karenina_core.errors import ErrorKind, KareninaError, Problem, did_you_mean, one_line, place_of
from karenina_core.log import get_logger
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.engine import error_kind, stops_item
from karenina_core.ports.call_origin import current_trait
from karenina_core.values.rubric import RubricTrait

from .planned_calls import PlannedCall
from .traces import EvaluationInput

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina
    from karenina_core.values.config import VerificationConfig
    from karenina_core.values.question import Question

T = TypeVar("T")
AnyTrait = TypeVar("AnyTrait", bound=RubricTrait)
TraitState = Literal["ok", "invalid", "missing", "error", "skipped"]
"""`ok`: there is a score. `invalid`: the reply is not a score of this trait. `missing`: nothing was replied about it.
`error`: it could not be evaluated. `skipped`: it was not due for evaluation."""
CACHED_FROM = 4_000
"""Characters of an answer from which calls that begin alike take their turns. Providers keep no beginning of a prompt
that is shorter than 1,024 tokens: https://platform.openai.com/docs/guides/prompt-caching."""
log = get_logger("karenina.rubric")


@frozen(kw_only=True)
class TraitEvidence:
    """What deep judgment leaves behind about one trait."""

    excerpts: tuple[Mapping[str, Any], ...] = ()
    """Each `{"text", "confidence", "similarity_score", ...}`."""
    reasoning: str = ""
    risk: Mapping[str, Any] | None = None
    """`{"overall_risk": risk, "per_excerpt_risks": [risk or None, ...]}`, the risks in the order of the excerpts, None
    for those that were not assessed; None where nothing was assessed."""
    metadata: Mapping[str, Any] = field(factory=dict)
    """`{"stages_completed", "model_calls", "had_excerpts", "excerpt_retry_count",
    "excerpt_validation_failed", ...}`; a list `warnings` in it is reported by the stage that evaluates the
    rubric, in the order of the traits."""
    lacks_excerpts: bool = False
    """Whether quotations were wanted and none was found; never true because a model could not be reached."""


@frozen(kw_only=True)
class TraitScore:
    """What became of one trait."""

    value: Any = None
    """The score as plain data; None unless the state is `ok`."""
    state: TraitState = "ok"
    reason: str = ""
    """Why there is no score, in words for people."""
    kind: ErrorKind = "stage"
    """What went wrong where the state is `error`: the outcome of an item without any score is called so."""
    label: str | None = None
    """The class of a literal trait, or the text that was replied instead of one."""
    details: Mapping[str, Any] = field(factory=dict)
    """More about the score, by name: plain data that becomes columns of reports. What no file can hold is left out and
    named in the detail `not_kept`; texts are cut to 10,000 characters."""
    evidence: TraitEvidence | None = None
    caveats: tuple[str, ...] = ()
    """Names of what a reader of the result should mind, for its `caveats`."""
    standard: TraitScore | None = None
    """The score of a trait that was judged deeply as the judge gives it in the standard way, where both are wanted."""

    def state_row(self) -> dict[str, str]:
        """What `trait_states` of a result holds of the trait."""
        kind = {"kind": self.kind} if self.state == "error" else {}
        return {"state": self.state, "reason": self.reason, **kind}

    @classmethod
    def failed(cls, error: BaseException, module: str = "", **more: Any) -> TraitScore:
        """The score of a trait whose evaluation ended with this error, in code of this module."""
        expected = isinstance(error, KareninaError) and str(error)
        reason = str(error) if expected else f"{one_line(error)}{place_of(error, module)}"
        return cls(state="error", reason=reason, kind=error_kind(error), **more)


def failure(error: BaseException, event: str, *, module: str = "", **facts: Any) -> TraitScore:
    """The score of what ended with this error, in code of this module. Raises it again where it ends the item, and logs
    it where it is none of karenina's."""
    if stops_item(error):
        raise error
    if not isinstance(error, KareninaError):
        log.warning(event, **facts, error=f"{one_line(error)}{place_of(error, module)}")
    return TraitScore.failed(error, module)


@define(eq=False)
class TraitCase:
    """One answer whose traits are evaluated. Shared by all evaluators of the item."""

    context: VerificationContext
    given: EvaluationInput
    """The text that is scored: the whole trace, or the final message."""
    places: asyncio.Semaphore
    _begun: dict[str, asyncio.Event] = field(factory=dict, init=False)

    @property
    def label(self) -> str:
        """What the text is called in prompts."""
        return "trace" if self.given.used_full_trace else "response"

    async def in_turn(self, work: Callable[[], Awaitable[T]], alike: str = "") -> T:
        """Run something that calls a model, once one of the item's `rubric_concurrency` places is free.

        Calls whose prompts and schemas begin alike, up to the end of a long answer, give the same text as `alike`. The
        first of them ends before the others begin: until then no provider has its beginning in a cache, and each of
        them would be paid in full. Calls that are sent in batches do not wait. Do not call it from within itself.
        """
        if not alike or len(self.given.text) < CACHED_FROM or self.context.parsing.config.batch:
            return await self._placed(work)
        if (first := self._begun.get(alike)) is not None:
            await first.wait()
            return await self._placed(work)
        self._begun[alike] = first = asyncio.Event()
        try:
            return await self._placed(work)
        finally:
            first.set()

    async def _placed(self, work: Callable[[], Awaitable[T]]) -> T:
        async with self.places:
            return await work()

    async def each(
        self, traits: Sequence[AnyTrait], score: Callable[[AnyTrait], Awaitable[TraitScore]], *, module: str = ""
    ) -> dict[str, TraitScore]:
        """Score traits at the same time; one that fails costs no other its score. `module` is the one of the evaluator:
        where an error was in its package is named."""

        async def one(trait: AnyTrait) -> TraitScore:
            current_trait.set(trait.name)  # for this task alone
            try:
                return await score(trait)
            except BaseException as error:  # it runs code of its own, and may let a cancellation of its own out
                return failure(error, "a trait could not be evaluated", module=module, trait=trait.name)

        scores = await asyncio.gather(*map(one, traits))
        return {trait.name: found for trait, found in zip(traits, scores, strict=True)}


class TraitEvaluator(Generic[AnyTrait]):
    """Base class of trait evaluators. A subclass names its type of trait and implements `score`, or `evaluate`.

    It is made once per application, with its plugin's settings where its constructor takes one argument, and must be
    able to evaluate several items at the same time.
    """

    name: ClassVar[str]
    """The `type_name` of the traits that it scores."""
    trait_class: ClassVar[type[RubricTrait]]
    """Their class."""
    asks_judge: ClassVar[bool] = False
    """Whether it calls the parsing model; such traits of a dynamic rubric are evaluated only where their concept is
    present in the answer."""
    file_type: ClassVar[str] = ""
    """What follows the scope in the `additionalType` of a rating in benchmark files, such as `CitationTrait` for
    `GlobalCitationTrait`. The published types have fixed ones."""

    def check_config(self, traits: Sequence[AnyTrait], config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        """What it cannot work with, each as the path of a setting and what to do; asked once, before a run. A problem
        that is not `fatal` is a note.

        `traits` are those of the run that it would score. It must be quick and call no model.
        """
        return ()

    def calls(
        self, traits: Sequence[AnyTrait], question: Question, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        """The calls that scoring these traits takes for one item; see `planned_calls`. By default none where it asks no
        judge, and otherwise any number."""
        return [PlannedCall(task=f"traits of type {self.name}", least=0, most=None)] if self.asks_judge else ()

    async def evaluate(self, traits: Sequence[AnyTrait], case: TraitCase) -> Mapping[str, TraitScore]:
        """The score of every trait by its name. One that is left out counts as missing; what this raises is the error
        of all of them."""
        return await case.each(traits, lambda trait: self.score(trait, case), module=type(self).__module__)

    async def score(self, trait: AnyTrait, case: TraitCase) -> TraitScore:
        """The score of one trait. Whatever it raises is the error of this trait alone."""
        raise NotImplementedError(f"{type(self).__name__} implements neither score nor evaluate")

    def encode(self, trait: AnyTrait) -> Mapping[str, Any]:
        """The trait's fields as plain data for a benchmark file, without `name` and `description`."""
        from karenina_core.values.convert import unstructure  # cattrs is only needed where files are written

        data: dict[str, Any] = unstructure(trait)
        return {key: value for key, value in data.items() if key not in ("name", "description")}

    def decode(self, data: Mapping[str, Any]) -> AnyTrait:
        """The trait from plain data: `name`, `description` and what `encode` wrote. Raises ValueError."""
        from karenina_core.values.convert import structure  # or read

        trait: Any = structure(data, self.trait_class)
        return trait  # type: ignore[no-any-return]  # the class that the evaluator itself names


def evaluator_problems(traits: Iterable[RubricTrait], config: VerificationConfig, app: Karenina) -> Iterator[Problem]:
    """What the evaluators of these traits cannot work with; also the types that no installed plugin scores."""
    by_type: dict[str, list[RubricTrait]] = {}
    for trait in traits:
        by_type.setdefault(trait.type_name, []).append(trait)
    for type_name, own in by_type.items():
        if type_name not in app.traits:
            what = f"no plugin scores traits of the type {type_name!r} ({own[0].name!r})"
            yield Problem("rubric", f"{what}{did_you_mean(type_name, app.traits)}.{app.inactive()}")
            continue
        try:
            yield from tuple(app.trait_evaluator(type_name).check_config(own, config, app))
        except Exception as error:  # an evaluator runs code of its own
            yield Problem("rubric", f"the evaluator of {type_name!r} cannot be used: {one_line(error)}")
