"""The JSON Schema that a judge sees, and filling a template with what it extracted.

The schema says what to extract and nothing about what is right.

The judge fills a relaxed subclass of the template: every verified field may be null, which means that the answer
does not say. One question without an answer then does not spoil the record. Everything else is as the author
declared it, and because it is a subclass, the filled object is an instance of the author's class and need not be
converted. Fields that are decided on the trace are none of the judge's business: data for them is dropped.
"""

from __future__ import annotations

import difflib
import json
import operator
import re
import threading
import types
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from karenina_core.errors import FillError, TemplateError

from .answer import BaseAnswer, read_ground_truths
from .author_code import AUTHORS, author_code, blamed
from .coercions import careful_validator
from .to_json import shown
from .verification import Verification

A = TypeVar("A", bound=BaseAnswer)

_MAKING = threading.Lock()
_MOST = 20
"""Problems of one reply that a judge is shown; the rest is counted. Chosen, not measured."""

_KEPT = ("alias", "alias_priority", "validation_alias", "serialization_alias", "title", "description")
"""What stays of a verified field. Examples and free additions to its schema do not: they reveal what is expected."""


def extraction_class(cls: type[A]) -> type[A]:
    """The relaxed subclass that a judge's data is read into. Made once per class."""
    if "__extraction__" not in cls.__dict__:
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
        read_ground_truths(cls)  # those of models that came later could not be read before
        relaxed = _relax(cls)
        relaxed.model_rebuild()  # where the author puts that off
        schema = relaxed.__pydantic_core_schema__
        type.__setattr__(relaxed, "__pydantic_validator__", careful_validator(schema))
        waiting: list[Any] = [schema]
        strict = False
        while waiting and not strict:
            node = waiting.pop()
            strict = isinstance(node, Mapping) and node.get("strict") is True
            if isinstance(node, Mapping | list | tuple):
                waiting += node.values() if isinstance(node, Mapping) else node
        type.__setattr__(relaxed, "__strict__", strict)  # whether anything is read strictly
        type.__setattr__(relaxed, "__keys__", keys_of(cls))
        for made in (cls, relaxed):
            type.__setattr__(made, "__extraction__", relaxed)
    return cls.__dict__["__extraction__"]  # type: ignore[no-any-return]  # set above, on this very class


def _relax(cls: type[A]) -> type[A]:
    def model_post_init(self: A, context: Any, /) -> None:
        try:
            cls.model_post_init(self, context)
        except TemplateError:
            raise
        except AUTHORS as error:  # inside validation a ValueError from the hook would look like a fault of the data
            raise blamed("the hook that sets self.correct", cls.__module__, error) from error

    fields: dict[str, Any] = {}
    for name, found in cls.__verified__.items():
        info = cls.model_fields[name]
        fields[name] = Field(default=None, **{key: kept for key in _KEPT if (kept := getattr(info, key)) is not None})
        fields[name].metadata.append(found)
    config = ConfigDict(allow_inf_nan=False)  # JSON has no such numbers
    if fields:
        config["json_schema_extra"] = None
    body = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__annotations__": {name: _nullable(cls.model_fields[name]) for name in fields},
        "model_config": config,
        "model_post_init": model_post_init,
        **fields,
    }
    with any_field_names():  # the author's class has already warned which of them hide something of pydantic's
        return types.new_class(cls.__name__, (cls,), exec_body=lambda namespace: namespace.update(body))


@contextmanager
def any_field_names() -> Iterator[None]:
    """A class is made with fields that may be called `copy` or `schema`, without a warning."""
    with _MAKING, warnings.catch_warnings():  # filters belong to the process, and templates are loaded in threads
        warnings.filterwarnings("ignore", "Field name .* shadows an attribute", UserWarning)
        yield


def _nullable(info: FieldInfo) -> Any:
    """The declared type with its constraints inside, so that they stay in the schema, or null."""
    constraints = [item for item in info.metadata if not isinstance(item, Verification)]
    if info.discriminator is not None:
        constraints.append(Field(discriminator=info.discriminator))
    declared: Any = info.annotation
    inner = operator.getitem(Annotated, (declared, *constraints)) if constraints else declared
    return inner if _allows_null(declared) else operator.getitem(Union, (inner, None))


