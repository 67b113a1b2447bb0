"""Verification primitives: how one extracted value is compared with the expected one.

`check` decides; `score` gives partial credit between 0 and 1 and follows `check` unless a primitive says otherwise.
A value that cannot be compared at all raises TypeError or ValueError: that is an error in the template, never a
wrong answer. Parameters are checked when a primitive is made, the ground truth when a field is declared.

Primitives that read the trace (`TracePrimitive`) have `check_trace` instead of `check`.
"""

from .base import VerificationPrimitive
from .boolean import BooleanMatch
from .dates import DateMatch, DateRange, DateTolerance
from .graded import NumericGraded, NumericRangeGraded, NumericThresholdGraded
from .numeric import NumericExact, NumericMaximum, NumericMinimum, NumericRange, NumericTolerance
from .semantic import SemanticMatch
from .sets import OrderedMatch, SetContainment
from .text import ContainsAll, ContainsAny, ExactMatch, LiteralMatch, RegexMatch
from .trace import TraceContains, TraceLength, TracePrimitive, TraceRegex

__all__ = [
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
    "TracePrimitive",
    "TraceRegex",
    "VerificationPrimitive",
]
