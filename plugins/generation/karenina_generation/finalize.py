"""FinalizeResult: what the stages left behind becomes one result."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core import Category, Stage, VerificationContext, VerificationResult, hookimpl
from karenina_core.pipeline.assemble import USAGE, ledger, metadata
from karenina_core.pipeline.declaration import result_fields
from karenina_core.values.result import GenerationPart
from karenina_core.values.result_parts import result_parts


class FinalizeResult(Stage):
    """Always runs, always last. A part exists if its evaluation was requested or performed."""

    category = Category.FINALIZATION
    calls = ()
    produces = (ArtifactKeys.FINAL_RESULT,)
    final = True

    def should_run(self, context: VerificationContext) -> bool:
        return True

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(ArtifactKeys.FINAL_RESULT, finished(context))


def finished(context: VerificationContext) -> VerificationResult:
    """Everything that the stages left behind. A part exists where its class says so: see `ResultPart.of`."""
    homes = result_fields()
    fields: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    extensions: dict[str, dict[str, Any]] = {}
    for name, value in context.result_fields.items():
        if name in homes:
            fields[homes[name]][name] = value
        elif "." in name:
            plugin, _, key = name.partition(".")
            extensions.setdefault(plugin, {})[key] = value
    generation = fields["generation"]
    generation["usage_metadata"] = context.service(USAGE, dict)(generation.get("usage_metadata", {}))
    return VerificationResult(
        metadata=metadata(context),
        generation=GenerationPart(**generation),
        parts={name: cls.of(context, fields.get(name, {})) for name, cls in result_parts().items()},
        ledger=ledger(context),
        extensions=extensions,
        **fields[""],
    )


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(FinalizeResult)
