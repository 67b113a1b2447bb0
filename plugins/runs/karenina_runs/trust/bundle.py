"""What of a benchmark may only run or be asked where its author is trusted, and the digest of it."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import pickletools
import warnings
from collections.abc import Iterable, Iterator
from typing import Literal

import attrs
from attrs import frozen
from karenina_calls.models.untrusted_models import ForeignModelConfig, replaced_models

from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.model_config import ModelConfig

from ..plan.rubrics import all_rubrics

DATA = "karenina-template"
"""The language of templates in which there is no code."""


@frozen(order=True)
class Piece:
    """One text that a run with `--trust` executes or obeys."""

    kind: Literal["template", "function", "model", "trait"]
    """A template in a language with code, the function of a callable trait, a model that a trait names, and a whole
    trait of a type that another package brings."""
    owner: str
    """The id of the question, or the name of the trait."""
    text: str
    """The source; base64 of a pickled function; JSON of a model or a trait."""

    @property
    def size(self) -> int:
        """In bytes."""
        return len(base64.b64decode(self.text) if self.kind == "function" else self.text.encode(errors="replace"))

    def imports(self) -> tuple[str, ...]:
        """The modules that it names. Nothing is executed; code can import others by other means."""
        if self.kind == "template":
            return tuple(sorted(set(_of_source(self.text))))
        if self.kind == "function":
            return tuple(sorted(set(_of_pickle(base64.b64decode(self.text)))))
        return ()


def code_of(benchmark: BenchmarkData) -> tuple[Piece, ...]:
    """All of it, in an order that depends on nothing else. What this program brought itself is left out: functions
    that traits were made of, and models of its own."""
    found = {
        Piece("template", question.id, question.template.text)
        for question in benchmark.questions
        if question.template is not None and question.template.language != DATA
    }
    for rubric in all_rubrics(benchmark):
        for trait in rubric or ():
            code = getattr(trait, "callable_code", None)
            if isinstance(code, bytes) and getattr(trait, "function", None) is None:
                found.add(Piece("function", trait.name, base64.b64encode(code).decode()))
            found.update(Piece("model", trait.name, _as_json(model)) for model in _models(trait))
            if trait.list_name == "extra_traits":
                found.add(Piece("trait", trait.name, _as_json(trait)))
    return tuple(sorted(found))


def digest(pieces: Iterable[Piece]) -> str:
    """SHA-256 of these pieces, in hexadecimal digits."""
    listed = [[piece.kind, piece.owner, piece.text] for piece in sorted(pieces)]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def _models(trait: object) -> list[ForeignModelConfig]:
    found = []

    def seen(model: ModelConfig) -> ModelConfig:
        if isinstance(model, ForeignModelConfig):
            found.append(model)
        return model

    replaced_models(trait, seen)
    return found


def _as_json(value: attrs.AttrsInstance) -> str:
    return json.dumps(attrs.asdict(value), default=repr, sort_keys=True, indent=1)


def _of_source(text: str) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the author's escapes
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield "(cannot be parsed)"
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def _of_pickle(data: bytes) -> Iterator[str]:
    texts: list[str] = []
    try:
        for code, argument, _ in pickletools.genops(data):
            if code.name == "GLOBAL":
                yield str(argument).partition(" ")[0]
            elif code.name == "STACK_GLOBAL" and len(texts) > 1:
                yield texts[-2]
            elif isinstance(argument, str):
                texts.append(argument)
    except Exception:  # whatever bytes a file holds
        yield "(cannot be read)"
