"""Models that single traits name in place of the judge: checked before a run, opened once for all its items.

A benchmark file decides nothing about where data and keys go, or which programs start. A model that it describes is
used as it is only in a run that is trusted. Otherwise it is only a name for one of the configured models.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TypeVar

from attrs import define, field, fields_dict

from karenina_core.errors import ConfigError, PluginError, PortError, Problem, one_line
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import ModelConfig, VerificationConfig
from karenina_core.values.rubric import TRAIT_LISTS, Rubric, RubricTrait

from ..metering import Metering
from ..ports.client import Model
from ..tools.tool_servers import shown_address
from .models import NO_SERVERS, model_problems, open_models
from .untrusted_models import ForeignModelConfig, plain_model, replaced_models

K = TypeVar("K")
PAUSE = 30.0
"""Seconds in which a model that could not be opened is not tried again."""
PAUSE_FOR_EACH = 10.0
"""And for each second that the failure took: a run never spends more than a tenth of its time on it."""
NAMING = ("id", "model_name", "model_provider", "interface")
"""What a file's model has in common with the configured one that is asked in its place, or may call otherwise."""


@define
class Settled:
    """Replaces the models that files describe by those that may be asked, trait by trait."""

    config: VerificationConfig
    problems: list[Problem] = field(factory=list)
    notes: list[str] = field(factory=list)
    """What files say about models and is not heeded."""
    _known: dict[int, tuple[RubricTrait, RubricTrait]] = field(factory=dict)

    def rubric(self, rubric: Rubric | None) -> Rubric | None:
        """The same rubric, or one with other models. Where a model may not be asked, there is a problem."""
        if rubric is None:
            return None
        for trait in rubric:
            if id(trait) not in self._known:  # kept beside its id, so that no other object gets it
                self._known[id(trait)] = (trait, replaced_models(trait, partial(self._model, trait.name)))
        if all(new is old for old, new in (self._known[id(trait)] for trait in rubric)):
            return rubric
        traits = Rubric.from_traits(self._known[id(trait)][1] for trait in rubric)
        lists = {name: getattr(traits, name) for name in TRAIT_LISTS}
        return type(rubric)(**lists, provenance=rubric.provenance)

    def _model(self, trait: str, model: ModelConfig) -> ModelConfig:
        try:
            allowed = _allowed(model, self.config)
        except ConfigError as error:
            self.problems += [Problem("rubric", f"trait {trait!r}: {problem.message}") for problem in error.problems]
            return model
        if isinstance(model, ForeignModelConfig) and (unheeded := _unheeded(model, allowed)):
            note = f"trait {trait!r}: {allowed.identity} is used as configured; what the benchmark file says "
            self.notes.append(f"{note}about it is ignored: {', '.join(unheeded)}")
        return allowed


def resolve_models(
    config: VerificationConfig, rubrics: Mapping[K, Rubric | None]
) -> tuple[dict[K, Rubric | None], list[str]]:
    """Rubrics with the models that may be asked, and what people should know about it.

    A model from a benchmark file stays as it is where the run is trusted. Otherwise the configured model of the same
    interface, provider and name takes its place, with its own address, key and settings. Models that the running
    program made stay as they are. Raises ConfigError with every model that may not be asked.
    """
    settling = Settled(config)
    found = {key: settling.rubric(rubric) for key, rubric in rubrics.items()}
    if settling.problems:
        raise ConfigError(dict.fromkeys(settling.problems))
    return found, settling.notes


def _allowed(model: ModelConfig, config: VerificationConfig) -> ModelConfig:
    """The model to ask in place of this one. Raises ConfigError where only the author of a file names it."""
    if not isinstance(model, ForeignModelConfig):
        return model
    if config.code_policy == "trusted":
        return plain_model(model)
    for configured in (*config.parsing_models, *config.answering_models):
        if _known_as(configured) == _known_as(model):
            return plain_model(configured)
    interface, provider, name = _known_as(model)
    where = f", at {shown_address(model.endpoint_base_url)}" if model.endpoint_base_url else ""
    facts = f"interface {interface!r}, {f'provider {provider!r}, ' if provider else ''}name {name!r}{where}"
    refusal = (
        f"model_override is a model that the benchmark file describes ({facts}), and a file decides nothing about "
        "where data and keys go. Configure this model yourself, as an answering or parsing model with the same "
        "interface, provider and name, and yours is used; or, if you trust this file, use --trust (in Python: "
        "code_policy='trusted'). Or leave the trait out (rubric_trait_names)"
    )
    raise ConfigError([Problem("model_override", refusal)])


