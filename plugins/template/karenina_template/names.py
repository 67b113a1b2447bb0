"""The public names of answer templates."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core.templates": {
        "AllOf": "karenina_template.language.strategies",
        "AnyOf": "karenina_template.language.strategies",
        "AtLeastN": "karenina_template.language.strategies",
        "BaseAnswer": "karenina_template.language.answer",
        "BooleanMatch": "karenina_template.language.primitives.text",
        "ContainsAll": "karenina_template.language.primitives.text",
        "ContainsAny": "karenina_template.language.primitives.text",
        "DateMatch": "karenina_template.language.primitives.dates",
        "DateRange": "karenina_template.language.primitives.dates",
        "DateTolerance": "karenina_template.language.primitives.dates",
        "ExactMatch": "karenina_template.language.primitives.text",
        "FieldCheck": "karenina_template.language.strategies",
        "LiteralMatch": "karenina_template.language.primitives.text",
        "NumericExact": "karenina_template.language.primitives.numeric",
        "NumericGraded": "karenina_template.language.primitives.numeric",
        "NumericMaximum": "karenina_template.language.primitives.numeric",
        "NumericMinimum": "karenina_template.language.primitives.numeric",
        "NumericRange": "karenina_template.language.primitives.numeric",
        "NumericRangeGraded": "karenina_template.language.primitives.numeric",
        "NumericThresholdGraded": "karenina_template.language.primitives.numeric",
        "NumericTolerance": "karenina_template.language.primitives.numeric",
        "OrderedMatch": "karenina_template.language.primitives.text",
        "RegexMatch": "karenina_template.language.primitives.text",
        "SemanticMatch": "karenina_template.language.primitives.text",
        "SetContainment": "karenina_template.language.primitives.text",
        "SynonymMap": "karenina_template.language.normalize",
        "TraceContains": "karenina_template.language.primitives.text",
        "TraceLength": "karenina_template.language.primitives.text",
        "TracePrimitive": "karenina_template.language.primitives.text",
        "TraceRegex": "karenina_template.language.primitives.text",
        "VerificationPrimitive": "karenina_template.language.primitives.base",
        "VerifiedField": "karenina_template.language.answer",
        "lint_benchmark": "karenina_template.lint.lint",
        "lint_schema": "karenina_template.lint.lint",
        "lint_template": "karenina_template.lint.lint",
        "primitive_from_spec": "karenina_template.language.primitives.base",
        "template_source": "karenina_template.language.specs",
        "template_spec": "karenina_template.language.specs",
        "to_spec": "karenina_template.language.primitives.base",
    },
}
