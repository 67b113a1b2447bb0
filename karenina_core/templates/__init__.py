"""Answer templates: what to extract from an answer, and how code decides whether it is right.

Importing this package costs next to nothing; every name is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answer import BaseAnswer, VerifiedField
    from .class_specs import template_spec
    from .handle import FieldVerdict, FilledTemplate, RegexVerdict, TemplateField, TemplateHandle, TemplateRuntime
    from .lint import lint_benchmark, lint_schema, lint_template
    from .normalize import SynonymMap
    from .primitives import (
        BooleanMatch,
        ContainsAll,
        ContainsAny,
        DateMatch,
        DateRange,
        DateTolerance,
        ExactMatch,
        LiteralMatch,
        NumericExact,
        NumericGraded,
        NumericMaximum,
        NumericMinimum,
        NumericRange,
        NumericRangeGraded,
        NumericThresholdGraded,
        NumericTolerance,
        OrderedMatch,
        RegexMatch,
        SemanticMatch,
        SetContainment,
        TraceContains,
        TraceLength,
        TracePrimitive,
        TraceRegex,
        VerificationPrimitive,
    )
    from .specs import primitive_from_spec, to_spec
    from .strategies import AllOf, AnyOf, AtLeastN, FieldCheck

__all__ = [
    "AllOf",
    "AnyOf",
    "AtLeastN",
    "BaseAnswer",
    "BooleanMatch",
    "ContainsAll",
    "ContainsAny",
    "DateMatch",
    "DateRange",
    "DateTolerance",
    "ExactMatch",
    "FieldCheck",
    "FieldVerdict",
    "FilledTemplate",
    "LiteralMatch",
    "NumericExact",
    "NumericGraded",
    "NumericMaximum",
    "NumericMinimum",
    "NumericRange",
    "NumericRangeGraded",
    "NumericThresholdGraded",
    "NumericTolerance",
    "OrderedMatch",
    "RegexMatch",
    "RegexVerdict",
    "SemanticMatch",
    "SetContainment",
    "SynonymMap",
    "TemplateField",
    "TemplateHandle",
    "TemplateRuntime",
    "TraceContains",
    "TraceLength",
    "TracePrimitive",
    "TraceRegex",
    "VerificationPrimitive",
    "VerifiedField",
    "lint_benchmark",
    "lint_schema",
    "lint_template",
    "primitive_from_spec",
    "template_spec",
    "to_spec",
]

_HOMES = {
    "answer": ("BaseAnswer", "VerifiedField"),
    "handle": ("FieldVerdict", "FilledTemplate", "RegexVerdict", "TemplateField", "TemplateHandle", "TemplateRuntime"),
    "normalize": ("SynonymMap",),
    "class_specs": ("template_spec",),
    "lint": ("lint_benchmark", "lint_schema", "lint_template"),
    "specs": ("primitive_from_spec", "to_spec"),
    "strategies": ("AllOf", "AnyOf", "AtLeastN", "FieldCheck"),
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
