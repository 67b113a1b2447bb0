"""From a model's configuration to open ports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal

from ..errors import ConfigError, KareninaError, PluginError, Problem, one_line
from ..log import get_logger
from ..model.config import ModelConfig, VerificationConfig
from ..plugin.adapters import AdapterSpec, Resolution
from ..plugin.application import Karenina
from ..ports.client import Model
from ..prompts.instructions import AdapterInstructionRegistry

__all__ = ["check_models", "open_model", "open_models"]

Role = Literal["answering", "parsing"]
log = get_logger("karenina.run")


def check_models(app: Karenina, config: VerificationConfig) -> dict[str, Resolution]:
    """Resolve every model's interface and check its configuration. Ports are made for it, but not opened.

    Returns resolutions by the text of the model's identity. Raises ConfigError with every problem.
    """
    problems: list[Problem] = []
    resolutions: dict[str, Resolution] = {}
    roles: Sequence[tuple[Role, tuple[ModelConfig, ...]]] = (
        ("answering", config.answering_models),
        ("parsing", config.parsing_models),
    )
    for role, models in roles:
        if not models:
            problems.append(Problem(f"{role}_models", f"name at least one model (--{role}-model NAME)"))
        for position, model in enumerate(models):
            path = f"{role}_models[{position}]"
            try:
                resolutions[str(model.identity)] = resolution = _resolve(app, model)
                problems += [Problem(path, text) for text in _complaints(app, resolution, model, role)]
            except ConfigError as error:
                problems += [Problem(f"{path}.{p.path}".rstrip("."), p.message) for p in error.problems]
            except KareninaError as error:
                problems.append(Problem(f"{path}.interface", f"{error}{app.inactive()}"))
    if problems:
        raise ConfigError(problems)
    return resolutions


def _resolve(app: Karenina, model: ModelConfig) -> Resolution:
    return app.adapters.resolve_interface(model.interface)


def _complaints(app: Karenina, resolution: Resolution, model: ModelConfig, role: Role) -> Iterable[str]:
    spec = resolution.spec
    if model.mcp_urls_dict and not spec.supports_mcp:
        yield f"mcp_urls_dict: the interface {spec.interface!r} runs no agents and can use no MCP servers; remove them"
    if spec.requires_provider and not model.model_provider:
        yield f"model_provider: the interface {model.interface!r} needs a provider (--{role}-provider NAME)"
    if role == "answering" and not spec.llm_factory:
        yield f"interface: {spec.interface!r} cannot answer questions"
    if role == "parsing" and not (spec.parser_factory or spec.llm_factory):
        yield f"interface: {spec.interface!r} cannot judge answers"
    if any(port.capabilities.needs_provider for port in _ports(app, spec, model).values()):
        model.api_key()
        yield from _checked(spec, model)


def _checked(spec: AdapterSpec, model: ModelConfig) -> Iterable[str]:
    try:
        return list(spec.config_checker(model)) if spec.config_checker else []
    except KareninaError:
        raise
    except Exception as error:  # an adapter's own code
        return [f"interface: the check of {spec.interface!r} failed: {one_line(error)}"]


async def open_model(app: Karenina, config: VerificationConfig, model: ModelConfig) -> Model:
    """Make and open the ports of one model. Raises KareninaError where its adapter does not work."""
    model = config.for_model(model)
    ports = _ports(app, _resolve(app, model).spec, model)
    opened = Model(
        config=model,
        prompts=config.prompt_config,
        instructions=AdapterInstructionRegistry(
            {p: _positional(f) for p, f in app.implementations("karenina_instruct")}
        ),
        max_elapsed=config.retry_max_elapsed_seconds,
        classify=_classifier(app),
        **ports,
    )
    try:
        for port in ports.values():
            if opener := getattr(port, "aopen", None):
                await opener()
    except BaseException as error:
        await _close(opened)
        if isinstance(error, Exception) and not isinstance(error, KareninaError):
            raise PluginError(f"the adapter of {model.identity} cannot be opened: {one_line(error)}") from error
        raise
    return opened


async def _close(model: Model) -> None:
    """An adapter that cannot be closed is logged: the results are there, and they count more."""
    try:
        await model.aclose()
    except Exception as error:
        log.warning("an adapter could not be closed", model=str(model.identity), error=one_line(error))


@asynccontextmanager
async def open_models(app: Karenina, config: VerificationConfig, models: Iterable[ModelConfig]) -> Any:
    """Open several models; all of them are closed at the end. Yields `{ModelIdentity: Model}`."""
    async with AsyncExitStack() as stack:
        opened = {}
        for model in models:
            if model.identity not in opened:
                opened[model.identity] = await open_model(app, config, model)
                stack.push_async_callback(_close, opened[model.identity])
        yield opened


def _ports(app: Karenina, spec: AdapterSpec, model: ModelConfig) -> dict[str, Any]:
    """The ports of a model inside their middleware, not yet opened: to make one costs nothing."""
    factories = {"llm": spec.llm_factory, "parser": spec.parser_factory}
    return {
        name: _wrapped(app, app.adapters.make_port(factory, model, spec), model)
        for name, factory in factories.items()
        if factory is not None
    }


def _wrapped(app: Karenina, port: Any, model: ModelConfig) -> Any:
    for _, wrap in reversed(app.implementations("karenina_wrap_port")):
        port = wrap(port=port, model=model) or port
    return port


def _positional(function: Any) -> Any:
    return lambda task, interface, context: function(task=task, interface=interface, context=context)


def _classifier(app: Karenina) -> Any:
    if not app.implementations("karenina_classify_error"):
        return lambda error: None
    return lambda error: app.hooks.karenina_classify_error(error=error)
