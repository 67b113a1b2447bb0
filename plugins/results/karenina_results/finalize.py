"""FinalizeResult: what the stages left behind becomes one result."""

from __future__ import annotations

from typing import Any

from karenina_core import ArtifactKeys, Category, Stage, VerificationContext, hookimpl
from karenina_core.pipeline.assemble import finished


class FinalizeResult(Stage):
    """Always runs, always last. A part exists where its evaluation was asked for or performed."""

    category = Category.FINALIZATION
    produces = (ArtifactKeys.FINAL_RESULT,)
    final = True

    def should_run(self, context: VerificationContext) -> bool:
        return True

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(ArtifactKeys.FINAL_RESULT, finished(context))


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(FinalizeResult)
