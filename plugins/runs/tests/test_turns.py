"""While a journal is written, its thread does not wait long for its turn; afterwards everything is as before."""

from __future__ import annotations

import sys
from pathlib import Path

from karenina_runs.journal.journal import Journal
from karenina_runs.journal.writer import SHORT, short_turns


def test_turns_are_short_until_the_last_of_several_ends() -> None:
    before = sys.getswitchinterval()
    with short_turns():
        with short_turns():
            assert sys.getswitchinterval() <= SHORT * 1.01
        assert sys.getswitchinterval() <= SHORT * 1.01
    assert sys.getswitchinterval() == before


def test_turns_that_are_shorter_already_stay_so() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SHORT / 5)
    try:
        with short_turns():
            assert sys.getswitchinterval() < SHORT / 4
        assert sys.getswitchinterval() < SHORT / 4
    finally:
        sys.setswitchinterval(before)


def test_a_journal_that_is_closed_leaves_the_turns_as_they_were(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    journal = Journal.open(tmp_path)
    assert sys.getswitchinterval() < before
    journal.close()
    assert sys.getswitchinterval() == before
