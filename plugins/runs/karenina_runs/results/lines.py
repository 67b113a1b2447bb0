"""Results as JSON, one line each: how they are written."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from attrs import fields, has
from karenina_calls.secrets.redaction import redactor

from karenina_core.log import get_logger
from karenina_core.values.convert import converter, unstructure
from karenina_core.values.result import VerificationResult

MOST_LEVELS = 150
"""Of mappings and lists in one another, the result itself included. Chosen: far more than tools return, and far fewer
than Python can follow, which ends at 1,000 calls in one another."""
MOST_BITS = 14_000
"""Of a whole number: Python refuses to read one of more than 4300 digits."""
log = get_logger("karenina.run")


def portable_record(result: VerificationResult, secrets: Collection[str] = ()) -> str:
    """The same as `record`, with lone surrogates as escapes: any place for text takes it, and nothing is lost."""
    line = record(result, secrets)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(line), separators=(",", ":"))
    return line


def record(result: VerificationResult, secrets: Collection[str] = ()) -> str:
    """The result as one line of JSON, without the secrets. Its warnings name what cannot be written."""
    return str(redactor(secrets)(_at_once(result) or _by_parts(result)))


def _at_once(result: VerificationResult) -> str:
    """As nearly all results are written: what is JSON's own in it is not copied. Nothing where it cannot be written so,
    or may be nested too deeply to be read."""
    with suppress(Exception):  # extensions and arguments of tools may be anything
        line: str = _whole(converter(walks=False).unstructure(result))
        if line.count("{") + line.count("[") <= MOST_LEVELS:
            return line
    return ""


def _by_parts(result: VerificationResult) -> str:
    lost: list[str] = []
    try:
        line = _dumped(data := _unstructured(result, lost))
    except Exception:  # as above; the rest of the result is kept
        line = _dumped(data := plain(_unstructured(result, lost), lost))
    if lost:
        log.warning("a result has values that cannot be written", result=result.metadata.result_id, values=lost)
        data["metadata"]["warnings"] = [*data["metadata"]["warnings"], *lost]
        line = _dumped(data)
    return line


def _unstructured(value: Any, lost: list[str]) -> Any:
    """Plain data; where a part cannot be made into that, each of its own parts by itself."""
    try:
        return unstructure(value)
    except Exception:  # as above
        if not has(type(value)):
            return plain(value, lost)
        own = (a.name for a in fields(type(value)) if not a.name.startswith("_") and a.metadata.get("saved", True))
        saved = {name: getattr(value, name) for name in own}
        if isinstance(value, VerificationResult):
            saved |= saved.pop("parts")
        return {name: _unstructured(item, lost) for name, item in saved.items()}


def _for_encoder(value: Any) -> Any:
    found = unstructure(value)
    return str(value) if found is value else found


_encoder = partial(json.JSONEncoder, ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_whole, _dumped = _encoder(default=_for_encoder).encode, _encoder(default=str).encode
"""Data that holds itself is nested too deeply. To look for it by itself takes as long as the rest."""


def plain(value: Any, lost: list[str], levels: int = MOST_LEVELS) -> Any:
    """The same data as JSON can hold it: names as texts, sets as lists, numbers without a value as null. What is nested
    too deeply, too large a number, or nothing that can be shown, becomes a text that names the reason, which
    is added to `lost`."""
    if isinstance(value, float) and not math.isfinite(value):
        _gone(f"not written: {value}, which is not a number in JSON", lost)
        return None
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return _gone("not written: a whole number of more than 4,200 digits", lost)
    if value is None or isinstance(value, str | int | float):
        return value
    if not isinstance(value, Mapping | set | frozenset | list | tuple):
        return _shown(value, lost)
    if levels == 0:
        return _gone(f"not written: it is nested more than {MOST_LEVELS} levels deep", lost)
    if isinstance(value, Mapping):
        return {_shown(key, lost): plain(item, lost, levels - 1) for key, item in value.items()}
    items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
    return [plain(item, lost, levels - 1) for item in items]


def redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """The same data as dictionaries and lists, with `redact` applied to all texts that are no keys."""
    if isinstance(value, Mapping):
        return {str(key): redacted(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item, redact) for item in value]
    return redact(value) if isinstance(value, str) else value


def _shown(value: Any, lost: list[str]) -> str:
    try:
        return str(value)
    except Exception as error:  # as above
        return _gone(f"not written: a {type(value).__name__} that cannot be shown ({type(error).__name__})", lost)


def _gone(why: str, lost: list[str]) -> str:
    if why not in lost:
        lost.append(why)
    return f"[{why}]"
