"""The HTML report in a real Chromium, without a window: it requests nothing, and people can use it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, field, frozen
from click.testing import CliRunner
from karenina_cli.root import karenina
from karenina_report import write_report
from karenina_runs.plan.items import LeftOut
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NEEDS = (
    "needs Chromium (the Debian package chromium), and playwright and axe-playwright-python from requirements-dev.txt"
)
LONGEST_TASK = 2000
"""Milliseconds that the page may keep a person waiting on a slow, busy machine; usually a tenth of that."""
ANSWER = "Venetoclax binds BCL-2, and was first approved for <chronic> lymphocytic leukaemia."
HOSTILE = (
    "</script><script>window.broken=1</script></noscript><img src=http://198.51.100.7/x onerror=window.broken=1>"
    "<svg onload=window.broken=1></svg>{{7*7}}${7*7}\u202egnp.exe\x00\ud800<style>*{display:none}</style>"
    "<a href=javascript:window.broken=1>x</a></div></article></details></textarea>"
)


@frozen
class Visit:
    """One page, and everything that a browser says and asks about it."""

    page: Any
    logged: list[str] = field(factory=list)
    asked: list[str] = field(factory=list)

    def count(self) -> int:
        found: int = self.page.evaluate("[...document.querySelectorAll('#list > .item')].filter(i => !i.hidden).length")
        return found

    def filtered(self, wanted: int) -> None:
        """Wait until so many items are shown, and the page says so."""
        self.page.locator("#shown", has_text=re.compile(f"^{wanted} of ")).wait_for()
        assert self.count() == wanted


Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium. Skips where there is none; CI does not accept that."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        pytest.skip(NEEDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def visit_of(browser: Any) -> Callable[..., Visit]:
    """One for all files that are opened with the same options: a new page is a new process of the browser, which takes
    as long as a test."""

    def begun(**options: Any) -> Visit:
        made = Visit(browser.new_context(**options).new_page())
        made.page.on("console", lambda message: made.logged.append(message.text))
        made.page.on("pageerror", lambda error: made.logged.append(str(error)))
        made.page.on("request", lambda request: made.asked.append(request.url))
        return made

    return cache(begun)


@pytest.fixture
def visit(visit_of: Callable[..., Visit]) -> Iterator[Open]:
    """Open a file. At the end no page may have complained, or made any request."""
    visits: list[Visit] = []

    def opened(file: Path, anchor: str = "", size: tuple[int, int] = (1280, 900), **options: Any) -> Visit:
        made = visit_of(**options)
        assert made not in visits, "a test opens one file with the same options"
        made.page.goto("about:blank")  # else another place of the same file is not opened, but turned to
        made.page.set_viewport_size({"width": size[0], "height": size[1]})
        made.page.emulate_media(media="null", color_scheme="light")
        made.logged.clear()
        made.asked.clear()
        visits.append(made)
        made.page.goto(f"{file.as_uri()}{anchor}")
        return made

    yield opened
    for made in visits:
        assert made.logged == []
        assert {url.partition("#")[0] for url in made.asked} == {made.page.url.partition("#")[0]}


def item(number: int, **about: Any) -> VerificationResult:
    outcome = ("passed", "failed", "abstained", "error")[number % 4]
    facts: dict[str, Any] = {
        "question_id": f"q{number // 2}",
        "template_id": "t",
        "result_id": f"{number:04x}",
        "question_text": f"Question {number // 2}: what does venetoclax bind?",
        "raw_answer": "BCL-2",
        "answering": ModelIdentity("manual", ("oak", "elm")[number % 2]),
        "parsing": ModelIdentity("manual", "judge"),
        "outcome": outcome,
        "outcome_detail": "server" if outcome == "error" else None,
        "error": "HTTP 503" if outcome == "error" else None,
        "execution_time": 1 + number % 7,
        "warnings": ("a warning",) if number == 1 else (),
    }
    return VerificationResult(metadata=MetadataPart(**facts | about), **parts(number))


def parts(number: int) -> dict[str, Any]:
    """Something of everything that a result can hold."""
    usage = {"calls": 1, "attempts": 1, "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.01, "seconds": 0.5}
    failed = number % 5 == 4
    quoted = {"text": ANSWER[:22], "start": 0, "end": 22, "similarity_score": 1.0, "hallucination_risk": "low"}
    return {
        "generation": GenerationPart(
            raw_llm_response=f"{ANSWER} Token{number}.",
            trace_messages=(
                {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "look", "input": {"a": 1}}]},
                {"role": "tool", "content": "found", "tool_result": {"tool_use_id": "1", "is_error": False}},
            ),
            conversation_context=({"role": "user", "content": [{"type": "text", "text": "What?"}]},),
            usage_metadata={"generation": usage, "parsing": usage, "total": usage},
        ),
        "checks": ChecksPart(abstention_check_performed=True, abstention_detected=False, abstention_reasoning="no"),
        "template": TemplatePart(
            parsed_gt_response={"target": "BCL2", "dose": 5},
            parsed_llm_response={"target": "BCL2", "dose": 4},
            field_results={"target": True, "dose": False},
            verify_granular_result=0.5,
            regex_validation_results={"id": False},
            regex_validation_details={"id": {"pattern": "N.T", "matches_found": []}},
        ),
        "rubric": RubricPart(
            llm_trait_scores={"commits": number % 2 == 0, "depth": None if failed else number % 4, "register": 1},
            llm_trait_labels={"register": "clinical"},
            trait_scales={
                "commits": {"type": "llm", "kind": "boolean", "higher_is_better": True},
                "depth": {"type": "llm", "kind": "score", "min": 0, "max": 3, "higher_is_better": True},
                "register": {"type": "llm", "kind": "literal", "classes": ["plain", "clinical"]},
            },
            trait_states={"depth": {"state": "error", "reason": "no reply"}} if failed else {},
            agentic_trait_investigation_traces={"commits": "looked at the answer"},
        ),
        "deep_judgment": DeepJudgmentPart(
            extracted_excerpts={"target": [quoted]}, attribute_reasoning={"target": "so"}
        ),
        "deep_judgment_rubric": DeepJudgmentRubricPart(extracted_rubric_excerpts={"commits": [{"text": "made up"}]}),
        "ledger": (LedgerEntry("VerifyTemplate", {"verdict": False}, "dose"),),
        "trail": (TrailEntry("VerifyTemplate", "ran", "", 0.01),),
    }


def page(folder: Path, count: int, **options: Any) -> Path:
    results = VerificationResultSet(
        [item(number, **options) for number in range(count)],
        notes=("a note",),
        left_out=(LeftOut("q99", "not finished"),),
    )
    manifest = {"run_name": "trial", "benchmark": {"name": "Drugs"}, "config": {"a": 1}, "versions": {"python": "3"}}
    return write_report(results, folder / "page.html", manifest=manifest)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("small"), 12)


@pytest.fixture(scope="module")
def tall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts that do not fit their boxes."""
    text = "\n".join(f"Line {number} of a long text." for number in range(200))
    generation = GenerationPart(raw_llm_response=text, trace_messages=({"role": "assistant", "content": text},))
    results = VerificationResultSet([evolve(item(number), generation=generation) for number in range(2)])
    return write_report(results, tmp_path_factory.mktemp("tall") / "page.html")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("large"), 600)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the demo's run, made by the commands that a person types."""
    folder = tmp_path_factory.mktemp("demo")
    program = Path(sys.executable).with_name("karenina")
    subprocess.run([program, "demo"], cwd=folder, check=True, capture_output=True, timeout=120)
    (run,) = (folder / "karenina-runs").iterdir()
    made = CliRunner().invoke(karenina, ["report", str(run), "-o", str(folder / "page.html")])
    assert made.exit_code == 0, made.output
    return folder / "page.html"


