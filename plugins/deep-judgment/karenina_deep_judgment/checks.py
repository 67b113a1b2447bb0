"""What the conformance checks are given: what an earlier stage has found, and a server that searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_core.testing import ScriptedServer, ServedRequest, Spoken, Wire

from .tavily import TavilySettings


def rubric_auto_fail() -> dict[str, Any]:
    """What the stage reads of the result, and what decides whether it runs."""
    from hypothesis import strategies as st

    performed = {"deep_judgment_rubric_performed": st.booleans()}
    lacking = {"traits_without_valid_excerpts": st.lists(st.text(min_size=1), max_size=2)}
    return {"DeepJudgmentRubricAutoFail": {"strategies": {**performed, **lacking}}}


class Found(Wire):
    """`POST {url}/search`, with one page for every query; the protocol as in `tavily`."""

    suffix = "/search"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        return ServedRequest(body=body, messages=[{"role": "user", "content": body["query"]}])

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        page = {"title": "Targets", "url": "https://example.org", "content": "BCL2 is the target", "score": 0.9}
        return {"query": request.text, "results": [page]}


def tavily() -> dict[str, Any]:
    """The server ends with the process. It is asked where TAVILY_API_KEY is set, to whatever text; without a key the
    tool has a problem, and makes no searches."""
    server = ScriptedServer("", wire=Found()).started()
    return {"tavily": {"settings": TavilySettings(base_url=server.url), "search": True}}
