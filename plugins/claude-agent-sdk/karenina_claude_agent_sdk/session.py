"""One session of the program, from its prompt to its end, and what goes wrong in it as errors of karenina."""

from __future__ import annotations

import asyncio
import importlib
import logging
import re
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from attrs import field, frozen
from karenina_calls.agents.failures import MESSAGE_LIMIT, failure
from karenina_calls.agents.program import Surroundings, uninterrupted
from karenina_calls.ports.text import sanitize
from karenina_calls.wire.openai_errors import kind_of_status

from karenina_core.errors import AdapterUnavailableError, ErrorKind, PortError, one_line, shortened

from .program import Program
from .record import Record

KINDS: Mapping[str, ErrorKind] = {
    "authentication_failed": "auth",
    "billing_error": "auth",
    "rate_limit": "rate_limited",
    "invalid_request": "invalid_request",
    "server_error": "server",
}
"""What the SDK calls an error that came in place of a reply."""
PATTERNS: Mapping[ErrorKind, re.Pattern[str]] = {
    "timeout": re.compile(r"timed out|timeout|ETIMEDOUT", re.IGNORECASE),
    "connection": re.compile(r"connect|network|socket|ECONN|ENOTFOUND|EAI_AGAIN|fetch failed", re.IGNORECASE),
}
NO_STRUCTURE = "error_max_structured_output_retries"
HINTS: Mapping[str, str] = {
    "auth": "log in with the program itself, or check the key (api_key_env names the variable that holds it)",
    "invalid_request": "check the model's name and endpoint_base_url",
}
UNREADABLE = ("MessageParseError", "CLIJSONDecodeError")
"""Errors of the SDK: it could not make anything of a message."""
START_HINT = "check that the program runs at all (claude --version)"
LONGEST_ARGUMENT = 100_000
"""Bytes of a system prompt that is passed on the command line; Linux takes 128 KB for one argument."""
INSTALL = 'pip install "karenina-claude-agent-sdk[sdk]"'
LOGGER = "claude_agent_sdk"
COMMAND_LINE = "claude_agent_sdk._internal.transport.subprocess_cli"
"""Where the SDK turns options into a command line. It offers no public name for that."""


def reported(record: Record) -> PortError | None:
    """The error that the program reported with its result; None where the work went well or a limit ended it."""
    result = record.result
    if result is None or not result.is_error or record.limit is not None:
        return None
    status = result.api_error_status if isinstance(result.api_error_status, int) else None
    message = "; ".join(str(text) for text in result.errors or ()) or record.final_text() or record.refusal_text
    kind = _kind(result.subtype, status, record.refusal, message)
    parts = [shortened(" ".join(record.clean(message or result.subtype).split()), MESSAGE_LIMIT), HINTS.get(kind, "")]
    wait = max(0.0, record.resets_at - time.time()) if kind == "rate_limited" and record.resets_at else None
    return PortError(f"the agent reports: {'; '.join(filter(None, parts))}", kind=kind, status=status, retry_after=wait)


def _kind(subtype: str, status: int | None, refusal: str | None, message: str) -> ErrorKind:
    if status is not None and status >= 300:
        return kind_of_status(status)
    if refusal is not None and refusal in KINDS:
        return KINDS[refusal]
    if refusal is not None:  # a request failed without a status and a known kind
        return next((kind for kind, words in PATTERNS.items() if words.search(message)), "server")
    return "bad_response" if subtype == NO_STRUCTURE else "agent"


async def load() -> Any:
    """The SDK. The first import takes a second and is done in a thread. Raises AdapterUnavailableError."""
    try:
        sdk = await asyncio.to_thread(importlib.import_module, "claude_agent_sdk")
        importlib.import_module(COMMAND_LINE)
    except ImportError as error:
        raise AdapterUnavailableError(
            f"the Claude Agent SDK cannot be imported ({one_line(error)}); {INSTALL}"
        ) from error
    logger = logging.getLogger(LOGGER)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)  # what it would print is in the errors that are raised
    return sdk


def _command(options: Any) -> list[str]:
    """The command line of the program for the SDK's options. Raises AdapterUnavailableError."""
    try:
        made = importlib.import_module(COMMAND_LINE).SubprocessCLITransport(prompt="", options=options)
        command: list[str] = made._build_command()
    except (ImportError, AttributeError, TypeError) as error:
        raise AdapterUnavailableError(
            f"this version of the Claude Agent SDK is not one that karenina knows ({one_line(error)}); {INSTALL}"
        ) from error
    return [sanitize(part)[0].replace("\0", "\ufffd") for part in command]


@frozen(kw_only=True)
class Session:
    """What the program is asked to do."""

    sdk: Any
    program: str
    prompt: str
    system: str = ""
    options: Mapping[str, Any] = field(factory=dict)
    """Options of the SDK beside those that every session has."""
    own_prompt: bool = False
    """Whether the program's own prompt comes before `system`."""
    most_bytes: int

    async def run(self, record: Record, surroundings: Surroundings, seconds: float | None) -> None:
        """Fill the record. Raises PortError, and TimeoutError where the time is up; the program is ended all the same.

        Where a limit of the record is reached, the program is ended in the middle of its work.
        """
        program, clock = None, None
        record.secrets = surroundings.secrets
        try:
            options = self.sdk.ClaudeAgentOptions(
                **{
                    "cwd": str(surroundings.folder),
                    "cli_path": self.program,
                    "system_prompt": self._system(surroundings.private),
                    "permission_mode": "dontAsk",  # what is not allowed is refused without a prompt
                    "setting_sources": [],
                    "skills": [],
                    "strict_mcp_config": True,
                    "verbatim_prompts": True,
                    **self.options,
                }
            )
            program = Program(_command(options), surroundings, self.most_bytes)
            try:
                async with asyncio.timeout(seconds) as clock:
                    client = self.sdk.ClaudeSDKClient(options, transport=program)
                    try:
                        await client.connect()
                        await client.query(self.prompt)
                        async with aclosing(client.receive_messages()) as messages:
                            async for message in messages:
                                if record.take(message):
                                    break
                    finally:
                        if not program.finished:
                            program.hurry()
                        await uninterrupted(client.disconnect())
            finally:
                await uninterrupted(program.end())
        except AdapterUnavailableError:
            raise
        except Exception as error:  # what the SDK raises has no common base
            if isinstance(error, TimeoutError) and clock is not None and clock.expired():
                raise
            raise failure(error, program, hint=START_HINT, unreadable=UNREADABLE) from error

    def _system(self, private: Path) -> Any:
        """The system prompt; one that is too long for a command line as a file."""
        if self.own_prompt:
            return {"type": "preset", "preset": "claude_code", **({"append": self.system} if self.system else {})}
        text = sanitize(self.system)[0]
        if len(text.encode()) <= LONGEST_ARGUMENT:
            return text
        path = private / "system.txt"
        path.write_text(text, encoding="utf-8")
        return {"type": "file", "path": str(path)}
