"""litellm itself: imported when it is needed, kept quiet, and closed when it is not used any more."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from karenina_core.errors import AdapterUnavailableError, one_line

ENVIRONMENT = {
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "true",
}
"""Set before the import where the user has set nothing: no .env file of the working directory is read, no list of
prices or headers is fetched."""
SETTINGS = {
    "suppress_debug_info": True,
    "drop_params": False,
    "modify_params": False,
    "disable_hf_tokenizer_download": True,
}
"""Attributes of the module: for these litellm has no argument, or one that is weaker than its environment variable."""
HARMLESS = (
    ".*`ReadOnly` qualifier.*",
    ".*conflict with protected namespace.*",
    ".*Accessing the .* attribute on the instance is deprecated.*",
    r"coroutine '(BaseLLMHTTPHandler|\w+ChatCompletion)\.\w+' was never awaited",
)
"""Warnings about litellm's own code. The first three are pydantic's, also long after the import; litellm silences them
when it is imported, which does not last where filters are put back, as test runners do. The last one comes from a call
that is cancelled before it has begun."""

NO_PROVIDER = "LLM Provider NOT provided"
"""What litellm says of a model for which it knows no provider."""

_users: WeakKeyDictionary[Any, asyncio.AbstractEventLoop] = WeakKeyDictionary()
_lock = threading.Lock()


async def load() -> Any:
    """The module litellm. The first import takes seconds and is done in a thread.

    Raises AdapterUnavailableError where litellm is missing or broken.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for message in HARMLESS:
        warnings.filterwarnings("ignore", message=message)
    try:
        litellm: Any = await asyncio.to_thread(_imported)
        # the first call would import it in the event loop and halt that for half a second
        await asyncio.to_thread(importlib.import_module, "openai.resources")
    except ImportError as error:
        raise AdapterUnavailableError(
            f"litellm cannot be imported ({one_line(error)}); pip install --force-reinstall karenina-litellm litellm"
        ) from error
    for setting, wanted in SETTINGS.items():
        setattr(litellm, setting, wanted)
    return litellm


def _imported() -> Any:
    """What it makes stays: to look for garbage among it is a quarter of what the import costs. Where another thread
    switches the collector off meanwhile, it is on again afterwards."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module("litellm")
    finally:
        if collecting:
            gc.enable()


def is_provided(litellm: Any, model: str, base_url: str | None, named: object = None) -> bool:
    """Whether litellm knows a provider for this model, as it finds one when it is called. `named` is the provider that
    the arguments of the calls name apart from the model, litellm's `custom_llm_provider`.

    A provider that litellm has by name is not looked into: for some of them that would be a login.
    """
    if model.partition("/")[0] in litellm.provider_list:
        return True
    try:
        litellm.get_llm_provider(model=model, custom_llm_provider=named, api_base=base_url)
    except Exception as error:  # anything else is for the call to report
        return NO_PROVIDER not in str(error)
    return True


def endpoint_client(base_url: str | None, query: Mapping[str, str], key: str | None) -> Any:
    """A client of the OpenAI protocol that asks once and follows no redirect, to be closed by the caller.

    For a server of the user's own choice (`base_url`) it takes no headers and no organisation from the environment, as
    the client that litellm would make does: they are meant for another server.
    """
    openai = importlib.import_module("openai")

    class Once(openai.AsyncOpenAI):  # type: ignore[misc,name-defined]  # the module is imported here and not before
        """litellm sets the number of further attempts to 2 where it is set to 0."""

        max_retries = property(lambda self: 0, lambda self, value: None)

    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n") if base_url else []
    foreign = [name.strip() for name, colon, _ in (line.partition(":") for line in lines) if colon]
    hidden = (*foreign, "OpenAI-Organization", "OpenAI-Project") if base_url else ()
    return Once(
        api_key=key,
        base_url=base_url or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE"),
        default_query=query,
        default_headers={name: openai.Omit() for name in hidden},
        http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, verify=_certificates(*_places())),
    )


def _places() -> Iterator[tuple[str, int]]:
    """Where the environment says that certificates are, and when that was changed."""
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        path = os.environ.get(variable, "")
        yield path, os.stat(path).st_mtime_ns if os.path.exists(path) else 0  # reading a missing one says so


@lru_cache(maxsize=1)
def _certificates(*_: tuple[str, int]) -> Any:
    """What servers are trusted by, read once and when the places of it have changed: it takes some 30 ms."""
    return importlib.import_module("httpx").create_ssl_context()


def enter(user: Any) -> None:
    """Note that litellm's shared connections are in use."""
    with _lock:
        _users[user] = asyncio.get_running_loop()


async def leave(user: Any, litellm: Any) -> None:
    """Note that this user has finished; after the last one, close litellm's shared connections."""
    with _lock:
        _users.pop(user, None)
        left = list(_users.values())
    if asyncio.get_running_loop() in left:
        return
    with suppress(ImportError, AttributeError, RuntimeError, ValueError):  # the last two where it is of another loop
        logging = importlib.import_module("litellm.litellm_core_utils.logging_worker")
        await logging.GLOBAL_LOGGING_WORKER.stop()  # a call that was cancelled has it start a task that never ends
    if left:
        return
    if close := getattr(litellm, "close_litellm_async_clients", None):
        await close()
    # Closed clients stay in the cache, and the next port of this event loop would be given one of them.
    if flush := getattr(getattr(litellm, "in_memory_llm_clients_cache", None), "flush_cache", None):
        flush()
