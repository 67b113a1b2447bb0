"""Every promise of a sink, and that its tables can be asked in SQL."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from karenina_example_sink import Tables, result_ids

from karenina_core import RunInfo
from karenina_core.errors import PluginError
from karenina_core.testing import plugin_checks
from karenina_core.testing import strategies


@pytest.mark.parametrize("check", plugin_checks("example-sink", options={"tables": {"read_back": result_ids}}))
def test_it_keeps_its_promises(check: Any) -> None:
    check.run()


def test_a_sink_without_a_file_says_how_to_name_one() -> None:
    with pytest.raises(PluginError, match="--sink tables:FILE"):
        Tables("")
