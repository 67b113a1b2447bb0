"""What a model refuses is kept with the replies that came in place of it, so that they are found again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.ports.call_port import CallPort
from karenina_calls.ports.item_calls import ItemCalls, current_item
from karenina_calls.ports.stored_calls import Metered
from karenina_calls.ports.structured import StructuredParser
from karenina_runs.journal.check import check
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import CALLS, META
from karenina_runs.journal.salvage import salvage
from karenina_runs.journal.writer import Commits, Entry

from karenina_core import ModelConfig
from karenina_core.errors import PortError
from karenina_core.ports.middleware import CallTarget
from karenina_core.testing import ScriptedCall, ScriptedLLM
from karenina_core.values.message import Message

MODEL = ModelConfig(model_name="m", interface="scripted")
ALL = ("json_schema", "tool_call", "json_object", "text")
GOOD = {"target": "BCL2"}


def metered(llm: ScriptedLLM, journal: Journal) -> CallPort:
    return CallPort(CallTarget.of_model("llm", MODEL), llm).behind(Metered(MODEL, store=journal))


def server(refuses: Collection[str], *, replies: bool = True) -> ScriptedLLM:
    def script(call: ScriptedCall) -> Any:
        assert call.output is not None
        if not replies:
            return PortError("the key has expired", kind="auth", status=401)
        if call.output.channel in refuses:
            return PortError("not supported", kind="invalid_request", status=400)
        return GOOD

    return ScriptedLLM(script, channels=ALL)


async def ended(llm: ScriptedLLM, journal: Journal, numbers: Sequence[int], question: str = "q") -> list[str | None]:
    """The channels on which calls with these schemas end, one after the other."""
    parser = StructuredParser(metered(llm, journal))
    found = []
    for number in numbers:
        current_item.set(ItemCalls(question, "r"))
        schema = {"type": "object", "maxProperties": number}
        found.append((await parser.aparse([Message.user("Which?")], schema)).channel)
    return found


def asked(llm: ScriptedLLM) -> list[str]:
    return [call.output.channel for call in llm.calls if call.output]


def in_journal(
    folder: Path, llm: ScriptedLLM, numbers: Sequence[int], *sources: Path, question: str = "q"
) -> list[str | None]:
    folder.mkdir(exist_ok=True)

    async def work() -> list[str | None]:
        readers = [JournalReader.open(source) for source in sources]
        journal = Journal.open(folder, sources=readers)
        try:
            return await ended(llm, journal, numbers, question)
        finally:
            await journal.aclose()
            for reader in readers:
                reader.close()

    return asyncio.run(asyncio.wait_for(work(), 60))


@pytest.mark.parametrize("refuses", [{"json_schema"}, {"json_schema", "tool_call", "json_object"}])
def test_a_reply_on_a_weaker_channel_is_found_whoever_the_server_is_by_then(tmp_path: Path, refuses: set[str]) -> None:
    channel = ALL[len(refuses)]
    assert in_journal(tmp_path / "run", server(refuses), [1, 2, 1]) == [channel] * 3
    for folder, sources in (("run", []), ("other", ["run"]), ("third", ["other"])):
        gone = server(refuses, replies=False)
        here = [tmp_path / source for source in sources]
        assert in_journal(tmp_path / folder, gone, [2, 1], *here) == [channel] * 2
        assert asked(gone) == [], "somebody was asked"
    better = server(set())
    assert in_journal(tmp_path / "run", better, [1, 2, 3]) == [channel, channel, "json_schema"]
    assert asked(better) == ["json_schema"]


def test_a_refused_schema_is_not_tried_again_for_other_calls(tmp_path: Path) -> None:
    in_journal(tmp_path, server({"json_schema"}), [1])
    again = server({"json_schema"})
    assert in_journal(tmp_path, again, [1], question="another") == ["tool_call"]
    assert asked(again) == ["tool_call"]


def test_what_was_replied_on_a_channel_before_it_was_refused_is_not_asked_again(tmp_path: Path) -> None:
    in_journal(tmp_path, server(set()), [1], question="before")
    in_journal(tmp_path, server({"json_schema"}), [1], question="after")
    gone = server(set(), replies=False)
    assert in_journal(tmp_path, gone, [1], question="before") == ["json_schema"]
    assert in_journal(tmp_path, gone, [1], question="after") == ["tool_call"]
    assert asked(gone) == []


def test_nothing_is_learned_where_every_channel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PortError):
        in_journal(tmp_path, server(ALL), [1])
    assert in_journal(tmp_path, server(set()), [1]) == ["json_schema"]


def test_the_weakest_channel_is_asked_although_it_was_refused_when_there_were_more(tmp_path: Path) -> None:
    in_journal(tmp_path, server({"json_schema"}), [1])
    fewer = ScriptedLLM(lambda call: GOOD, channels=["json_schema"])
    assert in_journal(tmp_path, fewer, [1]) == ["json_schema"]


def test_no_reply_is_in_the_journal_without_what_was_refused_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are written in the order in which they are handed over, and what is handed over at once together."""
    tables: list[str] = []
    submit = Commits.submit

    def noted(self: Commits, entry: Entry) -> None:
        tables.append(entry.table)
        submit(self, entry)

    monkeypatch.setattr(Commits, "submit", noted)
    in_journal(tmp_path / "run", server({"json_schema", "tool_call"}), [1, 2])
    assert tables == ["failures", "failures", "meta", "meta", "calls"] * 2


def test_a_journal_that_does_not_know_asks_once_more_and_learns_it(tmp_path: Path) -> None:
    in_journal(tmp_path, server({"json_schema"}), [1, 2])
    forget(tmp_path)
    again = server({"json_schema"})
    assert in_journal(tmp_path, again, [1, 2]) == ["tool_call"] * 2
    assert asked(again) == ["json_schema"] * 2
    assert in_journal(tmp_path, server((), replies=False), [1, 2]) == ["tool_call"] * 2


def forget(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection:
        found = connection.execute("DELETE FROM meta WHERE id LIKE 'refused:%'")
        assert found.rowcount == 2
        connection.commit()


def test_what_is_refused_is_saved_with_the_rest(tmp_path: Path) -> None:
    in_journal(tmp_path, server({"json_schema"}), [1, 2])
    assert check(tmp_path).sound
    (tmp_path / "saved").mkdir()
    salvage(tmp_path / "journal.sqlite", tmp_path / "saved" / "journal.sqlite")
    assert check(tmp_path / "saved").sound
    assert in_journal(tmp_path / "saved", server((), replies=False), [1, 2]) == ["tool_call"] * 2
    with JournalReader.open(tmp_path / "saved") as reader:
        assert sum(1 for _ in reader.rows(CALLS)) == 2
        names = [str(row.id) for row in reader.every(META) if str(row.id).startswith("refused:")]
        assert len(names) == 2
        assert all(name.startswith("refused:json_schema:") for name in names)
