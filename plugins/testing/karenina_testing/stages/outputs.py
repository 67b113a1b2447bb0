"""What a stage wrote: whether it is complete, and whether a result can hold it."""

from __future__ import annotations

import json
from typing import Any

from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core.errors import ConfigError, one_line
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.declaration import result_fields
from karenina_core.pipeline.keys import VERDICT_VIEWS
from karenina_core.pipeline.stage import Stage
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.result import all_parts

__all__ = ["missing_output", "wrong_result_field"]


def missing_output(stage: Stage, context: VerificationContext) -> str | None:
    """The first key of `produces` that was not written. A view of the ledger is written by recording an effect."""
    for key in stage.produces:
        if key in VERDICT_VIEWS:
            verdict = context.verdict
            value = verdict.verdict if key == ArtifactKeys.VERIFY_RESULT else verdict.field
            if value is None:
                return str(key)
        elif key not in context._artifacts:
            return str(key)
    return None


def wrong_result_field(stage: Stage, context: VerificationContext) -> str | None:
    """The first of the stage's result fields whose value does not survive being written and read, and why."""
    for name in (*stage.result_fields, *stage.revises, *stage.extends):
        if name in context.result_fields and (problem := _unstorable(str(name), context.result_fields[name])):
            return f"the result cannot hold {str(name)!r}: {problem}"
    return None


def _unstorable(name: str, value: Any) -> str | None:
    part = all_parts().get(result_fields().get(name, ""))
    try:
        if part is None:
            json.dumps(unstructure(value), allow_nan=False)
            return None
        held = part(**{name: value})
        written = json.dumps(unstructure(held), allow_nan=False)
        read: Any = structure(json.loads(written), part)
    except ConfigError as error:
        return "; ".join(problem.message for problem in error.problems)
    except (TypeError, ValueError, RecursionError) as error:
        return one_line(error)
    same = json.dumps(unstructure(read), sort_keys=True) == json.dumps(json.loads(written), sort_keys=True)
    return None if same else f"{value!r} is read back as {getattr(read, name)!r}"
