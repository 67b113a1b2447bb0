"""What models refuse: a schema, on a channel of structured output."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from attrs import define, field

from karenina_core.values.identity import canonical_json


@define(eq=False)
class Refusals:
    """The channels on which schemas were refused and that were given up for a weaker one.

    Nothing is concluded from one schema for another: what is known of a schema does not depend on what else was asked,
    nor on when.
    """

    known: dict[str, set[str]] = field(factory=dict)
    """Channels, by `key` of model and schema."""

    @staticmethod
    def key(model: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
        """`model` is that of a call's key; empty where there is only one."""
        text = canonical_json({"model": model, "schema": schema})
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def of(self, model: Mapping[str, Any], schema: Mapping[str, Any]) -> Collection[str]:
        """The channels on which this model is known to refuse this schema."""
        return self.known.get(self.key(model, schema), ()) if self.known else ()

    def learn(self, key: str, channels: Iterable[str]) -> None:
        self.known.setdefault(key, set()).update(channels)
