"""File tools of agents: useful within the workspace, and nothing outside of it is reached, whatever is tried."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from karenina_calls.files import sandboxed_names as confined_names
from karenina_calls.files import workspace_text, workspace_tools
from karenina_calls.tools.tool_calls import MOST_CHARACTERS

from karenina_core.errors import ConfigError
from karenina_core.ports.values import Tool, ToolOutcome

SECRET = "SECRET-of-the-outside"
laws = settings(database=None, deadline=None, derandomize=True, max_examples=150)


class Tools:
    """The tools of a folder, to be called by name."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.all: dict[str, Tool] = {tool.name: tool for tool in workspace_tools.workspace_tools(root, **options)}

    def call(self, name: str, **arguments: Any) -> ToolOutcome:
        run = self.all[name].run
        assert run is not None

        async def calling() -> ToolOutcome:
            return await run(arguments)

        return asyncio.run(calling())

    def gives(self, name: str, **arguments: Any) -> str:
        outcome = self.call(name, **arguments)
        assert not outcome.is_error, outcome.content
        return outcome.content

    def refuses(self, name: str, **arguments: Any) -> str:
        outcome = self.call(name, **arguments)
        assert outcome.is_error, outcome.content
        assert SECRET not in outcome.content
        return outcome.content


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return _planted(tmp_path)


def _planted(place: Path) -> Path:
    """A workspace with every kind of trap in it, beside a folder that must not be touched."""
    outside = place / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret.txt").write_text(SECRET)
    (outside / "deep" / "secret.txt").write_text(SECRET)
    (outside / "linked.txt").write_text(SECRET)
    (place / "work-2").mkdir()
    (place / "work-2" / "secret.txt").write_text(SECRET)
    root = place / "work"
    (root / "data").mkdir(parents=True)
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
    (root / "data" / "table.csv").write_text("a,b\n1,2\n")
    (root / "out").symlink_to(outside)
    (root / "data" / "out").symlink_to("../../outside")
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "inner.txt").symlink_to("notes.txt")
    (root / "loop").symlink_to("loop")
    os.link(outside / "linked.txt", root / "hard.txt")
    os.mkfifo(root / "pipe")
    return root


