"""Processes that are forked for tests (`forking.py`) are known apart."""

from __future__ import annotations

from typing import Any

import pytest


def test_one_with_the_id_of_one_that_has_ended_is_not_taken_for_it(
    forking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are given out again after 32,768 processes and threads, fewer than the suite has."""
    first = forking.start("--version")
    assert first.wait() == 0
    monkeypatch.setattr(forking, "_codes", dict.fromkeys(range(32_768), -9))
    assert forking.start("--version").wait() == 0
