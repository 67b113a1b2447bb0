"""The site of the documentation: complete, without a link that leads nowhere, read in a browser without a network."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from karenina_core.names import NAMES

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGES = ("index", "how-to/write-a-stage", "reference/configuration", "reference/examples/acme")
"""Of every kind, looked at on every screen in the full form."""
NOT_PAGES = {"search.html", "genindex.html", "py-modindex.html"}
"""Made by Sphinx itself."""


EACH = """
import sys
from pathlib import Path
scripts, docs, *maps = sys.argv[1:]
sys.path.insert(0, scripts)
import build
for written in maps:
    (Path(docs) / "index.md").write_text(written, "utf-8")
    print(build.main(["--docs", docs, "--output", f"{docs}/../site"]), (Path(docs) / "../site").exists())
"""
"""Builds a site of the same pages by each of some maps, and prints the exit codes, and whether there is a site."""


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("documentation") / "site"
    words = [sys.executable, repository / "docs" / "build.py", "--output", output]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    return output


class Reader(HTMLParser):
    """What a page links to, what it loads, the ids that it has and its description."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.description = ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.ids.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.append(unquote(values["href"]))
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.loads += [values[name] for name in ("href", "src") if name in values]
        elif tag == "meta" and values.get("name") == "description":
            self.description = values["content"]


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, Reader]:
    return {path: Reader(path) for path in site.rglob("*.html")}


def test_every_link_and_anchor_leads_somewhere(site: Path, read: dict[Path, Reader]) -> None:
    ids = {os.path.relpath(path, site): page.ids for path, page in read.items()}
    there = {os.path.relpath(path, site) for path in site.rglob("*") if path.is_file()}
    wrong = []
    for path, page in read.items():
        own = os.path.relpath(path, site)
        for link in {*page.links, *page.loads}:
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            linked = os.path.normpath(os.path.join(own, "..", target.partition("?")[0])) if target else own
            if linked not in there or (anchor and anchor not in ids[linked]):
                wrong.append(f"{own}: {link}")
    assert not wrong


def test_a_page_loads_nothing_from_elsewhere(read: dict[Path, Reader]) -> None:
    assert not [load for page in read.values() for load in page.loads if re.match(r"([a-z]+:)?//", load)]
    assert all(page.loads for page in read.values())


def test_every_page_is_there_with_a_description_and_in_the_navigation(
    repository: Path, site: Path, read: dict[Path, Reader]
) -> None:
    pages = {path for path in read if path.relative_to(site).as_posix() not in NOT_PAGES}
    written = {path.relative_to(repository / "docs").with_suffix(".html") for path in repository.glob("docs/**/*.md")}
    assert {site / path for path in written} <= pages
    assert not [path for path in pages if len(read[path].description) < 15]
    home = site / "index.html"
    linked = {(home.parent / link.partition("#")[0]).resolve() for link in read[home].links if ":" not in link}
    assert pages - linked == {home}


@pytest.mark.parametrize(
    ("place", "above"),
    [("how-to/write-a-stage", []), ("reference/examples/acme", ["../plugin-directory.html", "../examples.html"])],
)
def test_the_navigation_is_open_where_a_page_is(site: Path, place: str, above: list[str]) -> None:
    file = site / f"{place}.html"
    text = file.read_text("utf-8")
    current = r'<li class="[^"]*\bcurrent\b[^"]*"><a [^>]*href="([^"]*)">'
    assert re.findall(current, text) == [*above, file.name]
    assert re.findall(rf'{current}[^\n]*</a><input checked="" ', text) == above
    assert text.count(' checked=""') == len(above)
    here = r'<li class="[^"]*\bcurrent-page\b[^"]*"><a [^>]*href="([^"]*)">'
    assert re.findall(here, text) == [file.name]


def test_every_public_name_has_its_entry(site: Path, read: dict[Path, Reader]) -> None:
    for package in NAMES:
        ids = read[site / "reference" / "api" / f"{package}.html"].ids
        names = {f"{package}.{name}" for name in importlib.import_module(package).__all__}
        modules = {name for name in names if f"module-{name}" in ids or name == f"{package}.strategies"}
        assert names - modules - ids == set()


def test_what_is_documented_is_what_the_docstring_says(site: Path) -> None:
    from karenina_core import Stage

    page = re.sub(r"<[^>]+>", "", (site / "reference" / "api" / "karenina_core.html").read_text("utf-8"))
    assert " ".join((Stage.__doc__ or "").partition(".")[0].replace("`", "").split()) in " ".join(page.split())


