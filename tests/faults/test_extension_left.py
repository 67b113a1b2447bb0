"""Judges that are asked no more while a finished run gets more traits: what is there stays and is not asked again."""

from __future__ import annotations

import importlib.util
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from karenina_core import LLMRubricTrait, ModelConfig, Rubric, extend_run
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("left_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

QUESTIONS = 4
CLEAR = Rubric.from_traits([LLMRubricTrait(name="clear", description="Is it clear?", kind="boolean")])


class Served:
    """A model that says something else every time, and judges of whom `j` can refuse to score traits."""

    def __init__(self) -> None:
        self.refusing = False
        self.asked: Counter[str] = Counter()

    def __call__(self, request: ServedRequest) -> Any:
        self.asked[request.model] += 1
        if request.model == "a":
            return Reply(f"It is BCL2 (answer {world.number_of(request)}), said for the {self.asked['a']}th time.")
        assert request.schema is not None
        scored = world.NAME not in request.schema["properties"]
        if scored and request.model == "j" and self.refusing:
            return Reply.error(429, "come back later", retry_after=400)
        return dict.fromkeys(request.schema["properties"], True) if scored else {world.NAME: "BCL2"}


def answers_of(results: Any) -> dict[tuple[str, int], set[str]]:
    found: dict[tuple[str, int], set[str]] = {}
    for result in results:
        about = result.metadata
        found.setdefault((about.question_id, about.replicate), set()).add(result.generation.raw_llm_response)
    return found


@pytest.mark.parametrize("judges", [("j",), ("j", "k")], ids=["one judge", "and another"])
def test_results_that_wait_for_their_scores_are_counted_once_and_their_answers_are_not_asked_for(
    tmp_path: Path, judges: tuple[str, ...]
) -> None:
    served = Served()
    here = world.World(tmp_path / "first", questions=QUESTIONS, installed=frozenset({"rubric-evaluation", "trait-llm"}))
    app = here.app()
    with ScriptedServer(served) as server:
        about: dict[str, Any] = {"interface": "openai_endpoint", "endpoint_base_url": server.url}
        config = here.config(server.url, concurrency=2)
        here.run(config)
        twice = {"replicate_count": 2}
        extend_run(
            here.folder, run_dir=tmp_path / "second", benchmark=here.benchmark, config=evolve(config, **twice), app=app
        )
        shutil.rmtree(here.folder)  # half of the answers are in no journal any more, but in results
        before, here.folder = Counter(served.asked), tmp_path / "third"
        served.refusing = True
        here.benchmark = evolve(here.benchmark, rubric=CLEAR)
        more = [ModelConfig(model_name=name, **about) for name in judges]
        config = evolve(config, replicate_count=2, parsing_models=more)
        left = extend_run(tmp_path / "second", run_dir=here.folder, benchmark=here.benchmark, config=config, app=app)
        items = 2 * QUESTIONS * len(judges)
        assert served.asked["a"] == before["a"], "the answers are there"
        assert f"left until the run is resumed: {items - len(left)} items" in left.notes
        assert len(left) == 0
        assert (left.get_summary()["reused_calls"], here.manifest()["status"]) == (0, "interrupted")
        served.refusing = False
        results = here.resume(config)
        assert here.outcomes() == {"passed": QUESTIONS}
        assert served.asked["a"] == before["a"]
        assert len(results) == items
        assert all(len(texts) == 1 for texts in answers_of(results).values()), "judges read the same answers"
        assert all(result.rubric is not None for result in results)
    app.loop.close()
