"""What `karenina config` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_runs.config.origins import in_force

from ..options.flags import configured
from ..output import Part, Table, own_stdout, print_found
from .presets import as_path, as_value, key_variables

DEFAULT = "the default"


def shown(options: Mapping[str, Any], *, every: bool, as_json: bool) -> None:
    """Raises ConfigError where the configuration is wrong."""
    with own_stdout() as out:
        found = [setting for setting in in_force(configured(options)) if every or setting.origin]
        keys = key_variables(str(row.value) for row in found if row.keys[-1] == "api_key_env" and row.value)
        rows = [(as_path(row.keys), row.value, row.origin or DEFAULT) for row in found]
        document = {
            "settings": [dict(zip(("path", "value", "from"), row, strict=True)) for row in rows],
            "key_variables": keys,
        }
        parts: list[Part] = [
            Table(("setting", "value", "from"), [(path, as_value(value), origin) for path, value, origin in rows]),
            Table(("variable of a key", "now"), list(keys.items())),
            *([] if every else [f"Everything {'else ' if rows else ''}has its default (--all)."]),
        ]
        print_found(document, parts, out, as_json=as_json)
