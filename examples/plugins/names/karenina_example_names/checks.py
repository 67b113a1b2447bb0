"""What the conformance checks are given: names and formulas that can be compared, which random texts are not."""

from . import GeneMatch

OPTIONS = {
    "GeneMatch": {"examples": [GeneMatch(["tumor protein 53"])], "pairs": [("p53", "TP53"), ("HER2", "EGFR")]},
    "FormulaMatch": {"pairs": [("CH3COOH", "C2H4O2"), ("H2O", "H2O2")]},
}
