"""`BaseAnswer` and `VerifiedField`: an answer template as a pydantic class.

Three ways to write one. *Verified*: every field is a `VerifiedField`, and `verify` and `verify_granular` come by
themselves. *Classic*: plain pydantic fields, a hook that sets `self.correct`, and a hand-written `verify`. *Mixed*:
both; plain fields then never influence the automatic verdict.

An inner class `VerificationStrategy` with the attribute `verify_strategy` says which verified fields must be right;
without one it is all of them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from attrs import evolve
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError
from pydantic_core import SchemaError

from karenina_core.errors import did_you_mean

from .coercions import careful_reader
from .primitives.base import VerificationPrimitive, derives
from .primitives.text import TracePrimitive
from .searches import run_patterns
from .strategies import AllOf, Condition, FieldCheck, condition_problems
from .verification import Comparison, Evidence, Verification, compare

RESERVED = {
    "id": "it holds the question's id",
    "correct": "it holds the ground truth",
    "regex": "it holds the checks on the raw trace",
    "ground_truth": "it is the hook that sets self.correct",
    "verify": "it is the method that decides",
    "verify_granular": "it is the method that gives partial credit",
    "verify_regex": "it is the method that runs self.regex",
    "VerificationStrategy": "it is the inner class that composes the fields' results",
}


def VerifiedField(
    description: str,
    ground_truth: Any,
    verify_with: VerificationPrimitive | None = None,
    weight: float = 1.0,
    extraction_hint: str | None = None,
    **field_kwargs: Any,
) -> Any:
    """A field whose extracted value is compared with `ground_truth` by the primitive `verify_with`.

    `weight` (finite, at least 0) counts in the granular score only. `extraction_hint` is advice for the judge that
    stays out of the schema. Everything else goes to pydantic's `Field`. Ground truth, primitive and weight never
    enter a schema. A primitive that uses no ground truth still gets a placeholder, `"N/A"` by convention. A `default`
    never stands in for what a judge did not find. A trace primitive makes a bool field that the judge never sees: its
    ground truth says whether the check on the trace has to hold.

    Raises ValueError or TypeError for a blank description, a missing primitive, a bad weight, an argument that
    pydantic does not know, or a ground truth that the primitive could never compare.
    """
    if not isinstance(description, str) or not description.strip():
        raise ValueError("VerifiedField needs a description: it tells the judge what to extract")
    if verify_with is None:
        raise ValueError("VerifiedField needs verify_with: the primitive that compares the value, such as ExactMatch()")
    if isinstance(verify_with, type) and issubclass(verify_with, VerificationPrimitive):
        raise TypeError(f"verify_with needs an instance: write {verify_with.__name__}(), not {verify_with.__name__}")
    if not derives(type(verify_with), VerificationPrimitive):
        raise TypeError(f"verify_with must be a verification primitive such as ExactMatch(), not {verify_with!r}")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
        raise ValueError(f"weight must be a finite number of at least 0, not {weight!r}")
    if extraction_hint is not None and not isinstance(extraction_hint, str):
        raise TypeError(f"extraction_hint must be a text, not {extraction_hint!r}")
    primitive = type(verify_with).__name__
    if ground_truth is None and verify_with.uses_ground_truth:
        raise ValueError(
            f"ground_truth None can never match with {primitive}: a field without a value means that the answer does "
            "not say; declare a bool field that asks whether it is there"
        )
    try:
        verify_with.check_ground_truth(ground_truth)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{primitive} cannot compare anything with this ground_truth: {error}") from None
    for name in field_kwargs:
        if name not in _FIELD_PARAMETERS:
            known = [*_FIELD_PARAMETERS, "weight", "extraction_hint"]
            raise TypeError(f"VerifiedField has no argument {name!r}{did_you_mean(name, known)}")
    if derives(type(verify_with), TracePrimitive) and "default_factory" not in field_kwargs:
        field_kwargs.setdefault("default", None)
    info = Field(description=description, **field_kwargs)
    info.metadata.append(Verification(ground_truth, verify_with, weight, extraction_hint))
    return info


_FIELD_PARAMETERS = frozenset(inspect.signature(Field).parameters) - {"extra"}


class BaseAnswer(BaseModel):
    """Base of every answer template.

    A hook sets `self.correct` (expected values by field) and `self.regex` (checks on the raw trace): either `def
    ground_truth(self)` or, in the older style, `def model_post_init(self, __context)`; where one class has both,
    only the second runs. `self.correct` of a class with verified fields is filled by itself unless the hook sets
    it.
    """

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    # No private attribute of pydantic: that would put a model_post_init into every class, where a hook belongs.
    __slots__ = ("_karenina_evidence",)

    __verified__: ClassVar[Mapping[str, Verification]] = {}
    __strategy__: ClassVar[Condition | None] = None
    """The tree that the author declared."""
    __tree__: ClassVar[Condition] = AllOf()
    """The tree that decides: the declared one, or all verified fields."""

    id: str | None = None

    if TYPE_CHECKING:

        def verify(self) -> bool: ...

        def verify_granular(self) -> float: ...

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A hook in this class body wins over a model_post_init that it would otherwise inherit.
        if "ground_truth" in cls.__dict__ and "model_post_init" not in cls.__dict__:
            cls.model_post_init = BaseAnswer.model_post_init  # type: ignore[method-assign]  # inherited ones are in the way

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name in sorted(set(inspect.get_annotations(cls)) & set(cls.model_fields) & set(RESERVED)):
            reserved = f"the name is reserved ({RESERVED[name]}); rename the field"
            raise TypeError(f"field {name!r} of {cls.__name__}: {reserved}")
        cls.__verified__ = {
            name: found for name, info in cls.model_fields.items() if (found := verification_of(info)) is not None
        }
        cls.__strategy__ = _declared_strategy(cls)
        cls.__tree__ = cls.__strategy__ or AllOf(map(FieldCheck, cls.__verified__))
        _set_at_once(cls)
        if cls.__pydantic_complete__:
            read_ground_truths(cls)
        if cls.__verified__:
            for name, method in AUTOMATIC.items():
                if not any(name in base.__dict__ for base in cls.__mro__):
                    setattr(cls, name, method)

    def model_post_init(self, context: Any, /) -> None:
        hook = getattr(type(self), "ground_truth", None)
        if hook is not None:
            hook(self)
        if self.__verified__ and "correct" not in (self.__pydantic_extra__ or {}):
            self.correct = {name: verification.expected() for name, verification in self.__verified__.items()}

    def verify_regex(self, raw_trace: str) -> dict[str, Any]:
        """Run the checks of `self.regex` over the raw trace; every header and tool output in it is searched too.

        Gives `{"success": bool, "results": {name: bool}, "details": {name: {...}}}`. What matched is what
        `re.findall` returns, so a capture group replaces the match by the group's text: write `(?:...)` for groups
        that only hold things together.
        """
        verdict = run_patterns(set_by_author(self, "regex") or {}, raw_trace)
        return {"success": verdict.success, "results": dict(verdict.results), "details": dict(verdict.details)}


def verification_of(info: Any) -> Verification | None:
    """The verification metadata of a pydantic field, if it has any."""
    return next((item for item in info.metadata if isinstance(item, Verification)), None)


def _set_at_once(cls: type[BaseAnswer]) -> None:
    """Have the hook set `self.correct` and `self.regex` as pydantic would, which looks at the class each time: that
    takes longer than most hooks."""
    config = cls.model_config
    if config.get("extra") == "allow" and not (config.get("frozen") or config.get("validate_assignment")):
        for name in {"correct", "regex"} - cls.__class_vars__:
            if not hasattr(cls, name):
                cls.__pydantic_setattr_handlers__[name] = _set_extra


def _set_extra(model: BaseModel, name: str, value: Any) -> None:
    assert model.__pydantic_extra__ is not None
    model.__pydantic_extra__[name] = value
    model.__pydantic_fields_set__.add(name)


def read_ground_truths(cls: type[BaseAnswer]) -> None:
    """Turn ground truths that write a nested model as a dict into what the field holds, also within lists and dicts.

    One that cannot be read stays as it is.
    """
    read = {}
    for name, found in cls.__verified__.items():
        annotation = cls.model_fields[name].annotation
        if found.kind == "value" and _holds(Mapping, found.ground_truth) and _has_model(annotation):
            try:
                read[name] = evolve(found, ground_truth=careful_reader(annotation)(found.ground_truth))
            except (ValidationError, SchemaError, PydanticUserError):
                continue
    cls.__verified__ = {**cls.__verified__, **read}


def _holds(kind: type, value: Any) -> bool:
    if isinstance(value, kind):
        return True
    return isinstance(value, list | tuple | set | frozenset) and any(_holds(kind, part) for part in value)


def _has_model(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(_has_model(part) for part in get_args(annotation))


def is_taken(name: str) -> bool:
    """Whether no field can have this name. Old names of pydantic's, such as `copy` and `schema`, are free."""
    return name in RESERVED or (name.startswith("model_") and hasattr(BaseModel, name)) or name in vars(BaseAnswer)


