"""A second opinion needs a first one: a field result that a guard recorded, with nothing parsed, is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from karenina_embedding.check import EmbeddingCheck

from karenina_core import ArtifactKeys, Question, VerificationConfig, VerificationContext
from karenina_core.testing import FakeFilled, FakeHandle

ShouldRun = Callable[[VerificationContext], bool]


class NaiveEmbeddingCheck(EmbeddingCheck):
    """Looks at the result of the fields alone, whoever recorded it."""

    def should_run(self, context: VerificationContext) -> bool:
        return context.error is None and context.verdict.field is False


def asked(stage: EmbeddingCheck) -> ShouldRun:
    def should_run(context: VerificationContext) -> bool:
        with context.acting(stage):
            return bool(stage.should_run(context))

    return should_run


def item(parsed: bool, guarded: bool, verified: bool | None) -> VerificationContext:
    """An item after guards, parsing and verification, as far as they came."""
    context = VerificationContext(
        question=Question(question="Which?"), config=VerificationConfig(embedding_check_enabled=True)
    )
    if guarded:
        context.record(field=False, verdict=False, outcome="auto_failed")
    if parsed:
        context.set_artifact(ArtifactKeys.ANSWER, FakeHandle())
        context.set_artifact(ArtifactKeys.PARSED_ANSWER, FakeFilled(data={"fact": "another"}))
        if verified is not None:
            context.set_artifact(ArtifactKeys.REGEX_VERIFICATION_RESULTS, {"success": True, "results": {}})
            context.record(field=verified, verdict=verified)
    return context


def law(should_run: ShouldRun) -> None:
    """The check runs exactly where an answer was parsed and its fields were found to be wrong, and no guard failed
    it."""

    @settings(
        database=None,
        deadline=None,
        derandomize=True,
        report_multiple_bugs=False,
        phases=(Phase.explicit, Phase.generate),
    )
    @given(st.booleans(), st.booleans(), st.sampled_from([None, True, False]))
    def holds(parsed: bool, guarded: bool, verified: Any) -> None:
        due = parsed and verified is False and not guarded
        assert should_run(item(parsed, guarded, verified)) is due

    holds()


def test_the_check_does_not_run_on_nothing_after_a_guard() -> None:
    law(asked(EmbeddingCheck()))


def test_a_check_that_looks_at_the_flag_alone_runs_on_nothing() -> None:
    assert asked(NaiveEmbeddingCheck())(item(parsed=False, guarded=True, verified=None))
    with pytest.raises(AssertionError):
        law(asked(NaiveEmbeddingCheck()))
