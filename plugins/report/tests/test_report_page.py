"""The HTML report without a browser: nothing that a model or a file says becomes anything but text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from html.parser import HTMLParser
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import karenina_report as report
import pytest
from attrs import evolve, fields
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_compare.comparison import compare_models
from karenina_compare.numbers import headline_numbers, headline_of
from karenina_report import write_report
from karenina_report.command import command
from karenina_report.counts import Counts
from karenina_report.listing import Listing
from karenina_report.outcomes import GROUPS, failure
from karenina_report.overview import Plot
from karenina_report.page import chunks
from karenina_report.pairs import pairs_of
from karenina_report.plots import LONGEST_NAME, interval_plot, look, seconds_plot, short_name
from karenina_report.texts import LONGEST, without_secrets
from karenina_results.columns.shared import failure_of
from karenina_results.records import record
from karenina_runs.results.stored import StoredResults
from karenina_runs.summaries.rates import LeftOut, Planned
from karenina_runs.summaries.summary import summarize
from karenina_runs.workspaces.workspace_capture import WORKSPACES, CaptureRow, append_row
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.quotations import pieces, quotations
from karenina_vocabulary.rubric_part import RubricPart, read_traits
from markupsafe import escape

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.errors import BenchmarkError, RunDirectoryError
from karenina_core.plugin.command_line import Section
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry

LAW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # to make an example smaller takes minutes, and the page says enough
)
VOID = {"meta", "link", "br", "input", "hr", "img", "wbr"}
HARMFUL = {"script", "style", "iframe", "object", "embed", "img", "form", "base", "link", "meta"}


def result(question: str = "q1", **about: Any) -> VerificationResult:
    facts: dict[str, Any] = {
        "question_id": question,
        "template_id": "t",
        "result_id": f"{question}-r",
        "question_text": f"What about {question}?",
        "answering": ModelIdentity("manual", "oak"),
        "parsing": ModelIdentity("manual", "judge"),
        "outcome": "passed",
    }
    return VerificationResult(metadata=MetadataPart(**facts | about))


class Tags(HTMLParser):
    """Every tag of a page, with what is kept for readers without scripts, and whether all are closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


def page_of(results: VerificationResultSet | list[VerificationResult], folder: Path, **options: Any) -> str:
    listed = results if isinstance(results, VerificationResultSet) else VerificationResultSet(results)
    return write_report(listed, folder / "page.html", **options).read_text("utf-8")


def tables_of(results: VerificationResultSet | list[VerificationResult], folder: Path, **options: Any) -> str:
    """The page without its drawings, which take most of its time."""
    with without_drawings():
        return page_of(results, folder, **options)


