"""Result sets and benchmarks as they show themselves: short, readable, and never as markup of their contents."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karenina_core import Benchmark, ModelIdentity, Question, VerificationResult, VerificationResultSet
from karenina_core.values.result import MetadataPart

ALLOWED = {"div", "b", "code", "table", "tr", "th", "td", "p"}


def result(number: int, model: str, outcome: Any) -> VerificationResult:
    return VerificationResult(
        metadata=MetadataPart(
            question_id=f"q{number}",
            template_id="t",
            result_id=f"{model}-{number}",
            question_text="?",
            answering=ModelIdentity("x", model),
            parsing=ModelIdentity("x", "j"),
            outcome=outcome,
        )
    )


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.tags.append(tag)
        assert not attrs

    def handle_data(self, data: str) -> None:
        self.text += f"{data}|"


def test_results_show_outcomes_by_model_with_intervals() -> None:
    listed = [result(n, "m", "passed" if n < 3 else "failed") for n in range(4)]
    results = VerificationResultSet([*listed, result(9, "n", "error")], run_dir=Path("runs/a<b"))
    assert repr(results) == "<VerificationResultSet: 5 results: passed 3, error 1, failed 1, in runs/a<b>"
    page = Page(results._repr_html_())
    assert "|x:m|x:j|4|75.0 % (30.1 to 95.4 %)|100.0 %|passed 3, failed 1|" in page.text
    assert "|x:n|x:j|1|" in page.text
    assert "|runs/a<b|" in page.text
    assert repr(VerificationResultSet()) == "<VerificationResultSet: no results>"
    assert Page(VerificationResultSet()._repr_html_()).text.startswith("0 results")


def test_a_benchmark_shows_what_it_holds() -> None:
    questions = [Question(id=f"q{n}", question=f"What is {n}?", keywords=["k"]) for n in range(30)]
    benchmark = Benchmark.create("units").with_questions(questions)
    assert repr(benchmark) == "<Benchmark 'units': 30 questions, 0 with a template>"
    page = Page(benchmark._repr_html_())
    assert "|q19|What is 19?|no|k|" in page.text
    assert "|and 10 more questions|" in page.text
    assert "q20" not in page.text


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1, max_size=300).filter(str.strip))
def test_nothing_of_a_benchmark_or_a_model_is_markup_or_long(text: str) -> None:
    nasty = f"<script>{text}</script>"
    benchmark = Benchmark.create(nasty).with_questions([Question(id="q", question=nasty, raw_answer=nasty)])
    for html in (benchmark._repr_html_(), VerificationResultSet([result(1, nasty, "passed")])._repr_html_()):
        assert set(Page(html).tags) <= ALLOWED
    assert len(benchmark._repr_html_()) < 4_000
    assert len(repr(benchmark)) < 300


@pytest.mark.parametrize("count", [1, 2_000])
def test_the_html_is_small_however_many_results_there_are(count: int) -> None:
    results = VerificationResultSet([result(n, "m", "passed") for n in range(count)])
    assert len(results._repr_html_()) < 1_000
