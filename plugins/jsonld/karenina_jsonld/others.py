"""Trait types that other packages bring: their evaluators say how such a trait is read and written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
from attrs import frozen

from karenina_core.errors import PluginError, did_you_mean, one_line
from karenina_core.values.rubric import RubricTrait

from .nodes import plain
from .vocabulary import DYNAMIC, DYNAMIC_TYPE, PUBLISHED, TRAIT_TYPES

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina


@frozen
class Evaluator:
    """The evaluator of one type of trait, under the name that it is registered by."""

    name: str
    plugin: str
    own: Any
    """The `TraitEvaluator`: third-party code, so whatever it raises is reported with the plugin's name."""

    @property
    def file_type(self) -> str:
        return str(getattr(self.own, "file_type", ""))

    def unknown(self, names: Collection[str]) -> list[str]:
        """Properties that it has no field for. One that reads ratings in its own way is given all of them."""
        from karenina_vocabulary.evaluators import TraitEvaluator  # only files with such traits pay for the pipeline

        if getattr(type(self.own), "decode", None) is not TraitEvaluator.decode:
            return []
        fields = {field.name for field in attrs.fields(self.own.trait_class)}
        return sorted(set(names) - fields)

    @contextmanager
    def _blamed(self, verb: str) -> Iterator[None]:
        """Every error becomes a ValueError."""
        try:
            yield
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"plugin {self.plugin!r} failed to {verb} it: {one_line(error)}") from error

    def read(self, data: Mapping[str, Any]) -> RubricTrait:
        """The trait of a rating: `name`, `description` and the values of its properties. Raises ValueError."""
        with self._blamed("read"):
            unknown = self.unknown(data)
            trait = self.own.decode({name: value for name, value in data.items() if name not in unknown})
        if not isinstance(trait, RubricTrait) or trait.name != data.get("name"):
            raise ValueError(f"plugin {self.plugin!r} reads it as {trait!r:.60}, which is not a trait of this name")
        return trait

    def write(self, trait: RubricTrait) -> dict[str, Any]:
        """The values of the properties of its rating. Raises ValueError where they would not be read as this trait."""
        with self._blamed("write"):
            encoded = plain(self.own.encode(trait))
            fields = {name: value for name, value in encoded.items() if name not in ("name", "description")}
        if fields.get("summary", ...) is None:
            del fields["summary"]
        if (
            DYNAMIC_TYPE in fields
            or self.read({**fields, "name": trait.name, "description": trait.description}) != trait
        ):
            raise ValueError(f"plugin {self.plugin!r} does not read back what it writes; report it to its authors")
        return fields


class OtherTypes:
    """The evaluators of an application's other types. They are loaded when a file or a rubric has such a trait.

    `only` are the names of those that may be used.
    """

    def __init__(self, app: Karenina, only: Collection[str] | None = None) -> None:
        self.app = app
        self.used: set[str] = set()
        """Names of the types of which traits were read."""
        self.names = [name for name in app.traits if name not in PUBLISHED and (only is None or name in only)]
        self._loaded: dict[str, Evaluator | None] = {}
        self._broken: dict[str, str] = {}

    def named(self, name: str) -> Evaluator | None:
        """The evaluator of this name; None where there is none or it cannot be loaded, see `absent`."""
        if name in self.names and name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded.get(name)

    def _load(self, name: str) -> Evaluator | None:
        plugin = self.app.traits[name].plugin
        try:
            return Evaluator(name, plugin, self.app.traits.checked(self.app.trait_evaluator(name)))
        except Exception as error:  # it is imported and made here
            reason = str(error) if isinstance(error, PluginError) else one_line(error)
            self._broken[name] = f"the evaluator {name!r} of plugin {plugin!r} cannot be used: {reason}"
            return None

    def of_file_type(self, suffix: str) -> Evaluator | None:
        """The evaluator that reads ratings of this type. Raises ValueError where there are several."""
        found = {e.own.trait_class: e for e in map(self.named, self.names) if e is not None and e.file_type == suffix}
        if len(found) > 1:
            rivals = " and ".join(repr(evaluator.plugin) for evaluator in found.values())
            raise ValueError(f"plugins {rivals} both read ratings of the type {suffix}; block one (KARENINA_DISABLE)")
        return next(iter(found.values()), None)

    def file_types(self) -> list[str]:
        """Those of the evaluators that are loaded."""
        return [evaluator.file_type for evaluator in self._loaded.values() if evaluator and evaluator.file_type]

    def absent(self) -> str:
        """Why a type may be missing: evaluators that cannot be used, and plugins that are not active."""
        broken = "".join(f" Besides, {reason}." for reason in self._broken.values())
        return f"{broken}{self.app.inactive()}"

    def writer(self, trait: RubricTrait, *, dynamic: bool) -> Evaluator:
        """The evaluator that writes this trait. Raises ValueError that says what is missing."""
        evaluator = self.named(trait.type_name)
        cls = f"{type(trait).__module__}.{type(trait).__qualname__}"
        if trait.type_name in PUBLISHED:
            raise ValueError(
                f"trait {trait.name!r}: {cls} calls itself {trait.type_name!r}, which is a published type with fields "
                "of its own; give the class another type_name and an evaluator"
            )
        if evaluator is None:
            raise ValueError(
                f"trait {trait.name!r}: no installed plugin writes traits of the type {trait.type_name!r} ({cls})"
                f"{did_you_mean(trait.type_name, self.names)}; install the package that registers its evaluator."
                f"{self.absent()}"
            )
        if not dynamic:
            suffix = evaluator.file_type
            if not suffix or suffix in TRAIT_TYPES or suffix == DYNAMIC:
                why = f"its file_type {suffix!r} is taken by the format" if suffix else "it has no file_type"
                raise ValueError(
                    f"trait {trait.name!r}: the evaluator {evaluator.name!r} of plugin {evaluator.plugin!r} cannot be "
                    f"written to benchmark files: {why}; its authors have to choose one"
                )
            self.of_file_type(suffix)
        return evaluator
