"""The names of what stages hand to each other."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from ..errors import ContractError

T = TypeVar("T")
USUAL = (type(None), bool, int, float, str, list, dict, tuple, set, frozenset)


class Key(str, Generic[T]):
    """The name and type of one artifact. It *is* its name: `Key("x", int) == "x"`.

    `type` is what a value must be an instance of; generic arguments say more to people and type checkers than is
    checked.
    """

    type: Any
    _accepts: tuple[type, ...]
    usual: frozenset[type]
    """Those of the usual types that it accepts: known beforehand, for asking about a `Mapping` takes long."""

    def __new__(cls, name: str, type: Any = object) -> Key[T]:
        self = super().__new__(cls, name)
        self.type = type
        self._accepts = tuple(_classes(type))
        try:
            isinstance(None, self._accepts)
        except TypeError as error:
            raise ContractError(f"{name!r}: {type!r} cannot be checked; give a class that isinstance takes") from error
        try:
            self.usual = frozenset(usual for usual in USUAL if issubclass(usual, self._accepts))
        except TypeError:  # a protocol that names attributes can only be asked about values
            self.usual = frozenset()
        return self

    def check(self, value: Any) -> None:
        """Raises ContractError where the value is of another type."""
        if type(value) not in self.usual and not isinstance(value, self._accepts):
            wanted = " or ".join(cls.__name__ for cls in self._accepts)
            raise ContractError(f"{str(self)!r} must be {wanted}, not {type(value).__name__}")

    def __reduce__(self) -> Any:
        return (Key, (str(self), self.type))


def _classes(type_: Any) -> Iterable[type]:
    if type_ is None:
        return [type(None)]
    if type_ is Any:
        return [object]
    origin = get_origin(type_)
    if origin in (Union, UnionType):
        return [cls for member in get_args(type_) for cls in _classes(member)]
    if origin is Literal:
        return {type(value) for value in get_args(type_)}
    if type_ is float:
        return [float, int]
    return [origin or type_]


class Keys(tuple[str, ...]):
    """An immutable list of keys that prints as a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(list(self))

    __str__ = __repr__


class CoreKeys:
    """The artifacts that every pipeline has: the answer, the views of the ledger, and the result."""

    RAW_LLM_RESPONSE: Key[str] = Key("raw_llm_response", str)
    FIELD_VERIFICATION_RESULT: Key[bool] = Key("field_verification_result", bool)
    VERIFY_RESULT: Key[bool] = Key("verify_result", bool)
    FINAL_RESULT: Key[Any] = Key("final_result", object)


VERDICT_VIEWS = frozenset({CoreKeys.VERIFY_RESULT, CoreKeys.FIELD_VERIFICATION_RESULT})
"""Read like artifacts, never written: they are views of the ledger."""
