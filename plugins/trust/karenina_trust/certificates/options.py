"""Options of `karenina verify`: a gate on a certified number. A run that is resumed keeps them."""

from __future__ import annotations

from pathlib import Path

from karenina_core.plugin.command_line import PluginOption

OPTIONS = (
    PluginOption(
        "--certificate",
        "A certificate of the same judge, prompt, templates, rubric and models, for --min-certified-rate.",
        "certificate",
        Path,
        "FILE",
    ),
    PluginOption(
        "--min-certified-rate",
        "Exit with 4 if the lower limit of the pass rate that people would give is below this for some model. A "
        "certificate that does not hold for the run is rejected before the first call.",
        "min_rate",
        float,
        "X",
    ),
)
