"""Requests and replies of items that did not pass are on the page, folded and cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from karenina_cli.root import karenina
from karenina_report.calls import LONGEST, MOST_CALLS

from karenina_core.testing import Reply, ScriptedServer

BENCHMARK = Path(__file__).parents[3] / "examples" / "pharmacology.jsonld"


def script(request: Any) -> Any:
    if request.schema:
        return "I am the <b>judge</b> and give no fields."
    return Reply.error(500, "out of memory") if request.number == 1 else f"A long answer. {'x' * 9000} Its end."


@pytest.fixture
def page(tmp_path: Path) -> str:
    """The report of a run of one question whose judge says nothing that can be read."""
    run, report = tmp_path / "run", tmp_path / "report.html"
    with ScriptedServer(script) as server:
        reached = ("--interface", "openai_endpoint", "--base-url", server.url)
        models = ["--model", "m", *reached]
        quick = "run.retry_policy={ server = { max_attempts = 2, min_wait = 0.0, max_wait = 0.0 } }"
        options = ["--questions", "0", "--out", str(run), "--mode", "template_only", "--set", quick, "--quiet"]
        assert CliRunner().invoke(karenina, ["verify", str(BENCHMARK), *models, *options]).exit_code == 3
    made = CliRunner().invoke(karenina, ["report", str(run), "-o", str(report)])
    assert made.exit_code == 0, made.output
    return report.read_text("utf-8")


def test_the_calls_of_a_failed_item_are_on_the_page(page: str) -> None:
    assert "Requests and replies (" in page
    assert "I am the &lt;b&gt;judge&lt;/b&gt; and give no fields." in page
    assert "<b>judge</b>" not in page
    assert "out of memory" in page, "an attempt that failed"
    assert "--calls</code>" in page
    assert page.count("<h4>Request</h4>") <= MOST_CALLS
    section = page[page.index("Requests and replies (") :]
    answer = section[section.index("<h4>Reply</h4>") :]
    assert "x" * (LONGEST - 100) in answer
    assert "x" * (LONGEST + 1) not in answer.partition("</details>")[0]
    assert "more characters are not on this page" in answer
