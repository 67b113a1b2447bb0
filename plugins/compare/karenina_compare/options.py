"""Options of `karenina verify`: gates that compare the run with an earlier one. A run that is resumed keeps them."""

from __future__ import annotations

from pathlib import Path

from karenina_core.plugin.command_line import PluginOption

OPTIONS = (
    PluginOption(
        "--baseline",
        "An earlier run of the same benchmark, for --max-drop and --fail-on-regression.",
        "baseline",
        Path,
        "DIR",
    ),
    PluginOption(
        "--max-drop",
        "Exit with 4 if the pass rate of some model is more than this below the baseline (0.05: five "
        "percentage points).",
        "max_drop",
        float,
        "X",
    ),
    PluginOption(
        "--fail-on-regression",
        "Exit with 4 if the run is significantly worse than the baseline, or there are too few questions to tell "
        "(plugins.compare.undecided).",
        "fail_on_regression",
        bool,
    ),
)