# Reading


def test_the_overview_is_there(visit: Open, small: Path) -> None:
    shown = visit(small).page
    assert shown.title() == "Drugs: results"
    assert [h.inner_text() for h in shown.locator("h2").all()] == [
        "Overview",
        "Failures",
        "Rubric",
        "Cost and time",
        "Run",
        "Items",
    ]
    boxes = [drawing.bounding_box() for drawing in shown.locator("svg.plot").all()]
    assert len(boxes) == 5
    assert all(box["width"] > 300 and box["height"] > 50 for box in boxes)


def test_an_item_is_made_when_it_is_opened_and_not_before(visit: Open, small: Path) -> None:
    shown = visit(small)
    assert shown.page.locator(".item article").count() == 0
    shown.page.locator(".item > summary").nth(1).click()
    opened = shown.page.locator(".item[open]")
    opened.locator(".answer").wait_for()
    assert opened.locator("article").count() == 1
    assert opened.locator(".answer mark").inner_text() == ANSWER[:22]
    text = opened.inner_text()
    for part in ("a warning", "✗ wrong", "granular score 0.50", "✗ not met", "dose", "not in the answer"):
        assert part in text
    assert "<chronic>" in text


def test_an_address_opens_its_item(visit: Open, small: Path) -> None:
    shown = visit(small, "#item-0005").page
    assert shown.locator(".item[open]").get_attribute("id") == "item-0005"
    shown.locator("#item-0005 > summary:focus").wait_for()
    shown.locator(".item[open] .siblings a").first.click()
    shown.wait_for_selector("#item-0004[open]")
    assert shown.locator("#item-0004").evaluate("e => Math.abs(e.getBoundingClientRect().top) < 200")