@contextmanager
def without_drawings(instead: Callable[[Any], str] = lambda made_of: "") -> Iterator[None]:
    """`instead` gives a text for all that they are made of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("karenina_report.overview._plots", lambda *all_: {"seconds": Plot(escape(instead(all_)), "")})
        yield


def counted(results: list[VerificationResult]) -> Counts:
    counts = Counts(Listing.of(result.metadata for result in results))
    for one in results:
        counts.add(one, read_traits(one.rubric))
    return counts


@given(st.lists(strategies.results(), min_size=1, max_size=3))
@LAW
def test_what_is_counted_says_the_same_as_the_results(results: list[VerificationResult]) -> None:
    counts = counted(results)
    assert counts.tally.document()["models"] == summarize(results)["models"]
    assert headline_of(counts.items) == headline_numbers(results)
    bad = [one for one in results if one.metadata.outcome not in ("passed", "scored")]
    reasons = Counter((one.metadata.outcome, failure_of(one)[1] or "", failure(one)) for one in bad)
    assert sum((pair.failures for pair in counts.pairs), Counter[Any]()) == reasons


def test_items_of_the_overview_share_what_they_have_alike() -> None:
    scales = {"tone": {"type": "llm", "kind": "boolean"}, "words": {"type": "llm", "kind": "score"}}
    rubric = RubricPart(
        llm_trait_scores={"tone": True, "words": 0.5},
        trait_scales=scales,
        trait_states={"tone": {"state": "ok", "reason": "a long text"}},
    )
    one = evolve(result(), rubric=rubric)
    other = structure(json.loads(json.dumps(unstructure(one))), VerificationResult)
    first, second = counted([one, other]).items
    assert first.traits[0] is second.traits[0]
    assert first.traits[1].scale is second.traits[1].scale
    assert [(trait.value, trait.scale["kind"]) for trait in second.traits] == [(True, "boolean"), (0.5, "score")]
    for name in ("question_id", "answering_model", "parsing_model"):
        assert getattr(first, name) is getattr(second, name)
    assert first.result is None
    assert first.traits[0].reason == ""


def test_of_traits_with_fields_the_overview_keeps_numbers_alone() -> None:
    scales = {"facts": {"type": "llm", "kind": "template"}}
    rubric = RubricPart(llm_trait_scores={"facts": {"good": True, "parts": 3, "said": "x" * 9}}, trait_scales=scales)
    (item,) = counted([evolve(result(), rubric=rubric)]).items
    assert [trait.value for trait in item.traits] == [{"good": True, "parts": 3}]


@pytest.mark.parametrize("most", [500, 1])
@given(results=st.lists(strategies.results(), min_size=2, max_size=3))
@LAW
def test_a_page_is_the_same_of_results_in_memory_and_of_stored_ones(
    tmp_path_factory: pytest.TempPathFactory, most: int, results: list[VerificationResult]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    (folder / "results.jsonl").write_text("".join(f"{record(one)}\n" for one in results), "utf-8")
    loaded = VerificationResultSet.load(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("karenina_report.page.MOST", most)
        with without_drawings(repr):
            pages = [report.report_on(folder).read_text("utf-8"), page_of(loaded, folder)]
    one, other = (re.sub(r"on \d{4}-.*? UTC", "", page) for page in pages)
    assert one == other
    assert one.count('<script type="text/plain" class="block">') == (len(loaded) > most)


def read_as(folder: Path, *readings: Iterable[VerificationResult]) -> StoredResults:
    """Results that are others each time they are read, as those of a run that has not ended may be."""
    turns = iter(readings)
    return StoredResults(read=lambda: iter(next(turns)), file=folder / "x", directory=folder)


A, B = result("a"), result("b")


@pytest.mark.parametrize(
    "later",
    [
        *([A], [A, result("c")], [B, A], [A, result("b.2")], [A, result("b", outcome="failed")]),
        *([A, result("b", replicate=2)], [A, result("b", answering=ModelIdentity("manual", "elm"))]),
    ],
)
def test_results_that_change_meanwhile_give_no_page(tmp_path: Path, later: list[VerificationResult]) -> None:
    with pytest.raises(BenchmarkError, match="changed while their report was made; make it again"):
        list(chunks(VerificationResultSet(), {}, stored=read_as(tmp_path, [A, B], later)))


def test_results_that_a_run_adds_meanwhile_are_left_out(tmp_path: Path) -> None:
    more = [result("0"), A, result("ab"), B, result("c")]
    texts = ["".join(chunks(VerificationResultSet(), {}, stored=read_as(tmp_path, [A, B], r))) for r in ([A, B], more)]
    one, other = (re.sub(r"on \d{4}-.*? UTC", "", text) for text in texts)
    assert one == other


def test_an_item_leads_to_some_other_answers_and_says_how_many_more_there_are(tmp_path: Path) -> None:
    text = tables_of([result(replicate=n, result_id=f"r{n}") for n in range(1, 31)], tmp_path)
    first, *_, last = re.findall(r'<p class="siblings">.*?</p>', text)
    for row, missing in ((first, 1), (last, 30)):
        assert re.findall(r'href="#item-r(\d+)"', row) == [str(n) for n in range(1, 26) if n != missing][:24]
        assert row.endswith("and 5 more</p>")


def test_where_no_temporary_file_can_be_written_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(RunDirectoryError, match=r"temporary file, which cannot be written: No such file .*TMPDIR"):
        page_of([A], tmp_path)


@given(st.lists(strategies.results(), max_size=3))
@LAW
def test_any_results_give_a_page_whose_tags_are_its_own(
    tmp_path_factory: pytest.TempPathFactory, results: list[VerificationResult]
) -> None:
    tags = read(page_of(results, tmp_path_factory.mktemp("page")))
    heads = [tag for tag, _ in tags.found if tag in HARMFUL]
    assert heads == ["meta", "meta", "meta", "meta", "meta", "link", "style", "form", "script", "script"]
    assert len([tag for tag, about in tags.found if about.get("class") == "item"]) == len(results)
    for _, about in tags.found:
        assert not [name for name in about if name.startswith("on") or name in ("style", "src", "srcset", "action")]
        assert (about.get("href") or "#").startswith(("#", "data:,"))


HOSTILE = (
    "</script><script>document.title='broken'</script>",
    "</noscript><img src=x onerror=document.title='broken'>",
    "</textarea></style><svg onload=document.title='broken'>",
    "{{ 7 * 7 }}{% raw %}${7*7}",
    "<!--",
    "]]>",
    "a\u202egnp.exe\u2066",
    "nul\x00 bell\x07 half \ud800 tag \U000e0041",
)


def page_with_text_everywhere(text: str, folder: Path) -> str:
    """A page on which every text that comes from outside is this one."""
    item = result(
        text,
        question_text=text,
        raw_answer=text,
        error=text,
        outcome="error",
        outcome_detail=text,
        warnings=(text,),
        answering=ModelIdentity("manual", text),
        run_name=text,
    )
    item = evolve(
        item,
        generation=GenerationPart(raw_llm_response=text, trace_messages=({"role": text, "content": text},)),
        template=TemplatePart(parsed_gt_response={text: text}, parsed_llm_response={text: text}),
        rubric=RubricPart(
            llm_trait_scores={text: 0},
            llm_trait_labels={text: text},
            trait_scales={text: {"type": "llm", "kind": "literal", "classes": [text, "other"]}},
            trait_details={text: {text: [{text: text}]}},
        ),
        deep_judgment=DeepJudgmentPart(extracted_excerpts={text: [{"text": text}]}, attribute_reasoning={text: text}),
        ledger=(LedgerEntry(text, {"verdict": False}, text),),
        extensions={text: {text: text}},
    )
    results = VerificationResultSet([item], notes=(text,), left_out=(LeftOut(text, text),))
    manifest = {"run_name": text, "benchmark": {"name": text, "warnings": [text]}, "config": {text: text}}
    return page_of(results, folder, manifest=manifest)


@cache
def tags_of_a_harmless_page() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        return [tag for tag, _ in read(page_with_text_everywhere("harmless", Path(folder))).found]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_model_writes_is_text_everywhere_on_the_page(tmp_path: Path, text: str) -> None:
    page = page_with_text_everywhere(text, tmp_path)
    assert [tag for tag, _ in read(page).found] == tags_of_a_harmless_page()
    assert not re.search("[\x00-\x08\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]", page)
    visible = text.encode("unicode_escape").decode() if not text.isprintable() else text
    assert visible.split()[0] in "".join(read(page).text)


def test_the_policy_names_the_page_s_own_script_and_style_and_nothing_else(tmp_path: Path) -> None:
    page = page_of([result()], tmp_path)
    policy = dict(re.findall(r"http-equiv=\"(Content-Security-Policy)\" content=\"([^\"]*)\"", page))
    written = policy["Content-Security-Policy"].replace("&#39;", "'")
    for kind, pattern in (("script", r"<script>(.*?)</script>"), ("style", r"<style>(.*?)</style>")):
        (text,) = re.findall(pattern, page, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in written
    assert "default-src 'none'" in written
    assert "unsafe" not in written
    assert "http" not in written


def test_nothing_on_the_page_is_fetched_from_anywhere(tmp_path: Path) -> None:
    page = page_of([result()], tmp_path)
    addresses = set(re.findall(r"https?://[^\"'\s<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "url(" not in page.replace("url(#", "")
    assert "@import" not in page


def test_drawings_have_no_style_of_their_own_and_say_what_they_show(tmp_path: Path) -> None:
    page = page_of([result("a"), result("b", outcome="failed")], tmp_path)
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(drawings) == 3
    for drawing in drawings:
        assert "style=" not in drawing
        assert re.search(r'role="img"[^>]*aria-labelledby="([^"]+)"', drawing) or "aria-labelledby" in drawing
        assert "<title id=" in drawing
        assert not re.search(r'(fill|stroke)="#(?!none)', drawing)  # every colour is a class of the page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_a_dollar_in_a_name_is_no_formula(tmp_path: Path) -> None:
    page = page_of([result(answering=ModelIdentity("manual", r"$\frac{1}{0}$ $x"))], tmp_path)
    assert r"$\frac{1}{0}$ $x</text>" in page


def test_a_long_answer_is_cut_and_says_so(tmp_path: Path) -> None:
    long = evolve(result(), generation=GenerationPart(raw_llm_response="wörd " * 250_000))
    page = tables_of([long], tmp_path)
    left = f"{1_250_000 - LONGEST:,}".replace(",", "\u202f")
    assert f"{left} more characters are not on this page" in page
    assert len(page) < 400_000


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    results = [result("a"), result("b", outcome="failed")]
    made = [re.sub(r"on \d{4}-.*? UTC", "", page_of(results, tmp_path)) for _ in range(2)]
    assert made[0] == made[1]


def test_every_item_has_an_address_of_its_own() -> None:
    results = [result(result_id=name) for name in ("a", "a", "b c", "b%20c", "\ud800", "a.2")]
    found = Listing.of(one.metadata for one in results).anchors
    assert len(set(found)) == len(results)
    assert all(re.fullmatch(r"item-[\w.%~-]*", name) for name in found)


# Evidence


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=5)


@given(st.text(max_size=30), SPANS)
@settings(deadline=None, derandomize=True)
def test_marked_texts_put_together_are_the_text(text: str, spans: list[tuple[int, int]]) -> None:
    stored = {"trait": [{"text": text[low:high], "start": low, "end": high} for low, high in spans]}
    item = evolve(result(), deep_judgment_rubric=DeepJudgmentRubricPart(extracted_rubric_excerpts=stored))
    found = quotations(item, text)
    cut = pieces(text, found)
    assert "".join(piece.text for piece in cut) == text
    marked = {place for low, high in (q.span for q in found if q.span) for place in range(low, high)}
    at = 0
    for piece in cut:
        assert bool(piece.kinds) == (at in marked) or not piece.text
        at += len(piece.text)


def test_only_quotations_that_occur_in_the_text_are_marked(tmp_path: Path) -> None:
    text = "Bind BCL2, not BCL-XL; <b>bold</b>."
    item = evolve(
        result(),
        evaluation_input=text,
        deep_judgment=DeepJudgmentPart(
            extracted_excerpts={
                "target": [{"text": "Bind BCL2", "start": 0, "end": 9}, {"text": "BCL7", "explanation": "made up"}],
                "drug": [{"text": "<b>bold</b>"}, {"text": "elsewhere", "start": 400, "end": 410}],
            }
        ),
    )
    page = tables_of([item], tmp_path)
    marks = re.findall(r'<mark class="field" title="([^"]*)">(.*?)</mark>', page)
    assert marks == [
        ("evidence for field target", "Bind BCL2"),
        ("evidence for field drug", "&lt;b&gt;bold&lt;/b&gt;"),
    ]
    assert page.count("not in the answer") == 2


def test_a_stored_place_counts_even_where_the_quotation_was_close_and_not_equal() -> None:
    item = evolve(
        result(),
        deep_judgment=DeepJudgmentPart(extracted_excerpts={"f": [{"text": "binds bcl2", "start": 3, "end": 13}]}),
    )
    (found,) = quotations(item, "It binds BCL2.")
    assert found.span == (3, 13)


# Numbers


def test_outcomes_are_counted_apart_and_every_item_once(tmp_path: Path) -> None:
    outcomes = ["passed", "passed", "failed", "abstained", "insufficient", "auto_failed", "error", "skipped"]
    items = [result(f"q{n}", outcome=name, outcome_detail="why") for n, name in enumerate(outcomes)]
    text = " ".join("".join(read(tables_of(items, tmp_path)).text).split())
    assert "33.3 %" in text  # 2 of 6: neither the error nor the skipped item is in the rate
    assert "66.7 %" in text  # 2 of 3 that were answered
    assert "37.5 %" in text  # coverage: 3 of 8
    for label in ("passed", "failed", "auto-failed", "abstained", "insufficient", "error", "skipped"):
        assert label in text


def test_every_item_that_did_not_pass_has_one_reason() -> None:
    def failed(**facts: Any) -> VerificationResult:
        return evolve(result(outcome="failed"), template=TemplatePart(**facts))

    assert failure(result()) == ""
    assert failure(failed(field_results={"a": False, "b": None})) == "wrong value and value not found"
    assert failure(failed(regex_overall_success=False)) == "pattern not met"
    assert failure(failed(field_verification_result=False)) == "verify() of the template says no"
    decided = evolve(result(outcome="failed"), ledger=(LedgerEntry("SomeStage", {"verdict": False}),))
    assert failure(decided) == "decided by SomeStage"
    assert failure(result(outcome="failed")) == "no reason recorded"
    assert failure(result(outcome="error", outcome_detail="server")) == "server"


def test_absent_items_and_what_they_could_change_are_shown(tmp_path: Path) -> None:
    planned = Planned(("a", "b"), pairs=(("x:m", "x:judge"),))
    results = VerificationResultSet([result("a")], run_dir=tmp_path, planned=planned)
    page = tables_of(results, tmp_path, manifest={"questions": ["a", "b"], "items": 2})
    assert "absent" in page
    assert "50.0 to 100.0 %" in page  # worst to best


def test_several_answers_to_a_question_are_one_question(tmp_path: Path) -> None:
    items = [
        result(f"q{n}", replicate=r, result_id=f"{n}.{r}", outcome="passed" if n == 0 or r == 1 else "failed")
        for n in range(6)
        for r in (1, 2, 3)
    ]
    text = " ".join(" ".join(read(tables_of(items, tmp_path)).text).split())
    assert "pass@k" in text
    assert "replicate 3" in text
    assert "items of one question or group count together" in text


def test_partial_credit_and_rates_by_keyword_are_there_where_items_have_them(tmp_path: Path) -> None:
    items = [
        evolve(
            result(f"q{n}", outcome="failed" if n % 2 else "passed", keywords=words, result_id=f"{n}"),
            template=TemplatePart(verify_granular_result=0.5 if n % 2 else 1.0),
        )
        for n, words in enumerate([("easy",), ("easy", "long"), (), ("long",)])
    ]
    text = " ".join(" ".join(read(page_of(items, tmp_path)).text).split())
    assert "Partial credit 95 % interval" in text
    assert "75.0 % 29.1 to 100.0 %" in text
    assert "Pass rates by keyword" in text
    assert "easy 50.0 % 2 items, 9.5 to 90.5 % long 0.0 % 2 items, 0.0 to 65.8 %" in text
    assert "mean of the keywords 25.0 % mean of the questions 50.0 %" in text
    plain = page_of([result("q")], tmp_path)
    assert "Partial credit" not in plain
    assert "by keyword" not in plain


def test_a_type_of_trait_without_any_score_is_named_on_the_page(tmp_path: Path) -> None:
    part = RubricPart(
        llm_trait_scores={"clear": None},
        trait_scales={"clear": {"type": "llm", "kind": "boolean"}},
        trait_states={"clear": {"state": "error", "reason": "no", "kind": "auth"}},
    )
    page = page_of([evolve(result("q", evaluation_mode="template_and_rubric"), rubric=part)], tmp_path)
    assert "every score of the llm traits failed (1 score)" in page


def test_where_only_traits_are_scored_there_is_no_pass_rate(tmp_path: Path) -> None:
    items = [
        evolve(
            result(f"q{n}", outcome="scored", evaluation_mode="rubric_only"),
            rubric=RubricPart(llm_trait_scores={"commits": n != 1}),
        )
        for n in range(4)
    ]
    page = page_of(items, tmp_path)
    assert "true 75.0 %" in page
    assert 'id="rates"' not in page
    assert "0.0 %" not in page
    assert "n/a" in page


def test_a_cost_that_is_not_known_is_never_nothing(tmp_path: Path) -> None:
    usage = {"generation": {"calls": 1, "attempts": 1, "cost_usd": None, "input_tokens": 1, "output_tokens": 1}}
    page = tables_of([evolve(result(), generation=GenerationPart(usage_metadata=usage))], tmp_path)
    assert "unknown" in page
    assert "$0" not in page


def test_unknown_tokens_are_never_a_plain_number(tmp_path: Path) -> None:
    calls = {"calls": 2, "attempts": 2, "cost_usd": None, "usage_unavailable": True, "input_tokens": 4321}
    usage = {"generation": {**calls, "output_tokens": 0}}
    usage["total"] = usage["generation"]
    page = tables_of([evolve(result(), generation=GenerationPart(usage_metadata=usage))], tmp_path)
    assert len(re.findall("4.321", page)) == len(re.findall("at least 4.321", page)) == 4
    assert "at least 0" not in page
    assert page.count("unknown") >= 8


def test_whether_the_judge_sent_an_agent_is_shown(tmp_path: Path) -> None:
    part = TemplatePart(dynamic_parse_decision="escalated", dynamic_decision_reasoning="the file is not shown")
    about = evolve(result(), template=part)
    page = tables_of([evolve(about, metadata=evolve(about.metadata, caveats=["parse_decision_malformed"]))], tmp_path)
    assert "escalated: the file is not shown" in page
    assert "parse_decision_malformed" in page


def test_an_empty_set_has_a_page_that_claims_nothing(tmp_path: Path) -> None:
    page = page_of([], tmp_path)
    assert "There are no results." in page
    assert "There are no items." in page
    assert "Every item passed" not in page
    assert "Every item passed" in page_of([result()], tmp_path)


def test_every_number_is_that_of_the_headline_numbers(tmp_path: Path) -> None:
    items = []
    for n in range(12):
        for model, good in (("oak", n % 4 > 0), ("elm", n % 2 > 0)):
            about = result(
                f"q{n}",
                result_id=f"{model}{n}",
                answering=ModelIdentity("manual", model),
                outcome="error" if n == 5 else "passed" if good else "failed",
            )
            scores = {"depth": n % 3, "entities": {"f1": n / 12, "tp": 1}, "commits": good}
            part = RubricPart(
                llm_trait_scores={"depth": scores["depth"], "commits": scores["commits"]},
                metric_trait_scores={"entities": scores["entities"]},
                trait_scales={
                    "depth": {"type": "llm", "kind": "score", "min": 0, "max": 3},
                    "commits": {"type": "llm", "kind": "boolean", "higher_is_better": True},
                    "entities": {"type": "metric", "kind": "metric"},
                },
            )
            items.append(about if n == 5 else evolve(about, rubric=part))
    tags = read(page_of(items, tmp_path))
    text = " ".join(" ".join(tags.text).split())
    for pair in headline_numbers(items).pairs:
        rates = [pair.pass_rate, pair.answered_accuracy, pair.coverage]
        assert all(f"{100 * number.value:.1f} %" in text for number in rates if number.value is not None)
        traits = {number.name.removeprefix("trait:"): number for number in pair.traits}
        assert set(traits) == {"depth", "commits", "entities.f1"}
        for name, number in traits.items():
            assert number.value is not None
            assert number.interval is not None
            scale, unit = (100, " %") if name == "commits" else (1, "")
            digits = 1 if name == "commits" else 2
            word = {"commits": "true", "depth": "mean", "entities.f1": "f1"}[name]
            ends = f"{scale * number.interval.low:.{digits}f} to {scale * number.interval.high:.{digits}f}{unit}"
            assert f"{word} {scale * number.value:.{digits}f}{unit}" in text
            assert ends in text
        assert pair.pass_rate.interval is not None
        assert f"{100 * pair.pass_rate.interval.low:.1f} to {100 * pair.pass_rate.interval.high:.1f} %" in text


@pytest.mark.parametrize(("wins", "places"), [(10, ["1", "2"]), (2, ["1 to 2", "1 to 2"])])
def test_models_that_cannot_be_distinguished_share_their_places(tmp_path: Path, wins: int, places: list[str]) -> None:
    """As `karenina compare` says: 10 to 0 questions are a difference, 2 to 0 are none."""
    items = [
        result(f"q{n}", result_id=f"{model}{n}", answering=ModelIdentity("manual", model), outcome=outcome)
        for n in range(12)
        for model, outcome in (("oak", "passed"), ("elm", "failed" if n < wins else "passed"))
    ]
    page = tables_of(items, tmp_path)
    assert re.findall(r'<td class="n">(\d(?: to \d)?)</td>', page)[:2] == places
    ranks = {name: found for tie in compare_models(items).ties for name, found in tie.ranks.items()}
    assert [" to ".join(map(str, sorted(set(ranks[f"manual:{name}"])))) for name in ("oak", "elm")] == places
    assert "Place" not in tables_of(items[::2], tmp_path)  # one model


def test_so_many_models_are_not_ranked_and_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_report.overview.MOST_RANKED", 2)
    items = [result("q", result_id=f"{n}", answering=ModelIdentity("manual", f"oak{n}")) for n in range(3)]
    page = tables_of(items, tmp_path)
    assert "Place" not in page
    assert "There are too many models to compare" in page


def test_failures_have_the_groups_of_the_data_frame(tmp_path: Path) -> None:
    details = {"failed": None, "auto_failed": "RecursionLimitAutoFail", "abstained": None, "skipped": "x"}
    items = [result(name, outcome=name, outcome_detail=detail) for name, detail in details.items()]
    items += [result(name, outcome="error", outcome_detail=name) for name in ("server", "judge")]
    items.append(evolve(result("none", outcome="failed"), template=TemplatePart(field_results={"name": None})))
    groups = {found: failure_of(item)[1] for item in items for found in [item.metadata.question_id]}
    assert set(groups.values()) == {*GROUPS, None}
    page = tables_of(items, tmp_path)
    for group in GROUPS.values():
        assert f'<td class="words">{group}</td>' in page


def test_caveats_are_seen_before_an_item_is_opened_and_counted(tmp_path: Path) -> None:
    item = result("a", caveats=("parse_decision_malformed", "of_another_package"), retry_counts={"server": 1})
    cut_off = evolve(result("b"), generation=GenerationPart(text_flags=("truncated",)))
    page = tables_of([item, cut_off, result("c")], tmp_path)
    seen = re.findall(r"caveats: ([^<]*)</span>", page)
    assert seen == ["retries_used, parse_decision_malformed, of_another_package", "partial_content"]
    assert "<b>parse_decision_malformed</b>: the judge gave no readable decision" in page
    assert "<b>partial_content</b>: the answer was cut off" in page
    counted = re.findall(r'<th scope="row" class="words" dir="auto">(\w+)</th>.*?<td class="n">(\d+)</td>', page)
    assert set(counted) == {
        *((name, "1") for name in ("retries_used", "parse_decision_malformed", "of_another_package")),
        ("partial_content", "1"),
    }


def test_what_a_pattern_should_have_found_is_shown_beside_what_it_found(tmp_path: Path) -> None:
    detail = {"pattern": r"N\d", "expected": "N1", "matches_found": ["N2"]}
    part = TemplatePart(regex_validation_results={"id": False}, regex_validation_details={"id": detail})
    page = tables_of([evolve(result(outcome="failed"), template=part)], tmp_path)
    row = r'<td dir="auto">N\d</td><td dir="auto">&#34;N1&#34;</td><td dir="auto">[&#34;N2&#34;]</td>'
    assert row in page


def test_the_numbers_of_a_trait_add_up(tmp_path: Path) -> None:
    """A field of a template kind to which the judge gave no value is neither scored nor an error."""
    scales = {"facts": {"type": "llm", "kind": "template"}}
    parts = [RubricPart(llm_trait_scores={"facts.ratio": found}, trait_scales=scales) for found in (0.5, None, None)]
    page = page_of([evolve(result(f"q{n}"), rubric=part) for n, part in enumerate(parts)], tmp_path)
    (cells,) = re.findall(r"<td class=\"n\">1 of 3</td>(.*?)</tr>", page, re.S)
    assert re.sub("<[^>]*>", "", cells).split() == ["0", "2", "0"]  # errors, no value, skipped
    assert "No value" in page
    assert "No value" not in page_of([evolve(result(), rubric=parts[0])], tmp_path)


def test_an_interval_that_is_not_there_has_a_reason(tmp_path: Path) -> None:
    items = [result(f"q{n}", replicate=r, result_id=f"{n}.{r}") for n in range(4) for r in (1, 2)]
    page = page_of(items, tmp_path)
    assert "n/a: nothing varies, so nothing can be said about the error." in page


# Everything about an item


def canaries(part: type, **known: Any) -> Any:
    """A part of a result in which every text is the name of its field."""
    found: dict[str, Any] = {}
    for about in fields(part):
        name = f"{part.__name__}-{about.name}-"
        if about.name in known or about.name.startswith("_"):
            continue
        kind = about.type.__name__ if isinstance(about.type, type) else str(about.type)  # resolved or not
        if kind in ("str", "str | None"):
            found[about.name] = name
        elif kind.startswith("tuple[str"):
            found[about.name] = (name,)
        elif kind in ("bool", "bool | None"):
            found[about.name] = True
    return part(**found, **known)


def test_everything_that_is_stored_about_an_item_is_on_its_page(tmp_path: Path) -> None:
    identity = {"answering": ModelIdentity("manual", "the-model-"), "parsing": ModelIdentity("manual", "the-judge-")}
    item = VerificationResult(
        metadata=canaries(MetadataPart, outcome="failed", **identity),
        generation=canaries(
            GenerationPart,
            trace_messages=({"role": "assistant", "content": "trace-content-"},),
            conversation_context=({"role": "user", "content": "sent-content-"},),
            usage_metadata={"a_task-": {"calls": 1, "model": "usage-model-"}},
            agent_metrics={"agent-metrics-": 1},
        ),
        checks=canaries(ChecksPart),
        template=canaries(
            TemplatePart,
            parsed_gt_response={"field-name-": "field-expected-"},
            parsed_llm_response={"field-name-": "field-extracted-"},
            regex_validation_results={"pattern-name-": False},
            embedding_similarity_score=0.5,
        ),
        rubric=canaries(
            RubricPart,
            llm_trait_scores={"trait-name-": 0},
            llm_trait_labels={"trait-name-": "trait-label-"},
            trait_scales={"trait-name-": {"type": "llm", "kind": "literal", "classes": ["trait-label-"]}},
            trait_details={"trait-name-": {"detail-name-": "detail-value-"}},
            agentic_trait_investigation_traces={"trait-name-": "trait-investigation-"},
            dynamic_rubric_skipped_traits={"skipped-trait-": "skipped-reason-"},
        ),
        deep_judgment=canaries(
            DeepJudgmentPart,
            extracted_excerpts={"field-name-": [{"text": "not-in-it-", "search_results": "search-results-"}]},
            attribute_reasoning={"field-name-": "field-reasoning-"},
            hallucination_risk_assessment={"field-name-": "field-risk-"},
        ),
        deep_judgment_rubric=canaries(
            DeepJudgmentRubricPart,
            rubric_trait_reasoning={"trait-name-": "trait-reasoning-"},
            trait_metadata={"trait-name-": {"warnings": ["trait-warning-"]}},
        ),
        evaluation_input="the text that the judge read-",
        trace_extraction_error="trace-extraction-",
        ledger=(LedgerEntry("ledger-stage-", {"verdict": False}, "ledger-reason-"),),
        trail=(TrailEntry("trail-stage-", "ran", "trail-reason-"),),
        extensions={"a-plugin-": {"a-key-": "a-value-"}},
    )
    page = tables_of([item], tmp_path)
    text = item_text(page)
    stored = json.dumps(unstructure(item))
    classes = set(re.findall(r"[\w -]+-(?=\")", stored))
    assert len(classes) > 70
    assert {found for found in classes if found not in text} == set()


def item_text(page: str) -> str:
    """What is in the items, and not what the overview shows."""
    return html.unescape(page.partition('<div id="list">')[2].partition('<p id="none"')[0])


def test_an_item_leads_to_the_other_answers_and_not_to_itself(tmp_path: Path) -> None:
    items = [result("q", replicate=n, result_id=f"r{n}") for n in (1, 2)] + [result("other")]
    page = item_text(tables_of(items, tmp_path))
    led = re.findall(r"Other answers to this question: (.*?)</p>", page)
    assert [re.findall('href="#([^"]*)"', links) for links in led] == [["item-r2"], ["item-r1"]]
    assert "oak, replicate 2" in led[0]


def test_how_checks_ended_is_shown_in_their_own_words(tmp_path: Path) -> None:
    shown = {}
    for found in (True, False, None):
        part = ChecksPart(
            abstention_check_performed=True,
            abstention_detected=found,
            sufficiency_check_performed=True,
            sufficiency_detected=found,
        )
        page = item_text(tables_of([evolve(result(), checks=part)], tmp_path))
        shown[found] = re.findall(r'(?:abstention|sufficiency)</th><td dir="auto">([\w ]+)</td>', page)
    assert shown == {
        True: ["abstained", "sufficient"],
        False: ["answered", "insufficient"],
        None: ["no verdict", "no verdict"],
    }


def test_a_field_that_was_not_compared_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    part = TemplatePart(
        parsed_gt_response=dict.fromkeys("abcd", 1),
        parsed_llm_response=dict.fromkeys("abcd", 1),
        field_results={"a": True, "b": False, "c": None},
    )
    page = item_text(tables_of([evolve(result(), template=part)], tmp_path))
    marks = re.findall(r'<td class="mark">([^<]*)</td>', page)
    assert marks == ["✓ right", "✗ wrong", "– not found", "not compared"]


def test_whether_the_embedding_check_changed_the_verdict_is_shown(tmp_path: Path) -> None:
    for overridden, words in ((True, "the verdict was overridden"), (False, "the verdict is unchanged")):
        part = TemplatePart(
            embedding_check_performed=True,
            embedding_similarity_score=0.5,
            embedding_model_used="m",
            embedding_override_applied=overridden,
        )
        assert f"similarity 0.500 by m; {words}." in item_text(tables_of([evolve(result(), template=part)], tmp_path))


def test_a_score_is_good_or_bad_by_its_own_scale(tmp_path: Path) -> None:
    def looks(better: bool | None) -> list[str]:
        scale = {"type": "llm", "kind": "boolean"} | ({} if better is None else {"higher_is_better": better})
        part = RubricPart(llm_trait_scores={"t": True}, trait_scales={"t": scale})
        page = item_text(tables_of([evolve(result(), rubric=part)], tmp_path))
        return re.findall(r'<td dir="auto"(?: class="(good|bad)")?>true</td>', page)

    assert [looks(better) for better in (True, False, None)] == [["good"], ["bad"], [""]]


def test_times_are_those_of_items_and_of_answers(tmp_path: Path) -> None:
    """Ten items of 1 to 10 seconds; the answers took a tenth of that, and one of them belongs to another judge."""
    items = [
        evolve(
            result(f"q{n}", execution_time=float(n)),
            generation=GenerationPart(usage_metadata={"generation": {"seconds": n / 10, "cached": n == 10}}),
        )
        for n in range(1, 11)
    ]
    page = tables_of(items, tmp_path)
    row = next(found for found in re.findall(r"<tr><th.*?</tr>", page) if "5.5 s" in found)
    assert re.findall(r'<td class="n">([^<]*)</td>', row)[-3:] == ["5.5 s", "9.0 s", "500 ms"]


def test_the_hardest_questions_come_first_and_those_with_errors_are_there(tmp_path: Path) -> None:
    outcomes_of = {"easy": ["passed", "passed"], "hard": ["failed", "failed"], "half": ["passed", "error"]}
    items = [
        result(question, replicate=number, result_id=f"{question}{number}", outcome=outcome)
        for question, outcomes in outcomes_of.items()
        for number, outcome in enumerate(outcomes, 1)
    ]
    matrix = tables_of(items, tmp_path).partition('<table class="matrix">')[2].partition("</table>")[0]
    assert re.findall(r'<span class="sub">(\w+)</span></th><td class="n">([^<]*)<', matrix) == [
        ("hard", "0 of 2"),
        ("half", "1 of 2"),
    ]


# Drawings


def test_drawings_follow_the_order_of_the_table_and_show_its_numbers(tmp_path: Path) -> None:
    items = [
        result(f"q{n}", result_id=f"{model}{n}", answering=ModelIdentity("manual", model), outcome=outcome)
        for n in range(8)
        for model, outcome in (("oak", "passed"), ("elm", "failed" if n else "passed"))
    ]
    axes = interval_plot(pairs_of(counted(items), headline_numbers(items))).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["oak", "elm"]
    assert axes.yaxis_inverted()
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in marks] == [(1.0, 0), (0.125, 1)]


def test_a_drawing_of_many_items_shows_some_of_them_and_says_so() -> None:
    items = [result(f"q{n}", execution_time=float(n)) for n in range(1000)]
    axes = seconds_plot(pairs_of(counted(items), headline_numbers(items))).axes[0]
    assert len(axes.lines[0].get_xdata()) <= 250
    assert "some of them" in axes.get_xlabel()


def test_long_names_can_be_distinguished_in_a_drawing() -> None:
    names = [short_name(f"{'a-very-long-name-' * 3}{end}") for end in ("large", "small")]
    names += [short_name(f"{'a-very-long-name-' * 3}{end} | the-judge-{'x' * 30}") for end in ("large", "small")]
    names += [short_name(f"oak-{'x' * 40} | judge-{'y' * 40}-{end}") for end in ("a", "b")]
    assert len(set(names)) == len(names)
    assert all(len(name) <= LONGEST_NAME for name in names)


def test_many_pairs_have_marks_of_their_own(tmp_path: Path) -> None:
    items = [
        evolve(
            result("q", result_id=str(n), answering=ModelIdentity("manual", f"oak{n}")),
            rubric=RubricPart(llm_trait_scores={"commits": True}),
        )
        for n in range(20)
    ]
    looks = {look(pair) for pair in pairs_of(counted(items), headline_numbers(items))}
    assert len(looks) == 20


# Secrets


def test_configured_keys_are_not_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "canary-0123456789"
    config = {
        "answering_models": [
            {"endpoint_api_key": secret, "api_key_env": "OAK_KEY", "max_tokens": 512},
            {"extra_kwargs": {"default_headers": {"Authorization": f"Bearer {secret}", "X-Api-Key": secret}}},
        ],
        "password": secret,
    }
    page = page_of([result()], tmp_path, manifest={"config": config})
    assert secret not in page
    assert "OAK_KEY" in page
    assert "512" in page


def test_secrets_are_those_of_the_environment_when_the_page_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [result(question_text="Is it canary-0123456789 or postgres?")]
    assert "canary-0123456789" in page_of(items, tmp_path)
    monkeypatch.setenv("A_SECRET", "canary-0123456789")
    monkeypatch.setenv("B_PASSWORD", "postgres")
    page = page_of(items, tmp_path)
    assert "canary-0123456789" not in page
    assert "Is it [redacted] or postgres?" in page
    monkeypatch.delenv("A_SECRET")
    assert "canary-0123456789" in page_of(items, tmp_path)


def test_names_of_secrets_hide_texts_and_nothing_else() -> None:
    settings = {"max_tokens": 5, "max-tokens": "5", "api_key": None, "token": "abc", "cookie_jar": ["x"], "name": "abc"}
    assert without_secrets(settings) == {**settings, "token": "(not shown)", "cookie_jar": ["(not shown)"]}


# The file and the command


def stored(folder: Path) -> Path:
    folder.mkdir()
    (folder / "results.jsonl").write_text(json.dumps(unstructure(result())) + "\n", "utf-8")
    return folder


def test_the_command_writes_beside_the_results_and_prints_where(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run")
    ran = CliRunner().invoke(command, [str(folder)], catch_exceptions=False)
    assert ran.exit_code == 0
    assert ran.output.strip() == str(folder / "report.html")
    assert "What about q1?" in (folder / "report.html").read_text("utf-8")
    other = tmp_path / "other.html"
    assert CliRunner().invoke(command, [str(folder / "results.jsonl"), "-o", str(other)]).exit_code == 0
    assert other.exists()


def test_groups_of_questions_widen_the_intervals(tmp_path: Path) -> None:
    items = [result(f"q{n}", outcome="passed" if n % 4 < 2 else "failed") for n in range(24)]
    alone, grouped = (page_of(items, tmp_path, cluster=c) for c in (None, {f"q{n}": n % 4 for n in range(24)}))
    intervals = [re.search(r'<span class="sub">([\d.]+) to ([\d.]+) %', page) for page in (alone, grouped)]
    narrow, wide = (float(found[2]) - float(found[1]) for found in intervals if found)
    assert wide > narrow


def test_the_results_themselves_are_never_replaced(tmp_path: Path) -> None:
    folder = stored(tmp_path / "run")
    before = (folder / "results.jsonl").read_bytes()
    with pytest.raises(RunDirectoryError, match=r"would replace .*-o FILE"):
        report.report_on(folder, folder / "results.jsonl")
    assert (folder / "results.jsonl").read_bytes() == before


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"cannot be written.*-o FILE"):
        page_of([result()], tmp_path / "missing")


def test_a_page_is_there_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from karenina_report.page import written

    def broken() -> Any:
        yield "half"
        raise BenchmarkError("the rest cannot be read")

    (tmp_path / "page.html").write_text("the old page")
    with pytest.raises(BenchmarkError):
        written(tmp_path / "page.html", broken())
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_text() == "the old page"


def test_the_command_is_light_until_it_is_run() -> None:
    code = "import sys, karenina_report.command; print(*{m.split('.')[0] for m in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {"matplotlib", "jinja2", "numpy", "scipy", "pandas"} & set(ran.stdout.split())


def test_kept_workspaces_are_named(tmp_path: Path) -> None:
    row = CaptureRow(
        question_id="q1",
        result_id="q1-r",
        run_name="x",
        replicate=1,
        answering="m",
        parsing="j",
        capture_mode="full",
        destination="q1__q1-r",
        copied_file_count=2,
        copy_errors=("big.bin: too large",),
    )
    append_row(tmp_path / WORKSPACES, row)
    page = tables_of(VerificationResultSet([result()], run_dir=tmp_path), tmp_path)
    assert "workspaces/q1__q1-r (2 files)" in page
    assert "big.bin: too large" in page
    assert "workspaces/" not in tables_of([result()], tmp_path)


def test_the_page_says_how_code_of_templates_was_kept_apart(tmp_path: Path) -> None:
    levels = ["sandbox-full", "no-code", "sandbox-full", None]
    items = [result(f"q{n}", result_id=f"{n}", template_isolation=level) for n, level in enumerate(levels)]
    page = tables_of(items, tmp_path, manifest={"run_name": "apart"})
    assert re.search(r"<dt>Templates ran</dt><dd[^>]*>no-code 1, sandbox-full 2</dd>", page)


def test_sections_of_other_packages_are_text_and_one_that_fails_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "<script>alert(1)</script>"

    def good(folder: Path) -> list[Section]:
        assert folder == tmp_path
        return [Section({}, hostile, ("a",), [(hostile,)], before=[hostile], after=["the end"])]

    def broken(folder: Path) -> list[Section]:
        raise RuntimeError(f"no luck in {hostile}")

    points = [(EntryPoint(name, "there:f", "karenina.report"), f) for name, f in (("good", good), ("broken", broken))]
    monkeypatch.setattr("karenina_report.sections.usable", lambda group, what: points)
    page = page_of(VerificationResultSet([result()], run_dir=tmp_path), tmp_path)
    tags = read(page)
    assert [tag for tag, _ in tags.found].count("script") == 2
    text = "".join(tags.text)
    assert text.count(hostile) >= 4
    assert "the end" in text
    assert "the section 'broken' of an unknown package failed: RuntimeError: no luck in" in text
    assert "no luck" not in page_of([result()], tmp_path)  # in no folder, nothing is asked
