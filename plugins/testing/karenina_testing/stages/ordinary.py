"""Running a stage in an ordinary test, on artifacts that the test gives it."""

from __future__ import annotations

import inspect
from typing import Any

from karenina_core.errors import did_you_mean
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.stage import Stage
from karenina_core.values.question import Question

from ..watch.loops import in_loop
from .inputs import StageInput


def run_stage(
    stage: Stage | type[Stage], /, *, given: StageInput | None = None, **artifacts: Any
) -> VerificationContext:
    """Run a stage once and return the context: `run_stage(WordCount, raw_llm_response="one two")`.

    `artifacts` are what earlier stages have written. Models answer as `given.answering` and `given.parsing` say; by
    default they answer what they are asked for. A stage that is not to run for this item, because its `should_run`
    says so, is not run. Raises ValueError for artifacts that the stage does not read, and what the stage raises.
    """
    made = stage() if isinstance(stage, type) else stage
    readable = [str(key) for key in (*made.requires, *made.reads)]
    for name in artifacts:
        if name not in readable and not made.final:
            raise ValueError(f"{made.name} does not read {name!r}{did_you_mean(name, readable)}")
    item = given or StageInput(question=Question(question="What is the capital of France?", raw_answer="Paris"))
    context = item.context()
    for name, value in artifacts.items():
        context.set_artifact(name, value)

    async def run() -> None:
        with context.acting(made):
            if made.should_run(context):
                waiting = made.execute(context)
                if inspect.isawaitable(waiting):
                    await waiting

    in_loop(run())
    return context
