"""Every promise of a sink, and that its tables can be asked in SQL."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from karenina_example_sink import Tables

from karenina_core import RunInfo
from karenina_core.errors import PluginError
from karenina_core.testing import conformance_tests, strategies

RUN = RunInfo(run_name="first", run_dir=None, benchmark="b", items=1)


test_it_keeps_its_promises = conformance_tests("example-sink")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(strategies.results())
def test_every_field_that_was_compared_has_a_row(tmp_path: Path, result: Any) -> None:
    async def write(sink: Tables) -> None:
        await sink.open(RUN)
        await sink.write(result)
        await sink.write(result)
        await sink.close({})

    path = tmp_path / "results.sqlite"
    asyncio.run(write(Tables(str(path))))
    with closing(sqlite3.connect(path)) as tables:
        found = tables.execute("SELECT count(*) FROM fields WHERE id = ?", (result.metadata.result_id,)).fetchone()
    compared = result.template.field_results if result.template is not None else None
    assert found == (len(compared or {}),)
    path.unlink()


def test_a_sink_without_a_file_says_how_to_name_one() -> None:
    with pytest.raises(PluginError, match="--sink tables:FILE"):
        Tables("")
