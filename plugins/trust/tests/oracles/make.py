"""Writes `tables.json`: what public libraries say of inputs that are made by a seed. The tests compare with it.

    pip install ppi-python==0.2.3 irrCAC==0.4.4 krippendorff==0.9.0 statsmodels==0.15.0
    python plugins/trust/tests/oracles/make.py

The libraries are no dependencies of the tests: with what they need they take 680 MB. irrCAC asks for an older coverage
than numba can import, so upgrade that afterwards.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
from irrCAC.raw import CAC
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from statsmodels.stats.inter_rater import cohens_kappa, to_table

SCALES = {"nominal": "identity", "ordinal": "quadratic", "interval": "quadratic"}


def corrected(rng: np.random.Generator, labels: int, others: int, rate: float, right: float) -> dict[str, Any]:
    people = (rng.random(labels + others) < rate).astype(float)
    judge = np.where(rng.random(labels + others) < right, people, 1 - people)
    if rate == 0.5:  # scores
        people = rng.normal(size=labels + others)
        judge = right * people + rng.normal(size=labels + others)
    y, f, others_f = people[:labels], judge[:labels], judge[labels:]
    found = {}
    for name, power in (("people", 0), ("ppi", 1), ("ppi++", None)):
        low, high = (float(np.ravel(limit)[0]) for limit in ppi_mean_ci(y, f, others_f, alpha=0.05, lam=power))
        point = float(np.ravel(ppi_mean_pointestimate(y, f, others_f, lam=power))[0])
        found[name] = {"value": point, "low": low, "high": high}
    return {"judge": judge.tolist(), "people": y.tolist(), "estimates": found}


def rated(rng: np.random.Generator, items: int, raters: int, categories: int, missing: float) -> dict[str, Any]:
    truth = rng.integers(categories, size=items)
    noise = rng.integers(categories, size=(items, raters))
    table = np.where(rng.random((items, raters)) < 0.7, truth[:, None], noise).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    table = table[(~np.isnan(table)).any(axis=1)]
    found: dict[str, dict[str, float]] = {}
    for scale, weights in SCALES.items():
        cac = CAC(pd.DataFrame(table), weights=weights, digits=14)
        fleiss = cac.fleiss()["est"]
        found[scale] = {
            "percent": fleiss["pa"],
            "scott pi": fleiss["coefficient_value"],
            "gwet ac": cac.gwet()["est"]["coefficient_value"],
            "krippendorff alpha": krippendorff.alpha(reliability_data=table.T, level_of_measurement=scale),
        }
        if raters == 2 and not missing:
            counts, _ = to_table(table.astype(int))
            kind = None if scale == "nominal" else "fc"
            kappa = cohens_kappa(counts, wt=kind)
            found[scale]["cohen kappa"] = float(kappa.kappa)
    rows = [[None if np.isnan(value) else int(value) for value in row] for row in table]
    return {"rows": rows, "coefficients": found}


def main() -> None:
    rng = np.random.default_rng(20)
    cases = [
        (40, 300, 0.8, 0.9),
        (60, 600, 0.3, 0.7),
        (200, 2000, 0.95, 0.98),
        (50, 500, 0.5, 0.8),
        (120, 100, 0.5, 0.2),
    ]
    tables = {
        "corrected": [corrected(rng, *case) for case in cases],
        "rated": [rated(rng, *case) for case in [(40, 2, 2, 0.0), (60, 2, 4, 0.0), (50, 3, 3, 0.2), (30, 5, 2, 0.3)]],
    }
    Path(__file__).with_name("tables.json").write_text(json.dumps(tables) + "\n", "utf-8")


if __name__ == "__main__":
    main()
