"""Answer templates: what to extract from an answer, and how code decides whether it is right.

Importing this package costs next to nothing; every name is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answer import BaseAnswer, VerifiedField
    from .handle import FieldVerdict, FilledTemplate, RegexVerdict, TemplateField, TemplateHandle, TemplateRuntime
    from .normalize import SynonymMap
    from .primitives import (
        BooleanMatch,
        ContainsAll,
        ContainsAny,
        ExactMatch,
        LiteralMatch,
        NumericExact,
        NumericTolerance,
        RegexMatch,
        SetContainment,
        VerificationPrimitive,
    )
    from .specs import primitive_from_spec, to_spec

__all__ = [
    "BaseAnswer",
    "BooleanMatch",
    "ContainsAll",
    "ContainsAny",
    "ExactMatch",
    "FieldVerdict",
    "FilledTemplate",
    "LiteralMatch",
    "NumericExact",
    "NumericTolerance",
    "RegexMatch",
    "RegexVerdict",
    "SetContainment",
    "SynonymMap",
    "TemplateField",
    "TemplateHandle",
    "TemplateRuntime",
    "VerificationPrimitive",
    "VerifiedField",
    "primitive_from_spec",
    "to_spec",
]

_HOMES = {
    "answer": ("BaseAnswer", "VerifiedField"),
    "handle": ("FieldVerdict", "FilledTemplate", "RegexVerdict", "TemplateField", "TemplateHandle", "TemplateRuntime"),
    "normalize": ("SynonymMap",),
    "specs": ("primitive_from_spec", "to_spec"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME_OF.get(name, 'primitives')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
