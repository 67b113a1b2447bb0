"""Every call to the judge goes through the same door: prompts, instructions, temperature, accounting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from karenina_testing.fakes import ScriptedCall

from karenina_core import (
    AdapterSpec,
    ModelConfig,
    PromptConfig,
    Question,
    VerificationConfig,
    VerificationResult,
    run_single_model_verification,
)
from karenina_core.ports import PortCapabilities
from karenina_core.prompts import PromptTask
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.message import UsageMetadata

ANSWER = "The label warns of jaw osteonecrosis."
TEMPLATE = {
    "fields": [
        {
            "name": "reaction",
            "type": "str",
            "description": "The adverse reaction that the response names",
            "ground_truth": "osteonecrosis of the jaw",
            "verify_with": {"type": "ExactMatch"},
        }
    ]
}
JUDGE_TASKS = (
    PromptTask.ABSTENTION_DETECTION,
    PromptTask.SUFFICIENCY_DETECTION,
    PromptTask.DJ_TEMPLATE_EXCERPT_EXTRACTION,
    PromptTask.DJ_TEMPLATE_HALLUCINATION,
    PromptTask.DJ_TEMPLATE_REASONING,
    PromptTask.PARSING,
    PromptTask.EMBEDDING_EQUIVALENCE,
)
INSTRUCTIONS = {
    "abstention_detection": "AAA",
    "sufficiency_detection": "SSS",
    "parsing": "PPP",
    "deep_judgment": "DDD",
    "embedding_equivalence": "EEE",
}
TOLD = {
    PromptTask.ABSTENTION_DETECTION: "AAA",
    PromptTask.SUFFICIENCY_DETECTION: "SSS",
    PromptTask.DJ_TEMPLATE_EXCERPT_EXTRACTION: "DDD",
    PromptTask.DJ_TEMPLATE_HALLUCINATION: "DDD",
    PromptTask.DJ_TEMPLATE_REASONING: "DDD",
    PromptTask.PARSING: "PPP",
    PromptTask.EMBEDDING_EQUIVALENCE: "EEE",
}


def judged(call: ScriptedCall) -> Mapping[str, Any]:
    replies: Mapping[str, Mapping[str, Any]] = {
        "abstention_detection": {
            "answer": None,
            "disclaimer": None,
            "reasoning": "It answers.",
            "abstention_detected": False,
        },
        "sufficiency_detection": {
            "fields": {"reaction": {"evidence": "jaw osteonecrosis", "found": True}},
            "reasoning": "It is there.",
            "sufficient": True,
        },
        "dj_template_excerpt_extraction": {
            "reaction": [{"text": "warns of jaw osteonecrosis", "explanation": None, "confidence": "high"}]
        },
        "dj_template_hallucination": {"excerpt_1": {"justification": "It is known.", "hallucination_risk": "none"}},
        "dj_template_reasoning": {"reaction": "It names jaw osteonecrosis."},
        "parsing": {"reaction": "jaw osteonecrosis"},
        "embedding_equivalence": {"reaction": {"reasoning": "Another word order.", "equivalent": True}},
    }
    return replies[call.task]


def live(query: str) -> list[str]:
    """A search whose results are others every time."""
    seen.append(query)
    return [f"result {len(seen)} about {query}"]


seen: list[str] = []


def verified(
    system_prompts: bool = True, replay: Mapping[str, str] | None = None
) -> tuple[ScriptedLLM, VerificationResult]:
    """One item with everything switched on, right in other words."""
    judge = ScriptedLLM(judged, channels=("json_schema",), usage=UsageMetadata(10, 5, 15, 0.25))
    judge.capabilities = PortCapabilities(
        supports_system_prompt=system_prompts, supports_structured_output=True, output_channels=("json_schema",)
    )
    answerer = ScriptedLLM(ANSWER, usage=UsageMetadata(10, 5, 15, 0.5))
    adapters: list[AdapterSpec] = [judge.adapter("judging"), answerer.adapter("answering")]
    app = application(*adapters, installed=True, settings={"replay": replay} if replay else None)
    config = VerificationConfig(
        features=["abstention", "sufficiency", "deep_judgment", "embedding_check"],
        deep_judgment_search_enabled=True,
        deep_judgment_search_tool=live,
        prompt_config=PromptConfig(**INSTRUCTIONS),
    )
    question = Question(
        question="Which reaction?", answer_template=json.dumps(TEMPLATE), template_language="karenina-template"
    )
    result = run_single_model_verification(
        question,
        ModelConfig(model_name="a", interface="answering"),
        ModelConfig(model_name="j", interface="judging"),
        config=config,
        app=app,
    )
    app.loop.close()
    return judge, result


@pytest.fixture(scope="module")
def everything() -> tuple[ScriptedLLM, VerificationResult]:
    return verified()


def test_with_everything_on_the_item_passes_and_every_task_is_asked_once(
    everything: tuple[ScriptedLLM, VerificationResult],
) -> None:
    judge, result = everything
    assert [call.task for call in judge.calls] == list(JUDGE_TASKS)
    assert str(result.outcome) == "passed"
    assert result.template is not None
    assert result.template.embedding_override_applied
    assert result.deep_judgment is not None
    assert result.deep_judgment.hallucination_risk_assessment == {"reaction": "none"}


def test_every_call_is_accounted_for_under_the_name_of_its_task(
    everything: tuple[ScriptedLLM, VerificationResult],
) -> None:
    usage = everything[1].generation.usage_metadata
    assert set(usage) == {*JUDGE_TASKS, PromptTask.GENERATION, "embedding", "total"}
    for task in JUDGE_TASKS:
        row = usage[task]
        assert (row["calls"], row["attempts"], row["repairs"], row["channel"]) == (1, 1, 0, "json_schema")
        assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (10, 5, 0.25)
        assert row["seconds"] >= 0
        assert row["model"] == "judging:j"
    assert usage["embedding"]["model"] == "minilm:all-MiniLM-L6-v2"
    assert usage["total"]["calls"] == len(JUDGE_TASKS) + 2


def test_the_instructions_of_the_user_reach_their_task_once_and_no_other(
    everything: tuple[ScriptedLLM, VerificationResult],
) -> None:
    for call in everything[0].calls:
        told = {words: call.text.count(words) for words in INSTRUCTIONS.values()}
        assert told == {words: int(words == TOLD[PromptTask(call.task)]) for words in told}, call.task


def test_a_model_without_system_prompts_gets_one_user_message_in_every_task() -> None:
    """The adapter's own capabilities count, for every task alike."""
    judge, result = verified(system_prompts=False)
    assert str(result.outcome) == "passed"
    assert {tuple(message.role for message in call.messages) for call in judge.calls} == {("user",)}
    assert [call.task for call in judge.calls] == list(JUDGE_TASKS)


