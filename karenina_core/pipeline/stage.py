"""What a stage is: a declaration and a coroutine."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, get_args, runtime_checkable

from attrs import field, frozen

from ..errors import ContractError, Problem, did_you_mean
from ..values.config import EvaluationMode, VerificationConfig, facts
from ..values.fields import names
from ..values.question import Question
from ..values.result_parts import loading
from ..values.rubric import Rubric
from .artifact_keys import VERDICT_VIEWS, Keys
from .declaration import Category, result_fields

if TYPE_CHECKING:
    from ..plugin.application import Karenina
    from .context import VerificationContext

__all__ = [
    "BaseVerificationStage",
    "Category",
    "Condition",
    "PlanRequest",
    "Skip",
    "Stage",
    "VerificationStage",
    "always",
    "feature",
    "in_mode",
    "with_other_traits",
    "with_traits",
]

LISTS = (
    *("requires", "reads", "produces", "result_fields", "revises", "extends"),
    *("after", "before", "features", "settings"),
)


@frozen(kw_only=True)
class PlanRequest:
    """What a plan is made for."""

    mode: EvaluationMode = "template_only"
    features: frozenset[str] = field(default=frozenset(), converter=names)
    rubric: Rubric | None = None

    def __attrs_post_init__(self) -> None:
        if self.mode not in get_args(EvaluationMode):
            raise ValueError(f"evaluation_mode must be one of {', '.join(get_args(EvaluationMode))}, not {self.mode!r}")

    @property
    def evaluates_template(self) -> bool:
        return self.mode != "rubric_only"

    @property
    def evaluates_rubric(self) -> bool:
        return self.mode != "template_only" and bool(self.traits)

    @property
    def traits(self) -> frozenset[str]:
        """The types of traits of the rubric."""
        if self.rubric is None:
            return frozenset()
        return frozenset(trait.type_name for trait in self.rubric)


@frozen
class Condition:
    """A pure function of the plan request, with the words for when it is false. Combine with `&`, `|` and `~`."""

    test: Callable[[PlanRequest], bool]
    why_not: str
    features: frozenset[str] = frozenset()
    parts: tuple[Condition, ...] = ()
    """The conditions that must all hold, where there are several; only the one that fails is explained."""

    def __call__(self, request: PlanRequest) -> bool:
        return bool(self.test(request))

    def __and__(self, other: Condition) -> Condition:
        parts = (*(self.parts or (self,)), *(other.parts or (other,)))
        words = "; ".join(part.why_not for part in parts)
        return Condition(lambda r: all(part(r) for part in parts), words, self.features | other.features, parts)

    def __or__(self, other: Condition) -> Condition:
        words = f"{self.why_not} and {other.why_not}"
        return Condition(lambda r: self(r) or other(r), words, self.features | other.features)

    def __invert__(self) -> Condition:
        words = f"feature {', '.join(sorted(self.features))} is on" if self.features else f"not: {self.why_not}"
        return Condition(lambda r: not self(r), words)

    def explain(self, request: PlanRequest) -> str:
        """Why the condition is false for this request."""
        return next((part.why_not for part in self.parts if not part(request)), self.why_not)


always = Condition(lambda request: True, "")


def feature(name: str) -> Condition:
    """Included when the feature is switched on."""
    return Condition(
        lambda request: name in request.features, f"feature {name} is off (--with {name})", frozenset({name})
    )


def in_mode(*modes: EvaluationMode) -> Condition:
    """Included in these evaluation modes."""
    return Condition(lambda request: request.mode in modes, f"only in {' and '.join(modes)}")


def with_traits(*kinds: str) -> Condition:
    """Included when the mode evaluates rubrics and the rubric has a trait of one of these kinds."""
    return Condition(
        lambda request: request.evaluates_rubric and bool(request.traits & set(kinds)),
        f"the mode evaluates no rubric with {', '.join(kinds)} traits",
    )


def with_other_traits(*kinds: str) -> Condition:
    """Included when the mode evaluates rubrics and the rubric has a trait of a type that is not one of these."""
    return Condition(
        lambda request: request.evaluates_rubric and bool(request.traits - set(kinds)),
        f"the mode evaluates no rubric with traits that are not {', '.join(kinds)}",
    )


@frozen
class Skip:
    """False, with the reason why a stage does not run for this item."""

    reason: str

    def __bool__(self) -> bool:
        return False


@runtime_checkable
class VerificationStage(Protocol):
    """What the engine needs of a stage."""

    name: str

    @property
    def requires(self) -> Keys: ...

    @property
    def produces(self) -> Keys: ...

    def should_run(self, context: VerificationContext) -> bool | Skip: ...

    def execute(self, context: VerificationContext) -> Awaitable[None] | None: ...


class Stage:
    """Base class of stages. A subclass declares what it reads and writes and implements `execute`.

    `execute` may be a coroutine function or a plain one; a plain one that blocks (`blocking = True`) runs in a thread.
    """

    name: ClassVar[str] = ""
    """Its name in plans, trails and `after`/`before`; the class's name by default."""
    version: ClassVar[str] = "1"
    """Of its code. With another one, no reply of a model to the stage before is used again; see `karenina resume`."""
    category: ClassVar[Category] = Category.ENHANCEMENT
    requires: ClassVar[Any] = Keys()
    """Artifacts that must exist: checked before anything runs."""
    reads: ClassVar[Any] = Keys()
    """Artifacts that may exist."""
    produces: ClassVar[Any] = Keys()
    """Artifacts that this stage writes, once.

    `verify_result` and `field_verification_result` are recorded, not written.
    """
    result_fields: ClassVar[Any] = Keys()
    """Fields of the result that this stage sets, once; those of other packages are called `plugin.key`."""
    revises: ClassVar[Any] = Keys()
    """Fields of the result that an earlier stage sets and this one may set again, because it knows better."""
    extends: ClassVar[Any] = Keys()
    """Tables and lists of the result to which this stage adds entries of its own; another stage may have set them."""
    features: ClassVar[Any] = ()
    """Optional behaviour that it serves; those of `included_when` are added by themselves."""
    included_when: ClassVar[Any] = always
    """A `Condition`, or a function of the plan request."""
    after: ClassVar[Any] = ()
    before: ClassVar[Any] = ()
    """Names of stages, where data does not decide the order. Names that are not in the plan are ignored."""
    settings: ClassVar[Any] = ()
    """Settings of a run that only this stage reads, alone or with others that name them: where none of these is in a
    plan, a note says which of the settings were changed and have no effect."""
    final: ClassVar[bool] = False
    """Runs last, whatever happened, and sees everything."""
    blocking: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        for attribute in LISTS:
            value = getattr(cls, attribute)
            if isinstance(value, str):
                raise ContractError(f"{cls.name}.{attribute} is a text; write ({value!r},)")
            setattr(cls, attribute, Keys(value))
        if not isinstance(cls.included_when, Condition):
            test = inspect.unwrap(cls.__dict__.get("included_when", cls.included_when))
            cls.included_when = Condition(test, "its included_when excludes it from this plan")
        cls.features = Keys(sorted({*cls.features, *cls.included_when.features}))
        _check_declaration(cls)

    def __new__(cls, *_: Any, **__: Any) -> Self:
        known = facts()  # not when the class is made: a module may declare settings and a stage
        for name in set(cls.settings) - set(known):
            hint = did_you_mean(name, known)
            raise ContractError(f"{cls.name}.settings holds {str(name)!r}, which is not a setting of a run{hint}")
        return super().__new__(cls)

    def check_config(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        """What this stage cannot work with, each as the path of a setting and what to do; asked once, before a run.

        A problem that is not `fatal` is a note. Called for the stages of the run's plans only, with the mode of the run
        in `config`. It must be quick and call no model. `karenina plan` asks with a configuration without models: then
        nothing is to be looked for that needs a key or a file.
        """
        return ()

    def check_rubrics(self, rubrics: Sequence[Rubric], config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        """The same about the rubrics that a run would evaluate, one for each question; asked where there are any."""
        return ()

    def check_questions(
        self, questions: Sequence[Question], config: VerificationConfig, app: Karenina
    ) -> Iterable[Problem]:
        """The same about the questions of a run."""
        return ()

    def check_left_out(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        """What a run is refused for, or its notes say, where this stage is installed and in none of its plans."""
        return ()

    def scores(self, type_name: str) -> bool:
        """Whether it scores rubric traits of this type; a plan for traits that no stage scores is refused."""
        return False

    def should_run(self, context: VerificationContext) -> bool | Skip:
        """Whether to run for this item; the default is no once an error is set. A `Skip` says why not."""
        if context.error is not None:
            return Skip(f"an error was set by {context.error_stage or 'an earlier stage'}")
        return True

    @abstractmethod
    def execute(self, context: VerificationContext) -> Awaitable[None] | None:
        """Do the work: read and write through the context."""
        raise NotImplementedError(f"{self.name} needs an execute method")

    def __repr__(self) -> str:
        return f"<stage {self.name}>"


BaseVerificationStage = Stage


def _check_declaration(cls: type[Stage]) -> None:
    if inspect.iscoroutinefunction(cls.should_run):
        raise ContractError(
            f"{cls.name}.should_run is an async function and would never be awaited; make it a plain one"
        )
    if inspect.isgeneratorfunction(cls.execute) or inspect.isasyncgenfunction(cls.execute):
        raise ContractError(f"{cls.name}.execute is a generator and would never run; remove the `yield`")
    if not isinstance(cls.name, str) or not cls.name.strip():
        raise ContractError(f"the stage {cls.__name__} needs a name that is a text, not {cls.name!r}")
    if not isinstance(cls.category, Category):
        raise ContractError(f"{cls.name}.category must be a Category, such as Category.GUARD, not {cls.category!r}")
    for attribute in LISTS:
        for key in getattr(cls, attribute):
            if not isinstance(key, str) or not key or key.startswith(".") or key.endswith("."):
                raise ContractError(f"{cls.name}.{attribute} holds {key!r}, which is not a name")
    for key in set(cls.produces) & ({*cls.requires, *cls.reads} - VERDICT_VIEWS):
        raise ContractError(f"{cls.name} both reads and produces {str(key)!r}; remove one of the two lines")
    for name in set(cls.result_fields) & set(cls.revises):
        raise ContractError(f"{cls.name} both sets and revises {str(name)!r}; remove one of the two lines")
    for name in set(cls.extends) & {*cls.result_fields, *cls.revises}:
        raise ContractError(f"{cls.name} extends {str(name)!r} and sets it too; remove one of the two lines")
    for name in (*cls.result_fields, *cls.revises, *cls.extends):
        if "." not in name and not loading() and name not in result_fields():
            raise ContractError(
                f"{cls.name}: karenina's results have no field {str(name)!r}; call it 'yourplugin.{name}'"
            )
