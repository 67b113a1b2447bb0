"""A value that cannot be written costs itself and nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from karenina_results.jsonl import JsonLines
from karenina_runs.results.sinks import RunInfo

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.result import GenerationPart, MetadataPart

ME = ModelIdentity("x", "m")


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def circle() -> Any:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


@pytest.mark.parametrize("value", [nested(490), nested(3000), circle(), Unspeakable(), {Unspeakable(): 1}])
@pytest.mark.parametrize("where", ["arguments", "extensions"])
def test_an_unwritable_value_is_a_warning_and_the_rest_is_kept(tmp_path: Path, value: Any, where: str) -> None:
    rows = [{"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "t", "input": {"x": value}}]}]
    metadata = MetadataPart(
        question_id="q", template_id="t", result_id="r", question_text="Why?", answering=ME, parsing=ME, warnings=("w",)
    )
    generation = GenerationPart(raw_llm_response="BCL2", trace_messages=rows if where == "arguments" else [])
    extensions = {"p": {"x": value, "kept": 1}} if where == "extensions" else {}
    result = VerificationResult(metadata=metadata, generation=generation, extensions=extensions)

    async def write() -> None:
        sink = JsonLines()
        await sink.open(RunInfo(run_name="r", run_dir=tmp_path, benchmark="b", items=1, secrets=frozenset({"s" * 9})))
        await sink.write(result)
        await sink.close({})

    asyncio.run(write())
    data = json.loads((tmp_path / "results.jsonl").read_text("utf-8"))
    assert (data["metadata"]["result_id"], data["generation"]["raw_llm_response"]) == ("r", "BCL2")
    first, warning = data["metadata"]["warnings"]
    assert (first, "not written" in warning) == ("w", True)
    if where == "extensions":
        assert data["extensions"]["p"]["kept"] == 1
