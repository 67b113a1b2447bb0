"""Numbers about judges: what people would have said, how well raters agree, what a panel is worth.

Pure functions on plain numbers; they know nothing of results and runs. Each says in its docstring what it computes and
where the formula is from.
"""

from __future__ import annotations

from .annotators import AltTest, Annotator, alt_test
from .coefficients import COEFFICIENTS, Ratings, agreement, alpha, cohen_kappa, gwet_ac, percent, scott_pi
from .draws import drawn_interval
from .means import influence, judge_alone, people_alone, power_tuning, ppi, ppi_plus
from .panels import DawidSkene, dawid_skene, effective_votes, error_correlation, majority, votes_of
from .prevalence import ClassRates, class_rates, rogan_gladen, rogan_gladen_of
from .samples import Sample

__all__ = [
    "COEFFICIENTS",
    "AltTest",
    "Annotator",
    "ClassRates",
    "DawidSkene",
    "Ratings",
    "Sample",
    "agreement",
    "alpha",
    "alt_test",
    "class_rates",
    "cohen_kappa",
    "dawid_skene",
    "drawn_interval",
    "effective_votes",
    "error_correlation",
    "gwet_ac",
    "influence",
    "judge_alone",
    "majority",
    "people_alone",
    "percent",
    "power_tuning",
    "ppi",
    "ppi_plus",
    "rogan_gladen",
    "rogan_gladen_of",
    "scott_pi",
    "votes_of",
]
