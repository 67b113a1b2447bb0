"""A key appears nowhere in what a run writes, prints and sends, wherever it was planted; only its own provider gets it,
in one header."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from karenina_runs.folder.recording import recording_lines
from karenina_runs.journal.reader import JournalReader

from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SCRIPT = Path(sys.executable).with_name("karenina")
ANSWERING, JUDGING, OTHER, IN_FILE = (f"sk-canary-{name}-4f81c6d92b7e" for name in ("answer", "judge", "other", "file"))
KEYS = (ANSWERING, JUDGING, OTHER, IN_FILE)
PLUGIN = """\
import os

from karenina_core import Category, Stage, hookimpl
from karenina_core.log import get_logger


class Careless(Stage):
    category = Category.ENHANCEMENT
    requires = ("verify_result",)
    produces = ()

    def execute(self, context):
        key = os.environ["OTHER_API_KEY"]
        get_logger("careless").warning("logging in", key=key, line=f"as {key}")
        context.warn(f"logged in with {key}")
        if context.question_id == "q3":
            raise RuntimeError(f"cannot log in with {key}")


@hookimpl
def karenina_register_stages(registry):
    registry.add(Careless)
"""
THIEF = """\
import os

class Answer(BaseAnswer):
    target: str = Field(description="The target")

    def verify(self) -> bool:
        found = [str(dict(os.environ))]
        for place in ({place!r}, "/proc/self/environ", "/proc/1/environ"):
            try:
                found.append(open(place).read())
            except Exception as error:
                found.append(repr(error))
        raise RuntimeError("I have found " + " ".join(found))
