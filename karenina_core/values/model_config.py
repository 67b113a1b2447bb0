"""One model: how it is reached, how often it is tried, what it was recorded to say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from attrs import converters, evolve, field, frozen, validators

from ..errors import ConfigError, ErrorKind, Problem
from .fields import instance_of, named_refusals, number, optional, text, text_table, texts, true_or_false, whole_number
from .identity import ModelIdentity
from .message import Message, read_messages


def _text() -> Any:
    return field(default=None, validator=optional(text))


def _count(default: int | None) -> Any:
    return field(default=default, validator=optional(whole_number, validators.ge(1)))


def _amount(default: float | None) -> Any:
    return field(default=default, validator=optional(number, validators.gt(0)))


def _price() -> Any:
    return field(default=None, validator=optional(number, validators.ge(0)))


@frozen(repr=False)
class Secret:
    """A value that never shows itself; `reveal()` gives it to the one call that needs it."""

    _value: str = field(eq=True)

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    __str__ = __repr__


def _secret(value: Any) -> Secret | None:
    if value is None or isinstance(value, Secret):
        return value
    if not isinstance(value, str):  # it is not shown: a slip of the hand may hold a key as well
        raise ValueError(f"must be a text, not a value of type {type(value).__name__}")
    return Secret(value)


@frozen(field_transformer=named_refusals)
class AttemptPolicy:
    """How many attempts one kind of failure gets, and how long to wait in between.

    Before attempt n (counted from 2) the wait is drawn uniformly from 0 to `min(min_wait * multiplier ** (n - 2),
    max_wait)` seconds ("full jitter").
    """

    max_attempts: int = field(default=1, validator=[whole_number, validators.ge(1)])
    min_wait: float = field(default=0.0, validator=[number, validators.ge(0)])
    max_wait: float = field(default=0.0, validator=[number, validators.ge(0)])
    multiplier: float = field(default=2.0, validator=[number, validators.ge(1)])


@frozen(kw_only=True)
class RetryPolicy:
    """Attempts by kind of failure. Kinds that are not named here are never retried."""

    rate_limited: AttemptPolicy = AttemptPolicy(5, 5.0, 30.0, 2.0)
    timeout: AttemptPolicy = AttemptPolicy(3, 5.0, 30.0, 2.0)
    connection: AttemptPolicy = AttemptPolicy(3, 1.0, 10.0, 2.0)
    server: AttemptPolicy = AttemptPolicy(2, 2.0, 15.0, 2.0)

    def of(self, kind: ErrorKind) -> AttemptPolicy:
        policy = getattr(self, kind, None)
        return policy if isinstance(policy, AttemptPolicy) else AttemptPolicy()


@frozen
class ManualAnswer:
    """An answer that was recorded beforehand, optionally with the fields that a judge would extract from it."""

    answer: str
    fields: Mapping[str, Any] | None = None
    messages: tuple[Message, ...] = ()


def _manual_traces(value: Any) -> Mapping[str, ManualAnswer] | None:
    """Accepts `{key: text | messages | {"answer": text | messages, "fields": ...} | ManualAnswer}`; messages also as
    data. Every answer that is none is named."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError("manual_traces: expected a mapping from question id or text to an answer")
    answers, problems = {}, []
    for key, entry in value.items():
        try:
            answers[str(key)] = _manual_answer(key, entry)
        except ValueError as error:
            problems.append(Problem("manual_traces", str(error)))
    if problems:
        raise ConfigError(problems)
    return answers


def _manual_answer(key: Any, entry: Any) -> ManualAnswer:
    if isinstance(entry, str):
        entry = ManualAnswer(entry)
    elif isinstance(entry, list | tuple):
        entry = _dialogue(key, entry)
    elif isinstance(entry, Mapping):
        if unknown := set(entry) - {"answer", "fields"}:
            raise ValueError(f"{key!r} has unknown keys {', '.join(sorted(map(str, unknown)))}")
        answer, judged = entry.get("answer"), entry.get("fields")
        if isinstance(answer, list | tuple) and (judged is None or isinstance(judged, Mapping)):
            return evolve(_dialogue(key, answer), fields=judged)
        if not isinstance(answer, str) or not (judged is None or isinstance(judged, Mapping)):
            raise ValueError(f'{key!r} must look like {{"answer": "text", "fields": {{...}}}}')
        entry = ManualAnswer(answer, judged)
    if not isinstance(entry, ManualAnswer):
        raise ValueError(f"{key!r} must be a text, messages or an answer with fields")
    return entry


def _dialogue(key: Any, messages: Iterable[Any]) -> ManualAnswer:
    try:
        found = read_messages(messages)
    except ValueError as error:
        raise ValueError(f"manual_traces: {key!r}: {error}") from None
    return ManualAnswer([message.text for message in found if message.role == "assistant"][-1], None, found)


