"""RecursionLimitAutoFail: an answer that was cut off by an agent's limit is no answer."""

from __future__ import annotations

from typing import Any

from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core import Category, Skip, Stage, VerificationContext, hookimpl


class RecursionLimitAutoFail(Stage):
    """Fails the verdict when the answering agent did not finish within its turns or tool calls, or kept repeating the
    same call. The trace and its cost are kept.
    """

    category = Category.GUARD
    calls = ()
    requires = (ArtifactKeys.RECURSION_LIMIT_REACHED,)

    def should_run(self, context: VerificationContext) -> bool | Skip:
        allowed = super().should_run(context)
        if allowed and context.get_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED, False) is not True:
            return Skip("no limit was reached")
        return allowed

    def execute(self, context: VerificationContext) -> None:
        limit = (context.get_result_field("agent_metrics") or {}).get("limit")
        which = f"its limit of {limit.replace('_', ' ')}" if limit else "its limit"
        context.record(field=False, verdict=False, reason=f"the answering agent reached {which} before it was done")


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(RecursionLimitAutoFail)
