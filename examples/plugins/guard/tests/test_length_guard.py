"""Every promise of a stage, and what this one is for."""

from typing import Any

import karenina_example_guard as guard
import pytest

from karenina_core import ModelConfig, Question, VerificationConfig, run_single_model_verification
from karenina_core.testing import ScriptedLLM, plugin_checks


@pytest.mark.parametrize("check", plugin_checks("example-guard"))
def test_it_keeps_its_promises(check: Any) -> None:
    check.run()
