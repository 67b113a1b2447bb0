"""FinalizeResult: what the stages left behind becomes one result."""

from __future__ import annotations

from typing import Any

from karenina_core import ArtifactKeys, Category, Stage, VerificationContext, hookimpl
from karenina_core.model.result import PARTS, VerificationResult
from karenina_core.pipeline.assemble import extensions, ledger, metadata, part_fields, usage_metadata


class FinalizeResult(Stage):
    """Always runs, always last. A part exists where its evaluation was asked for or performed."""

    category = Category.FINALIZATION
    produces = (ArtifactKeys.FINAL_RESULT,)
    final = True

    def should_run(self, context: VerificationContext) -> bool:
        return True

    def execute(self, context: VerificationContext) -> None:
        fields = part_fields(context)
        fields["generation"]["usage_metadata"] = usage_metadata(
            context.calls, fields["generation"].get("usage_metadata")
        )
        fields["template"]["verify_result"] = context.verdict.verdict
        fields["template"]["field_verification_result"] = context.verdict.field
        # What was asked for is known even where nothing came of it.
        deep = context.evaluates_template and "deep_judgment" in context.config.features
        if deep:
            for name in ("deep_judgment_mode", "deep_judgment_search_enabled"):
                fields["deep_judgment"][name] = getattr(context.config, name)
        present = {
            "generation": True,
            "checks": True,
            "template": context.evaluates_template,
            "rubric": bool(
                fields["rubric"].get("rubric_evaluation_performed")
                or fields["rubric"].get("agentic_rubric_evaluation_performed")
            ),
            "deep_judgment": deep,
            "deep_judgment_rubric": bool(fields["deep_judgment_rubric"].get("deep_judgment_rubric_performed")),
        }
        parts: dict[str, Any] = {}
        for name, cls in PARTS.items():
            if name == "template":
                fields[name] |= {"generation": parts["generation"], "checks": parts["checks"]}
            if present[name]:
                parts[name] = cls(**fields[name])
        result = VerificationResult(
            metadata=metadata(context),
            ledger=ledger(context),
            extensions=extensions(context),
            **parts,
            **fields[""],
        )
        context.set_artifact(ArtifactKeys.FINAL_RESULT, result)


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(FinalizeResult)