@frozen(kw_only=True, field_transformer=named_refusals)
class ModelConfig:
    """One model and how to reach it."""

    id: str | None = _text()
    """The user's name for this configuration; the model's name by default."""
    model_name: str | None = _text()
    model_provider: str | None = _text()
    interface: str = field(default="litellm", validator=text)
    """The name of an adapter."""
    temperature: float | None = field(default=0.1, validator=optional(number, validators.ge(0)))
    """None sends no temperature at all, for models that refuse one."""
    max_tokens: int | None = _count(None)
    """Tokens that a reply may have; None sends no limit, so that the provider's own holds. If the roles have separate
    model tables, each has its own limit."""
    system_prompt: str | None = _text()
    max_retries: int = field(default=2, validator=[whole_number, validators.ge(0)])
    """How often a judge is shown its mistake and asked again."""
    endpoint_base_url: str | None = _text()
    endpoint_api_key: Secret | None = field(default=None, converter=_secret)
    api_key_env: str | None = _text()
    """The environment variable that holds the key; the key itself is never written anywhere."""
    request_timeout: float | None = _amount(None)
    """Seconds for one attempt of one call; the run's `request_timeout` by default."""
    retry_policy: RetryPolicy | None = field(default=None, validator=optional(instance_of(RetryPolicy)))
    requests_per_minute: float | None = _amount(None)
    """Calls that may start within a minute, evenly spread; None: as many as the provider accepts. Failed attempts
    count. Configurations of the same model at the same address with the same key share the limit, and the lowest
    applies."""
    tokens_per_minute: float | None = _amount(None)
    """Tokens, in and out, of calls that start within a minute: estimated before a call, corrected after it. Shared in
    the same way."""
    input_cost_per_token: float | None = _price()
    """US dollars. With `output_cost_per_token` it gives the cost of calls whose adapter does not report it; tokens from
    the provider's cache count in full."""
    output_cost_per_token: float | None = _price()
    """US dollars."""
    batch: bool = field(default=False, validator=true_or_false)
    """Whether its calls are sent as batches, which the provider processes when it has capacity: cheaper at many
    providers, and much slower. Not for models with tools. The run needs a directory, and `concurrency` then limits the
    calls of other models, not the items in flight."""
    batch_max_calls: int = field(default=1000, validator=[whole_number, validators.ge(1)])
    """With `batch`: calls of one batch, and items in flight."""
    batch_wait_seconds: float = field(default=60.0, validator=[number, validators.gt(0)])
    """With `batch`: how long a call waits at most for others to be sent with it. A batch is sent sooner when it is
    full, or when every item waits for a batch."""
    extra_kwargs: Mapping[str, Any] = field(factory=dict, validator=instance_of(Mapping))
    """Passed to the provider unchanged."""
    mcp_urls_dict: Mapping[str, str] = field(factory=dict, validator=text_table)
    """Tool servers of the answering model, by name: an address, or a command with its arguments for a local program."""
    mcp_tool_filter: tuple[str, ...] | None = field(default=None, converter=converters.optional(texts))
    """Names of the tools to offer; None: all."""
    mcp_tool_description_overrides: Mapping[str, str] = field(factory=dict, validator=text_table)
    """Other descriptions of tools, by name of the tool."""
    agent_max_turns: int = field(default=25, validator=[whole_number, validators.ge(1)])
    """Limit on the replies of a model that works with tools."""
    agent_timeout: float | None = _amount(180.0)
    """Seconds for all the work of a model with tools."""
    agent_max_tool_calls: int | None = _count(50)
    """Limit on the tool calls of a model with tools, for one answer or one investigation; None: any number."""
    agent_max_total_tokens: int | None = _count(None)
    """Limit on the tokens, in and out, of all its calls together; None: any number."""
    agent_max_cost_usd: float | None = _amount(None)
    """US dollars that all its calls may cost together; calls of unknown cost count nothing. None: any amount."""
    agent_max_repeated_calls: int | None = _count(5)
    """How often the same call of a tool may give the same answer; None: any number of times."""
    manual_traces: Mapping[str, ManualAnswer] | None = field(default=None, converter=_manual_traces, repr=False)
    """For interfaces of recorded answers (`manual`): answers by question id or text. Never written to a file."""

    def __attrs_post_init__(self) -> None:
        problems = []
        if self.manual_traces is not None:
            if self.mcp_urls_dict:
                problems.append(Problem("mcp_urls_dict", "recorded answers use no tools"))
            object.__setattr__(self, "model_name", self.model_name or self.interface)
        if not (self.model_name or "").strip():
            problems.append(Problem("model_name", "a model needs a name"))
        if (self.input_cost_per_token is None) != (self.output_cost_per_token is None):
            missing = "input" if self.input_cost_per_token is None else "output"
            problems.append(Problem(f"{missing}_cost_per_token", "a model has both prices or none; 0 is a price too"))
        if problems:
            raise ConfigError(problems)
        object.__setattr__(self, "id", self.id or self.model_name)

    @property
    def token_limit(self) -> str:
        """What ends a reply that is too long, in words for the user."""
        if self.max_tokens is None:
            return "the server's own limit, no max_tokens is set"
        return f"max_tokens of the model, {self.max_tokens}"

    @property
    def name(self) -> str:
        return self.model_name or ""

    @cached_property
    def identity(self) -> ModelIdentity:
        return ModelIdentity(
            interface=self.interface,
            model_name=self.name,
            provider=self.model_provider,
            tools=tuple(sorted(self.mcp_urls_dict)),
            config_id=self.id if self.id != self.model_name else None,
        )

    def api_key(self) -> str | None:
        """The key to use: `endpoint_api_key`, else the value of the variable `api_key_env`.

        Raises ConfigError where `api_key_env` names a variable that is not set.
        """
        if self.endpoint_api_key is not None:
            return self.endpoint_api_key.reveal()
        if self.api_key_env is None:
            return None
        if not (key := os.environ.get(self.api_key_env)):
            raise ConfigError([Problem("api_key_env", f"set the environment variable {self.api_key_env} to your key")])
        return key
