"""What the conformance checks of the primitives are given: some of each that has parameters, and values that pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .language.primitives.aliases import AliasMatch
from .language.primitives.dates import DateMatch, DateRange, DateTolerance
from .language.primitives.numeric import (
    NumericExact,
    NumericGraded,
    NumericMaximum,
    NumericMinimum,
    NumericRange,
    NumericRangeGraded,
    NumericThresholdGraded,
    NumericTolerance,
)
from .language.primitives.text import (
    BooleanMatch,
    ContainsAll,
    ContainsAny,
    ExactMatch,
    LiteralMatch,
    OrderedMatch,
    RegexMatch,
    SetContainment,
    TraceContains,
    TraceLength,
    TraceRegex,
)

DAYS = [("2024-05-31", "2024-05-31"), ("May 31, 2024", "2024-06-02"), ("2024", "2024-05-31")]
NUMBERS = [(41, 42), ("1e3", 1000), (-0.5, "-0.25"), ("42 mg", 42)]
TEXTS = [("Gout", "gout"), ("Gicht", "Gout"), ("café", "cafe\u0301")]
EXPRESSIONS = [("1/2 + x", r"\frac{2x+1}{2}"), ("x", "-x"), ("y = 2x", "2x")]
QUANTITIES = [("5 mg", "0.005 g"), ("5 mL", "5 mg"), ("1,000 J", "1 kJ")]
LISTS = [(["EGFR", "KRAS"], ["KRAS", "EGFR"]), (["EGFR"], ["EGFR", "KRAS"]), ([], ["EGFR"])]
SIMILARITY = "two texts alone do not say how similar they are: its caller asks an embedder, and then `accepts`"
# By their definition two things break a promise: the bound of an exclusive threshold does not pass, and at its `cutoff`
# a `NumericGraded` without `full_credit` passes and has no credit. The tests of this package have them.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "AliasMatch": {"examples": [AliasMatch(["Gicht"])], "pairs": TEXTS},
    "BooleanMatch": {"examples": [BooleanMatch()], "pairs": [("yes", True), (0, "false")]},
    "ContainsAll": {"examples": [ContainsAll(["gout", "jaw"], ["lowercase"])], "pairs": [("Gout of the jaw", None)]},
    "ContainsAny": {"examples": [ContainsAny(["gout", "jaw"])], "pairs": [("the jaw", None)]},
    "DateMatch": {"examples": [DateMatch(), DateMatch("%d.%m.%Y")], "pairs": [*DAYS, ("31.05.2024", "31.05.2024")]},
    "DateRange": {"examples": [DateRange("2024-05-01", "2024-05-31"), DateRange(min="2024-05-31")], "pairs": DAYS},
    "DateTolerance": {"examples": [DateTolerance(3), DateTolerance(36, "hours")], "pairs": DAYS},
    "ExactMatch": {"examples": [ExactMatch(), ExactMatch([])], "pairs": TEXTS},
    "ExpressionMatch": {"pairs": EXPRESSIONS},
    "LiteralMatch": {"examples": [LiteralMatch()], "pairs": TEXTS},
    "NumericExact": {"examples": [NumericExact()], "pairs": NUMBERS},
    "NumericGraded": {"examples": [NumericGraded(9, 1, "absolute"), NumericGraded(1, 0.1)], "pairs": NUMBERS},
    "NumericMaximum": {"examples": [NumericMaximum()], "pairs": NUMBERS},
    "NumericMinimum": {"examples": [NumericMinimum()], "pairs": NUMBERS},
    "NumericRange": {"examples": [NumericRange(-1, 50), NumericRange(min=0, exclusive_min=True)], "pairs": NUMBERS},
    "NumericRangeGraded": {"examples": [NumericRangeGraded(-1, 40, 5)], "pairs": NUMBERS},
    "NumericThresholdGraded": {
        "examples": [NumericThresholdGraded("max", 0.5), NumericThresholdGraded("min", 2, "absolute")],
        "pairs": NUMBERS,
    },
    "NumericTolerance": {"examples": [NumericTolerance(0.1), NumericTolerance(2, "absolute")], "pairs": NUMBERS},
    "OrderedMatch": {"examples": [OrderedMatch()], "pairs": [*LISTS, (["egfr "], ["EGFR"])]},
    "QuantityMatch": {"pairs": QUANTITIES},
    "RegexMatch": {"examples": [RegexMatch(r"\d+"), RegexMatch("gout", ["IGNORECASE"])], "pairs": [("a 1", None)]},
    "SemanticMatch": {"expected_failures": {"reached": SIMILARITY, "errors": SIMILARITY}},
    "SetContainment": {
        "examples": [
            *(SetContainment(mode) for mode in ("exact", "subset", "superset", "overlap")),
            SetContainment(normalize=["lowercase"]),
        ],
        "pairs": LISTS,
    },
    "TraceContains": {"examples": [TraceContains("gout")], "pairs": [("It is gout.", True)]},
    "TraceLength": {"examples": [TraceLength(2, 9), TraceLength(max=3, unit="words")]},
    "TraceRegex": {"examples": [TraceRegex(r"\d"), TraceRegex("o", 2)], "pairs": [("12 o o", True)]},
}