def test_a_recording_holds_every_call_search_and_vector(tmp_path: Path) -> None:
    recording = str(tmp_path / "calls.jsonl")
    _, recorded = verified(replay={"record": recording})
    searches = len(seen)
    judge, replayed = verified(replay={"replay": recording})
    assert (judge.calls, len(seen)) == ([], searches), "nothing was asked again"
    for part in ("template", "checks", "deep_judgment", "ledger"):
        assert getattr(replayed, part) == getattr(recorded, part)
    kinds = {json.loads(line)["kind"] for line in Path(recording).read_text("utf-8").splitlines()}
    assert {"search", "embedder"} <= kinds
    assert str(replayed.outcome) == "passed"


def test_what_decides_is_asked_at_temperature_0(everything: tuple[ScriptedLLM, VerificationResult]) -> None:
    deciding = {"abstention_detection", "sufficiency_detection", "embedding_equivalence"}
    assert {call.task for call in everything[0].calls if call.temperature == 0.0} == deciding


def test_only_the_question_of_equivalence_shows_the_expected_answer(
    everything: tuple[ScriptedLLM, VerificationResult],
) -> None:
    shown = {call.task for call in everything[0].calls if "osteonecrosis of the jaw" in call.text}
    assert shown == {"embedding_equivalence"}


def test_verdict_fields_and_credit_agree_after_the_override(
    everything: tuple[ScriptedLLM, VerificationResult],
) -> None:
    template = everything[1].template
    assert template is not None
    assert (template.verify_result, template.field_verification_result) == (True, True)
    assert (template.field_results, template.field_scores) == ({"reaction": True}, {"reaction": 1.0})
    assert template.verify_granular_result == 1.0
    assert [entry.stage for entry in everything[1].ledger] == ["VerifyTemplate", "EmbeddingCheck"]
