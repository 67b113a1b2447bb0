"""Readers of single values, which raise ValueError for wrong ones, and secrets in values, which are left out."""

from __future__ import annotations

import base64
import binascii
import operator
from collections.abc import Mapping
from typing import Any

from attrs import fields
from karenina_calls.secrets.known_secrets import secret_settings
from karenina_vocabulary.template_kind import TemplateKind

from karenina_core.errors import shortened
from karenina_core.values.config import ModelConfig
from karenina_core.values.convert import structure, unstructure

from .nodes import dump, parse_or_none, plain
from .vocabulary import SECRET_KEYS

LARGEST = 2**53
MODEL_FIELDS: Mapping[str, Any] = {f.name: f.default for f in fields(ModelConfig)}
# Other programs write null for these and mean their default.
NEVER_NULL = {"interface", "max_retries", "extra_kwargs", "mcp_urls_dict"}


def _unfit(name: str, wanted: str, value: Any) -> ValueError:
    return ValueError(f"{name} must be {wanted}, not {shortened(dump(value), 60)}")


def text(name: str, value: Any) -> str:
    """A text, also an empty one."""
    if isinstance(value, str):
        return value
    raise _unfit(name, "a text", value)


def boolean(name: str, value: Any) -> bool:
    """True or false; 1, 0 and texts are neither."""
    if isinstance(value, bool):
        return value
    raise _unfit(name, "true or false", value)


def number(name: str, value: Any) -> float:
    """A number of at most 2**53 in size."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return float(value)
    raise _unfit(name, "a number", value)


def whole(name: str, value: Any) -> int:
    """A whole number, also written as `5.0`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST and value == int(value):
        return int(value)
    raise _unfit(name, "a whole number", value)


def _decoded(value: Any, *types: type) -> Any:
    """Lists and objects may be written as JSON inside a text."""
    if isinstance(value, str):
        inner = parse_or_none(value)
        return inner if isinstance(inner, types) else value
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """A list of texts, or one as JSON inside a text."""
    value = _decoded(value, list)
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return tuple(value)
    raise _unfit(name, "a list of texts", value)


def examples(name: str, value: Any) -> tuple[Mapping[str, Any], ...]:
    """A list of objects, or one as JSON inside a text."""
    value = _decoded(value, list)
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return tuple(value)
    raise _unfit(name, "a list of objects with question and answer", value)


def object_or_text(name: str, value: Any) -> Mapping[str, Any] | str:
    """An object, an object as JSON inside a text, or any other text."""
    value = _decoded(value, dict, str)
    if isinstance(value, dict | str):
        return value
    raise _unfit(name, "an object or a text", value)


def texts_or_text(name: str, value: Any) -> list[Any] | str:
    """A list of anything, a list as JSON inside a text, or any other text."""
    value = _decoded(value, list, str)
    if isinstance(value, list | str):
        return value
    raise _unfit(name, "a list or a text", value)


def written_text(value: Any) -> str:
    """The text that `object_or_text` and `texts_or_text` read back as `value`."""
    if isinstance(value, str) and not isinstance(parse_or_none(value), dict | list | str):
        return value
    return dump(plain(value))


def classes(name: str, value: Any) -> dict[str, str | None]:
    """Class names with their descriptions, in order; also as JSON inside a text."""
    value = _decoded(value, dict)
    if isinstance(value, dict) and all(entry is None or isinstance(entry, str) for entry in value.values()):
        return value
    raise _unfit(name, "an object of class names with a description or null", value)


def kind(name: str, value: Any) -> Any:
    """The name of a kind, or a template kind; also as JSON inside a text."""
    value = _decoded(value, dict)
    if isinstance(value, str) or (isinstance(value, dict) and value.get("type") == "template"):
        return value
    raise _unfit(name, 'boolean, score, literal or {"type": "template", "schema": {...}}', value)


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
