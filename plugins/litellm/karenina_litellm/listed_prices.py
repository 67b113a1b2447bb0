"""What litellm lists as the prices of models, read from its file: importing litellm takes seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LIST = "model_prices_and_context_window_backup.json"
"""The list that comes with litellm, and the one that it uses here: none is fetched."""


def listed_prices(model: str) -> tuple[float, float] | None:
    """US dollars for a token in and out of `provider/name`, or a name alone; None where the list has no such model."""
    _, _, name = model.partition("/")
    for key in (model, name):
        entry = _listed().get(key)
        prices = [] if entry is None else [entry.get(f"{way}_cost_per_token") for way in ("input", "output")]
        known = [float(price) for price in prices if isinstance(price, int | float)]
        if len(known) == 2:
            return known[0], known[1]
    return None


@cache
def _listed() -> Mapping[str, Mapping[str, Any]]:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        found = json.loads(Path(spec.origin).with_name(LIST).read_text("utf-8"))
    except (OSError, ValueError):  # another version of it; the prices are then unknown before a call
        return {}
    return found if isinstance(found, dict) else {}
