"""How long one item takes whose traits are scored one call each by a slow judge."""

from __future__ import annotations

import time
import zlib
from statistics import median
from typing import Any

from karenina_core import (
    Karenina,
    LLMRubricTrait,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    VerificationResult,
    run_single_model_verification,
)
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

from .measure import Row
from .yardstick import yardstick

__all__ = ["rubric_rows"]

SECONDS = 0.5
"""What the judge takes for one reply."""
NAMES = ("clarity", "depth", "structure", "tone", "caution", "sourcing")
RUBRIC = Rubric(
    llm_traits=[LLMRubricTrait(name=name, description=f"How good is the {name}?", kind="score") for name in NAMES]
)
QUESTION = Question(id="moons", question="How many moons does Mars have?", raw_answer="Two")


def judge(request: ServedRequest) -> Any:
    """A score that follows from what is asked alone, after half a second."""
    if request.schema is None:
        return "Two, Phobos and Deimos."
    score = 1 + zlib.crc32(request.text.encode()) % 5
    return Reply(dict.fromkeys(request.schema["properties"], score), latency=SECONDS)


def rubric_rows(rounds: int) -> list[Row]:
    """Six traits, sequential: six at a time, and one at a time in the same run as the baseline. Wall clock."""
    app = Karenina.installed()
    times: dict[int, list[float]] = {6: [], 1: []}
    scores: dict[int, Any] = {}
    turns: list[float] = []
    with ScriptedServer(judge) as server:
        verify(app, server.url, 6)  # imports and first uses are not an item's cost
        for _ in range(min(rounds, 3)):
            turns.append(yardstick().wall)
            for places in times:
                began = time.perf_counter()
                result = verify(app, server.url, places)
                times[places].append((time.perf_counter() - began) * 1000)
                assert result.rubric is not None
                scores[places] = dict(result.rubric.llm_trait_scores)
    app.loop.close()
    assert scores[6] == scores[1], "scores must not depend on how many are asked for at the same time"
    assert set(scores[6]) == set(NAMES)
    one, six = median(times[1]), median(times[6])
    detail = f"wall; {six / one:.2f} of one at a time, same scores"
    return [
        Row("6 traits, 0.5 s judge, 6x", six, 800.0, None, detail, yardstick=median(turns), waited=SECONDS * 1000),
        Row("6 traits, 0.5 s judge, 1x", one, None, None, "wall; the baseline"),
    ]


def verify(app: Karenina, url: str, places: int) -> VerificationResult:
    answering, parsing = (
        ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url=url) for name in ("a", "j")
    )
    config = VerificationConfig(rubric_evaluation_strategy="sequential", rubric_concurrency=places)
    return run_single_model_verification(
        QUESTION, answering, parsing, rubric=RUBRIC, evaluation_mode="rubric_only", config=config, app=app
    )
