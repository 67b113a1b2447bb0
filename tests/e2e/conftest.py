"""A small benchmark and fast retries for end-to-end tests."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig
from karenina_core.values.config import AttemptPolicy, RetryPolicy

QUICK = RetryPolicy(
    rate_limited=AttemptPolicy(2, 0.0, 0.01),
    timeout=AttemptPolicy(1),
    connection=AttemptPolicy(2, 0.0, 0.01),
    server=AttemptPolicy(2, 0.0, 0.01),
)
TARGET = {
    "class_name": "Answer",
    "fields": [
        {
            "name": "target",
            "type": "str",
            "description": "The protein that the response names as the target",
            "ground_truth": "BCL2",
            "verify_with": {"type": "ExactMatch"},
        }
    ],
}


@pytest.fixture
def benchmark_of() -> Callable[[int], Benchmark]:
    """`benchmark_of(n)`: n questions with the same declarative template."""

    def make(count: int) -> Benchmark:
        questions = [
            Question(
                id=f"q{i}",
                question=f"What is the putative target of venetoclax? ({i})",
                raw_answer="BCL2",
                answer_template=json.dumps(TARGET),
                template_language="karenina-template",
            )
            for i in range(count)
        ]
        return Benchmark(name="venetoclax", questions=questions)

    return make


@pytest.fixture
def config_for() -> Callable[..., VerificationConfig]:
    """`config_for(interface, url)`: one model that answers and judges, with fast retries."""

    def make(interface: str, url: str, **fields: object) -> VerificationConfig:
        model = ModelConfig(
            model_name="scripted", interface=interface, endpoint_base_url=url, request_timeout=5.0, max_retries=1
        )
        return VerificationConfig(
            answering_models=[model], parsing_models=[model], retry_policy=QUICK, retry_max_elapsed_seconds=20, **fields
        )  # type: ignore[arg-type]  # the fields are the caller's

    return make


@pytest.fixture(scope="session")
def office() -> ModuleType:
    """The module `agent_office`: models that work with tools, and what they work on."""
    name = "agent_office"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def place(office: Any, tmp_path: Path) -> Any:
    """A root of workspaces with the folder `shop`, and a program of tools; see `agent_office.Place`."""
    return office.make_place(tmp_path)
