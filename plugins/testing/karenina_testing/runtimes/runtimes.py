"""Does a template runtime hide the truth, share nothing and refuse what it cannot read?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from karenina_core.errors import TemplateError

from ..checks import Check, Fault, Promises, expecting, promise_checks
from ..watch.audit import CANARY, watching
from ..watch.loops import in_loop
from ..watch.source_lines import line_at
from .promises import PROMISES, Loaded, filled_outcome
from .template_sources import SOURCES, Source, Spec
from .verdicts import VERDICTS

PAYLOAD = f"__import__('sys').audit('{CANARY}')"


INERT: Promises[Loaded] = Promises()


@INERT.add("inert", "Nothing in a template's text is executed.")
def _inert(loaded: Loaded) -> Iterator[Fault]:
    """Load texts that would raise an audit event if anything in them were executed."""
    texts = [PAYLOAD, f"import sys\nsys.audit({CANARY!r})\nclass Answer(BaseAnswer):\n    x: int = {PAYLOAD}\n"]
    for spec in loaded.specs[:5]:
        texts += [loaded.write(hostile) for hostile in _hostile(spec)]
    for text in texts:
        with watching(threads=False) as seen, contextlib.suppress(TemplateError):
            handle = loaded.load_text(text)
            in_loop(filled_outcome(handle, dict.fromkeys((field.name for field in handle.fields()), PAYLOAD)))
        for what, where in seen.items():
            remedy = (
                "read the text as data; or set executes_code to True, so that it runs only where the user allows it"
            )
            yield Fault(f"loading {text[:60]!r}... {what}", line_at(*where), remedy)


def _hostile(spec: Spec) -> Iterator[dict[str, Any]]:
    """The template with code in place of one of its texts."""
    yield {**spec, "class_name": PAYLOAD}
    first, *others = spec["fields"]
    for key in ("name", "type", "description", "ground_truth", "extraction_hint"):
        yield {**spec, "fields": [{**first, key: PAYLOAD}, *others]}
    yield {**spec, "fields": [{**first, "type": "literal", "literal_values": [PAYLOAD, "up"]}, *others]}
    yield {**spec, "fields": [{**first, "verify_with": {"type": PAYLOAD}}, *others]}


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