def test_everything_can_be_read_without_scripts(visit: Open, small: Path) -> None:
    shown = visit(small, java_script_enabled=False).page
    assert shown.locator(".item article").count() == 12
    shown.locator(".item > summary").nth(1).click()
    assert shown.locator(".item[open] .answer").is_visible()
    assert not shown.locator("#filters").is_visible()


def test_the_demo_is_read_as_a_person_reads_it(visit: Open, demo: Path) -> None:
    """The rates, then why something failed, then the item that shows it."""
    shown = visit(demo)
    rates = " ".join(shown.page.inner_text(".rates").split())
    assert "atlas-large" in rates
    assert re.search(r"89\.5 % 68\.6 to 97\.1 %", rates)
    shown.page.locator("#failures a[data-reason]").first.click()
    shown.page.locator("#shown", has_text=re.compile("^1 of 38 ")).wait_for()
    shown.page.click("button[type=reset]")
    shown.page.fill("#text", "osimertinib-resistance birch-small")
    shown.filtered(1)
    shown.page.locator(".item:not([hidden]) > summary").click()
    shown.page.wait_for_selector(".item[open] .answer")
    text = shown.page.inner_text(".item[open]")
    for part in ("C797S", "T790M", "✗ wrong", "VerifyTemplate", "judge openai_endpoint:cedar-judge"):
        assert part in text or part in rates


def test_a_page_without_items_offers_nothing_to_choose(visit: Open, tmp_path: Path) -> None:
    shown = visit(write_report(VerificationResultSet([]), tmp_path / "page.html")).page
    assert not shown.locator("#filters").is_visible()
    assert not shown.locator("#none").is_visible()
    assert shown.locator("#items").inner_text().split("\n")[-1] == "There are no items."


# Finding


SEARCHES = (
    ("TOKEN7", 1),
    ('"question 3"', 2),
    ("<chronic> token3", 1),
    ("token3 <chronic>", 1),
    ('"token3 <chronic>"', 0),
    ("", 12),
)


def test_text_is_searched_in_questions_and_answers(visit: Open, small: Path) -> None:
    shown = visit(small)
    shown.filtered(12)
    for text, wanted in SEARCHES:
        shown.page.fill("#text", text)
        shown.filtered(wanted)
        assert shown.page.locator("#none").is_visible() == (wanted == 0)
    shown.page.locator(".item > summary").first.click()  # the details of an open item are no longer hidden text
    shown.page.fill("#text", "token0")
    shown.filtered(1)


def test_outcomes_models_and_traits_choose_items_together(visit: Open, small: Path) -> None:
    shown = visit(small)
    shown.page.check("input[value=passed]")
    shown.filtered(3)
    shown.page.check("input[value=failed]")
    shown.filtered(6)
    shown.page.select_option("#pair", label="elm")
    shown.filtered(3)
    shown.page.click("button[type=reset]")
    shown.filtered(12)
    shown.page.select_option("#trait", label="depth")
    shown.filtered(12)
    shown.page.select_option("#state", value="state error")
    shown.filtered(2)
    shown.page.select_option("#state", value="score 3")
    shown.filtered(3)
    shown.page.select_option("#trait", label="commits")
    shown.page.select_option("#state", value="score true")
    shown.filtered(6)


def test_a_count_on_the_overview_leads_to_its_items(visit: Open, small: Path) -> None:
    shown = visit(small)
    shown.page.locator("#overview a[data-outcome=abstained]").first.click()
    shown.filtered(3)
    assert shown.page.is_checked("input[value=abstained]")


