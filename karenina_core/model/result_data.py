"""How results become plain data and are read again: each part by its class, parts that nothing declares as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from ..errors import ConfigError, Problem, did_you_mean
from .result import OWN, VerificationResult
from .result_parts import result_parts

__all__ = ["register"]

FIRST = ("metadata", "generation")
Problems = Callable[[BaseException, str], list[Problem]]


def register(converter: cattrs.Converter, problems: Problems) -> None:
    """Give the converter what it needs for results; `problems` are those of an error, with their paths."""
    write = make_dict_unstructure_fn(VerificationResult, converter, parts=override(omit=True))
    read = make_dict_structure_fn(
        VerificationResult, converter, _cattrs_forbid_extra_keys=True, parts=override(omit=True)
    )

    def unstructured(result: VerificationResult) -> dict[str, Any]:
        own = write(result)
        first = {name: own.pop(name) for name in FIRST}
        return first | {name: converter.unstructure(part) for name, part in result.parts.items()} | own

    def structured(value: Any, cls: type) -> VerificationResult:
        if not isinstance(value, Mapping):
            raise TypeError(f"expected a table of settings, got {value!r}")
        found: list[Problem] = []
        parts: dict[str, Any] = {}
        for name in (name for name in value if name not in OWN):
            try:
                parts[name] = _part(converter, name, value[name])
            except Exception as error:
                found += problems(error, name)
        try:
            result = read({name: value[name] for name in OWN if name in value}, cls)
        except Exception as error:
            found += problems(error, "")
        if found:
            raise ConfigError(found)
        return VerificationResult(parts=parts, **{name: getattr(result, name) for name in OWN}) if parts else result

    converter.register_unstructure_hook(VerificationResult, unstructured)
    converter.register_structure_hook(VerificationResult, structured)


def _part(converter: cattrs.Converter, name: str, value: Any) -> Any:
    known = result_parts()
    if name in known:
        return None if value is None else converter.structure(value, known[name])
    if name == "parts" or not isinstance(value, Mapping | None):
        raise TypeError(f"unknown setting{did_you_mean(name, (*OWN, *known))}")
    return value
