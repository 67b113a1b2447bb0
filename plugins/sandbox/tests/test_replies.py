"""What the host makes of replies, whatever they are: a worker belongs to the author of a template."""

from __future__ import annotations

import json
import math
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_sandbox import replies
from karenina_sandbox.connection import MOST_REPLY, NoReply, TooLate, Worker, WorkerEnded
from karenina_sandbox.frames import HEADER, TOKEN

from karenina_core.errors import TemplateError

Answer = Callable[[bytes], Any]
"""`answer(data)`: what the host makes of what a worker writes, in which `TOKEN` stands for that of the request."""
MARK = b"@@TOKEN@"
SERVER: Any = SimpleNamespace(descriptor=os.open(os.devnull, os.O_RDONLY))
"""One that does not hang up; no call reaches it."""


@pytest.fixture
def answer() -> Iterator[Answer]:
    ours, theirs = socket.socketpair()
    worker = Worker(os.getpid(), SERVER, socket=ours)

    def write(data: bytes) -> Any:
        worker.send({"do": "use"})
        asked = theirs.recv(1 << 16)
        token = asked[HEADER.size : HEADER.size + TOKEN]
        theirs.sendall(data.replace(MARK, token))
        return worker.reply(50)

    yield write
    worker.close()
    theirs.close()


def frame(text: bytes) -> bytes:
    body = MARK + text
    return HEADER.pack(len(body)) + body


def test_an_honest_reply_is_read(answer: Answer) -> None:
    assert answer(frame(b'{"values": {"x": 1.5}}')) == {"values": {"x": 1.5}}
    assert answer(frame(b'{"text": "\\ud800 and \\u00e9"}')) == {"text": "? and é"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame(b"{}")[: -len(b"{}")] + b"{}{}", "more than a reply"),
        (frame(b"{}").replace(MARK, b"12345678"), "not requested"),
        (HEADER.pack(MOST_REPLY * 4), "bytes"),
        (HEADER.pack(3) + b"abc", "bytes"),
        (frame(b"[1]"), "no JSON object"),
        (frame(b"{} {}"), "behind its JSON"),
        (frame(b"not json"), "cannot be read"),
        (frame(b'{"x": NaN}'), "cannot be read"),
        (frame(b'{"x": -Infinity}'), "cannot be read"),
        (frame(b'{"x": 1e999}'), "cannot be read"),
        (frame(b'{"x": ' + b"9" * 5000 + b"}"), "cannot be read"),
        (frame(b"\xff\xfe"), "cannot be read"),
        (frame(b'{"x": ' + b"[" * 65 + b"]" * 65 + b"}"), "deeper than 64"),
        (frame(b'{"x": ' + b"[" * 200_000), "cannot be read"),
    ],
)
def test_anything_else_is_no_reply(answer: Answer, data: bytes, words: str) -> None:
    with pytest.raises(NoReply, match=words):
        answer(data)


def test_half_a_reply_is_late_and_none_is_the_end(answer: Answer) -> None:
    with pytest.raises(TooLate):
        answer(frame(b"{}")[:-1])


def test_a_reply_that_comes_byte_by_byte_holds_up_nothing() -> None:
    ours, theirs = socket.socketpair()
    worker = Worker(os.getpid(), SERVER, socket=ours)
    worker.send({"do": "use"})
    theirs.sendall(HEADER.pack(MOST_REPLY))

    def drip() -> None:
        with suppress(OSError):
            while True:
                theirs.send(b"x")

    writer = threading.Thread(target=drip)
    writer.start()
    try:
        for _ in range(20):
            with pytest.raises(TooLate):
                worker.reply(1)
    finally:
        worker.close()
        theirs.close()
        writer.join()


def test_a_closed_connection_is_the_end_of_a_worker() -> None:
    ours, theirs = socket.socketpair()
    worker = Worker(os.getpid(), SERVER, socket=ours)
    theirs.close()
    assert not worker.is_idle
    with pytest.raises(WorkerEnded):
        worker.send({"do": "use"})
    worker.close()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *("fields", "trace_fields", "schema", "ground_truth", "warnings", "accepted", "values", "not_acceptable"),
        *("result", "field_results", "field_scores", "composition_strategy", "remarks", "stable", "score"),
        *("performed", "success", "results", "details", "extractions"),
    ]
)


@settings(deadline=None, max_examples=10 * settings().max_examples)
@given(st.dictionaries(NAMES, PLAIN, max_size=8))
def test_a_reply_is_a_value_of_its_kind_or_an_error_of_the_template(said: dict[str, Any]) -> None:
    names = frozenset({"a"})
    for read in (
        replies.facts,
        lambda found: replies.values_of(found, names),
        lambda found: replies.verdict(found, names),
        replies.score,
        replies.regex_verdict,
    ):
        try:
            found = read(said)
        except TemplateError:
            continue
        if isinstance(found, float):
            assert math.isfinite(found)
        assert found is None or found is not said


def test_numbers_that_no_float_can_be_are_refused() -> None:
    for value in (10**400, -(10**4000)):
        with pytest.raises(TemplateError, match="something else than the partial credit"):
            replies.score({"score": value})
    assert replies.score({"score": 10**300}) == 1e300


def test_a_verdict_is_about_the_fields_of_the_template_and_no_others() -> None:
    said = {"result": True, "field_results": {"a": True}, "field_scores": {"a": 1.0}, "remarks": [], "stable": True}
    said["composition_strategy"] = None
    assert replies.verdict(said, frozenset({"a"})).result is True
    for change in (
        {"result": 1},
        {"field_results": {"b": True}},
        {"field_results": {"a": "yes"}},
        {"field_scores": {"a": True}},
        {"field_scores": {"a": 1.01}},
        {"field_scores": {"a": 10**4000}},
        {"field_scores": {"a": -1e300}},
        {"remarks": "x"},
        {"stable": None},
    ):
        with pytest.raises(TemplateError, match="something else than the verdict"):
            replies.verdict(said | change, frozenset({"a"}))
    assert json.dumps(said)


def test_a_schema_that_no_judge_could_read_is_refused() -> None:
    said = {"fields": [], "trace_fields": [], "ground_truth": {}, "schema": {"description": "x" * 199_000}}
    assert replies.facts(said).schema == said["schema"]
    with pytest.raises(TemplateError, match="201,019 characters, and 200,000 are the most"):
        replies.facts(said | {"schema": {"description": "x" * 201_000}})
