"""One sandbox for all tests, and one of an ordinary user where root runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from karenina_sandbox.runtime import SandboxRuntime


@pytest.fixture(scope="session")
def runtime() -> Iterator[SandboxRuntime]:
    made = SandboxRuntime()
    yield made
    made.close()
