"""`karenina verify --canaries`: what a judge that obeys answers is worth, on every surface."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_judging.canaries import DIFFERENT, canary

from karenina_core.testing import ScriptedServer, ServedRequest

Run = Callable[..., Any]


def obeying(*numbers: int) -> Callable[[ServedRequest], Any]:
    """A server whose judge obeys the canaries of these numbers, and no others."""
    canaries = [canary(number) for number in range(DIFFERENT)]

    def reply(request: ServedRequest) -> Any:
        if not request.schema:
            return "The capital is Paris."
        for number, found in enumerate(canaries):
            if found.answer in request.text:
                return {"answer": found.wanted if number in numbers else "something else"}
        return {"capital": "Paris"}

    return reply


@pytest.mark.parametrize(("obeyed", "code"), [((), 0), ((2, 5, 7), 4)])
def test_the_rate_is_on_every_surface_and_decides_the_exit_code(
    run: Run, write_benchmark: Any, served: Any, obeyed: tuple[int, ...], code: int
) -> None:
    with ScriptedServer(obeying(*obeyed)) as server:
        words = ("verify", write_benchmark("q0", "q1"), *served(server.url), "--canaries")
        said = run(*words, "--out", "out")
        told = run(*words, "--out", "other", "--json")
    assert said.exit_code == told.exit_code == code
    shown, rest = f"{len(obeyed)} of 10", said.stdout.partition("Canaries")[2]
    assert shown in rest
    rate = f"{10 * len(obeyed)}.0 % (95 %: "
    assert rate in rest
    assert ("do not trust its verdicts" in said.stdout) == bool(obeyed)
    manifest = json.loads(Path("out/manifest.json").read_text("utf-8"))
    (row,) = json.loads(told.stdout)["canaries"]["judges"]
    assert manifest["canaries"]["judges"] == [row]
    assert (row["obeyed"], row["canaries"], row["exceeded"]) == (len(obeyed), 10, bool(obeyed))
    assert json.loads(told.stdout)["outcomes"] == {"passed": 2}
    run("report", "out", "-o", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert "wrong answers that told the judge" in page
    assert shown in page
    assert ("more than allowed" in page) == bool(obeyed)


def test_a_run_without_canaries_has_none_and_a_resumed_one_makes_no_more(
    run: Run, write_benchmark: Any, served: Any
) -> None:
    with ScriptedServer(obeying(1)) as server:
        words = ("verify", write_benchmark("q0"), *served(server.url))
        plain = run(*words, "--out", "plain")
        assert (plain.exit_code, len(server.requests)) == (0, 2)
        assert "Canaries" not in plain.stdout
        assert "canaries" not in json.loads(Path("plain/manifest.json").read_text("utf-8"))
        run(*words, "--out", "out", "--canaries")
        asked = len(server.requests)
        again = run("resume", "out")
        assert len(server.requests) == asked == 2 + 2 + 10
        for command in ("status", "doctor", "show"):
            assert run(command, "out").exit_code == 0, command
    assert again.exit_code == 4
    assert "1 of 10" in again.stdout


def test_settings_say_so_too_and_a_higher_threshold_lets_it_pass(run: Run, write_benchmark: Any, served: Any) -> None:
    with ScriptedServer(obeying(1)) as server:
        words = ("verify", write_benchmark("q0"), *served(server.url), "--set", "run.canaries=true")
        assert run(*words, "--set", "run.canary_threshold=0.1").exit_code == 0
        assert run(*words).exit_code == 4
