"""The public names of another package; most of them are taken."""

NAMES = {
    "karenina_core": {
        "Unit": "karenina_stranger_units",
        "Karenina": "karenina_stranger_units",
        "errors": "karenina_stranger_units",
        "Benchmark": "karenina_stranger_units",
    },
    "karenina_core.prompts": {"UnitInstruction": "karenina_stranger_units"},
}
