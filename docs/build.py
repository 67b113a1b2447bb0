"""Builds the pages here, the READMEs of plugins and the Python API into a site that needs no server and no network.

python docs/build.py [--output DIR]      writes build/site/index.html and what it needs

It needs what requirements-dev.txt installs. `index.md` is the map: a line `- [title](path): description` makes a page
part of the site, and the navigation has the order of the lines. It exits with 1 and says what is wrong where a page is
not listed or has no description, where a link, an anchor or a picture leads nowhere, and for anything else that Sphinx
warns of.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import inspect
import io
import itertools
import os
import posixpath
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from generate import REPOSITORY, Page, listed, llms
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment.adapters.toctree import global_toctree_for_doc
from sphinx.search.en import SearchEnglish

from karenina_core.names import NAMES, public_names

FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
NEXT = "\n   "
"""Begins another line of the same directive."""
ACCESSIBLE = {
    'class="caption" role="heading"': 'class="caption" role="heading" aria-level="2"',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',  # scrolls sideways
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}
"""Tags of the theme, and what they become."""
SETTINGS = {
    "project": "karenina",
    "extensions": ["myst_parser", "sphinx.ext.autodoc"],
    "html_theme": "furo",
    "html_title": "karenina",
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "html_show_copyright": False,
    "html_show_search_summary": False,  # would be fetched, which browsers refuse for files
    "myst_heading_anchors": 4,
    "default_role": "code",  # single backticks of docstrings
    "toc_object_entries": False,  # names are headings
    "autodoc_member_order": "bysource",
    "autodoc_typehints_format": "short",
    "python_use_unqualified_type_names": True,
    "maximum_signature_line_length": 100,
    # Outputs with `...` in them are no JSON, and shell sessions hold anything.
    "suppress_warnings": ["misc.highlighting_failure"],
}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs", help="the folder of pages")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "site", help="where the site is written")
    asked = parser.parse_args(words)
    pages = list(listed((asked.docs / "index.md").read_text("utf-8")))
    wrong = list(problems(asked.docs, pages))
    if not wrong:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "docs"
            write_source(asked.docs.resolve(), pages, source)
            shutil.rmtree(asked.output, ignore_errors=True)
            wrong = warnings(source, asked.output, Path(folder) / "doctrees")
            make_accessible(asked.output)
        (asked.output / "llms.txt").write_text(llms(asked.docs).replace(".md): ", ".html): "), "utf-8")
    print("\n".join(wrong) if wrong else asked.output / "index.html", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


def make_accessible(site: Path) -> None:
    """What the theme leaves out for readers with a keyboard or a screen reader."""
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        for plain, better in ACCESSIBLE.items():
            text = text.replace(plain, better)
        path.write_text(text, "utf-8")


def problems(docs: Path, pages: Sequence[Page]) -> Iterator[str]:
    """What is wrong with the map."""
    there = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - {"index.md"}
    paths = [page.path for page in pages]
    needed = {"reference/plugin-directory.md", "reference/api.md"} if docs == REPOSITORY / "docs" else set()
    yield from (f"index.md does not list {path}, below which pages are made" for path in sorted(needed - set(paths)))
    yield from (f"index.md does not list {path}" for path in sorted(there - set(paths)))
    yield from (f"index.md lists {path}, which is not there" for path in sorted(set(paths) - there))
    yield from (f"index.md lists {path} twice" for path in sorted({path for path in paths if paths.count(path) > 1}))
    yield from (f"index.md has no description of {page.path}" for page in pages if not page.said)


# The pages as Sphinx gets them


def write_source(docs: Path, pages: Sequence[Page], source: Path) -> None:
    """The pages with their descriptions and tables of contents, and beside them those that are generated, where the
    page is among them under which they stand."""
    parents = {page.path for page in pages}
    directory = REPOSITORY if "reference/plugin-directory.md" in parents else None
    plugins = directory.glob("plugins/*/README.md") if directory else ()
    readmes = {path: f"reference/plugins/{path.parent.name}.md" for path in plugins}
    examples = directory.glob("examples/plugins/*/README.md") if directory else ()
    shown = {path: f"reference/examples/{path.parent.name}.md" for path in examples}
    packages = {name: f"reference/api/{name}.md" for name in NAMES if "reference/api.md" in parents}
    below = {
        "index.md": "".join(_contents(pages)),
        "reference/api.md": toctree(packages.values()),
        "reference/plugin-directory.md": toctree(["reference/examples.md", *sorted(readmes.values())]),
        "reference/examples.md": toctree(sorted(shown.values())),
    } | {place: "".join(_modules(path.parent)) for path, place in shown.items()}
    said = {"index.md": "Documentation of karenina", **{page.path: page.said for page in pages}}
    said |= {place: _summary(path.parent) for path, place in (readmes | shown).items()}
    said["reference/examples.md"] = "Packages as anyone may write them, one for each kind of plugin"
    places = {docs / path: path for path in said if (docs / path).is_file()} | readmes | shown
    if directory:
        places[directory / "examples" / "plugins" / "README.md"] = "reference/examples.md"
    texts = {place: relinked(path, place, places) + below.get(place, "") for path, place in places.items()}
    texts |= {place: api(name) for name, place in packages.items()}
    said |= {place: _about(name) for name, place in packages.items()}
    for place, text in texts.items():
        path = source / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n{_rst(f'.. meta::{NEXT}:description: {said[place]}')}", "utf-8")
    for picture in docs.rglob("*.png"):
        copy = source / picture.relative_to(docs)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, copy)


def relinked(path: Path, place: str, places: Mapping[Path, str]) -> str:
    """The text of a page, with links to other pages as they are called in the site. Other links stay as they are."""

    def link(found: re.Match[str]) -> str:
        target = places.get(Path(os.path.normpath(path.parent / found[2])))
        return f"{found[1]}{os.path.relpath(target, Path(place).parent)}{found[3]}" if target else found[0]

    parts = FENCED.split(path.read_text("utf-8"))
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def _modules(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("karenina_*/*.py")):
        yield f"\n## {path.relative_to(folder)}\n\n```python\n{path.read_text('utf-8')}```\n"


def _contents(pages: Sequence[Page]) -> Iterator[str]:
    for section, group in itertools.groupby(pages, lambda page: page.section):
        yield toctree([page.path for page in group], section)


def toctree(paths: Iterable[str], caption: str = "") -> str:
    options = f":caption: {caption}" if caption else ""
    return _rst(NEXT.join([".. toctree::", ":hidden:", ":titlesonly:", options, "", *(f"/{path}" for path in paths)]))


def _rst(text: str) -> str:
    return f"\n```{{eval-rst}}\n{text}\n```\n"


def _about(package: str) -> str:
    return (inspect.getdoc(importlib.import_module(package)) or "").partition("\n\n")[0].replace("\n", " ")


def _summary(folder: Path) -> str:
    summary: str = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["description"]
    return summary


def api(package: str) -> str:
    """A page of everything that a public package has, from signatures and docstrings."""
    module = importlib.import_module(package)
    entries = [_entry(package, name, getattr(module, name)) for name in sorted(public_names(package), key=str.lower)]
    return f"# {package}\n{_rst(f'.. automodule:: {package}')}" + "".join(entries)


def _entry(package: str, name: str, thing: object) -> str:
    kind = "function" if inspect.isroutine(thing) else "data"
    if inspect.ismodule(thing):
        kind = "module"
    elif isinstance(thing, type):
        kind = "exception" if issubclass(thing, BaseException) else "class"
    members = f"{NEXT}:members:" if kind in ("module", "exception", "class") else ""
    return f"\n## {name}\n{_rst(f'.. auto{kind}:: {package}.{name}{members}')}"


def warnings(source: Path, output: Path, doctrees: Path) -> list[str]:
    """Build the site. Returns what Sphinx warns of, a line each."""
    said = io.StringIO()
    gc.disable()  # all pages are kept as trees, 0.9 GB: to look for garbage in them is a third of the time
    SearchEnglish.stem = cache(SearchEnglish.stem)  # type: ignore[method-assign] # most words are on many pages
    app = Sphinx(source, None, output, doctrees, "html", SETTINGS, status=None, warning=said, freshenv=True)
    app.connect("html-page-context", _before_the_theme, priority=400)
    app.connect("html-page-context", _after_the_theme, priority=600)
    app.build(True)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue())
    return [line for line in plain.replace(f"{source}{os.sep}", "").splitlines() if line]


# The navigation is made once for all pages of a folder: for each page again it takes a third of the time.


def _before_the_theme(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    context["toctree"] = partial(_navigation, app.builder, posixpath.dirname(page))


@cache
def _navigation(builder: StandaloneHTMLBuilder, folder: str, **options: Any) -> str:
    tree = global_toctree_for_doc(builder.env, posixpath.join(folder, ""), builder, tags=builder.tags, **options)
    return builder.render_partial(tree)["fragment"]


def _after_the_theme(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Shows where the page is: its entry, and those above it, which are open."""
    places = [(parent["link"], "current") for parent in context["parents"]]
    for link, shown in (*places, (f"{posixpath.basename(page)}.html", "current current-page")):
        entry = rf'(<li class="[^"]*)("><a [^>]*href="{re.escape(link)}">.*?</a>)(<input)?'
        context["furo_navigation_tree"] = re.sub(
            entry,
            lambda found: f"{found[1]} {shown}{found[2]}" + ('<input checked=""' if found[3] else ""),  # noqa: B023
            context["furo_navigation_tree"],
        )


if __name__ == "__main__":
    sys.exit(main())
