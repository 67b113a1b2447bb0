"""What the tests of several plugins share with those of the core."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

SHARED = importlib.util.spec_from_file_location("tests_conftest", Path(__file__).parents[1] / "tests" / "conftest.py")
assert SHARED is not None
_shared: Any = importlib.util.module_from_spec(SHARED)
SHARED.loader.exec_module(_shared)  # type: ignore[union-attr] # a file that is there has a loader
forking, long = _shared.forking, _shared.long
"""Processes of the command line that need not import anything; whether the full forms of tests are wanted."""
# For `pytest plugins/jsonld`, which does not load the conftest.py of the core's tests.
pytest_addoption, pytest_configure = _shared.pytest_addoption, _shared.draw_few
pytest_collection_modifyitems, pytest_runtest_protocol = _shared.without_limit, _shared.pytest_runtest_protocol
