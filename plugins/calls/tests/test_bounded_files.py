"""Files of others are read as far as they may go, and no further."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.files.bounded import is_deeper, json_bounded, read_bounded, read_json
from karenina_calls.records.manual import load_manual_traces

from karenina_core.errors import ConfigError

DATA = st.recursive(st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(depth, parts), default=0)


@given(DATA, st.integers(0, 6))
def test_levels_are_counted(value: Any, levels: int) -> None:
    assert is_deeper(value, levels) == (depth(value) > levels)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 500 + "1" + "}" * 500])
def test_what_is_nested_too_deeply_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="nested deeper than 64 levels"):
        json_bounded(text)


def test_a_number_of_a_million_digits_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="digits"):
        json_bounded("1" * 1_000_000)


def test_a_larger_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 11)
    assert read_bounded(file, 11) == b"x" * 11
    with pytest.raises(OSError, match="more than 10 bytes"):
        read_bounded(file, 10)
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(OSError, match="more than 256 MB"):
        read_bounded(file)


@pytest.mark.skipif(os.name == "nt", reason="pipes of Unix")
def test_pipes_and_devices_are_no_files(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            read_bounded(path)
    with pytest.raises(OSError, match="more than 1 MB"):
        read_bounded("/dev/zero", 1 << 20, pipes=True)


def test_a_document(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps({"a": [1]}))
    assert read_json(tmp_path / "file") == {"a": [1]}


@pytest.mark.parametrize("inner", ["[" * 100 + "]" * 100, "[" * 100_000])
def test_recorded_answers_that_are_nested_too_deeply_are_refused(inner: str, tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(f'{{"q": {inner}}}')
    with pytest.raises(ConfigError, match=r"nested deeper|not JSON"):
        load_manual_traces(tmp_path / "traces.json")
