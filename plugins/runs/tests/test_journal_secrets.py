"""No secret gets into a run directory through the journal, wherever it stands: compressed bodies are looked into."""

from __future__ import annotations

import asyncio
import json
import zlib
from pathlib import Path

from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.folder.recording import recording_lines
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Batch, Done, JournalReader
from karenina_runs.journal.rows import CALLS, RESULTS

from karenina_core.errors import PortError
from karenina_core.values.message import Message, UsageMetadata

CANARY = 'sk-canary"0123456789'
ESCAPED = json.dumps(CANARY)[1:-1]
MODEL = {"interface": "scripted", "model_name": CANARY, "provider": None, "tools": (), "config_id": None}


def holds_the_canary(data: bytes) -> bool:
    """Also inside of what is compressed."""
    forms = (CANARY.encode(), ESCAPED.encode(), json.dumps(ESCAPED)[1:-1].encode())
    if any(form in data for form in forms):
        return True
    for place in range(len(data) - 1):
        if data[place] == 0x78 and data[place + 1] in (0x01, 0x5E, 0x9C, 0xDA):
            try:
                inside = zlib.decompressobj().decompress(data[place:])
            except zlib.error:
                continue
            if any(form in inside for form in forms):
                return True
    return False


def test_a_canary_is_in_no_byte_of_the_folder(tmp_path: Path) -> None:
    asyncio.run(with_canaries(tmp_path, [CANARY, ESCAPED]))
    with JournalReader.open(tmp_path) as reader:
        assert "[redacted]" in "".join(recording_lines(reader))
        assert "[redacted]" in "".join(result.line for result in reader.results())
        assert [len(list(reader.rows(table))) for table in (CALLS, RESULTS)] == [2, 2]
    for path in tmp_path.iterdir():
        assert not holds_the_canary(path.read_bytes()), path


def test_the_search_would_find_it(tmp_path: Path) -> None:
    asyncio.run(with_canaries(tmp_path, ()))
    assert holds_the_canary((tmp_path / "journal.sqlite").read_bytes())
    packed = b"12345" + zlib.compress(b"x" * 2000 + CANARY.encode(), 1) + b"1"
    assert holds_the_canary(packed)
    assert not holds_the_canary(packed.replace(b"x", b"y")[:20])


async def with_canaries(folder: Path, secrets: tuple[str, ...] | list[str]) -> None:
    """The canary wherever a run could have one, in texts that are compressed and in texts that are not."""
    journal = Journal.open(folder, secrets=secrets)
    for size in (1, 2000):
        text = f"{'word ' * size}{CANARY}"
        request = Request("llm", MODEL, CANARY, 1, (Message.user(text).to_dict(),), {CANARY: text}, None, {"a": text})
        usage = UsageMetadata(1, 1, 2, None, None, None, CANARY)
        facts = CallFacts(usage=usage, retries={CANARY: 1})
        call = StoredCall(request.key, 0, request, CANARY, CANARY, CANARY, CANARY)
        assert await journal.take(call) is None
        journal.failed(call, PortError(f"{CANARY} is no key", kind="auth", raw=CANARY), facts)
        assert await journal.take(call) is None
        await journal.put(call, {"reply": {"content": text, CANARY: [text]}}, facts)
        done = Done(f"{CANARY}{size}", size, CANARY, "error", CANARY)
        await journal.put_result(done, json.dumps({"content": text}))
        await journal.put_batch(Batch(id=f"{CANARY}{size}", model=CANARY, provider_id=CANARY, status=CANARY))
    await journal.aclose()
