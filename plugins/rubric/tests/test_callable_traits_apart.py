"""Callable traits of a benchmark file that is not trusted: their code runs in a sandbox."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # it brings no types
import pytest
from karenina_rubric.callable_traits.evaluator import CallableEvaluator
from karenina_vocabulary.evaluators import TraitCase, TraitScore
from karenina_vocabulary.kinds import runtime_of
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import CallableRubricTrait, Karenina, Question, VerificationConfig, VerificationContext
from karenina_core.testing import application

KINDS: dict[str, dict[str, Any]] = {
    "boolean": {"kind": "boolean"},
    "score": {"kind": "score", "min_score": 0, "max_score": 9},
    "literal": {"kind": "literal", "classes": {"Low": "few", "High": "many"}},
}


@pytest.fixture(scope="module")
def app() -> Iterator[Karenina]:
    made = application(
        installed={"trait-callable", "sandbox-runtime"},
        settings={"sandbox-runtime": {"seconds": 0.3, "hard_seconds": 20}},
    )
    yield made
    runtime_of(made, "sandbox").close()


def filed(code: Any, kind: str = "boolean", name: str = "t") -> CallableRubricTrait:
    """A trait as a file has it: a function that was saved, or bytes."""
    saved = code if isinstance(code, bytes) else cloudpickle.dumps(code)
    return CallableRubricTrait(name=name, callable_code=saved, **KINDS[kind])


def evaluate(app: Karenina, *traits: CallableRubricTrait, policy: Any = "sandbox") -> Mapping[str, TraitScore]:
    config = VerificationConfig(code_policy=policy)
    context = VerificationContext(question=Question(question="Which?"), config=config, app=app)
    evaluator = CallableEvaluator()

    async def scored() -> Mapping[str, TraitScore]:
        return await evaluator.evaluate(traits, TraitCase(context, EvaluationInput("BCL2", True), asyncio.Semaphore(6)))

    assert list(evaluator.check_config(traits, config, app)) == []
    return asyncio.run(scored())


def test_scores_are_those_of_a_trusted_run(app: Karenina) -> None:
    wanted = {"BCL2"}
    traits = [
        filed(lambda text: text in wanted, name="named"),
        filed(lambda text: len(text) / 2, "score", "half"),
        filed(lambda text: "low", "literal", "class"),
        filed(lambda text: 100, "score", "large"),
        filed(lambda text: [text], "score", "list"),
        filed(lambda text: None, "boolean", "nothing"),
        filed(b"def evaluate(text):\n    return text.isupper()", name="source"),
        CallableRubricTrait(name="lost", kind="boolean"),
    ]
    apart, trusted = evaluate(app, *traits), evaluate(app, *traits, policy="trusted")
    for name, score in trusted.items():
        found = apart[name]
        assert (found.value, found.state, found.reason, found.label) == (
            score.value,
            score.state,
            score.reason,
            score.label,
        )
        level = {name: value for name, value in found.details.items() if name == "isolation"}
        assert dict(found.details) == {**score.details, **level}
        assert [value.startswith("sandbox-") for value in level.values()] == ([] if name == "lost" else [True])


class Touches:
    def __reduce__(self) -> Any:
        return os.system, ("touch it-ran",)


def test_what_the_code_does_is_done_nowhere_else(
    app: Karenina, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scores = evaluate(
        app,
        filed(pickle.dumps(Touches()), name="pickle"),
        filed(b"def evaluate(text):\n    open('it-ran', 'w')\n    return True", name="file"),
        filed(b"def evaluate(text):\n    while True: pass", name="endless"),
        filed(b"import os\ndef evaluate(text):\n    os._exit(0)", name="leaves"),
        filed(b"def evaluate(text):\n    return 'BCL' in text", name="fine"),
    )
    assert scores["fine"].value is True
    for name, words in (
        ("pickle", "cannot be loaded in the sandbox"),
        ("file", "failed in the sandbox: PermissionError"),
        ("endless", "stopped after 0.3 s of processor time"),
        ("leaves", "ended itself"),
    ):
        assert (scores[name].state, scores[name].value) == ("error", None)
        assert words in scores[name].reason
    assert list(tmp_path.iterdir()) == []


def test_where_the_sandbox_cannot_work_they_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = application(installed={"trait-callable", "sandbox-runtime"})
    monkeypatch.setattr(runtime_of(made, "sandbox"), "unavailable", "no such kernel")
    config = VerificationConfig()
    (problem,) = CallableEvaluator().check_config([filed(lambda text: True)], config, made)
    assert problem.path == "code_policy"
    assert "--trust" in problem.message
