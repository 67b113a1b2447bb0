"""The public names of answer templates."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NAMES"]

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core.templates": {
        "AllOf": "karenina_core.templates.strategies",
        "AnyOf": "karenina_core.templates.strategies",
        "AtLeastN": "karenina_core.templates.strategies",
        "BaseAnswer": "karenina_core.templates.answer",
        "BooleanMatch": "karenina_core.templates.primitives.boolean",
        "ContainsAll": "karenina_core.templates.primitives.text",
        "ContainsAny": "karenina_core.templates.primitives.text",
        "DateMatch": "karenina_core.templates.primitives.dates",
        "DateRange": "karenina_core.templates.primitives.dates",
        "DateTolerance": "karenina_core.templates.primitives.dates",
        "ExactMatch": "karenina_core.templates.primitives.text",
        "FieldCheck": "karenina_core.templates.strategies",
        "LiteralMatch": "karenina_core.templates.primitives.text",
        "NumericExact": "karenina_core.templates.primitives.numeric",
        "NumericGraded": "karenina_core.templates.primitives.graded",
        "NumericMaximum": "karenina_core.templates.primitives.numeric",
        "NumericMinimum": "karenina_core.templates.primitives.numeric",
        "NumericRange": "karenina_core.templates.primitives.numeric",
        "NumericRangeGraded": "karenina_core.templates.primitives.graded",
        "NumericThresholdGraded": "karenina_core.templates.primitives.graded",
        "NumericTolerance": "karenina_core.templates.primitives.numeric",
        "OrderedMatch": "karenina_core.templates.primitives.sets",
        "RegexMatch": "karenina_core.templates.primitives.text",
        "SemanticMatch": "karenina_core.templates.primitives.semantic",
        "SetContainment": "karenina_core.templates.primitives.sets",
        "SynonymMap": "karenina_core.templates.normalize",
        "TraceContains": "karenina_core.templates.primitives.trace",
        "TraceLength": "karenina_core.templates.primitives.trace",
        "TracePrimitive": "karenina_core.templates.primitives.trace",
        "TraceRegex": "karenina_core.templates.primitives.trace",
        "VerificationPrimitive": "karenina_core.templates.primitives.base",
        "VerifiedField": "karenina_core.templates.answer",
        "lint_benchmark": "karenina_core.templates.lint",
        "lint_schema": "karenina_core.templates.lint",
        "lint_template": "karenina_core.templates.lint",
        "primitive_from_spec": "karenina_core.templates.specs",
        "template_spec": "karenina_core.templates.class_specs",
        "to_spec": "karenina_core.templates.specs",
    },
}