def test_a_reason_leads_to_exactly_the_items_that_it_counts(visit: Open, small: Path) -> None:
    """Not to all of the same outcome."""
    shown = visit(small)
    links = shown.page.locator("#failures a[data-reason]")
    counts = [int(text) for text in links.all_inner_texts()]
    assert sum(counts) == 9  # of 12 items, 3 passed
    for place, count in enumerate(counts):
        links.nth(place).click()
        shown.filtered(count)
    shown.page.click("button[type=reset]")
    shown.page.select_option("#reason", label="error: server")
    shown.filtered(3)
    shown.page.check("input[value=failed]")
    shown.filtered(0)


def test_long_texts_are_scrolled_with_the_keyboard_and_short_ones_are_no_stops(visit: Open, tall: Path) -> None:
    shown = visit(tall).page
    shown.locator(".item > summary").nth(1).click()
    answer = shown.locator(".item[open] .answer[tabindex='0']")
    answer.focus()
    shown.keyboard.press("End")
    deadline = time.monotonic() + 60  # the page's policy forbids what `wait_for_function` does
    while answer.evaluate("element => element.scrollTop") <= 100:
        assert time.monotonic() < deadline
        shown.wait_for_timeout(20)
    assert shown.locator(".item[open] .two .text:not(.answer)").first.get_attribute("tabindex") is None
    shown.locator(".item[open] summary", has_text="Trace").click()
    shown.locator(".item[open] .message .text[tabindex='0']").wait_for()


def test_an_address_of_a_hidden_item_shows_it_and_says_so(visit: Open, small: Path) -> None:
    shown = visit(small)
    shown.page.fill("#text", "token0")
    shown.filtered(1)
    shown.page.evaluate("location.hash = 'item-0007'")
    shown.page.locator("#item-0007[open] > summary:focus").wait_for()
    assert shown.page.inner_text("#shown") == "1 of 12 items, and the one that was asked for"
    shown.page.fill("#text", "token1")
    shown.filtered(3)


def test_it_can_be_used_with_the_keyboard_alone(visit: Open, small: Path) -> None:
    shown = visit(small)
    shown.page.keyboard.press("Tab")
    assert shown.page.evaluate("document.activeElement.textContent") == "Skip to the items"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert shown.page.evaluate(outline) != "none"
    shown.page.keyboard.press("Enter")
    shown.page.keyboard.press("Tab")
    assert shown.page.evaluate("document.activeElement.id") == "text"
    shown.page.keyboard.type("token5")
    shown.filtered(1)
    summary = shown.page.locator(".item:not([hidden]) summary")
    summary.focus()
    before = summary.screenshot()
    shown.page.keyboard.press("Shift+Tab")
    assert summary.screenshot() != before  # the mark of the focus is not cut off by the item's edges
    shown.page.keyboard.press("Tab")
    shown.page.keyboard.press("Enter")
    assert shown.page.locator(".item[open]").get_attribute("id") == "item-0005"


# Looks


COLOURS = ("color-contrast", "link-in-text-block")
STRUCTURE = ("landmark-one-main", "heading-order", "label", "region", "page-has-heading-one")


@pytest.mark.parametrize("which", ["small", "demo", "tall"])
def test_no_rule_of_accessibility_is_broken(
    visit: Open, request: pytest.FixtureRequest, which: str, long: bool
) -> None:
    """axe-core, by Deque: landmarks, headings, names, tables, and the contrast of every text. The dark scheme
    differs only in colours, and the contrast of colours, which takes most of the time, is seen on the small page."""
    axe = pytest.importorskip("axe_playwright_python", reason=NEEDS)
    shown = visit(request.getfixturevalue(which)).page
    shown.locator(".item > summary").nth(1).click()
    shown.wait_for_selector(".item[open] .answer")
    shown.evaluate("document.querySelectorAll('details.help').forEach(d => { d.open = true; })")
    shown.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text("utf-8"))
    coloured = long or which == "small"
    runs: list[tuple[str, dict[str, Any], set[str]]] = [
        ("light", {"rules": {name: {"enabled": coloured} for name in COLOURS}}, {*STRUCTURE, *COLOURS[:coloured]}),
        *([("dark", {"runOnly": [*COLOURS]}, {COLOURS[0]})] if coloured else []),
    ]
    for scheme, options, least in runs:
        shown.emulate_media(color_scheme=scheme)
        found = shown.evaluate("options => axe.run(document, options)", {"resultTypes": ["violations"], **options})
        assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found["violations"]] == []
        assert {rule["id"] for rule in found["passes"]} >= least


