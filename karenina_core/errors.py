"""Every error that karenina raises on purpose.

KareninaError
├── ConfigError            the configuration cannot be used; every problem at once (also a ValueError)
├── BenchmarkError         a benchmark file cannot be read or written (also a ValueError)
├── TemplateError          an answer template cannot be loaded, filled or verified
│   ├── TemplateRefused    its code may not run under the policy of this run
│   └── FillError          data does not fit the template (a judge is asked again)
│       └── ContradictionError  data fits and contradicts itself (a judge is asked about it once)
├── PluginError            a plugin cannot be imported or breaks the rules of registration
│   ├── DuplicateName      two plugins provide one name
│   └── UnknownName        no plugin provides this name
├── PlanError              no valid list of stages serves this request (also a ValueError)
├── ContractError          a stage read or wrote what it did not declare
├── RunDirectoryError      the run directory cannot be written
├── SearchError            a search could not be made
├── WorkspaceError         a workspace cannot be made, copied or kept
└── PortError              a model call failed; `kind` says how
    ├── AdapterUnavailableError
    ├── AgentExecutionError
    │   └── AgentTimeoutError
    ├── AgentResponseError
    └── ParseError         a judge's reply could not be turned into data
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

ErrorKind = Literal[
    "rate_limited",
    "timeout",
    "connection",
    "server",
    "bad_response",
    "too_large",
    "auth",
    "invalid_request",
    "content_filter",
    "budget",
    "template",
    "judge",
    "agent",
    "stage",
    "plugin",
    "cancelled",
]

OTHERS = "to use another one, install its package"
"""The remedy where a name is unknown, after a list of those that are known."""
RETRYABLE: frozenset[ErrorKind] = frozenset({"rate_limited", "timeout", "connection", "server"})


class KareninaError(Exception):
    """Base of every error in this module."""

    kind: ErrorKind = "stage"


class Problem(NamedTuple):
    """One thing that is wrong with an input, and where."""

    path: str
    message: str
    fatal: bool = True
    """Whether there is no run with it; else it is a note, and the run begins."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(KareninaError, ValueError):
    """The configuration cannot be used. `problems` lists all that is wrong with it."""

    def __init__(self, problems: Iterable[Problem | str] | str) -> None:
        listed = [problems] if isinstance(problems, str) else list(problems)
        self.problems = tuple(p if isinstance(p, Problem) else Problem("", p) for p in listed)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class BenchmarkError(KareninaError, ValueError):
    """A benchmark file cannot be read or written."""


class TemplateError(KareninaError):
    """An answer template cannot be loaded, filled or verified."""

    kind: ErrorKind = "template"


class TemplateRefused(TemplateError):
    """The template contains code that may not run under the policy of this run."""


class FillError(TemplateError):
    """The data does not fit the template; the message says what to correct."""


class ContradictionError(FillError):
    """The data fits and cannot be true as a whole. The one question about it is no retry, and uses none."""


class PluginError(KareninaError):
    """A plugin cannot be imported or breaks the rules of registration."""

    kind: ErrorKind = "plugin"


class DuplicateName(PluginError):
    """Two plugins provide one name and neither says that it replaces the other."""


class UnknownName(PluginError, LookupError):
    """No active plugin provides this name."""


class PlanError(KareninaError, ValueError):
    """No valid list of stages serves this request. Raised before any work is done."""


class ContractError(KareninaError):
    """A stage did something that its declaration does not say."""


class RunDirectoryError(KareninaError, OSError):
    """The run directory cannot be written."""


class SearchError(KareninaError):
    """A search could not be made; that is not the same as finding nothing."""


class WorkspaceError(KareninaError):
    """A workspace, the folder that an agent works in, cannot be made, copied or kept."""


class PortError(KareninaError):
    """A model call failed.

    `kind` is one of the error kinds; `retry_after` is in seconds; `status` is the HTTP status, if there was one;
    `raw` holds at most the first 64 KB of what came back; `attempts` counts the calls made, retries included. A
    `final` failure is not tried again, whatever its kind. A `not_counted` one is about the provider rather than the
    call: it uses up none of its attempts. Of a `queued` one the wait that was asked for counts as time in the queue of
    the model. `repairs` says how often the judge had been asked again to correct a reply. `evidence` is what a
    judgment had found before it failed, as artifacts by key.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind = "server",
        retry_after: float | None = None,
        status: int | None = None,
        raw: str | None = None,
        final: bool = False,
    ) -> None:
        super().__init__(message)
        self.final = final
        self.not_counted = False
        self.queued = False
        self.kind = kind
        self.retry_after = retry_after
        self.status = status
        self.raw = raw[:65536] if raw is not None else None
        self.attempts = 1
        self.repairs = 0
        self.evidence: Mapping[str, object] = {}


class AdapterUnavailableError(PortError):
    """The interface cannot serve models here; `reason` says why and what to install or set."""

    def __init__(self, reason: str, *, fallback_interface: str | None = None) -> None:
        super().__init__(reason, kind="plugin")
        self.reason = reason
        self.fallback_interface = fallback_interface


class AgentExecutionError(PortError):
    """An agent run failed."""

    def __init__(
        self, message: str, *, stderr: str = "", limit_reached: bool = False, kind: ErrorKind = "agent"
    ) -> None:
        super().__init__(message, kind=kind, raw=stderr or None)
        self.stderr = stderr
        self.limit_reached = limit_reached


class AgentTimeoutError(AgentExecutionError):
    """An agent run took longer than it was allowed to."""


class AgentResponseError(PortError):
    """An agent finished without a usable reply."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="agent")


class ParseError(PortError):
    """A judge's reply could not be turned into data that fits the schema.

    `usage` is what the useless replies cost (a `UsageMetadata`), `channel` how they were asked for; `usage_unavailable`
    says that the provider did not report what some of them cost. `cut_off` says that a limit ended the reply.
    """

    def __init__(self, message: str, *, raw_response: str = "") -> None:
        super().__init__(message, kind="judge", raw=raw_response)
        self.raw_response = raw_response
        self.usage: object = None
        self.usage_unavailable = False
        self.channel: str | None = None
        self.cut_off = False


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the closest of `words`, or nothing."""
    close = difflib.get_close_matches(word, sorted(words), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def one_line(error: BaseException, limit: int = 500) -> str:
    """The type and message of an error in one line of at most `limit` characters."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # of a stranger's error, even this may raise
        text = ""
    return shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__, limit)


def place_of(error: BaseException, module: str) -> str:
    """` (acme/port.py:41 in ainvoke)`: where an error was in the package of this module last, else where it was raised;
    nothing for one that was not raised."""
    places, trace = [], error.__traceback__
    while trace is not None:
        code, name = trace.tb_frame.f_code, str(trace.tb_frame.f_globals.get("__name__"))
        parts = code.co_filename.replace("\\", "/").split("/")
        file = "/".join(parts[-1 - name.count(".") - (parts[-1] == "__init__.py") :])
        places.append((name.partition(".")[0], f" ({file}:{trace.tb_lineno} in {code.co_name})"))
        trace = trace.tb_next
    own = [place for package, place in places if package == module.partition(".")[0]]
    return (own or [place for _, place in places] or [""])[-1]


def plural(count: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shortened(text: str, limit: int) -> str:
    """The text, cut to at most `limit` characters; the last one says so."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
