"""Does a runtime that claims to execute nothing keep its word?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from karenina_core.errors import TemplateError

from ..checks import Fault, Promises
from ..watch.audit import CANARY, watching
from ..watch.loops import in_loop
from ..watch.source_lines import line_at
from .promises import Loaded, filled_outcome
from .template_sources import Spec

__all__ = ["INERT"]

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