def test_texts_of_drawings_contrast_with_what_is_behind_them(visit: Open, small: Path) -> None:
    """axe does not look into drawings: WCAG's contrast of at least 4.5, and of 3 for marks without a text."""
    shown = visit(small).page
    for scheme in ("light", "dark"):
        shown.emulate_media(color_scheme=scheme)
        worst = shown.evaluate(CONTRASTS)
        assert worst["texts"] > worst["onBars"] > 0
        assert worst["text"] >= 4.5
        assert worst["mark"] >= 3


CONTRASTS = """() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const page = getComputedStyle(document.body).backgroundColor;
  const fill = (e) => getComputedStyle(e).fill;
  const coloured = /fill-(?!page|grid|ink|muted)/;
  const bars = [...document.querySelectorAll("svg.plot path")].filter((e) => coloured.test(e.getAttribute("class")));
  const behind = (text) => {
    const t = text.getBoundingClientRect(), x = t.x + t.width / 2, y = t.y + t.height / 2;
    const bar = bars.find((e) => {
      const b = e.getBoundingClientRect();
      return b.x <= x && x <= b.right && b.y <= y && y <= b.bottom;
    });
    return bar ? fill(bar) : page;
  };
  const texts = [...document.querySelectorAll("svg.plot text")];
  const onBars = texts.filter((text) => text.classList.contains("fill-page"));
  return {
    texts: texts.length,
    onBars: onBars.length,
    text: Math.min(...texts.map((text) => contrast(fill(text), onBars.includes(text) ? behind(text) : page))),
    mark: Math.min(...bars.map((bar) => contrast(fill(bar), page))),
  };
}"""


def test_on_paper_there_is_no_form_and_no_dark_ground(visit: Open, small: Path) -> None:
    shown = visit(small, "#item-0001").page
    shown.emulate_media(color_scheme="dark")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    shown.emulate_media(media="print")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not shown.locator("#filters").is_visible()
    assert not shown.locator("nav").is_visible()
    assert shown.locator(".item[open] .answer").is_visible()
    assert shown.pdf(format="A4").startswith(b"%PDF")


def test_on_a_phone_the_rate_and_its_interval_are_seen_without_moving_anything(visit: Open, small: Path) -> None:
    shown = visit(small, size=(390, 844)).page
    for place in (".rates .big", ".rates tbody .n .sub", "svg.plot"):
        box = shown.locator(place).first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert shown.locator(".rates tbody .n .sub").first.bounding_box()["y"] < 844


def test_words_without_an_end_make_nothing_wider(visit: Open, tmp_path: Path) -> None:
    word = "x" * 3000
    plain = item(1, question_text=word, question_id=word, warnings=(word,), run_name=word)
    scales = {word: {"type": "llm", "kind": "literal", "classes": [word, "other"]}}
    rubric = RubricPart(llm_trait_scores={word: 0}, llm_trait_labels={word: word}, trait_scales=scales)
    wide = evolve(plain, rubric=rubric, generation=GenerationPart(raw_llm_response=word, text_flags=(word,)))
    manifest = {"run_name": word, "benchmark": {"name": word, "warnings": [word]}, "config": {word: word}}
    results = VerificationResultSet([wide], notes=(word,), left_out=(LeftOut(word, word),))
    file = write_report(results, tmp_path / "page.html", manifest=manifest)
    shown = visit(file, size=(390, 844)).page
    shown.locator(".item > summary").click()
    shown.wait_for_selector(".item[open] .answer")
    shown.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390


def test_nothing_is_wider_than_the_screen(visit: Open, small: Path) -> None:
    shown = visit(small, "#item-0001").page
    for width in (360, 768, 1280):
        shown.set_viewport_size({"width": width, "height": 800})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width


# Size and malice


def listed(shown: Visit, first: str, last: str, where: str) -> None:
    """Wait until the list is that page."""
    shown.page.locator("#where", has_text=where).wait_for()
    ids = shown.page.evaluate("[...document.querySelectorAll('#list > .item')].map((item) => item.id)")
    assert (ids[0], ids[-1]) == (first, last)


