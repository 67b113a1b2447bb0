"""How often agentic traits and an agent that parses ask, as they say before a run."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from karenina_agentic.parse_stage import AgenticParseTemplate
from karenina_agentic.rubric_stage import AgenticRubricEvaluation

from karenina_core import AgenticRubricTrait, Karenina, ModelConfig, Question, Rubric, VerificationConfig

LOOK, SCORE = "rubric_agentic_trait_investigation", "rubric_agentic_trait_extraction"
PRESENCE = ("rubric_dynamic_presence_check", 1, 1)
JUDGE = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url="http://127.0.0.1:9/v1")
TEMPLATE = "class Answer(BaseAnswer):\n    capital: str = Field()\n"
QUESTION = Question(question="What?", raw_answer="That", answer_template=TEMPLATE)


@pytest.fixture(scope="module")
def app() -> Karenina:
    return Karenina.default()


def said(stage: Any, rubric: Rubric | None, app: Karenina, **settings: Any) -> list[tuple[str, int, int | None]]:
    config = VerificationConfig(answering_models=[JUDGE], parsing_models=[JUDGE], **settings)
    return [(str(call.task), call.least, call.most) for call in stage.calls(QUESTION, rubric, config, app)]


@pytest.mark.parametrize(
    ("settings", "modes", "dynamic", "expected"),
    [
        ({}, ("trace_only", "trace_only"), (), [(LOOK, 1, 1), (SCORE, 1, 1)] * 2),
        (
            {"agentic_rubric_strategy": "shared"},
            ("trace_only", "workspace_only"),
            (),
            [(LOOK, 1, 1), (SCORE, 1, 2)],
        ),
        (
            {"agentic_rubric_strategy": "shared", "agentic_rubric_by_context": True},
            ("trace_only", "workspace_only"),
            (),
            [(LOOK, 1, 1), (SCORE, 1, 1), (LOOK, 0, 1), (SCORE, 0, 1)],
        ),
        (
            {},
            ("trace_only", "trace_only"),
            ("trait 0",),
            [PRESENCE, (LOOK, 0, 1), (SCORE, 0, 1), (LOOK, 1, 1), (SCORE, 1, 1)],
        ),
    ],
)
def test_traits_are_investigated_and_then_read(
    app: Karenina, settings: dict[str, Any], modes: tuple[Any, ...], dynamic: tuple[str, ...], expected: list[Any]
) -> None:
    about = {"kind": "boolean", "description": "Whether it is right."}
    traits = [AgenticRubricTrait(name=f"trait {n}", context_mode=mode, **about) for n, mode in enumerate(modes)]
    rubric = evolve(Rubric.from_traits(traits), provenance=dict.fromkeys(dynamic, "dynamic"))
    assert said(AgenticRubricEvaluation(), rubric, app, **settings) == expected


def test_an_agent_that_parses_is_sent_always_or_where_the_judge_wants_one(app: Karenina) -> None:
    names = [f"agentic_parsing_{step}" for step in ("decision", "investigation", "extraction")]
    dynamic = said(AgenticParseTemplate(), None, app, agentic_parsing_trigger="dynamic")
    assert dynamic == [(names[0], 1, 1), (names[1], 0, 1), (names[2], 0, 1)]
    assert said(AgenticParseTemplate(), None, app) == [(name, 1, 1) for name in names[1:]]
