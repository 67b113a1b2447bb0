"""Sections: the settings of a run that a distribution declares for what it does, beside those of the core.

A section is an attrs class that an entry point of the group `karenina.settings` names. Its fields are fields of
`VerificationConfig`, by the same flat names:

    @frozen(kw_only=True, slots=False)
    class CitationSettings(Section):
        citations_least: int = whole(1, least=0)

Each field says here all that there is to know about it: default, validation, environment variables, the feature that it
switches.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, get_args

import attrs
from attrs import NOTHING, Factory, field, frozen, validators

from ..errors import ConfigError, PluginError, Problem
from ..plugin.discovery import CORE, Declared, Rank, discover
from .fields import number, one_of, optional, text, true_or_false, whole_number
from .model_config import ModelConfig

KEY = "karenina"
GROUP = "karenina.settings"
TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")


def toml_or_text(value: str) -> Any:
    """A value of TOML, or the text itself where it is none."""
    try:
        found = tomllib.loads(f"value = {value}")
    except ValueError:
        return value
    return found["value"] if set(found) == {"value"} else value


def read_switch(text: str) -> bool:
    """True or false, as environment variables say it. Raises ValueError for anything else."""
    word = text.strip().lower()
    if word not in (*TRUE, *FALSE):
        raise ValueError(f"must be one of {', '.join((*TRUE, *FALSE))}, not {text!r}")
    return word in TRUE


def from_environment(variable: str, read: Callable[[str], Any], default: Any) -> Callable[[], Any]:
    """The value of an environment variable, which counts where the constructor is given none."""

    def value() -> Any:
        text = os.environ.get(variable, "").strip()
        try:
            return read(text) if text else default
        except ValueError as error:
            raise ConfigError([Problem(variable, f"the environment variable {error}")]) from None

    return value


@frozen(kw_only=True)
class Facts:
    """What there is to know about a setting beside its type, default and validation."""

    environment: bool = False
    """Whether `KARENINA_<NAME>` sets it. No for what may run code."""
    variable: str = ""
    """Another variable that sets it, in the constructor too."""
    usual: Any = None
    """With such a variable: the default where the environment is not asked."""
    read: Callable[[str], Any] = str
    """From the text of a variable to the value. Raises ValueError."""
    feature: str = ""
    """The feature that it switches."""
    stands_for: Callable[[Any], Mapping[str, Any]] | None = None
    """Of a view: the settings that a value of it sets. Raises ValueError."""
    neutral: bool = False
    """Whether it changes how fast, how long or where a run works, and none of its numbers."""
    write: Callable[[Any], Any] | None = None
    """How a value is saved that may be something else than data."""


@frozen
class Inherited:
    """A switch that the environment sets, not the caller."""

    on: bool


class Section:
    """Base of sections. All fields have defaults; the settings of the core can be read."""

    features: frozenset[str]
    answering_models: tuple[ModelConfig, ...]
    parsing_models: tuple[ModelConfig, ...]

    def check_settings(self) -> Iterable[Problem]:
        """What is wrong with these settings together, each as the name of a setting and what to do."""
        return ()


@cache
def named_facts(cls: type) -> Mapping[str, Facts]:
    """What the fields of a configuration declare, by the names that they are set by."""
    return {str(a.alias): a.metadata.get(KEY, Facts()) for a in attrs.fields(cls)}


@cache
def switches_of(cls: type) -> Mapping[str, str]:
    """The settings that switch a feature: `{name: feature}`."""
    return {name: facts.feature for name, facts in named_facts(cls).items() if facts.feature}


def metadata(**facts: Any) -> Mapping[str, Facts]:
    """What a field declares, for `attrs.field`."""
    return {KEY: Facts(**facts)}


def setting(
    default: Any,
    *checks: Any,
    read: Callable[[str], Any] = str,
    environment: bool = True,
    variable: str = "",
    asked: Callable[[str], Any] | None = None,
    neutral: bool = False,
    write: Callable[[Any], Any] | None = None,
    **more: Any,
) -> Any:
    """A field with a default, its validators and what `Facts` has; `more` goes to `attrs.field`.

    `asked` reads the variable in place of `read` where the constructor asks for it, with an error that says all.
    """
    facts = metadata(environment=environment, variable=variable, usual=default, read=read, neutral=neutral, write=write)
    if variable:
        default = Factory(from_environment(variable, asked or read, default))
    return field(default=default, validator=list(checks) or None, metadata=facts, **more)


def flag(default: bool, **facts: Any) -> Any:
    """A field that is true or false."""
    return setting(default, true_or_false, read=read_switch, **facts)


def word(default: str, choices: Any, **facts: Any) -> Any:
    """A field that is one of the texts of a `Literal`."""
    return setting(default, one_of(get_args(choices)), **facts)


def words(default: str, **facts: Any) -> Any:
    """A field that is a text."""
    return setting(default, text, **facts)


def fraction(default: float, **facts: Any) -> Any:
    """A field that is a number from 0 to 1."""
    return setting(default, number, validators.ge(0), validators.le(1), read=toml_or_text, **facts)


def whole(default: int, least: int, **facts: Any) -> Any:
    """A field that is a whole number."""
    return setting(default, whole_number, validators.ge(least), read=toml_or_text, **facts)


def positive(default: float | None, **facts: Any) -> Any:
    """A field that is a number above 0; where the default is None, None too."""
    checks = (number, validators.gt(0))
    return setting(default, *((optional(*checks),) if default is None else checks), read=toml_or_text, **facts)


def most(**facts: Any) -> Any:
    """A field that is a whole number from 1, or None: no limit."""
    return setting(None, optional(whole_number, validators.ge(1)), read=toml_or_text, **facts)


def switch(feature: str, variable: str = "") -> Any:
    """A field `_name` that switches a feature on or off; the section has a property `name` that reads it."""
    facts = metadata(environment=True, variable=variable, read=read_switch, feature=feature)
    default: Any = None
    if variable:
        default = Factory(from_environment(variable, lambda value: Inherited(read_switch(value)), None))
    return field(default=default, eq=False, repr=False, validator=_on_or_off, metadata=facts)


def view(stands_for: Callable[[Any], Mapping[str, Any]]) -> Any:
    """A field `_name` for another way to write settings; the section has a property `name` that reads them."""
    return field(default=None, eq=False, repr=False, metadata=metadata(environment=True, stands_for=stands_for))


def _on_or_off(self: object, attribute: Any, value: Any) -> None:
    if value is not None and not isinstance(value, Inherited):
        true_or_false(self, attribute, value)


def names_of(cls: type) -> frozenset[str]:
    """The names that a class gives to a configuration: its own fields, properties and methods."""
    own = {str(a.alias) for a in attrs.fields(cls) if not a.inherited}
    return frozenset(own | {name for name in vars(cls) if not name.startswith("_")} - {*vars(Section)})


def checked(cls: Any) -> type[Any]:
    """The class, if it can be a section. Raises PluginError."""
    if not (isinstance(cls, type) and issubclass(cls, Section) and attrs.has(cls)):
        raise PluginError(f"{cls!r} is not a section: write an attrs class derived from {Section.__module__}.Section")
    where = f"{cls.__module__}.{cls.__qualname__}"
    if "__slots__" in vars(cls):
        raise PluginError(
            f"{where} has slots and cannot be combined with others; write @frozen(kw_only=True, slots=False)"
        )
    if needed := [a.name for a in attrs.fields(cls) if a.default is NOTHING]:
        raise PluginError(f"{where}.{needed[0]} needs a default")
    return cls


def installed_sections(core: type) -> tuple[Declared, ...]:
    """All that is installed, by name. Of two that declare the same name, one is left out; see `Rank`."""
    sources = {f"{source.name}@{source.distribution}": source for source in discover(GROUP)}
    owners = dict.fromkeys(names_of(core), CORE)

    def unclaimed(cls: Any) -> type[Any]:
        names = names_of(checked(cls))
        for name in sorted(names):
            if name in owners:
                both = f"{owners[name]} and {source.distribution}"
                raise PluginError(f"{both} both have a setting of a run called {name!r}; uninstall one of them")
        owners.update(dict.fromkeys(names, source.distribution))
        return cls  # type: ignore[no-any-return]  # `checked` has seen to it

    found = {}
    for key in sorted(sources, key=Rank({key: source.distribution for key, source in sources.items()})):
        source = sources[key]
        found[key] = Declared.of(source, "settings of a run", unclaimed)
    return tuple(found[key] for key in sorted(found))
