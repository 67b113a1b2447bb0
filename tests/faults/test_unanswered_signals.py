"""Runs in which the code of a trusted template does not end: signals end them all the same."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.folder.status import read_status
from karenina_runs.results.results import VerificationResultSet

from karenina_core import Benchmark, Question

ROOM = 10.0
"""Seconds beside what is promised: the machine may be busy. `--long` is for a quiet one, and leaves none."""
QUICK = """
class Answer(BaseAnswer):
    def ground_truth(self):
        self.regex = {"answered": {"pattern": "x", "expected": "x"}}
"""
STUCK = """
    def verify_regex(self, raw_trace):
        open(MARKER, "w").close()
"""
BUSY = """
        while True:
            pass
"""
SEARCHING = """
        import re
        re.search("(a|aa)+$", "a" * 100 + "b")
"""
STUCK_WHILE_LOADED = """
open(MARKER, "w").close()
while True:
    pass
"""


def begun(forking: Any, folder: Path, marker: Path, stuck: str) -> Any:
    """A run whose second question never ends."""
    texts = [QUICK, stuck.replace("MARKER", repr(str(marker)))]
    questions = [
        Question(id=f"q{n}", question=f"{n}?", raw_answer="x", answer_template=text, template_language="python")
        for n, text in enumerate(texts)
    ]
    file, answers = folder.with_name("bench.jsonld"), folder.with_name("answers.json")
    Benchmark.create("b").with_questions(questions).save(file)
    answers.write_text('{"q0": "x", "q1": "x"}', "utf-8")
    command = ["verify", file, "--trust", "--manual-traces", answers, "--answering-interface", "manual"]
    judge = ["--parsing-model", "nobody", "--parsing-interface", "openai_endpoint"]
    address = ["--parsing-base-url", "http://127.0.0.1:9/v1", "--concurrency", "1", "--out", folder]
    return forking.start(*command, *judge, *address, ends=True)


def wait_for(marker: Path, process: Any) -> None:
    ends = time.monotonic() + 100
    while not marker.exists():
        assert process.poll() is None, process.stderr
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stuck", [BUSY, SEARCHING], ids=["a loop", "a search"])
def test_the_second_signal_ends_a_process_that_does_not_answer(
    number: signal.Signals, stuck: str, forking: Any, tmp_path: Path, long: bool
) -> None:
    folder, marker = tmp_path / "run", tmp_path / "reached"
    process = begun(forking, folder, marker, QUICK + STUCK + stuck)
    try:
        wait_for(marker, process)
        process.send_signal(number)
        time.sleep(0.5)
        assert process.poll() is None, "the first one waits for what is under way"
        at = time.monotonic()
        process.send_signal(number)
        assert process.wait(60) == 130, process.stderr
        assert time.monotonic() - at < (2.0 if long else 2.0 + ROOM)
    finally:
        process.kill()
    assert f"karenina resume {folder}" in process.stderr
    found = read_status(folder)
    assert (found.state, found.done) == ("killed", 1)
    assert [result.metadata.question_id for result in VerificationResultSet.load(folder)] == ["q0"]


def test_code_that_does_not_end_while_a_template_is_loaded_holds_up_nothing(forking: Any, tmp_path: Path) -> None:
    folder, marker = tmp_path / "run", tmp_path / "reached"
    process = begun(forking, folder, marker, STUCK_WHILE_LOADED)
    try:
        wait_for(marker, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, process.stderr
    finally:
        process.kill()
    assert read_status(folder).state == "interrupted"


def test_one_signal_ends_a_run_that_searches_for_patterns_of_a_template_that_is_data(
    forking: Any, tmp_path: Path, long: bool
) -> None:
    """Twenty patterns, each of which takes two seconds until it is stopped, and none a call that would be lost."""
    slow = {"type": "TraceRegex", "pattern": "(?!x)(a|aa)+$"}
    field = {"type": "bool", "description": "x", "ground_truth": True, "is_trace": True, "verify_with": slow}
    template = json.dumps({"fields": [{"name": f"f{number}", **field} for number in range(20)]})
    question = Question(id="q", question="q?", answer_template=template, template_language="karenina-template")
    Benchmark.create("b").with_questions([question]).save(tmp_path / "bench.jsonld")
    (tmp_path / "answers.json").write_text(json.dumps({"q": "a" * 60 + "b"}), "utf-8")
    folder = tmp_path / "run"
    command = ["verify", tmp_path / "bench.jsonld", "--manual-traces", tmp_path / "answers.json"]
    options = ["--answering-interface", "manual", "--parsing-model", "nobody", "--parsing-interface", "openai_endpoint"]
    address = ["--parsing-base-url", "http://127.0.0.1:9/v1", "--out", folder]
    process = forking.start(*command, *options, *address, ends=True)
    try:
        wait_for(folder / "manifest.json", process)
        time.sleep(1.0)
        at = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, process.stderr
        assert time.monotonic() - at < (2.0 if long else 2.0 + ROOM)
    finally:
        process.kill()
    assert f"karenina resume {folder}" in process.stderr