def _state(folder: Path) -> dict[str, tuple[Any, ...]]:
    """All there is beneath a folder: kinds, times, links and contents."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[str(path)] = (status.st_mode, status.st_mtime_ns, status.st_ino, status.st_nlink, content)
    return found


def _outside(root: Path) -> dict[str, tuple[Any, ...]]:
    return {**_state(root.parent / "outside"), **_state(root.parent / "work-2")}


# What the tools are.


def test_tools_say_what_they_take(root: Path) -> None:
    tools = Tools(root).all
    assert list(tools) == ["list_files", "read_file", "search_files", "write_file"]
    assert list(Tools(root, writable=False).all) == ["list_files", "read_file", "search_files"]
    required = {name: tool.input_schema["required"] for name, tool in tools.items()}
    assert required == {
        "list_files": [],
        "read_file": ["path"],
        "search_files": ["text"],
        "write_file": ["path", "content"],
    }
    for tool in tools.values():
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert all(schema["type"] and schema["description"] for schema in tool.input_schema["properties"].values())
    assert "regular expressions are not understood" in tools["search_files"].description


def test_a_workspace_that_is_no_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(ConfigError, match="name a folder that exists"):
            workspace_tools.workspace_tools(path)
    with pytest.raises(ConfigError, match="visible_hidden"):
        workspace_tools.workspace_tools(tmp_path, visible_hidden=frozenset({"../x"}))


@pytest.mark.parametrize(
    ("name", "arguments", "refusal"),
    [
        ("read_file", {}, "path is missing"),
        ("read_file", {"path": 5}, "path has to be a string"),
        ("read_file", {"path": "notes.txt", "start_line": 0}, "start_line has to be a whole number"),
        ("read_file", {"path": "notes.txt", "lines": True}, "lines has to be a whole number"),
        ("read_file", {"path": "notes.txt", "lines": 1.5}, "lines has to be a whole number"),
        ("read_file", {"path": "notes.txt", "lines": float("inf")}, "lines has to be a whole number"),
        ("read_file", {"path": "notes.txt", "lines": float("nan")}, "lines has to be a whole number"),
        ("read_file", {"path": "notes.txt", "start": 2}, "did you mean 'start_line'"),
        ("list_files", {"recursive": "yes"}, "recursive has to be true or false"),
        ("search_files", {"text": ""}, "1 to 1000 characters"),
        ("search_files", {"text": "a\nb"}, "part of one line"),
        ("search_files", {"text": "a", "glob": ""}, "glob has to have"),
        ("write_file", {"path": "a.txt"}, "content is missing"),
        ("write_file", {"path": "a.txt", "content": "a\0b"}, "NUL"),
        ("write_file", {"path": "a.txt", "content": "\ud800"}, "surrogate"),
    ],
)
def test_arguments_that_make_no_sense_are_reported(
    root: Path, name: str, arguments: dict[str, Any], refusal: str
) -> None:
    assert refusal in Tools(root).refuses(name, **arguments)


# Reading.


def test_reading_all_and_parts(root: Path) -> None:
    tools = Tools(root)
    assert tools.gives("read_file", path="notes.txt") == "one\ntwo\nthree\n"
    assert tools.gives("read_file", path="./data/./table.csv") == "a,b\n1,2\n"
    assert tools.gives("read_file", path="notes.txt", start_line=3.0) == "three\n"
    part = tools.gives("read_file", path="notes.txt", start_line=2, lines=1)
    assert part == "two\n[it goes on: read from start_line 3]"
    assert "has 3 lines" in tools.refuses("read_file", path="notes.txt", start_line=4)
    (root / "empty.txt").touch()
    assert tools.gives("read_file", path="empty.txt") == "[the file is empty]"


def test_long_files_are_read_in_parts_that_make_the_whole(root: Path) -> None:
    whole = "".join(f"line {number} {'é' * (number % 97)}\n" for number in range(5000))
    (root / "long.txt").write_text(whole, "utf-8")
    tools, start, parts = Tools(root), 1, []
    while True:
        part = tools.gives("read_file", path="long.txt", start_line=start)
        text, goes_on, number = part.partition("[it goes on: read from start_line ")
        assert len(text.encode()) <= workspace_text.MOST_TEXT < MOST_CHARACTERS
        parts.append(text)
        if not goes_on:
            break
        start = int(number.removesuffix("]"))
    assert "".join(parts) == whole
    assert len(parts) > 3


def test_a_line_that_is_too_long_is_cut_between_letters(root: Path) -> None:
    (root / "wide.txt").write_text("a" + "é" * 2_000_000 + "\nnext\n", "utf-8")
    tools = Tools(root)
    text, _, note = tools.gives("read_file", path="wide.txt").rpartition("\n")
    assert note == "[line 1 is cut, the next is 2; search_files shows what is around a text]"
    assert set(text) == {"a", "é"}
    assert tools.gives("read_file", path="wide.txt", start_line=2) == "next\n"


def test_binary_files_are_described_and_bad_bytes_replaced(root: Path) -> None:
    (root / "image").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (root / "other").write_bytes(b"\x01\x02\0" + SECRET.encode())
    (root / "latin.txt").write_bytes("café\n".encode("latin-1"))
    tools = Tools(root)
    image = tools.gives("read_file", path="image")
    assert image == "[a binary file of 108 bytes: a PNG image; it cannot be read as text]"
    described = tools.gives("read_file", path="other")
    assert "begins with 01 02 00" in described
    assert SECRET not in described
    assert tools.gives("read_file", path="latin.txt").startswith("caf\ufffd\n[some of it is not UTF-8")


# Listing.


def test_listing_tells_kinds_and_follows_nothing(root: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    here = os.open(root, os.O_RDONLY)  # the path of a socket may be no longer than some hundred bytes
    try:
        listener.bind(f"/proc/self/fd/{here}/socket" if sys.platform == "linux" else str(root / "socket"))
    finally:
        os.close(here)
        listener.close()
    (root / "odd\nname").touch()
    listed = Tools(root).gives("list_files").split("\n")
    assert listed == [
        "data/",
        f"hard.txt ({len(SECRET)} bytes, hard link, cannot be used)",
        "inner.txt (symbolic link, cannot be used)",
        "link.txt (symbolic link, cannot be used)",
        "loop (symbolic link, cannot be used)",
        "notes.txt (14 bytes)",
        '"odd\\nname" (0 bytes)',
        "out (symbolic link, cannot be used)",
        "pipe (pipe, cannot be used)",
        "socket (socket, cannot be used)",
    ]
    assert "a socket" in Tools(root).refuses("read_file", path="socket")


def test_listing_what_is_beneath(root: Path) -> None:
    tools = Tools(root)
    assert (
        tools.gives("list_files", path="data/") == "data/out (symbolic link, cannot be used)\ndata/table.csv (8 bytes)"
    )
    listed = tools.gives("list_files", recursive=True).split("\n")
    assert listed[:3] == ["data/", "data/out (symbolic link, cannot be used)", "data/table.csv (8 bytes)"]
    assert not any("secret" in line for line in listed)
    (root / "bare").mkdir()
    assert tools.gives("list_files", path="bare") == '"bare" is empty'
    assert "no folder" in tools.refuses("list_files", path="missing")
    assert "is a file, no folder" in tools.refuses("list_files", path="notes.txt")


def test_long_listings_end_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}").touch()
    monkeypatch.setattr(workspace_tools, "MOST_LISTED", 10)
    lines = Tools(tmp_path).gives("list_files").split("\n")
    assert lines[:10] == [f"{number:02} (0 bytes)" for number in range(10)]
    assert lines[10:] == ["[not all was looked at, because there are more than the 10 above: give a narrower path]"]
    monkeypatch.setattr(workspace_tools, "MOST_LISTED", 30)
    assert len(Tools(tmp_path).gives("list_files").split("\n")) == 30
    monkeypatch.setattr(workspace_tools, "MOST_WALKED", 5)
    lines = Tools(tmp_path).gives("list_files").split("\n")
    assert len(lines) == 6
    assert "there are too many files" in lines[-1]


def test_folders_that_cannot_be_looked_into_are_counted(tmp_path: Path) -> None:
    deepest = tmp_path
    for _ in range(confined_names.MOST_DEEP + 3):
        deepest = deepest / "d"
        deepest.mkdir()
    assert Tools(tmp_path).gives("list_files", recursive=True).endswith("\n[1 folders could not be looked into]")
    assert "too long" in Tools(tmp_path).refuses("list_files", path="/".join("d" * (confined_names.MOST_DEEP + 1)))


# Searching.


def test_searching_finds_lines_literally(root: Path) -> None:
    (root / "data" / "more.txt").write_text("x.y\nxzy\nX.Y and x.y\n")
    tools = Tools(root)
    assert tools.gives("search_files", text="x.y").split("\n")[:2] == [
        "data/more.txt:1: x.y",
        "data/more.txt:3: X.Y and x.y",
    ]
    assert "data/more.txt:3" in tools.gives("search_files", text="X.y", ignore_case=True)
    assert tools.gives("search_files", text="two", path="notes.txt") == "notes.txt:2: two"
    assert tools.gives("search_files", text="two", path="data").startswith("no line with this text in the 2 text files")
    assert tools.gives("search_files", text=SECRET).startswith("no line with this text")


def test_searching_tells_what_was_not_searched(root: Path) -> None:
    (root / "image").write_bytes(b"\0two")
    lines = Tools(root).gives("search_files", text="two").split("\n")
    assert lines == ["notes.txt:2: two", "[1 binary files were not searched]", "[1 files could not be searched]"]


def test_searching_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_tools, "MOST_FOUND", 3)
    (tmp_path / "many.txt").write_text("x\n" * 3)
    assert Tools(tmp_path).gives("search_files", text="x").count("\n") == 2
    (tmp_path / "many.txt").write_text("x\n" * 4)
    lines = Tools(tmp_path).gives("search_files", text="x").split("\n")
    assert lines[:3] == ["many.txt:1: x", "many.txt:2: x", "many.txt:3: x"]
    assert "more than the 3 lines above" in lines[3]
    monkeypatch.setattr(workspace_tools, "MOST_SECONDS", -1.0)
    assert "took longer" in Tools(tmp_path).gives("search_files", text="x")
    assert "took longer" in Tools(tmp_path).gives("read_file", path="many.txt")


@given(st.integers(1, 40), st.integers(1, 8), st.text("aé\U0001f600", min_size=1, max_size=6))
@laws
def test_a_text_is_found_wherever_in_a_long_line_it_is(before: int, piece: int, text: str) -> None:
    """Long lines are read in pieces, and a text may lie across the border of two, even within a letter."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(workspace_text, "PIECE", piece)
        patch.setattr(workspace_text, "MOST_TEXT", 1000)
        Path(folder, "f.txt").write_text(f"first\n{'.' * before}{text}{'.' * 9}\nlast {text}", "utf-8")
        lines = Tools(Path(folder)).gives("search_files", text=text).split("\n")
    assert [line.split(" ")[0] for line in lines if not line.startswith("[")] == ["f.txt:2:", "f.txt:3:"]
    assert all(text in line for line in lines[:2])