def test_of_many_items_one_page_is_shown_and_filters_search_and_links_reach_all(visit: Open, large: Path) -> None:
    assert large.stat().st_size < 3_000 * 600
    shown = visit(large)
    shown.page.evaluate(
        "() => { window.slow = []; new PerformanceObserver((list) => window.slow.push(...list.getEntries()"
        ".map((e) => e.duration))).observe({ type: 'longtask', buffered: true }); }"
    )
    listed(shown, "item-0000", "item-0063", "Page 1 of 6: items 1 to 100")
    assert shown.page.locator("#before").is_disabled()
    shown.page.click("#after")
    listed(shown, "item-0064", "item-00c7", "Page 2 of 6: items 101 to 200")
    shown.page.fill("#text", "token47")
    shown.filtered(11)  # 47 and 470 to 479
    assert not shown.page.locator("#pages").is_visible()
    shown.page.fill("#text", "")
    listed(shown, "item-0000", "item-0063", "Page 1 of 6")
    shown.page.check("input[value=failed]")
    listed(shown, "item-0001", "item-018d", "Page 1 of 2")
    assert shown.page.locator("#shown").inner_text() == "150 of 600 items"
    shown.page.click("#after")
    listed(shown, "item-0191", "item-0255", "Page 2 of 2: items 101 to 150")
    assert shown.page.locator("#after").is_disabled()
    shown.page.locator(".item summary").last.click()
    assert "Token597." in shown.page.locator(".item[open] .answer").inner_text()
    shown.page.locator(".item[open] .siblings a").first.click()  # of an item that is filtered out
    shown.page.wait_for_selector("#item-0254[open] .answer")
    assert shown.page.locator("#shown").inner_text() == "150 of 600 items, and the one that was asked for"
    assert max(shown.page.evaluate("window.slow"), default=0) < LONGEST_TASK
    assert shown.page.evaluate("document.querySelectorAll('*').length") < 15_000
    shown.page.click("button[type=reset]")
    listed(shown, "item-0000", "item-0063", "Page 1 of 6")
    shown.page.click("#unfold")
    shown.page.locator("#list > .item[open]").nth(99).wait_for(state="attached")


def test_an_address_of_one_of_many_turns_to_its_page(visit: Open, large: Path) -> None:
    shown = visit(large, "#item-0200")
    shown.page.wait_for_selector("#item-0200[open] .answer")
    listed(shown, "item-01f4", "item-0257", "Page 6 of 6: items 501 to 600")
    silent = visit(large, java_script_enabled=False)
    assert "karenina show prints them" in silent.page.locator("#items").inner_text()


@pytest.mark.parametrize("most", [500, 1])
def test_what_a_model_says_does_nothing(
    visit: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    from playwright.sync_api import expect

    monkeypatch.setattr("karenina_report.page.MOST", most)
    plain = item(1)
    hostile = evolve(
        plain,
        metadata=evolve(plain.metadata, question_text=HOSTILE, question_id=HOSTILE, result_id="x", error=HOSTILE),
        generation=evolve(
            plain.generation, raw_llm_response=HOSTILE, trace_messages=({"role": "x", "content": HOSTILE},)
        ),
        rubric=RubricPart(llm_trait_scores={HOSTILE: True}, trait_details={HOSTILE: {HOSTILE: HOSTILE}}),
        extensions={HOSTILE: {HOSTILE: HOSTILE}},
    )
    huge = evolve(item(2), generation=GenerationPart(raw_llm_response=HOSTILE * 300))
    file = write_report(VerificationResultSet([hostile, huge]), tmp_path / "page.html")
    shown = visit(file)
    shown.page.click("#unfold")
    shown.page.locator(".item[open] article").nth(1).wait_for()
    shown.page.fill("#text", "window.broken")
    shown.filtered(2)
    shown.page.select_option("#trait", index=1)
    shown.filtered(1)
    assert shown.page.evaluate("window.broken") is None
    assert (
        shown.page.evaluate("document.querySelectorAll('img, iframe, main script, main style, main a[href^=j]').length")
        == 0
    )
    shown.page.click("#unfold")
    answer = shown.page.locator(".item .answer").first  # drawn after the click, so it is waited for
    expect(answer).to_contain_text("\\u202egnp.exe\\x00\\ud800", use_inner_text=True)
    assert shown.page.locator("footer").is_visible()
