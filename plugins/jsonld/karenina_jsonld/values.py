"""Readers of single values, which raise ValueError for wrong ones, and secrets in values, which are left out."""

from __future__ import annotations

import base64
import binascii
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import fields
from karenina_calls.secrets.known_secrets import secret_settings
from karenina_vocabulary.record_traits import TemplateKind

from karenina_core.errors import shortened
from karenina_core.values.config import ModelConfig
from karenina_core.values.convert import structure, unstructure

from .nodes import dump, parse_or_none, plain
from .vocabulary import SECRET_KEYS

T = TypeVar("T")
LARGEST = 2**53
"""Up to it every whole number is a floating point number, too."""
MODEL_FIELDS: Mapping[str, Any] = {f.name: f.default for f in fields(ModelConfig)}
# Other programs write null for these and mean their default.
NEVER_NULL = {"interface", "max_retries", "extra_kwargs", "mcp_urls_dict"}


def _unfit(name: str, wanted: str, value: Any) -> ValueError:
    return ValueError(f"{name} must be {wanted}, not {shortened(dump(value), 60)}")


def _reader(
    wanted: str, fits: Callable[[Any], bool], made: Callable[[Any], T], *inside: type
) -> Callable[[str, Any], T]:
    """Makes something of a value (under a name) that fits; `inside`: what may also be written as JSON inside a text."""

    def read(name: str, value: Any) -> T:
        if inside and isinstance(value, str):
            found = parse_or_none(value)
            value = found if isinstance(found, inside) else value
        if not fits(value):
            raise _unfit(name, wanted, value)
        return made(value)

    return read


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _all(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(entry, types) for entry in value)


def _same(value: Any) -> Any:
    return value


text = _reader("a text", lambda value: isinstance(value, str), str)
boolean = _reader("true or false", lambda value: isinstance(value, bool), bool)
"""1, 0 and texts are neither."""
number = _reader("a number", _is_number, float)
"""At most 2**53 in size."""
whole = _reader("a whole number", lambda value: _is_number(value) and value == int(value), int)
"""Also written as `5.0`."""
texts: Callable[[str, Any], tuple[str, ...]] = _reader("a list of texts", _all(str), tuple, list)
examples: Callable[[str, Any], tuple[Mapping[str, Any], ...]] = _reader(
    "a list of objects with question and answer", _all(dict), tuple, list
)
object_or_text = _reader("an object or a text", lambda value: isinstance(value, dict | str), _same, dict, str)
texts_or_text = _reader("a list or a text", lambda value: isinstance(value, list | str), _same, list, str)
classes: Callable[[str, Any], dict[str, str | None]] = _reader(
    "an object of class names with a description or null",
    lambda value: isinstance(value, dict) and all(about is None or isinstance(about, str) for about in value.values()),
    _same,
    dict,
)
"""In order."""
kind = _reader(
    'boolean, score, literal or {"type": "template", "schema": {...}}',
    lambda value: isinstance(value, str) or (isinstance(value, dict) and value.get("type") == "template"),
    _same,
    dict,
)


def written_text(value: Any) -> str:
    """The text that `object_or_text` and `texts_or_text` read back as `value`."""
    if isinstance(value, str) and not isinstance(parse_or_none(value), dict | list | str):
        return value
    return dump(plain(value))


def code(name: str, value: Any) -> bytes | None:
    """Base64 text as bytes, which are neither looked at nor run. An empty text is no code."""
    try:
        return base64.b64decode("".join(text(name, value).split()), validate=True) or None
    except (binascii.Error, UnicodeError, ValueError):
        raise _unfit(name, "base64 text", value) from None


def model(name: str, value: Any) -> ModelConfig:
    """A model's settings. Unknown ones are left out, see `unknown_settings`; a masked key is no key."""
    if not isinstance(value, dict):
        raise _unfit(name, "an object", value)
    known = {
        key: entry
        for key, entry in value.items()
        if key in MODEL_FIELDS
        and not (entry is None and key in NEVER_NULL)
        and not (key in SECRET_KEYS and _masked(entry))
    }
    return structure(known, ModelConfig, name)


def unknown_settings(value: Any) -> list[str]:
    """Names in a model's settings that mean something to another program only."""
    return sorted(key for key, entry in value.items() if key not in MODEL_FIELDS and entry is not None)


def _masked(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip("*"))


def secret_keys(node: Mapping[str, Any]) -> list[str]:
    """The keys of an object that hold a secret in the clear."""
    return [key for key in SECRET_KEYS if key in node and not _masked(node[key])]


def written(value: Any) -> Any:
    """The JSON form of a trait's field."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, TemplateKind):
        return plain(value.to_plain())
    if isinstance(value, ModelConfig):
        if secret := secret_settings(value):
            raise ValueError(
                f"its model {value.identity} has a key or a password in {', '.join(secret)}, and a benchmark "
                "file is shared; take it out and name an environment variable in api_key_env"
            )
        settings = unstructure(value)
        return {
            key: plain(entry) for key, entry in settings.items() if entry is not None or MODEL_FIELDS[key] is not None
        }
    return plain(value)


def stored_secrets(value: Any, text: str) -> int:
    """How many keys are in the clear. `text` is the document; most have none of the names, which is quick to see."""
    return _count(value) if any(key in text for key in SECRET_KEYS) else 0


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return len(secret_keys(value)) + sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else 0


def without_secrets(value: Any) -> Any:
    """The same value without them; parts that hold none are the same objects."""
    if isinstance(value, dict):
        cleaned = {key: without_secrets(entry) for key, entry in value.items() if key not in secret_keys(value)}
        unchanged = len(cleaned) == len(value) and all(cleaned[key] is entry for key, entry in value.items())
        return value if unchanged else cleaned
    if isinstance(value, list):
        entries = [without_secrets(entry) for entry in value]
        return value if all(map(operator.is_, entries, value)) else entries
    return value