def _allows_null(annotation: Any) -> bool:
    if annotation is Any or annotation is None or annotation is type(None):
        return True
    origin = get_origin(annotation)
    if origin is Annotated:
        return _allows_null(get_args(annotation)[0])
    if origin is Literal:
        return None in get_args(annotation)
    return origin in (Union, types.UnionType) and any(_allows_null(member) for member in get_args(annotation))


def keys_of(cls: type[BaseAnswer]) -> dict[str, str]:
    """The key of every field in the judge's schema, by field name. Raises TemplateError where there are several."""
    names: dict[str, str] = {}
    for name, info in cls.model_fields.items():
        if name in cls.__verified__ and cls.__verified__[name].kind == "trace":
            continue
        alias = name if info.validation_alias is None else info.validation_alias
        if not isinstance(alias, str):
            raise TemplateError(
                f"field {name!r}: a judge can only be given one key; write alias='...' with a plain text"
            )
        if name == "id":
            continue
        if alias == "id":
            raise TemplateError(f"field {name!r}: the alias 'id' is reserved for the question's id; choose another")
        names[name] = alias
    return names


def fill(cls: type[A], data: Mapping[str, Any] | None) -> A:
    """An instance of `cls` from a judge's data.

    Keys that the template does not know are dropped; case, spaces, `-` and `_` make no difference. Raises FillError
    where the data does not fit, TemplateError where the template's own code fails.
    """
    relaxed = extraction_class(cls)
    known = _known_part(cls, relaxed.__dict__["__keys__"], data)
    try:
        # Strictly, a text is a date and a list a set in JSON only.
        strict = relaxed.__dict__["__strict__"]
        if "__pydantic_validator__" in relaxed.__dict__:
            return relaxed.model_validate_json(json.dumps(known)) if strict else relaxed.model_validate(known)
        answer = relaxed.__new__(relaxed)  # the validator is that of its shape, and would make one of that class
        relaxed.__pydantic_validator__.validate_python(known, self_instance=answer)
        return answer
    except ValidationError as error:
        with author_code("building the answer", cls.__module__):
            raise _unfit(error) from None
    except TemplateError:
        raise
    except AUTHORS as error:
        raise blamed("building the answer", cls.__module__, error) from error


def _unfit(error: ValidationError) -> FillError:
    lines = ["The data does not fit:"]
    problems = error.errors(include_url=False, include_context=False)
    for problem in problems[:_MOST]:
        got = "" if problem["type"] == "missing" else f" (got {shown(problem['input'])})"
        steps = (f"[{s}]" if isinstance(s, int) else "." + _FUNCTION.sub(r"\1", s) for s in problem["loc"])
        lines.append(f"- {''.join(steps).lstrip('.') or 'the object'}: {problem['msg']}{got}")
    if len(problems) > _MOST:
        lines.append(f"- and {len(problems) - _MOST} more")
    return FillError("\n".join(lines))


def _known_part(cls: type[BaseAnswer], keys: dict[str, str], data: Mapping[str, Any] | None) -> dict[str, Any]:
    if not keys:
        return {}
    if type(data) is not dict and not isinstance(data, Mapping):
        raise FillError(f"Expected a JSON object with the keys {', '.join(keys.values())}; got {shown(data)}")
    given = {key: key if key in data else name for name, key in keys.items() if key in data or name in data}
    if len(given) < len(keys):
        given |= _spelled_otherwise(cls, keys, given, data)
    known = {key: copied(data[word]) for key, word in given.items()}
    if not known:
        expected = ", ".join(keys.values())
        raise FillError(f"None of the expected keys is there. Expected: {expected}; got: {shown(list(data))}")
    for name in cls.__verified__:
        if name in keys and known.get(keys[name], ...) is None:
            del known[keys[name]]  # the author's validators were not written for null
    return known


def _spelled_otherwise(
    cls: type[BaseAnswer], keys: Mapping[str, str], given: Mapping[str, str], data: Mapping[str, Any]
) -> dict[str, str]:
    """The words in the data for keys that are missing, by key: the same but for case, spaces, `-` and `_`.

    Raises FillError where there are several, or where a verified key has a near miss: both may be a slip, and then null
    would say that the answer does not say.
    """
    aliases = (info.validation_alias for info in cls.model_fields.values())
    known = {"id", *given.values(), *cls.model_fields, *(alias for alias in aliases if isinstance(alias, str))}
    others = {word: _folded(word) for word in data if isinstance(word, str) and word not in known}
    if not others:
        return {}
    found: dict[str, str] = {}
    problems = []
    for name, key in keys.items():
        if key in given:
            continue
        same = [word for word, folded in others.items() if folded in (_folded(key), _folded(name))]
        if len(same) == 1 and same[0] not in found.values():
            found[key] = same[0]
            continue
        near = difflib.get_close_matches(_folded(key), others.values(), cutoff=0.8) if name in cls.__verified__ else []
        numbers = re.findall(r"\d+", key)  # drug_3 is another field than drug_2, and no misspelling of it
        alike = (word for word, folded in others.items() if folded in near and re.findall(r"\d+", word) == numbers)
        if close := same or list(alike):
            problems.append(f"- {key}: missing, but there is {', '.join(map(shown, close))}; write the key as {key!r}")
    if problems:
        raise FillError("\n".join(["Keys are not as expected:", *problems]))
    return found