@pytest.mark.parametrize(
    ("glob", "fits"),
    [
        ("*.py", {"a.py", "src/b.py", "src/deep/c.py"}),
        ("src/*.py", {"src/b.py"}),
        ("src/**/*.py", {"src/b.py", "src/deep/c.py"}),
        ("./src/**", {"src/b.py", "src/deep/c.py"}),
        ("**/c.py", {"src/deep/c.py"}),
        ("**", {"a.py", "src/b.py", "src/deep/c.py"}),
        ("?.py", {"a.py", "src/b.py", "src/deep/c.py"}),
        ("b", set()),
    ],
)
def test_globs(tmp_path: Path, glob: str, fits: set[str]) -> None:
    for path in ("a.py", "src/b.py", "src/deep/c.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("here")
    lines = Tools(tmp_path).gives("search_files", text="here", glob=glob).split("\n")
    assert {line.partition(":")[0] for line in lines if ":1: here" in line} == fits
    one = Tools(tmp_path).gives("search_files", text="here", glob=glob, path="src/b.py")
    assert ("src/b.py:1" in one) == ("src/b.py" in fits)


def test_a_glob_of_many_stars_takes_no_time(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a" * 40] * 20)
    deep.mkdir(parents=True)
    (deep / "f").write_text("here")
    start = monotonic()
    Tools(tmp_path).gives("search_files", text="here", glob="/".join(["**", "*a*a*a*a*"] * 20 + ["x"]))
    assert monotonic() - start < 3


# Writing.


def test_writing_makes_and_replaces(root: Path) -> None:
    tools = Tools(root)
    assert tools.gives("write_file", path="new/deep/a.txt", content="héllo") == 'made "new/deep/a.txt" (6 bytes)'
    assert (root / "new/deep/a.txt").read_text("utf-8") == "héllo"
    (root / "notes.txt").chmod(0o640)
    assert tools.gives("write_file", path="notes.txt", content="").startswith("replaced")
    assert (root / "notes.txt").read_bytes() == b""
    assert stat.S_IMODE((root / "notes.txt").stat().st_mode) == 0o640
    assert sorted(path.name for path in (root / "new/deep").iterdir()) == ["a.txt"]


def test_what_may_not_be_written_is_left_as_it_is(root: Path) -> None:
    tools = Tools(root)
    (root / "notes.txt").chmod(0o440)
    assert "write-protected" in tools.refuses("write_file", path="notes.txt", content="x")
    assert "is a folder" in tools.refuses("write_file", path="data", content="x")
    assert "it is a folder" in tools.refuses("write_file", path="data/", content="x")
    assert "no folder" in tools.refuses("write_file", path="notes.txt/a", content="x")
    assert "not printed" in tools.refuses("write_file", path="a\nb", content="x")
    assert (root / "notes.txt").read_text() == "one\ntwo\nthree\n"


def test_all_writes_together_have_a_quota(root: Path) -> None:
    tools = Tools(root, most_written=10)
    tools.gives("write_file", path="a", content="12345")
    assert "only 5 bytes" in tools.refuses("write_file", path="b", content="123456")
    tools.refuses("write_file", path="data", content="12345")  # what was not written is not counted
    tools.gives("write_file", path="a", content="54321")
    assert "only 0 bytes" in tools.refuses("write_file", path="a", content="1")
    assert (root / "a").read_text() == "54321"
    assert not (root / "b").exists()


def test_the_quota_holds_for_writes_at_the_same_time(tmp_path: Path) -> None:
    tools = Tools(tmp_path, most_written=50)
    run = tools.all["write_file"].run
    assert run is not None

    async def all_at_once() -> list[ToolOutcome]:
        return list(await asyncio.gather(*(run({"path": f"f{n}", "content": "0123456789"}) for n in range(20))))

    outcomes = asyncio.run(all_at_once())
    assert sum(not outcome.is_error for outcome in outcomes) == len(list(tmp_path.iterdir())) == 5


def test_one_file_has_a_limit(root: Path) -> None:
    most = workspace_tools.MOST_AT_ONCE
    tools = Tools(root)
    assert "several smaller files" in tools.refuses("write_file", path="a", content="é" * (most // 2 + 1))
    tools.gives("write_file", path="a", content="é" * (most // 2))


def test_a_write_that_fails_leaves_nothing_behind(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "/absolute/path")

    monkeypatch.setattr(os, "replace", full)
    refusal = Tools(root).refuses("write_file", path="data/a.txt", content="x")
    assert "No space left" in refusal
    assert "/absolute" not in refusal
    assert sorted(path.name for path in (root / "data").iterdir()) == ["out", "table.csv"]


names = st.text(
    st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"], exclude_characters="/"), min_size=1, max_size=20
)
folders = st.lists(names.filter(lambda name: name not in (".", "..")), min_size=1, max_size=4)


@given(folders, st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300))
@example(["a"], "\r\nx\r\u2028\x85\n\n")
@example(["a"], "\ufeff%PDF-")
@laws
def test_what_was_written_is_read_back(parts: list[str], content: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tools, path = Tools(Path(folder)), "/".join(parts)
        tools.gives("write_file", path=path, content=content)
        read = tools.gives("read_file", path=path, lines=1000)
        assert read == (content or "[the file is empty]")
        assert Path(folder, path).read_bytes() == content.encode("utf-8")


# The program's own folder.


def test_the_own_folder_is_not_shown(root: Path) -> None:
    traces = root / ".karenina" / "traces"
    traces.mkdir(parents=True)
    (traces / "one.txt").write_text("the trace")
    (traces / "other.txt").write_text("another trace")
    blind = Tools(root)
    assert "karenina" not in blind.gives("list_files", recursive=True)
    assert blind.gives("search_files", text="trace").startswith("no line")
    for path in (".karenina/traces/one.txt", ".KARENINA/traces/one.txt", ".kareni\u200dna/traces/one.txt"):
        assert "no part of the work" in blind.refuses("read_file", path=path)
        assert "no part of the work" in blind.refuses("search_files", text="trace", path=path)
    seeing = Tools(root, visible_hidden=frozenset({".karenina/traces/one.txt"}))
    assert seeing.gives("read_file", path=".karenina/traces/one.txt") == "the trace"
    assert seeing.gives("search_files", text="trace").split("\n")[0] == ".karenina/traces/one.txt:1: the trace"
    assert ".karenina/traces/one.txt (9 bytes)" in seeing.gives("list_files", recursive=True)
    assert "other" not in seeing.gives("list_files", path=".karenina/traces")
    seeing.refuses("read_file", path=".karenina/traces/other.txt")
    all_of_them = Tools(root, visible_hidden=frozenset({".karenina/traces"}))
    assert all_of_them.gives("read_file", path=".karenina/traces/other.txt") == "another trace"
    for path in (".karenina/traces/one.txt", ".karenina/new.txt", "a/.Karenina/b", ".karenina.0123"):
        seeing.refuses("write_file", path=path, content="x")
    assert (traces / "one.txt").read_text() == "the trace"


# Nothing leads out.

ESCAPES = [
    "../outside/secret.txt",
    "data/../../outside/secret.txt",
    "data/../notes.txt",
    "..",
    "out/secret.txt",
    "out/deep/secret.txt",
    "data/out/secret.txt",
    "out",
    "link.txt",
    "inner.txt",
    "loop",
    "loop/a",
    "hard.txt",
    "pipe",
    "/etc/passwd",
    "//etc/passwd",
    "",
    "data//table.csv",
    "notes.txt\0",
    "../work-2/secret.txt",
    "/proc/self/cwd",
    "\ud800",
    "a" * 256,
    "é" * 128,
    "/".join(["a" * 200] * 30),
    "/".join("a" * 33),
]


@pytest.mark.parametrize("path", ESCAPES, ids=lambda path: ascii(path)[:40])
@pytest.mark.parametrize("name", ["list_files", "read_file", "search_files", "write_file"])
def test_every_way_out_is_refused(root: Path, name: str, path: str) -> None:
    before = _outside(root)
    more = {"search_files": {"text": "e"}, "write_file": {"content": "x"}}.get(name, {})
    refusal = Tools(root).refuses(name, path=path, **more)
    assert ":" in refusal or ";" in refusal, "what to do instead comes after the reason"
    assert str(root) not in refusal
    assert _outside(root) == before


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../outside/secret.txt", "has '..' in it"),
        ("/etc/passwd", "is absolute"),
        ("", "is empty"),
        ("a\0b", "NUL"),
        ("data//table.csv", "an empty name"),
        ("a" * 256, "too long"),
        ("é" * 128, "too long"),
        ("\ud800", "characters that no file name has"),
        ("out/secret.txt", '"out" is a symbolic link'),
        ("data/out/secret.txt", '"data/out" is a symbolic link'),
        ("link.txt", '"link.txt" is a symbolic link'),
        ("hard.txt", "is a hard link"),
        ("pipe", "is a pipe"),
        (".", "is the workspace itself"),
        ("data", "is a folder"),
        ("data/missing.txt", "there is no such file"),
        ("missing/a.txt", 'there is no folder "missing"'),
    ],
)
def test_the_reason_is_reported(root: Path, path: str, reason: str) -> None:
    assert reason in Tools(root).refuses("read_file", path=path)


def test_no_descriptor_stays_open(root: Path) -> None:
    (root / "data" / "deep" / "deeper").mkdir(parents=True)
    tools, before = Tools(root), _descriptors()
    tools.gives("list_files", recursive=True)
    tools.gives("search_files", text="e")
    tools.gives("write_file", path="data/deep/a.txt", content="x")
    for path in ("data/deep/a.txt", "data/deep/b.txt", "data/out/a.txt", "pipe"):
        tools.call("read_file", path=path)
    assert _descriptors() <= before


@pytest.mark.parametrize("becomes", ["hard.txt", "pipe", "link.txt", "data"])
def test_a_file_that_becomes_something_else_before_it_is_opened_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    tools, opened = Tools(root), os.open

    def opening(path: Any, *arguments: Any, **options: Any) -> int:
        if path == "notes.txt":
            (root / "notes.txt").unlink()
            (root / becomes).rename(root / "notes.txt")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", opening)
    tools.refuses("read_file", path="notes.txt")


def test_a_workspace_may_be_named_by_a_link(root: Path) -> None:
    link = root.with_name("link-to-work")
    link.symlink_to(root)
    tools = Tools(link)
    link.unlink()  # it was followed when the tools were made, and is not needed any more
    link.symlink_to(root.parent / "outside")
    assert tools.gives("read_file", path="notes.txt").startswith("one")
    tools.refuses("read_file", path="secret.txt")


def test_devices_are_refused() -> None:
    """A folder of the system is the workspace here: devices cannot be made without rights."""
    tools = Tools(Path("/dev"), writable=False)
    assert "a device" in tools.refuses("read_file", path="null")
    assert "a device" in tools.refuses("search_files", path="zero", text="x")
    assert "null (device, cannot be used)" in tools.gives("list_files").split("\n")


def test_another_folder_in_the_place_of_the_workspace_is_not_used(root: Path) -> None:
    tools = Tools(root)
    root.rename(root.with_name("moved"))
    assert "gone" in tools.refuses("list_files")
    root.mkdir()
    (root / "notes.txt").write_text(SECRET)
    assert "exchanged" in tools.refuses("read_file", path="notes.txt")
    (root / "notes.txt").unlink()
    root.rmdir()
    root.symlink_to(root.parent / "outside")
    assert "gone" in tools.refuses("read_file", path="secret.txt")


planted = ["out", "data", "deep", "secret.txt", "link.txt", "hard.txt", "inner.txt", "notes.txt", "loop", "pipe"]
around = ["..", ".", "", "/", "~", "work", "work-2", "outside", "a\0", "\ud800", "x" * 300, "new", ".karenina"]
steps = st.sampled_from([*planted, *around]) | st.text(max_size=5)
paths = st.lists(steps, max_size=6).map("/".join)
calls = st.tuples(st.sampled_from(["list_files", "read_file", "search_files", "write_file"]), paths, st.booleans())


@given(st.lists(calls, min_size=1, max_size=8))
@settings(laws, max_examples=40)
def test_no_series_of_calls_touches_what_is_outside(series: list[tuple[str, str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = _planted(Path(folder))
        tools, before, descriptors = Tools(root), _outside(root), _descriptors()
        for name, path, flag in series:
            arguments: dict[str, dict[str, Any]] = {
                "list_files": {"recursive": flag},
                "read_file": {},
                "search_files": {"text": "SECRET" if flag else "e"},
                "write_file": {"content": "written"},
            }
            outcome = tools.call(name, path=path, **arguments[name])
            parts = path.split("/")
            assert SECRET not in outcome.content
            if ".." in parts or path.startswith("/") or {"out", "link.txt", "hard.txt", "loop"} & set(parts[:1]):
                assert outcome.is_error
        assert _outside(root) == before
        assert _descriptors() <= descriptors


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))


# Somebody changes the folders meanwhile.


class Swapping:
    """`data` is a folder one moment and a link to the outside the next, and `notes.txt` in the same way."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.attic = root.parent / "attic"
        self.times = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Swapping:
        self.attic.mkdir()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)

    def _work(self) -> None:
        outside = self.root.parent / "outside"
        data, notes = self.root / "data", self.root / "notes.txt"
        while not self._stop.is_set():
            for path, target in ((data, outside), (notes, outside / "secret.txt")):
                self._take_away(path)
                with suppress(FileExistsError):  # a tool was faster and made the folder or the file
                    path.symlink_to(target)
                    self.times += 1
                self._take_away(path)
            with suppress(OSError):
                data.mkdir()
                (data / "secret.txt").write_text("harmless")
            with suppress(OSError):
                notes.touch(exist_ok=False)

    def _take_away(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            path.rename(self.attic / token_hex(8))


def test_nothing_outside_is_read_while_folders_become_links(root: Path) -> None:
    tools, before, end, answered = Tools(root), _outside(root), monotonic() + 0.8, {True: 0, False: 0}
    with Swapping(root) as swapping:
        while monotonic() < end:
            for name, arguments in (
                ("read_file", {"path": "data/secret.txt"}),
                ("read_file", {"path": "notes.txt"}),
                ("search_files", {"text": SECRET[:6]}),
                ("list_files", {"recursive": True}),
            ):
                outcome = tools.call(name, **arguments)
                answered[outcome.is_error] += 1
                assert SECRET not in outcome.content
                assert "data/deep" not in outcome.content
    assert answered[False] > 0
    assert swapping.times > 10
    assert _outside(root) == before


def test_nothing_outside_is_written_while_folders_become_links(root: Path) -> None:
    tools, before, end, written = Tools(root), _outside(root), monotonic() + 0.8, 0
    with Swapping(root) as swapping:
        while monotonic() < end:
            written += not tools.call("write_file", path="data/secret.txt", content="mine").is_error
            written += not tools.call("write_file", path="data/new/secret.txt", content="mine").is_error
            written += not tools.call("write_file", path="notes.txt", content="mine").is_error
    assert written > 0
    assert swapping.times > 10
    assert _outside(root) == before
