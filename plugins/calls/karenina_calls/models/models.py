"""From a model's configuration to open ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

from karenina_core.errors import ConfigError, KareninaError, PluginError, Problem, one_line
from karenina_core.plugin.adapters import AdapterSpec, Resolution
from karenina_core.plugin.application import Karenina, current
from karenina_core.ports.middleware import CallTarget
from karenina_core.values.config import ModelConfig, VerificationConfig
from karenina_core.values.fields import changed
from karenina_core.values.identity import ModelIdentity

from ..metering import Metering
from ..ports.client import Model, ModelClient
from ..secrets.known_secrets import secrets_of
from ..secrets.redaction import Secrets, hide
from ..services.shared import AdapterInstructionRegistry
from ..tools.model_tools import Connections, tool_complaints
from .model_ports import able_to_use_tools, close_logged, middleware, model_ports

Role = Literal["answering", "parsing"]
ONLY_BATCHED = ("batch_max_calls", "batch_wait_seconds")
ONE_BY_ONE = ("requests_per_minute", "tokens_per_minute")
NO_SERVERS = "mcp_urls_dict: a judge uses no tool servers; remove them"
UNCLOSED = "an adapter could not be closed"


def check_models(app: Karenina, config: VerificationConfig) -> dict[str, Resolution]:
    """Resolve every model's interface and check its configuration. Ports are made for it, but not opened.

    Returns resolutions by the text of the model's identity. Raises ConfigError with every problem.
    """
    hide(secrets_of(app, (*config.answering_models, *config.parsing_models)))
    problems: list[Problem] = []
    resolutions: dict[str, Resolution] = {}
    roles: Sequence[tuple[Role, tuple[ModelConfig, ...]]] = (
        ("answering", config.answering_models),
        ("parsing", config.parsing_models),
    )
    for role, models in roles:
        if not models:
            problems.append(
                Problem(
                    f"{role}_models", f"name at least one model (--{role}-model NAME, or --model NAME for both roles)"
                )
            )
        for position, model in enumerate(models):
            path = f"{role}_models[{position}]"
            found = model_problems(app, model, role, path)
            if role == "parsing" and model in config.answering_models:  # its servers are for its answers
                found = [problem for problem in found if problem.message != NO_SERVERS]
            problems += found
            if not found:
                resolutions[str(model.identity)] = _resolve(app, model)
    if problems:
        raise ConfigError(problems)
    return resolutions


def model_problems(app: Karenina, model: ModelConfig, role: Role, path: str) -> list[Problem]:
    """What is wrong with the configuration of one model. `path` is where it is configured."""
    problems: list[Problem] = []
    try:
        problems.extend(Problem(path, text) for text in _complaints(app, _resolve(app, model), model, role))
    except ConfigError as error:
        return [*problems, *(Problem(f"{path}.{p.path}".rstrip("."), p.message) for p in error.problems)]
    except KareninaError as error:
        return [*problems, Problem(f"{path}.interface", f"{error}{app.inactive()}")]
    if role == "parsing" and model.mcp_urls_dict:
        problems.append(Problem(path, NO_SERVERS))
    return problems


def has_tools(model: ModelConfig, resolution: Resolution | None = None) -> bool:
    """Whether a model that answers has tools by itself: those of its servers, or those of an agent of its own. It can
    then use a workspace, whether or not one is asked for."""
    return bool(model.mcp_urls_dict) or (resolution is not None and resolution.spec.agent_factory is not None)


def _resolve(app: Karenina, model: ModelConfig) -> Resolution:
    return app.adapters.resolve_interface(model.interface)


def _complaints(app: Karenina, resolution: Resolution, model: ModelConfig, role: Role) -> Iterable[str]:
    spec = resolution.spec
    if spec.requires_provider and not model.model_provider:
        yield f"model_provider: the interface {model.interface!r} needs a provider (--{role}-provider NAME)"
    if role == "answering" and not (spec.llm_factory or spec.agent_factory):
        yield f"interface: {spec.interface!r} cannot answer questions"
    if role == "parsing" and not (spec.parser_factory or spec.llm_factory):
        yield f"interface: {spec.interface!r} cannot judge answers"
    if model.manual_traces is not None and not spec.is_recorded:
        yield f"manual_traces: only an interface of recorded answers takes them, not {spec.interface!r}"
    yield from _batch_complaints(spec, model)
    ports = model_ports(app, spec, model)
    if role == "answering":
        yield from tool_complaints(app, model, able=model.batch or able_to_use_tools(ports))
    if any(port.capabilities.needs_provider for port in ports.values()):
        model.api_key()
        yield from _checked(app, spec, model)


def _batch_complaints(spec: AdapterSpec, model: ModelConfig) -> Iterator[str]:
    if not model.batch:
        for name in changed(model, ONLY_BATCHED):
            yield f"{name}: has no effect on a model without batch = true; set batch = true, or remove it"
        return
    if spec.batch_factory is None:
        yield f"batch: the interface {spec.interface!r} has no batch interface; set batch = false"
    if model.mcp_urls_dict:
        yield "batch: a model with tools is asked turn by turn, not in batches; set batch = false, or remove the tools"
    for name in ONE_BY_ONE:
        if getattr(model, name) is not None:
            yield f"{name}: the provider itself decides when calls of a batch are made; remove it, or set batch = false"


def _checked(app: Karenina, spec: AdapterSpec, model: ModelConfig) -> Iterable[str]:
    try:
        return list(app.adapters.call(spec.config_checker, spec, model)) if spec.config_checker else []
    except KareninaError:
        raise
    except Exception as error:  # an adapter's own code
        return [f"interface: the check of {spec.interface!r} failed: {one_line(error)}"]


async def open_model(
    app: Karenina, config: VerificationConfig, model: ModelConfig, metering: Metering | None = None
) -> Model:
    """Make and open the ports of one model. Raises KareninaError where its adapter does not work."""
    model = config.for_model(model)
    ports = model_ports(app, _resolve(app, model).spec, model)
    if metering is not None:
        ports = metering.around(ports, model)
    classifies = bool(app.implementations("karenina_classify_error"))
    opened = Model(
        config=model,
        prompts=config.prompt_config,
        additions=app.registry(AdapterInstructionRegistry).additions,
        max_elapsed=config.call_seconds,
        classify=lambda error: app.first("karenina_classify_error", error=error) if classifies else None,
        around_work=middleware(app, CallTarget.of_model("work", model)),
        secrets=metering.secrets if metering is not None else Secrets(),
        llm=ports.get("llm"),
        parser=ports.get("parser"),
        agent=ports.get("agent"),
    )
    try:
        for port in ports.values():
            await port.aopen()
    except BaseException as error:
        await close_logged(opened, UNCLOSED, model=str(model.identity))
        if isinstance(error, Exception) and not isinstance(error, KareninaError):
            raise PluginError(f"the adapter of {model.identity} cannot be opened: {one_line(error)}") from error
        raise
    return opened


@asynccontextmanager
async def open_models(
    app: Karenina,
    config: VerificationConfig,
    models: Iterable[ModelConfig],
    role: Role = "parsing",
    metering: Metering | None = None,
) -> AsyncIterator[dict[ModelIdentity, Model]]:
    """Open several models; all of them are closed at the end. Yields `{ModelIdentity: Model}`.

    Models that answer are connected to their tool servers. Raises KareninaError where an adapter or a server does not
    work, and ConfigError where tools are named that no server offers.
    """
    async with AsyncExitStack() as stack:
        connections = Connections(app, stack)
        opened: dict[ModelIdentity, Model] = {}
        for model in models:
            if model.identity in opened:
                continue
            opened[model.identity] = one = await open_model(app, config, model, metering)
            stack.push_async_callback(close_logged, one, UNCLOSED, model=str(model.identity))
            if role == "answering" and model.mcp_urls_dict:
                one.offered = await connections.offered_to(model, one.remarks)
                one.tools = tuple(tool for server in one.offered for tool in server.tools)
                one.servers = tuple(sorted(model.mcp_urls_dict))
        yield opened


@asynccontextmanager
async def open_client(
    model: ModelConfig, question: str = "", *, app: Karenina | None = None
) -> AsyncIterator[ModelClient]:
    """A model that is open while the block runs, as stages have it, for use without a run: nothing is kept of what it
    says. Raises KareninaError where it cannot be opened."""
    async with open_models(current(app), VerificationConfig(), [model]) as opened:
        yield ModelClient(opened[model.identity], [], question_text=question)