def _folded(key: str) -> str:
    return re.sub(r"[\s_-]+", "", key).casefold()


def copied(value: Any) -> Any:
    """A copy of JSON data: template code may change what it was given, and the data stays the caller's."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, list):
        return [item if type(item) in _ATOMS else copied(item) for item in value]
    if type(value) is dict or isinstance(value, Mapping):
        return {key: item if type(item) in _ATOMS else copied(item) for key, item in value.items()}
    return value


_ATOMS = frozenset({str, int, float, bool, type(None)})
_FUNCTION = re.compile(r"function-[a-z]+\[\w+\(\), ([^\[\]]+)\]")
"""How pydantic names a member of a union that a function reads."""


# Where a JSON Schema holds other schemas: by name, in a list, or one. Everything else is data and stays as it is.
_NAMED = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"})
_CONSTRAINTS = frozenset(
    (
        *("$ref", "const", "contentEncoding", "contentMediaType", "dependentRequired", "deprecated", "description"),
        *("discriminator", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems"),
        *("maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum"),
        *("multipleOf", "pattern", "required", "type", "uniqueItems"),
    )
)
"""What a verified field may say of itself beside other schemas. Anything else is an example or an author's addition."""


def judge_schema(cls: type[BaseAnswer]) -> dict[str, Any]:
    """The schema of the judge's reply for this template.

    Verified fields are required and may be null, which means that the answer does not say; plain fields are as
    declared. Objects with named fields allow no others, at any depth. Mappings (`dict[str, int]`) keep their open
    keys. Fields that are decided on the trace are left out; a nested model may have fields of the same name. Of what a
    verified field says, also in the models that it is made of, constraints and descriptions stay; examples and an
    author's additions go, and so does the default of the field itself.
    """
    schema: dict[str, Any] = _closed(extraction_class(cls).model_json_schema())
    keys = keys_of(cls)
    asked = set(keys.values())
    verified = {keys[name] for name in cls.__verified__ if name in keys}
    properties = {key: value for key, value in schema["properties"].items() if key in asked}
    definitions = schema.get("$defs", {})
    reached: set[str] = set()  # the definitions that verified fields are made of
    waiting: list[Any] = [properties[key] for key in verified]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        name = str(node.get("$ref", "")).rpartition("/")[2]
        if name in definitions and name not in reached:
            reached.add(name)
            waiting.append(definitions[name])
        for key, value in node.items():
            _each(key, value, waiting.append)
    for name in reached:
        definitions[name] = _bare(definitions[name], {"default"})
    for key in verified:
        properties[key] = _bare(properties[key])
    required = verified | set(schema.get("required", ()))
    schema["properties"] = properties
    schema["required"] = [key for key in properties if key in required]
    return schema


def _bare(node: Any, kept: Collection[str] = ()) -> Any:
    """The schema without anything that is neither a constraint nor a description nor `kept`, at every level."""
    if not isinstance(node, dict):
        return node
    allowed = _CONSTRAINTS | _NAMED | _LISTED | _SINGLE | set(kept)
    return {
        key: _each(key, value, lambda part: _bare(part, {"default"})) for key, value in node.items() if key in allowed
    }


def _closed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    closed = {key: _each(key, value, _closed) for key, value in node.items() if key != "title"}
    if "properties" in closed:
        closed["additionalProperties"] = False
    return closed


def _each(key: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """The value of a keyword with every schema in it changed; data stays as it is."""
    if key in _NAMED and isinstance(value, dict):
        return {name: change(part) for name, part in value.items()}
    if key in _LISTED and isinstance(value, list):
        return [change(part) for part in value]
    return change(value) if key in _SINGLE else value
