"""Who and what: identifiers that serve results, caches, journals and sinks alike. They are never parsed back."""

from __future__ import annotations

import hashlib
import json
import textwrap
from functools import cached_property, lru_cache
from typing import Any

from attrs import field, frozen

from .fields import texts

NO_TEMPLATE = "no_template"
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no white space and ASCII only: equal values give equal text."""
    return CANONICAL.encode(value)


@lru_cache(maxsize=1024)
def template_id(source: str | None) -> str:
    """MD5 (32 hex digits) of the template's normalised source, or `no_template` where there is none.

    Normalised: common indentation removed, CRLF and CR read as LF, trailing white space of every line and of the text
    removed.
    """
    if source is None or not source.strip():
        return NO_TEMPLATE
    lines = textwrap.dedent(source.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    text = "\n".join(line.rstrip() for line in lines).strip()
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def question_urn(text: str) -> str:
    """The id of a question that was given none: a readable slug and eight hex digits of the text's MD5.

    The form is that of existing benchmark files; it is not a UUID and never read as one.
    """
    slug = text.lower().replace(" ", "-")
    for character in "?.,":
        slug = slug.replace(character, "")
    digest = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:8]
    return f"urn:uuid:question-{slug[:50]}-{digest}"


@frozen(cache_hash=True)
class ModelIdentity:
    """Which model, reached how: everything in which two models of one run differ."""

    interface: str
    model_name: str
    provider: str | None = None
    tools: tuple[str, ...] = field(default=(), converter=texts)
    """Names of the tool servers it may use, sorted."""
    config_id: str | None = None
    """The user's own name for this configuration, where it differs from the model's."""

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as plain data: part of what calls and results are found by."""
        return {
            "interface": self.interface,
            "model_name": self.model_name,
            "provider": self.provider,
            "tools": self.tools,
            "config_id": self.config_id,
        }

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        label = f" ({self.config_id})" if self.config_id else ""
        tools = f" +[{', '.join(self.tools)}]" if self.tools else ""
        provider = f"{self.provider}/" if self.provider else ""
        return f"{self.interface}:{provider}{self.model_name}{label}{tools}"


@frozen(cache_hash=True)
class TaskIdentity:
    """One item of work: a question, its template, who answers, who judges, and which repetition."""

    question_id: str
    template_id: str
    answering: ModelIdentity
    parsing: ModelIdentity
    replicate: int = 1

    def result_id(self, run_name: str | None = None) -> str:
        """First 16 hex digits of the SHA-256 of the canonical JSON of this identity and the run's name.

        No time goes in, so the same task of the same run always has the same id.
        """
        if (found := self._ids.get(run_name)) is None:
            parts = {
                "question_id": self.question_id,
                "template_id": self.template_id,
                "answering": self.answering.to_dict(),
                "parsing": self.parsing.to_dict(),
                "replicate": self.replicate,
                "run_name": run_name,
                "scenario_id": None,
                "scenario_node": None,
                "scenario_turn": None,
            }
            found = hashlib.sha256(canonical_json(parts).encode("ascii")).hexdigest()[:16]
            self._ids[run_name] = found
        return found

    @cached_property
    def _ids(self) -> dict[str | None, str]:
        """By run, which asks for them over and over."""
        return {}
