"""Entry point `primitives`: the verification primitives that come with karenina."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karenina_core import hookimpl

if TYPE_CHECKING:
    from karenina_core.pipeline.kinds import PrimitiveRegistry

NAMES = (
    "BooleanMatch",
    "ContainsAll",
    "ContainsAny",
    "DateMatch",
    "DateRange",
    "DateTolerance",
    "ExactMatch",
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
    "SemanticMatch",
    "SetContainment",
    "TraceContains",
    "TraceLength",
    "TraceRegex",
)


@hookimpl
def karenina_register_primitives(registry: PrimitiveRegistry) -> None:
    for name in NAMES:
        registry.add(f"karenina_core.templates.primitives:{name}", name=name)
