"""What the conformance checks of the embedders are given: a model, and for `litellm` a server that has one.

`sentence_transformers` is given none: it would fetch it from the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_core.testing import ScriptedServer, ServedRequest, Spoken, Wire

from .litellm_plugin import LiteLLMSettings
from .minilm import MODEL

MINILM = {"minilm": {"model": MODEL}}


class Vectors(Wire):
    """`POST {url}/embeddings` (https://platform.openai.com/docs/api-reference/embeddings): vectors of the numbers of
    vowels, in reverse, as a server may send them."""

    base = "/v1"
    suffix = "/embeddings"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        return ServedRequest(body=body, model=str(body["model"]))

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        vectors = ([1.0, *(text.count(vowel) for vowel in "aeiou")] for text in request.body["input"])
        rows = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        usage = {"prompt_tokens": len(rows), "total_tokens": len(rows)}
        return {"object": "list", "model": request.model, "data": rows[::-1], "usage": usage}


def litellm() -> dict[str, Any]:
    """Its server ends with the process."""
    server = ScriptedServer("", wire=Vectors()).started()
    return {"litellm": {"model": "vowels", "settings": LiteLLMSettings(api_base=server.url)}}
