"""Does a template runtime hide the truth, share nothing and refuse what it cannot read?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..checks import Check, Fault, expecting, promise_checks
from .inert import INERT
from .promises import PROMISES, Loaded
from .template_sources import SOURCES, Source
from .verdicts import VERDICTS

__all__ = ["runtime_checks"]


def runtime_checks(
    runtime: Any,
    *,
    sources: Source | None = None,
    expected_failures: Mapping[str, str] | None = None,
    max_examples: int = 15,
) -> list[Check]:
    """One check for every promise of a template runtime (a class or an instance).

    Templates are made by `strategies.template_specs()`, some with a strategy or a field of the trace added, and written
    in the runtime's language by `sources(spec)`; for the languages `python` and `karenina-template` it need not be
    given. Raises ValueError where it is missing.
    """
    made = runtime() if isinstance(runtime, type) else runtime
    name = str(getattr(made, "name", type(made).__name__))
    write = sources or next((SOURCES[known] for known in SOURCES if known in getattr(made, "languages", ())), None)
    if write is None:
        raise ValueError(f"runtime {name}: say with sources=function how a spec is written in its language")
    promises = {**PROMISES, **VERDICTS, **({} if getattr(made, "executes_code", True) else INERT)}
    raised = partial(Fault.raised, remedy="raise TemplateError or FillError")
    return expecting(
        promise_checks(f"runtime {name}", Loaded(made, write, max_examples), promises, raised), expected_failures
    )