def _known_as(model: ModelConfig) -> tuple[str, str | None, str]:
    return model.interface, model.model_provider, model.name


def _unheeded(model: ModelConfig, asked: ModelConfig) -> list[str]:
    """Settings that a file gives to a model and that another value is used of."""
    usual = fields_dict(ModelConfig)
    given = [name for name in usual if name not in NAMING and getattr(model, name) != getattr(asked, name)]
    blank = ModelConfig(model_name=model.name)
    return [name for name in given if getattr(model, name) != getattr(blank, name)]


def overrides(rubrics: Iterable[Rubric | None]) -> list[tuple[str, ModelConfig]]:
    """The models that traits name (`model_override`), each with the name of the trait."""
    found = [(trait.name, getattr(trait, "model_override", None)) for rubric in rubrics for trait in rubric or ()]
    return [(name, model) for name, model in found if isinstance(model, ModelConfig)]


def check_overrides(app: Karenina, rubrics: Iterable[Rubric | None], config: VerificationConfig | None = None) -> None:
    """Check the configuration of such models as that of judges. Raises ConfigError with every problem.

    A model of `config` that also answers may have tool servers: they are for its answers.
    """
    answering = () if config is None else config.answering_models
    problems = [
        Problem("rubric", f"trait {name!r}: {problem}")
        for name, model in overrides(rubrics)
        for problem in model_problems(app, model, "parsing", "model_override")
        if problem.message != NO_SERVERS or model not in answering  # its servers are for its answers
    ]
    if problems:
        raise ConfigError(dict.fromkeys(problems))


@define(eq=False)
class _Place:
    """One configuration in a pool: its open model, or the failure to open it."""

    config: ModelConfig
    model: Model | None = None
    alone: asyncio.Lock = field(factory=asyncio.Lock)
    failure: Exception | None = None
    again: float = 0.0
    """When it may be tried again, as `time.monotonic` counts."""


@define(eq=False)
class ModelPool:
    """Open models beside those of the run itself. Items that ask for equal ones share them."""

    app: Karenina
    config: VerificationConfig
    stack: AsyncExitStack
    """Closes them."""
    _places: list[_Place]
    metering: Metering | None = None

    async def model(self, config: ModelConfig) -> Model:
        """The open model of this configuration. Only those who ask for the same one wait for each other.

        One that cannot be opened, or not within its `request_timeout`, fails for whoever asks for it in the next
        `PAUSE` seconds or `PAUSE_FOR_EACH` times what the failure took, whichever is longer; then it is tried again.
        Raises KareninaError, and ConfigError for a model that a benchmark file describes and that may not be asked.
        """
        config = _allowed(config, self.config)
        wanted = self.config.for_model(config)
        place = next((place for place in self._places if place.config == wanted), None)
        if place is None:
            place = _Place(wanted)
            self._places.append(place)
        async with place.alone:
            if place.model is not None:
                return place.model
            if place.failure is not None and time.monotonic() < place.again:
                raise place.failure
            started = time.monotonic()
            try:
                place.model = await self._opened(place.config, config)
            except Exception as error:  # adapters and their middleware are code of plugins
                place.failure, now = error, time.monotonic()
                place.again = now + max(PAUSE, PAUSE_FOR_EACH * (now - started))
                raise
            return place.model

    async def _opened(self, wanted: ModelConfig, config: ModelConfig) -> Model:
        seconds = wanted.request_timeout
        try:
            async with asyncio.timeout(seconds) as clock:
                made = await self.stack.enter_async_context(
                    open_models(self.app, self.config, [config], metering=self.metering)
                )
        except TimeoutError as error:
            if not clock.expired():
                raise PluginError(f"the adapter of {config.identity} cannot be opened: {one_line(error)}") from error
            late = f"{config.identity} could not be opened within {seconds:g} s; request_timeout gives it longer"
            raise PortError(late, kind="timeout") from error
        return made[config.identity]


@asynccontextmanager
async def model_pool(
    app: Karenina, config: VerificationConfig, judges: Iterable[Model], metering: Metering | None = None
) -> AsyncIterator[ModelPool]:
    """A pool that lends the run's judges too; what it opens itself is closed at the end."""
    async with AsyncExitStack() as stack:
        yield ModelPool(app, config, stack, [_Place(model.config, model) for model in judges], metering)