"""


def answers(request: ServedRequest) -> Any:
    """One that repeats what it was sent in its headers, and knows other keys too."""
    heard = f"You sent {request.headers.get('authorization')}; I know {OTHER} and {JUDGING}."
    if "(q1)" in request.text:
        return Reply.error(400, f"invalid key {request.headers.get('authorization')} or {OTHER}")
    return f"It is BCL2. {heard}"


def judges(request: ServedRequest) -> Any:
    """One that repeats them too, and has to be corrected at first."""
    if "(q2)" in request.text and len(request.messages) < 4:
        return f'{{"target": "{OTHER}", "{JUDGING}": '
    return {"target": f"BCL2 {OTHER} {request.headers.get('authorization')}"}


def document(thief: str, text: str = "Which one is it?") -> dict[str, Any]:
    target = {"name": "target", "type": "str", "description": "The target", "ground_truth": "BCL2"}
    data = json.dumps({"class_name": "Answer", "fields": [{**target, "verify_with": {"type": "ExactMatch"}}]})
    sources = {f"q{i}": ("karenina-template", data) for i in range(4)} | {"q4": ("python", thief)}
    return {
        "@context": {"@vocab": "https://schema.org/"},
        "@type": "DataFeed",
        "name": "Keys",
        "dateCreated": "2025-01-01T00:00:00Z",
        "dateModified": "2025-01-01T00:00:00Z",
        "rating": [],
        "dataFeedElement": [
            {
                "@type": "DataFeedItem",
                "@id": name,
                "dateCreated": "2025-01-01T00:00:00Z",
                "dateModified": "2025-01-01T00:00:00Z",
                "item": {
                    "@type": "Question",
                    "text": f"{text} ({name})",
                    "acceptedAnswer": {"@type": "Answer", "text": "BCL2"},
                    "hasPart": {
                        "@type": "SoftwareSourceCode",
                        "name": "template",
                        "text": source,
                        "programmingLanguage": language,
                    },
                    "additionalProperty": [{"@type": "PropertyValue", "name": "finished", "value": True}],
                },
            }
            for name, (language, source) in sources.items()
        ],
    }


@define(eq=False)
class Place:
    """A working directory with a benchmark, files that hold keys, and a package with a careless stage."""

    folder: Path
    site: Path
    forking: Any
    printed: list[str] = field(factory=list)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        keys = {"OWN_API_KEY": ANSWERING, "JUDGE_API_KEY": JUDGING, "OTHER_API_KEY": OTHER}
        return {**kept, **keys, "PYTHONPATH": str(self.site)}

    def run(self, *words: object) -> tuple[int, str]:
        """The exit code, and what was printed on stderr, of a process that has begun with this environment."""
        command = [str(SCRIPT), *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=self.folder, env=self.environment
        )
        self.printed += [done.stdout, done.stderr]
        return done.returncode, done.stderr

    def run_later(self, *words: object) -> tuple[int, str]:
        """The same of a process that has got it after its beginning, for what does not look into `/proc`."""
        done = self.forking.start(*words, folder=self.folder, environment=self.environment)
        code = done.wait()
        self.printed += [done.stdout, done.stderr]
        return code, done.stderr

    def written(self) -> Iterator[tuple[str, bytes]]:
        """Every byte of every file that a command has made, as it is and unpacked."""
        for path in self.folder.rglob("*"):
            if not path.is_file() or path.name in ("keys.jsonld", "key.txt", ".env"):
                continue
            data = path.read_bytes()
            yield path.name, data
            yield f"{path.name}, unpacked", b"".join(_unpacked(data))
            if path.name == "journal.sqlite":
                with JournalReader.open(path) as reader:
                    yield path.name, "".join(recording_lines(reader)).encode()
                    yield path.name, "".join(found.line for found in reader.results()).encode()


def _unpacked(data: bytes) -> Iterator[bytes]:
    """What zlib can make of any place in the data; a stream with a dictionary of the journal is read by its reader."""
    start = data.find(b"\x78")
    while start >= 0:
        with contextlib.suppress(zlib.error):
            yield zlib.decompressobj().decompress(data[start:])
        start = data.find(b"\x78", start + 1)


@pytest.fixture
def place(tmp_path: Path, forking: Any) -> Place:
    site, folder = tmp_path / "site", tmp_path / "work"
    info = site / "careless-1.0.dist-info"
    info.mkdir(parents=True)
    folder.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: careless\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[karenina.plugins]\ncareless = careless\n", "utf-8")
    (site / "careless.py").write_text(PLUGIN, "utf-8")
    (folder / "key.txt").write_text(IN_FILE, "utf-8")
    (folder / ".env").write_text(f"OPENAI_API_KEY={IN_FILE}\nOTHER_API_KEY={IN_FILE}\n", "utf-8")
    (folder / "keys.jsonld").write_text(json.dumps(document(THIEF.format(place=str(folder / "key.txt")))), "utf-8")
    return Place(folder, site, forking)


@pytest.fixture
def flags() -> Callable[[ScriptedServer, ScriptedServer], list[str]]:
    def made(answering: ScriptedServer, judging: ScriptedServer) -> list[str]:
        found = []
        for role, server, variable in (("answering", answering, "OWN"), ("parsing", judging, "JUDGE")):
            found += [f"--{role}-model", f"the-{role}-one", f"--{role}-interface", "openai_endpoint"]
            found += [f"--{role}-base-url", server.url, f"--{role}-api-key-env", f"{variable}_API_KEY"]
        return found

    return made


def test_a_key_is_in_nothing_that_a_run_writes_prints_or_sends(place: Place, flags: Any) -> None:
    tracing = ("--set", "plugins.opentelemetry.enabled=true", "--set", "plugins.opentelemetry.exporter=console")
    tracing += ("--set", "plugins.opentelemetry.content=true", "--set", "plugins.replay.record=calls.jsonl")
    with ScriptedServer(answers) as answering, ScriptedServer(judges) as judging:
        words = flags(answering, judging)
        code, err = place.run(
            "verify", "keys.jsonld", *words, "--out", "out", "--canaries", *tracing, "--export", "all.csv"
        )
        assert code == 3, err
        place.run_later("resume", "out")
        place.run_later("verify", "keys.jsonld", *words, "--out", "again", "--reuse", "out", "--json")
        for command in (
            ("show", "out", "q0", "--calls"),
            *(("show", "out", name, "--json") for name in ("q1", "q3", "q4")),
            ("status", "out", "--json"),
            ("doctor", "out"),
            ("report", "out", "-o", "page.html"),
            ("export", "out", "-o", "all.json"),
        ):
            assert place.run_later(*command)[0] in (0, 3), command
    outcomes = {
        row["metadata"]["question_id"]: (row["metadata"]["outcome"], row["metadata"]["outcome_detail"])
        for row in map(json.loads, (place.folder / "out" / "results.jsonl").read_text("utf-8").splitlines())
    }
    assert {name: outcome for name, (outcome, _) in outcomes.items()} == {
        **dict.fromkeys(("q1", "q3", "q4"), "error"),
        **dict.fromkeys(("q0", "q2"), "failed"),
    }
    printed = "".join(place.printed)
    assert "[redacted]" in printed
    assert "cannot log in with" in printed, "the exception of the plugin is told"
    assert b"I have found" in b"".join(data for _, data in place.written()), "and that of the template"
    assert "gen_ai" in printed, "there are spans"
    for key in KEYS:
        assert key not in printed
        assert not [name for name, data in place.written() if key.encode() in data], key
    for server, own in ((answering, ANSWERING), (judging, JUDGING)):
        assert server.requests
        for request in server.requests:
            assert request.headers["authorization"] == f"Bearer {own}"
            others = {name: value for name, value in request.headers.items() if name != "authorization"}
            sent = json.dumps([request.body, request.path, others], ensure_ascii=False)
            assert not [key for key in KEYS if key in sent]


@pytest.mark.parametrize("where", ["question", "system prompt"])
def test_a_key_in_what_models_are_sent_is_refused_before_any_call(place: Place, flags: Any, where: str) -> None:
    text = f"Which one is it, {OTHER}?" if where == "question" else "Which one is it?"
    (place.folder / "keys.jsonld").write_text(json.dumps(document("", text)), "utf-8")
    more: Sequence[str] = ()
    if where == "system prompt":
        (place.folder / "karenina.toml").write_text(
            f'[models.the-answering-one]\nmodel_name = "a"\nsystem_prompt = "Log in with {OTHER}."\n', "utf-8"
        )
        more = ("--config", "karenina.toml")
    with ScriptedServer(answers) as answering, ScriptedServer(judges) as judging:
        code, err = place.run_later("verify", "keys.jsonld", *flags(answering, judging), "--out", "out", *more)
        assert (code, answering.requests, judging.requests) == (1, [], [])
    assert "holds the value of OTHER_API_KEY" in err
    assert not [key for key in KEYS if key in "".join(place.printed)]
    assert not (place.folder / "out").exists()
