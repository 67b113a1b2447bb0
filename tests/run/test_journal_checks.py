"""What a check of a journal says about files that are not what was written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from karenina_core.errors import ConfigError
from karenina_core.model.message import Message
from karenina_core.ports.calls import Request
from karenina_core.ports.metered import CallFacts, StoredCall
from karenina_core.run.journal import Journal
from karenina_core.run.journal_check import check

MODEL = {"interface": "scripted", "model_name": "m", "provider": None, "tools": [], "config_id": None}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a journal with a few calls, closed as it should be."""

    async def work() -> None:
        journal = Journal.open(tmp_path, run_id="mine")
        for text in "abc":
            request = Request("llm", MODEL, "generation", 1, (Message.user(text).to_dict(),))
            await journal.put(StoredCall(request.key, 0, request), {"reply": {"content": text}}, CallFacts())
        await journal.aclose()

    asyncio.run(work())
    return tmp_path / "journal.sqlite"


def changed(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("place", [*range(18, 24), *range(44, 48), *range(72, 92)])
def test_every_byte_of_the_header_that_never_changes_is_looked_at(path: Path, place: int) -> None:
    assert check(path).sound
    changed(path, place)
    assert not check(path).sound


@pytest.mark.parametrize("left", ["run.lock", "journal.sqlite-wal"])
def test_a_journal_that_left_something_behind_is_gone(path: Path, left: str) -> None:
    (path.parent / "journal.sqlite-wal").write_bytes(b"")
    for each in path.parent.iterdir():
        if each.name != left:
            each.unlink()
    with pytest.raises(ConfigError, match="is gone, and what was paid for was in it"):
        check(path.parent)
    with pytest.raises(ConfigError, match="there is no journal"):
        check(path.with_name("other.sqlite"))
    (path.parent / left).unlink()
    with pytest.raises(ConfigError, match="there is no journal"):
        check(path)
