"""The reference says what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from karenina_core.errors import ErrorKind
from karenina_core.values.outcome import OutcomeName

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_generated_parts_are_up_to_date(repository: Path) -> None:
    script = repository / "docs" / "generate.py"
    ran = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", [*get_args(OutcomeName), *get_args(ErrorKind)])
def test_every_outcome_and_every_kind_of_error_is_explained(name: str, repository: Path) -> None:
    page = (repository / "docs" / "reference" / "outcomes.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    assert rows
    assert any(len(row.split("|")[-2].split()) >= 3 for row in rows), "a row without an explanation"


def _anchors(text: str) -> set[str]:
    """The ids that headings get: lower case, without punctuation, hyphens for spaces."""
    headings = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_page_says_what_it_is_for_and_its_links_lead_somewhere(page: Path, repository: Path) -> None:
    text = page.read_text("utf-8")
    for target in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name}: {target}"
        assert linked.is_relative_to(repository), f"{page.name}: {target} leaves the repository"
        if anchor:
            assert anchor in _anchors(linked.read_text("utf-8")), f"{page.name}: {target}"
    title, beginning, *_ = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL).split("\n\n")
    assert title.startswith("# ")
    assert re.match(r"[^#|\-\s]", beginning), beginning
    assert not beginning.startswith("```")
    assert len(beginning.split()) >= 3


def test_every_page_can_be_reached_from_the_readme(repository: Path) -> None:
    seen: set[Path] = set()
    waiting = [repository / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        targets = [target.partition("#")[0] for target in LINK.findall(page.read_text("utf-8"))]
        waiting += [(page.parent / target).resolve() for target in targets if target and ":" not in target]
    assert {path.relative_to(repository) for path in (repository / "docs").rglob("*.md") if path not in seen} == set()
