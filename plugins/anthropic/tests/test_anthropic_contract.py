"""The adapter keeps the promises of its ports, seen over the protocol that it speaks."""

from __future__ import annotations

import pytest
from karenina_anthropic.checks import OPTIONS

from karenina_core import Karenina
from karenina_core.testing import Check, adapter_checks

CHECKS = adapter_checks(Karenina.default().adapters.get_spec("anthropic"), **OPTIONS["anthropic"])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_it_keeps_its_promises(check: Check) -> None:
    check.run()


def test_its_promises_are_those_of_an_adapter_of_chat_completions() -> None:
    others = adapter_checks(Karenina.default().adapters.get_spec("openai_endpoint"))
    assert [check.name for check in CHECKS] == [check.name for check in others]
