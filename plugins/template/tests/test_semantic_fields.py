"""Fields that are right when they mean the same as the ground truth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import frozen
from karenina_calls.services.embedding import Embeddings
from karenina_template.declarative_templates import DeclarativeRuntime
from karenina_template.primitives import NAMES

from karenina_core import Karenina, VerificationConfig, hookimpl
from karenina_core import templates as primitives
from karenina_core.errors import TemplateError
from karenina_core.templates import BaseAnswer, SemanticMatch, VerifiedField
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]
FIELD = {
    "name": "advice",
    "type": "str",
    "description": "what the response recommends",
    "ground_truth": "take an aspirin",
    "verify_with": {"type": "SemanticMatch", "threshold": 0.8},
}
OTHER = {**FIELD, "name": "drug", "ground_truth": "BCL2", "verify_with": {"type": "ExactMatch"}}
TEMPLATE = json.dumps({"fields": [FIELD, OTHER]})


def load(text: str = TEMPLATE) -> Any:
    return asyncio.run(DeclarativeRuntime().load(text, {name: getattr(primitives, name) for name in NAMES}))


def verified(value: str | None, similarities: dict[str, float] | None = None) -> Any:
    handle = load()

    async def run() -> Any:
        filled = await handle.build({"advice": value, "drug": "BCL2"})
        return await filled.verify("trace", similarities=similarities), await filled.granular()

    return asyncio.run(run())


def test_the_handle_says_which_fields_need_an_embedder() -> None:
    assert [(field.name, field.semantic) for field in load().fields()] == [("advice", True), ("drug", False)]


@pytest.mark.parametrize(("similarity", "right"), [(1.0, True), (0.81, True), (0.8, True), (0.79, False), (0.0, False)])
def test_the_fields_own_threshold_decides(similarity: float, right: bool) -> None:
    verdict, granular = verified("have some aspirin", {"advice": similarity})
    assert (verdict.result, verdict.field_results) == (right, {"advice": right, "drug": True})
    assert verdict.field_scores == {"advice": float(right), "drug": 1.0}
    assert granular == (1.0 if right else 0.5)


def test_without_a_similarity_there_is_no_verdict_and_the_error_says_what_is_missing() -> None:
    with pytest.raises(TemplateError, match="field 'advice': SemanticMatch needs an embedder"):
        verified("have some aspirin")
    for odd in (1.5, -0.1, float("nan")):
        with pytest.raises(TemplateError, match="field 'advice': a similarity is a number from 0 to 1"):
            verified("have some aspirin", {"advice": odd})


def test_what_was_not_found_and_what_is_equal_need_no_embedder() -> None:
    assert verified(None)[0].field_results == {"advice": None, "drug": True}
    assert verified(" take an aspirin\n")[0].field_results == {"advice": True, "drug": True}


def test_a_class_used_directly_says_the_same() -> None:
    class Direct(BaseAnswer):
        advice: str = VerifiedField("The advice", "take an aspirin", SemanticMatch())

    assert Direct(advice="take an aspirin").verify() is True
    with pytest.raises(TemplateError, match="needs an embedder"):
        Direct(advice="have some aspirin").verify()


# In the stage


@frozen
class Letters:
    """Embeds a text as how often three letters occur in it."""

    model: str

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        embedded.extend(texts)
        return Embeddings(vectors=tuple(tuple(float(t.count(x)) for x in "abz") for t in texts), model=self.model)


embedded: list[str] = []


class WithLetters:
    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(Letters, name="letters")


class Standard:
    @hookimpl
    def karenina_register_strategies(self, registry: Any) -> None:
        registry.add("karenina_template.standard_judgment:StandardJudgment", name="standard")


def about(context: Make, value: str | None) -> Any:
    embedded.clear()
    field = {**FIELD, "ground_truth": "aab"}
    config = VerificationConfig(embedding_check_embedder="letters", embedding_check_model="abz")
    app = Karenina({"letters": WithLetters(), "standard": Standard()})
    judge = ScriptedLLM({"advice": value})
    return context(json.dumps({"fields": [field]}), judge, "an answer", config=config, app=app)


@pytest.mark.parametrize(("value", "right"), [("aaaabb", True), ("abbbbbbb", False), ("zzz", False)])
def test_the_stage_measures_with_the_configured_embedder(context: Make, run: Make, value: str, right: bool) -> None:
    item = about(context, value)
    run(item)
    assert item.error is None
    assert item.get_result_field("field_results") == {"advice": right}
    assert embedded == ["aab", value]


@pytest.mark.parametrize(("value", "right"), [("aab", True), (" aab ", True), (None, None)])
def test_the_stage_embeds_nothing_that_needs_no_embedding(
    context: Make, run: Make, value: str | None, right: bool | None
) -> None:
    item = about(context, value)
    run(item)
    assert item.get_result_field("field_results") == {"advice": right}
    assert embedded == []


def test_an_embedder_that_fails_is_an_error_and_never_a_wrong_answer(context: Make, run: Make) -> None:
    item = about(context, "")  # no letter, no direction
    run(item)
    assert (item.effects, item.completed_without_errors) == ((), False)
    assert "zero or not finite" in item.error


@frozen
class Uninstalled(Letters):
    def problem(self) -> str | None:
        return "pip install letters"


class WithoutPackage:
    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(Uninstalled, name="letters")


@pytest.mark.parametrize(
    ("plugins", "why"),
    [({"letters": WithoutPackage()}, "pip install letters"), ({}, "no embedder is called 'letters'")],
)
def test_without_a_working_embedder_the_template_is_refused_before_anything_is_paid_for(
    context: Make, run: Make, plugins: dict[str, Any], why: str
) -> None:
    config = VerificationConfig(embedding_check_embedder="letters", embedding_check_model="abz")
    judge = ScriptedLLM({"advice": "aab"})
    item = context(TEMPLATE, judge, "an answer", config=config, app=Karenina(plugins))
    run(item)
    assert item.error_kind == "template"
    assert "advice: SemanticMatch needs the embedder 'letters'" in item.error
    assert why in item.error
    assert judge.calls == []
