"""Models that a benchmark file describes, distinguished from those of the configuration and of the program."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from attrs import frozen

from karenina_core.values.model_config import ModelConfig

LEAVES = frozenset({str, bytes, int, float, bool, type(None)})
"""What holds nothing: most of a benchmark."""


@frozen(kw_only=True, eq=False)
class ForeignModelConfig(ModelConfig):
    """A model that a file describes: whoever wrote the file chose its address, its key's variable and its program.

    It equals the `ModelConfig` with the same values, and stays untrusted when it is copied or evolved. Nothing is sent
    to it unless the run is trusted, see `karenina_calls.models.overrides`.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelConfig):
            return NotImplemented
        return all(getattr(self, a.name) == getattr(other, a.name) for a in attrs.fields(ModelConfig))

    __hash__ = ModelConfig.__hash__


def as_foreign(value: Any) -> Any:
    """The same value with every model in it marked as untrusted; parts without one are the same objects."""
    return replaced_models(value, lambda model: ForeignModelConfig(**_values(model)))


def plain_model(model: ModelConfig) -> ModelConfig:
    """The same values, without the mark."""
    return ModelConfig(**_values(model))


def replaced_models(value: Any, change: Callable[[ModelConfig], ModelConfig]) -> Any:
    """The same value with other models: attrs objects, mappings and lists are looked through."""
    if type(value) in LEAVES:
        return value
    if isinstance(value, ModelConfig):
        return change(value)
    if isinstance(value, Mapping):
        entries = {key: replaced_models(entry, change) for key, entry in value.items()}
        return value if all(entries[key] is entry for key, entry in value.items()) else entries
    if isinstance(value, list | tuple | set | frozenset):
        items = [replaced_models(item, change) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else (tuple if isinstance(value, tuple) else list)(items)
    cls: Any = type(value)
    found = ((name, getattr(value, name)) for name in _names(cls))
    changed = {name: new for name, old in found if (new := replaced_models(old, change)) is not old}
    if not changed:
        return value
    made = copy.copy(value)  # what checks and converts fields is not run again
    for name, new in changed.items():
        object.__setattr__(made, name, new)
    return made


@functools.cache
def _names(cls: type) -> tuple[str, ...]:
    """The fields of an attrs class; other classes have none that are looked at."""
    return tuple(a.name for a in attrs.fields(cls)) if attrs.has(cls) else ()


def _values(model: ModelConfig) -> dict[str, Any]:
    return {str(a.alias): getattr(model, a.name) for a in attrs.fields(ModelConfig)}