def test_programs_find_the_list_of_pages(repository: Path, site: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\): \S", (site / "llms.txt").read_text("utf-8"))
    assert len(links) > 40
    assert all((site / link).is_file() for link in links)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Two pages and their map."""
    folder = tmp_path / "docs"
    folder.mkdir()
    lines = "- [A](a.md): what a is for\n- [B](b.md): what b is for\n"
    (folder / "index.md").write_text(f"# Title\n\nA sentence.\n\n## Pages\n\n{lines}", "utf-8")
    (folder / "a.md").write_text("# A\n\n[b](b.md#part)\n", "utf-8")
    (folder / "b.md").write_text("# B\n\n## Part\n", "utf-8")
    return folder


def test_wrong_maps_and_links_that_lead_nowhere_are_refused(repository: Path, docs: Path) -> None:
    """All are tried in one process, as it takes a second to import Sphinx."""
    a, b, c = "- [A](a.md): a\n", "- [B](b.md): b\n", "- [C](c.md): c\n"
    errors = {
        a: "index.md does not list b.md",
        a + b.partition(":")[0] + "\n": "index.md has no description of b.md",
        a + b + c: "index.md lists c.md, which is not there",
        a + b + a: "index.md lists a.md twice",
    }
    links = ["[x](c.md)", "[x](b.md#whole)", "[x](#nothing)", "![x](c.png)", "[x](../../README.md)"]
    (docs / "a.md").write_text("# A\n\n" + "\n\n".join([*links, "[right](b.md#part)"]), "utf-8")
    maps = [f"# Title\n\nA sentence.\n\n## Pages\n\n{listed}" for listed in (*errors, a + b)]
    words = [str(repository / "docs"), str(docs), *maps]
    ran = subprocess.run([sys.executable, "-c", EACH, *words], capture_output=True, text=True, timeout=240, check=False)
    assert ran.stdout.splitlines() == [*["1 False"] * len(errors), "1 True"]
    said = ran.stderr.splitlines()
    assert said[: len(errors)] == list(errors.values())
    for number, link in enumerate(links):
        assert any(line.startswith(f"a.md:{3 + 2 * number}: WARNING: ") for line in said), (link, said)
    assert f"a.md:{3 + 2 * len(links)}" not in ran.stderr


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium without a network. Skips where there is none; CI does not accept that."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    playwright = pytest.importorskip("playwright.sync_api") if program else None
    if playwright is None:
        pytest.skip("needs Chromium (the Debian package chromium), and playwright from requirements-dev.txt")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture
def window(browser: Any) -> Iterator[Any]:
    """A page of it."""
    page = browser.new_page()
    yield page
    page.close()


def test_it_is_searched_in_a_browser_without_a_request(window: Any, site: Path) -> None:
    asked: list[str] = []
    logged: list[str] = []
    window.on("request", lambda request: asked.append(request.url))
    window.on("console", lambda message: logged.append(message.text))
    window.on("pageerror", lambda error: logged.append(str(error)))
    window.goto((site / "index.html").as_uri())
    assert window.title() == "karenina"
    window.fill("input[name=q]", "budget of spending")
    window.press("input[name=q]", "Enter")
    found = window.locator("#search-results li a", has_text="Limit requests and spending")
    found.wait_for()
    found.click()
    window.locator("h1", has_text="Limit requests and spending").wait_for()
    window.locator("a.next-page").click()
    window.locator("h1", has_text="Use provider batches").wait_for()
    window.goto((site / "search.html").as_uri() + "?q=RetryPolicy")
    window.locator("#search-results li a", has_text="RetryPolicy").first.wait_for()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len(asked) > 20
    assert logged == []


@pytest.mark.parametrize(
    ("width", "pages"),
    [
        (390, ["how-to/write-a-stage", "reference/stages"]),  # code and a table that have to be moved sideways
        (1280, ["index", "reference/stages", "reference/examples/acme"]),
    ],
    ids=["phone", "screen"],
)
def test_it_is_read_on_a_phone_and_by_keyboard(
    window: Any, site: Path, width: int, pages: list[str], long: bool
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    window.set_viewport_size({"width": width, "height": 844})
    for page in {*PAGES, *pages} if long else pages:
        window.goto((site / f"{page}.html").as_uri())
        assert window.evaluate("document.documentElement.scrollWidth") <= width, f"{page} has to be moved sideways"
        violations = axe.run(window).response["violations"]  # headings, landmarks, contrast, what scrolls, ...
        assert [(found["id"], found["nodes"][0]["html"]) for found in violations] == [], page
    window.keyboard.press("Tab")
    window.keyboard.press("Enter")
    assert window.evaluate("location.hash") == "#furo-main-content"


def test_the_picture_is_what_the_script_makes_of_the_demo(
    browser: Any, forking: Any, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    """But for the time in it, and the fonts of the machine."""
    monkeypatch.syspath_prepend(repository / "docs")
    pictures = importlib.import_module("pictures")
    if long:
        subprocess.run([sys.executable, repository / "docs" / "pictures.py", tmp_path / "typed.png"], check=True)
    run, made, kept = tmp_path / "run", tmp_path / "made.png", repository / "docs" / "pictures" / "report.png"
    assert forking.start("demo", "--quiet", "--out", run).wait() == 0
    assert forking.start("report", run).wait() == 0
    pictures.take(browser, run / "report.html", made)
    assert _size(made) == _size(kept)
    assert kept.stat().st_size < 60_000
    assert 0.5 < made.stat().st_size / kept.stat().st_size < 2


def _size(picture: Path) -> tuple[int, int]:
    """Width and height, where PNG has them."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24])
