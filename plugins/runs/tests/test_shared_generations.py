"""One answer for all judges: the answering model is asked once, and nobody pays for it twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from karenina_core import FewShotConfig, ModelConfig, hookimpl
from karenina_core.errors import PortError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j1", "j2")]


def asked(llm: ScriptedLLM) -> Counter[tuple[str, int]]:
    return Counter((c.context.question_id, c.context.replicate) for c in llm.calls if c.context)


def test_the_answering_model_is_called_once_per_question_and_replicate(world: Make) -> None:
    here = world(questions=3)
    results = here.run(here.config(parsing_models=JUDGES, replicate_count=2))
    assert len(results) == 12
    assert {r.metadata.outcome for r in results} == {"passed"}
    assert asked(here.answerer) == Counter({(f"q{q}", r): 1 for q in range(3) for r in (1, 2)})
    assert asked(here.judge) == Counter({(f"q{q}", r): 2 for q in range(3) for r in (1, 2)})


def test_every_answering_model_gives_its_own_answer(world: Make) -> None:
    here = world(questions=2)
    answerers = [ModelConfig(model_name=name, interface="answering") for name in ("a1", "a2")]
    here.run(here.config(answering_models=answerers, parsing_models=JUDGES))
    assert len(here.answerer.calls) == 4


def test_its_cost_is_shown_everywhere_and_counted_once(world: Make) -> None:
    here = world()
    results = here.run(here.config(parsing_models=JUDGES))
    first, second = (result.generation.usage_metadata for result in results)
    assert first["generation"]["total_tokens"] == second["generation"]["total_tokens"] == 15
    assert ("cached" in first["generation"], second["generation"]["cached"]) == (False, True)
    assert (first["total"]["calls"], second["total"]["calls"]) == (2, 1)
    assert (first["total"]["total_tokens"], second["total"]["total_tokens"]) == (30, 15)
    assert results.get_summary()["calls"] == 3


def test_both_results_hold_the_whole_answer(world: Make) -> None:
    here = world()
    first, second = here.run(here.config(parsing_models=JUDGES))
    assert first.generation.raw_llm_response == second.generation.raw_llm_response == "It is BCL2."
    assert first.generation.trace_messages == second.generation.trace_messages
    assert first.generation.conversation_context == second.generation.conversation_context
    assert first.evaluation_input == second.evaluation_input


def test_different_answers_stay_with_their_replicate(world: Make) -> None:
    answerer = ScriptedLLM(lambda call: f"answer {call.context.replicate}")
    here = world(answerer=answerer)
    results = here.run(here.config(parsing_models=JUDGES, replicate_count=3))
    assert {(r.metadata.replicate, r.generation.raw_llm_response) for r in results} == {
        (n, f"answer {n}") for n in (1, 2, 3)
    }


def test_a_failing_judge_repeats_no_answer(world: Make) -> None:
    judge = ScriptedLLM("no idea", {"target": "BCL2"})
    here = world(judge=judge)
    first, second = here.run(here.config(parsing_models=JUDGES))
    assert (str(first.outcome), str(second.outcome)) == ("error(judge)", "passed")
    assert len(here.answerer.calls) == 1


def test_an_answer_that_failed_is_asked_for_again_by_the_next_judge(world: Make) -> None:
    answerer = ScriptedLLM(PortError("down", kind="server"), "It is BCL2.")
    here = world(answerer=answerer)
    first, second = here.run(here.config(parsing_models=JUDGES))
    assert (str(first.outcome), str(second.outcome)) == ("error(server)", "passed")


def test_the_second_result_knows_of_the_examples_in_the_prompt(world: Make) -> None:
    here = world()
    few = FewShotConfig(global_examples=[{"question": "1+1?", "answer": "2"}])
    first, second = here.run(here.config(parsing_models=JUDGES, few_shot_config=few))
    assert "1+1?" in here.answerer.calls[0].text
    assert (first.metadata.few_shot_enabled, first.metadata.few_shot_example_count) == (True, 1)
    assert (second.metadata.few_shot_enabled, second.metadata.few_shot_example_count) == (True, 1)


def test_an_answer_survives_a_final_stage_that_fails(world: Make) -> None:
    class Breaking:
        times = 0

        @hookimpl
        def karenina_wrap_stage(self, stage: Any) -> Any:
            async def around(context: Any, proceed: Any) -> None:
                self.times += 1
                if self.times == 1:
                    raise ValueError("the first result cannot be assembled")
                await proceed()

            return around if stage.final else None

    here = world(Breaking())
    first, second = here.run(here.config(parsing_models=JUDGES))
    assert (str(first.outcome), str(second.outcome)) == ("error(stage)", "passed")
    assert first.generation.raw_llm_response == "It is BCL2."
    assert len(here.answerer.calls) == 1


@pytest.mark.parametrize("concurrency", [1, 2, 50])
def test_the_results_do_not_depend_on_concurrency(world: Make, concurrency: int) -> None:
    answerer = ScriptedLLM(lambda call: f"{call.context.question_id} {call.context.replicate}", seconds=0.001)
    here = world(answerer=answerer, questions=4)
    results = here.run(here.config(parsing_models=JUDGES, replicate_count=2, concurrency=concurrency), run_name="same")
    seen = {(r.metadata.result_id, r.generation.raw_llm_response, r.metadata.outcome) for r in results}
    assert len(seen) == 16
    baseline = world(answerer=ScriptedLLM(answerer._script), questions=4)
    again = baseline.run(baseline.config(parsing_models=JUDGES, replicate_count=2, concurrency=1), run_name="same")
    assert {(r.metadata.result_id, r.generation.raw_llm_response, r.metadata.outcome) for r in again} == seen


def test_the_other_judges_read_an_answer_at_the_same_time(world: Make) -> None:
    judges = [ModelConfig(model_name=f"j{number}", interface="judging") for number in range(5)]
    judge = ScriptedLLM(lambda call: {"target": "BCL2"}, seconds=0.05)
    here = world(judge=judge)
    results = here.run(here.config(parsing_models=judges, concurrency=3))
    assert [r.metadata.parsing_model for r in results] == [str(model.identity) for model in judges]
    assert len(here.answerer.calls) == 1
    assert judge.most_in_flight == 3, "as many as items may be under way"
