"""The one converter between karenina's values and plain JSON or TOML data.

Strict: nothing is silently reinterpreted.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
from cattrs import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError
from cattrs.cols import is_any_set, is_sequence, list_structure_factory
from cattrs.errors import AttributeValidationNote, IterableValidationNote
from cattrs.fns import identity
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from ..errors import ConfigError, Problem, did_you_mean
from .config import ManualAnswer, Secret, VerificationConfig, facts, switches
from .result import OWN, Row, VerificationResult
from .result_parts import result_parts
from .rubric import RubricTrait
from .sections import KEY, Facts

T = TypeVar("T")
_origin: Any = get_origin
ATOMS = frozenset({str, int, float, bool, NoneType})
TEXTS = frozenset({str})
NEVER_WRITTEN = {"manual_traces", "endpoint_api_key"}
FIRST_PARTS = ("metadata", "generation")


def structure(value: Any, cls: type[T], path: str = "") -> T:
    """Turn plain data into `cls`. Raises ConfigError with every problem, each with its path and a suggestion."""
    try:
        return converter().structure(value, cls)
    except Exception as error:
        raise ConfigError(_problems(error, path)) from None


def unstructure(value: Any) -> Any:
    """Turn a value into plain data. Secrets and recorded answers are left out."""
    return converter().unstructure(value)


@functools.cache
def converter(*, walks: bool = True) -> cattrs.Converter:
    """The converter itself, made once. One that does not walk leaves what is in tables and lists to JSON's encoder.

    A class may say itself how it is written, by `to_plain()`, and how it is read, by `from_plain(value)`.
    """
    conv = cattrs.Converter(forbid_extra_keys=True)
    # `"no"` is not true, `"7"` is not 7 and `"abc"` is not a list of letters.
    for type_ in (bool, str, int, float):
        conv.register_structure_hook(type_, (lambda v, t: _exactly(v, t, int)) if type_ is float else _exactly)
    for predicate in (is_sequence, is_any_set):
        conv.register_structure_hook_factory(predicate, _list_hook)
    conv.register_structure_hook_factory(lambda t: _origin(t) in (Union, UnionType), partial(_union_hook, conv))
    conv.register_structure_hook_func(lambda t: _origin(t) is Literal, _structure_literal)
    conv.register_structure_hook_func(lambda t: t is Any or t is object, lambda value, _: value)
    conv.register_structure_hook(bytes, lambda value, _: _bytes(value))
    conv.register_unstructure_hook(bytes, lambda value: base64.b64encode(value).decode("ascii"))
    conv.register_structure_hook(Secret, lambda value, _: Secret(_exactly(value, str)))
    conv.register_unstructure_hook(Secret, lambda value: None)
    conv.register_structure_hook(ManualAnswer, lambda value, _: value)
    conv.register_unstructure_hook_func(is_any_set, lambda value: sorted(map(conv.unstructure, value), key=repr))
    conv.register_structure_hook_factory(attrs.has, partial(_structure_attrs, conv))
    conv.register_unstructure_hook_factory(attrs.has, partial(_unstructure_attrs, conv))
    conv.register_unstructure_hook_func(  # as it is, without a call
        lambda t: _origin(t) in (Union, UnionType) and ATOMS.issuperset(get_args(t)), identity
    )
    kept = partial(_of_anything if walks else _as_it_is, conv)
    conv.register_unstructure_hook_func(lambda t: _origin(t) in (dict, Mapping) and get_args(t)[1:] == (Any,), kept)
    if not walks:
        conv.register_unstructure_hook_func((tuple[str, ...], tuple[Row, ...]).__contains__, kept)
    conv.register_structure_hook_func(lambda t: hasattr(t, "from_plain"), lambda value, t: t.from_plain(value))
    conv.register_unstructure_hook_func(lambda t: hasattr(t, "to_plain"), lambda v: conv.unstructure(v.to_plain()))
    conv.register_unstructure_hook_func(lambda t: t is RubricTrait, conv.unstructure)  # each as its own class
    conv.register_structure_hook_factory(lambda t: t is VerificationConfig, lambda t: _structure_run(conv))
    _register_results(conv)
    return conv


def _structure_attrs(conv: cattrs.Converter, cls: type) -> Any:
    inner: Any = make_dict_structure_fn(cls, conv, _cattrs_forbid_extra_keys=True)
    return lambda value, t: inner(_table(value), t)


def _table(value: Any) -> Mapping[str, Any]:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise TypeError(f"expected a table of settings, got {value!r}")
    return value


def _unstructure_attrs(conv: cattrs.Converter, cls: type) -> Any:
    left_out = [
        a.name
        for a in attrs.fields(cls)
        if a.name.startswith("_") or a.name in NEVER_WRITTEN or not a.metadata.get("saved", True)
    ]
    hidden: dict[str, Any] = {name: override(omit=True) for name in left_out}
    for a in attrs.fields(cls):
        if (write := a.metadata.get(KEY, Facts()).write) is not None:
            hidden[a.name] = override(unstruct_hook=write)
    return make_dict_unstructure_fn(cls, conv, **hidden)


def _as_it_is(conv: cattrs.Converter, value: Any) -> Any:
    return value if type(value) in (dict, list, tuple) else _of_anything(conv, value)


def _of_anything(conv: cattrs.Converter, value: Any) -> Any:
    """Any table or list. What is JSON data already is copied, without a look for the hook of each of its values."""
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is dict and TEXTS.issuperset(map(type, value)):
        return {name: item if type(item) in ATOMS else _of_anything(conv, item) for name, item in value.items()}
    if kind is list:
        return [item if type(item) in ATOMS else _of_anything(conv, item) for item in value]
    return conv.unstructure(value)


def _structure_run(conv: cattrs.Converter) -> Any:
    """Switches such as `NAME_enabled = true`, and other views, are accepted beside the settings that they set."""
    known, switched = facts(), switches()
    views = [name for name, about in known.items() if about.feature or about.stands_for]
    # What is read from data is complete: for what is not in it, the environment is not asked.
    usual = {f"_{name}" if name in switched else name: about.usual for name, about in known.items() if about.variable}
    hidden: dict[str, Any] = {f"_{name}": override(omit=True) for name in views if f"_{name}" not in usual}
    inner = make_dict_structure_fn(VerificationConfig, conv, _cattrs_forbid_extra_keys=True, **hidden)

    def hook(value: Any, cls: type) -> VerificationConfig:
        given: dict[str, Any] = {}
        problems: list[Problem] = []
        for name in (name for name in views if name in _table(value)):
            try:
                given[name] = _exactly(value[name], bool) if name in switched else value[name]
            except TypeError as error:
                problems.append(Problem(name, str(error)))
        try:
            plain = {k: v for k, v in value.items() if k not in views}
            if private := sorted(str(k) for k in plain if str(k).startswith("_")):
                raise ConfigError(Problem(name, "unknown setting") for name in private)
            config: VerificationConfig = inner({**usual, **plain}, cls)
        except Exception as error:
            problems += _problems(error, "")
        if problems:
            raise ConfigError(problems)
        return attrs.evolve(config, **given) if given else config

    return hook


def _register_results(conv: cattrs.Converter) -> None:
    """Each part of a result by its class; parts that nothing declares as they are."""
    write = make_dict_unstructure_fn(VerificationResult, conv, parts=override(omit=True))
    read = make_dict_structure_fn(VerificationResult, conv, _cattrs_forbid_extra_keys=True, parts=override(omit=True))

    def unstructured(result: VerificationResult) -> dict[str, Any]:
        own = write(result)
        first = {name: own.pop(name) for name in FIRST_PARTS}
        return first | {name: conv.unstructure(part) for name, part in result.parts.items()} | own

    def structured(value: Any, cls: type) -> VerificationResult:
        found: list[Problem] = []
        parts: dict[str, Any] = {}
        for name in (name for name in _table(value) if name not in OWN):
            try:
                parts[name] = _part(conv, name, value[name])
            except Exception as error:
                found += _problems(error, name)
        try:
            result = read({name: value[name] for name in OWN if name in value}, cls)
        except Exception as error:
            found += _problems(error, "")
        if found:
            raise ConfigError(found)
        return VerificationResult(parts=parts, **{name: getattr(result, name) for name in OWN}) if parts else result

    conv.register_unstructure_hook(VerificationResult, unstructured)
    conv.register_structure_hook(VerificationResult, structured)


def _part(conv: cattrs.Converter, name: str, value: Any) -> Any:
    known = result_parts()
    if name in known:
        return None if value is None else conv.structure(value, known[name])
    if name == "parts" or not isinstance(value, Mapping | None):
        raise TypeError(f"unknown setting{did_you_mean(name, (*OWN, *known))}")
    return value


def _exactly(value: Any, type_: type, *others: type) -> Any:
    if type(value) is not type_ and type(value) not in others:
        raise TypeError(f"expected {_name(type_)}, got {value!r}")
    return value if type(value) is type_ else type_(value)


def _name(type_: Any) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "nothing"}
    return names.get(type_) or str(getattr(type_, "__name__", type_))


def _list_hook(type_: Any, conv: cattrs.Converter) -> Any:
    """Lists from lists only, in the container that the field asks for."""
    inner = list_structure_factory(type_, conv)
    container = kind if (kind := get_origin(type_) or type_) in (tuple, set, frozenset) else list

    def hook(value: Any, t: Any) -> Any:
        if not isinstance(value, list | tuple | set | frozenset):
            raise TypeError(f"expected a list, got {value!r}")
        return container(inner(value, t))

    return hook


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else base64.b64decode(_exactly(value, str), validate=True)


def _union_hook(conv: cattrs.Converter, type_: Any) -> Any:
    members = [member for member in get_args(type_) if member is not NoneType]
    kept = {*get_args(type_)} if len(members) > 1 else ATOMS.intersection(get_args(type_))

    def hook(value: Any, _: Any) -> Any:
        if type(value) in kept:
            return value
        if len(members) == 1:
            return conv.structure(value, members[0])
        for member in members:
            with suppress(Exception):
                return conv.structure(value, member)
        raise TypeError(f"expected {' or '.join(_name(m) for m in members)}, got {value!r}")

    return hook


def _structure_literal(value: Any, type_: Any) -> Any:
    allowed = get_args(type_)
    if value not in allowed or isinstance(value, bool) != any(isinstance(a, bool) for a in allowed if a == value):
        hint = did_you_mean(value, [a for a in allowed if isinstance(a, str)]) if isinstance(value, str) else ""
        raise ValueError(f"must be one of {', '.join(map(str, allowed))}, not {value!r}{hint}")
    return value


def _problems(error: BaseException, path: str) -> list[Problem]:
    """Flatten cattrs' tree of errors into one line each."""
    if isinstance(error, ClassValidationError | IterableValidationError):
        return [problem for child in error.exceptions for problem in _problems(child, path + _step(child))]
    if isinstance(error, ForbiddenExtraKeysError):
        names = [str(a.alias) for a in attrs.fields(error.cl)]
        return [
            Problem(_join(path, name), f"unknown setting{did_you_mean(name, names)}")
            for name in sorted(error.extra_fields)
        ]
    if isinstance(error, ConfigError):
        return [Problem(_join(path, p.path), p.message) for p in error.problems]
    if isinstance(error, KeyError):
        name = str(error.args[0])
        return [Problem(path.lstrip(".") if path.endswith(f".{name}") else _join(path, name), "is missing")]
    text = str(error.args[0]) if error.args else type(error).__name__  # attrs' validators raise with more arguments
    text = text if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {text}"
    return [Problem(path.lstrip("."), text)]


def _step(error: BaseException) -> str:
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return f".{note.name}"
        if isinstance(note, IterableValidationNote):
            return f"[{note.index!r}]"
    return ""


def _join(path: str, name: str) -> str:
    return f"{path}.{name}".strip(".") if name else path.lstrip(".")
