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
        "Exit with 4 where the pass rate of some model is by more than this below that of the baseline (0.05: five "
        "percentage points).",
        "max_drop",
        float,
        "X",
    ),
    PluginOption(
        "--fail-on-regression",
        "Exit with 4 where the run is significantly worse than the baseline, or where there are too few questions to "
        "tell (plugins.compare.undecided).",
        "fail_on_regression",
        bool,
    ),
)
