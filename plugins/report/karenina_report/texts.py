"""Values as the report shows them. Nothing here makes HTML: the templates escape."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from karenina_calls.secrets.redaction import redactor
from karenina_cli.output import printable
from karenina_cli.summary import shown_cost, shown_tokens

from karenina_core.secrets import is_secret_name, secrets_in
from karenina_core.values.fields import is_number

LONGEST = 40_000
"""Characters of one text; of a longer one the page shows the beginning and says how much is missing."""
SECRET = "(not shown)"
OF_HEADERS = ("authorization", "cookie")


def shown(text: str) -> str:
    """Any text as the page may show it: what reorders or hides text, and what is no character, is written out."""
    return printable(redaction()(text)) if text else text


@cache
def redaction() -> Any:
    """What takes the secrets of the environment out of a text. A page that is begun clears the cache."""
    return redactor(secrets_in(os.environ))


def cut(text: str, limit: int = LONGEST) -> tuple[str, int]:
    """The beginning of a text, and how many characters it leaves out."""
    return text[:limit], max(len(text) - limit, 0)


def number(found: Any, digits: int = 2) -> str:
    """A number; whole ones with thin spaces between thousands."""
    if isinstance(found, int) and not isinstance(found, bool):
        return f"{found:,}".replace(",", "\u202f")
    return f"{found:.{digits}f}" if is_number(found) and math.isfinite(found) else "n/a"


def span(ends: tuple[float, float] | None, written: Callable[[float], str]) -> str:
    """An interval; empty where there is none."""
    return "" if ends is None else f"{written(ends[0]).removesuffix(' %')} to {written(ends[1])}"


tokens = partial(shown_tokens, written=number)


def seconds(found: float | None) -> str:
    """A duration with the unit that suits it."""
    if found is None:
        return "n/a"
    if found < 1:
        return f"{1000 * found:.0f} ms" if found >= 0.001 or found == 0 else "< 1 ms"
    return f"{found:.1f} s" if found < 120 else f"{found / 60:.1f} min"


def usage_cells(row: Mapping[str, Any], counts: Sequence[str] = ("calls", "attempts")) -> tuple[str, ...]:
    """The `counts` of one task, its tokens in and out, its time and its cost."""
    unknown = bool(row.get("usage_unavailable"))
    return (
        *(number(row.get(key)) for key in counts),
        *(tokens(row.get(key), unknown) for key in ("input_tokens", "output_tokens")),
        seconds(row.get("seconds")),
        shown_cost(row.get("cost_usd")),
    )


def without_secrets(found: Any, name: str = "") -> Any:
    """The same data without values whose names say that they are secret.

    A run keeps none of its own; this is for manifests of other tools.
    """
    if isinstance(found, Mapping):
        return {str(key): without_secrets(item, str(key)) for key, item in found.items()}
    if isinstance(found, list | tuple):
        return [without_secrets(item, name) for item in found]
    is_secret = is_secret_name(name) or any(mark in name.lower() for mark in OF_HEADERS)
    return SECRET if is_secret and isinstance(found, str) and found else found
