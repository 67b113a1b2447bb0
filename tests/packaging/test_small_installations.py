"""What can be done with little installed: the core alone, and the whole pipeline without the libraries of analyses."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
MOST_MEGABYTES = 60
LEAN = (
    *("karenina-agentic", "karenina-checks", "karenina-cli", "karenina-deep-judgment", "karenina-demo"),
    *("karenina-embedding", "karenina-generation", "karenina-jsonld", "karenina-openai-endpoint", "karenina-results"),
    *("karenina-replay", "karenina-rubric", "karenina-template"),
)
"""The command line, every stage, an adapter for models and one for recorded answers."""
ALONE = """\
import asyncio
from karenina_core import Karenina, ModelConfig, Question, StageOrchestrator, VerificationConfig, VerificationContext

app = Karenina.installed()
plan = StageOrchestrator.from_config("template_only", app=app)
print([stage.name for stage in plan.stages], plan.validate_dependencies())
model = ModelConfig(model_name="m", interface="echo")
config = VerificationConfig(answering_models=[model], parsing_models=[model])
for reference in ("BCL2", "TP53"):
    question = Question(question="Is it BCL2?", raw_answer=reference)
    context = VerificationContext(question=question, config=config, app=app)
    result = asyncio.run(plan.arun(context))
    print(result.outcome, result.generation.raw_llm_response, [entry.status for entry in result.trail])
"""


@pytest.fixture(scope="module")
def alone(by_pip: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment into which pip has installed the core and a stranger's stages and adapter."""
    return by_pip(tmp_path_factory.mktemp("alone") / "venv", "karenina-core", "karenina-stranger-alone")


def test_the_core_needs_five_packages_and_what_those_need(alone: Path, run: Run, tmp_path: Path) -> None:
    script = "from importlib.metadata import distributions; print(*(each.name for each in distributions()))"
    names = {*run([alone / "bin" / "python", "-c", script], tmp_path).stdout.split()}
    direct = {"attrs", "cattrs", "pluggy", "stevedore", "structlog"}
    assert names == direct | {"karenina-core", "karenina-stranger-alone", "typing_extensions"}


def test_a_stranger_s_stages_and_adapter_make_a_plan_and_a_result(alone: Path, run: Run, tmp_path: Path) -> None:
    lines = run([alone / "bin" / "python", "-c", ALONE], tmp_path).stdout.splitlines()
    assert lines == [
        "['Ask', 'Look', 'Finish'] []",
        "passed m: Is it BCL2? ['ran', 'ran', 'ran']",
        "failed m: Is it BCL2? ['ran', 'ran', 'ran']",
    ]


@pytest.fixture(scope="module")
def lean(bare: Callable[..., Path]) -> Path:
    return bare(*LEAN)


def test_a_lean_installation_is_small(lean: Path) -> None:
    (packages,) = lean.glob("lib/python*/site-packages")
    files = (path for path in packages.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert sum(path.stat().st_size for path in files) / 1e6 <= MOST_MEGABYTES


def test_libraries_of_analyses_and_providers_are_not_there(lean: Path, run: Run, tmp_path: Path) -> None:
    packages = ["numpy", "pandas", "scipy", "matplotlib", "litellm"]
    script = f"from importlib.util import find_spec; print(*filter(find_spec, [*{packages}, 'karenina_core']))"
    assert run([lean / "bin" / "python", "-c", script], tmp_path).stdout.split() == ["karenina_core"]


def test_a_benchmark_is_run_shown_and_resumed_with_a_lean_installation(
    lean: Path, run: Run, tmp_path: Path, repository: Path
) -> None:
    karenina, examples = lean / "bin" / "karenina", repository / "examples"
    assert "Results: demo" in run([karenina, "demo", "--quiet", "--out", "demo"], tmp_path).stdout
    recorded = ("--answering-interface", "manual", "--manual-traces", examples / "pharmacology-answers.json")
    run([karenina, "verify", examples / "pharmacology.jsonld", *recorded, "--quiet", "--out", "run"], tmp_path)
    assert json.loads(run([karenina, "status", "run", "--json"], tmp_path).stdout)["state"] == "completed"
    assert "half-life" in run([karenina, "show", "run"], tmp_path).stdout
    assert "Results: run" in run([karenina, "resume", "run", *recorded[2:], "--quiet"], tmp_path).stdout