def _declared_strategy(cls: type[BaseAnswer]) -> Condition | None:
    """The tree of the inner class. Raises TypeError or ValueError where it cannot decide anything."""
    for name, value in vars(cls).items():
        if isinstance(value, type) and hasattr(value, "verify_strategy") and name != "VerificationStrategy":
            raise TypeError(
                f"{cls.__name__}.{name} has a verify_strategy; the class must be named VerificationStrategy"
            )
    declared = getattr(cls, "VerificationStrategy", None)
    if declared is None:
        return None
    if not hasattr(declared, "verify_strategy"):
        hint = did_you_mean("verify_strategy", [name for name in vars(declared) if not name.startswith("__")])
        raise TypeError(
            f"{cls.__name__}.VerificationStrategy has no verify_strategy{hint}; "
            "write verify_strategy = AllOf([FieldCheck('name'), ...])"
        )
    condition = declared.verify_strategy
    if problems := condition_problems(condition, cls.__verified__):
        raise ValueError(f"{cls.__name__}: " + "; ".join(problems))
    found: Condition = condition
    return found


def set_by_author(answer: BaseAnswer, name: str) -> Any:
    """What is there by this name, such as `regex`; None where nothing is, which pydantic takes long to say."""
    for there in (answer.__pydantic_extra__, answer.__dict__):
        if there and name in there:
            return there[name]
    for cls in type(answer).__mro__:
        if name in cls.__dict__:
            return getattr(answer, name, None)
    return None


def written_by_author(cls: type[BaseAnswer], method: str) -> bool:
    """Whether `verify` or `verify_granular` of this class is the author's own."""
    return getattr(cls, method, None) not in (None, AUTOMATIC[method])


def give_evidence(answer: BaseAnswer, evidence: Evidence) -> None:
    """Attach what the automatic verdict of this answer may rest on beside its fields."""
    object.__setattr__(answer, "_karenina_evidence", evidence)


def _comparison(self: BaseAnswer) -> Comparison:
    evidence = getattr(self, "_karenina_evidence", None)
    return compare(self.__verified__, self.__dict__, self.__tree__, evidence)


def _verify(self: BaseAnswer) -> bool:
    """Whether the fields are right that the strategy asks for: all verified ones where there is no strategy."""
    return _comparison(self).passed


def _verify_granular(self: BaseAnswer) -> float:
    """Partial credit by the strategy: the weighted mean of the fields' scores where there is none."""
    return _comparison(self).granular


AUTOMATIC: Mapping[str, Callable[[BaseAnswer], Any]] = {"verify": _verify, "verify_granular": _verify_granular}
"""What a class with verified fields gets where its author wrote no method of that name."""
