"""A part of results from a package from elsewhere: written by its stage, read, shown and exported.

Its wheel is built and unpacked into a folder of its own, so that it is found by its metadata alone.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "packages" / "readability"
KARENINA = ("-c", "from karenina_cli import main; main()")
ANSWER = "It binds BCL-2. That is a protein of the outer membrane."
LENGTHS = {"It binds BCL-2": 3, "That is a protein of the outer membrane": 8}
FEED = {
    "@context": "https://schema.org/",
    "@type": "DataFeed",
    "name": "Readable",
    "dateModified": "2024-01-01",
    "rating": [
        {
            "@type": "Rating",
            "name": "Names the target",
            "bestRating": 1,
            "worstRating": 0,
            "additionalType": "karenina:GlobalRegexTrait",
            "additionalProperty": [{"@type": "PropertyValue", "name": "pattern", "value": "BCL-?2"}],
        }
    ],
    "dataFeedElement": [
        {
            "@type": "DataFeedItem",
            "@id": "target",
            "item": {
                "@type": "Question",
                "text": "What does venetoclax bind?",
                "acceptedAnswer": {"@type": "Answer", "text": "BCL-2"},
                "hasPart": {"@type": "SoftwareSourceCode", "name": "T", "text": "", "programmingLanguage": "Python"},
                "additionalProperty": [{"@type": "PropertyValue", "name": "finished", "value": True}],
            },
        }
    ],
}
READ = """
import json, sys
from karenina_core import VerificationResult
from karenina_core.values.convert import structure, unstructure
line = open(sys.argv[1], encoding="utf-8").readline()
result = structure(json.loads(line), VerificationResult)
again = json.dumps(unstructure(result))
print(json.dumps([type(result.readability).__name__, json.loads(again) == json.loads(line)]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readability")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, timeout=60)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Callable[..., str]:
    """`python(site, *words)`: what a process prints that finds the packages of `site` too; a run is there."""
    folder = tmp_path_factory.mktemp("run")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KARENINA_", "PYTHON"))}

    def run(site: Path | None, *words: str | Path) -> str:
        ran = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=folder,
            env=kept if site is None else {**kept, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, f"{words} exited with {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    (folder / "readable.jsonld").write_text(json.dumps(FEED), "utf-8")
    (folder / "answers.json").write_text(json.dumps({"target": ANSWER}), "utf-8")
    options = ("--mode", "rubric_only", "--out", "run", "--quiet", "--answering-interface", "manual")
    run(site, *KARENINA, "verify", "readable.jsonld", *options, "--manual-traces", "answers.json")
    return run


def saved(python: Callable[..., str], site: Path | None) -> dict[str, Any]:
    return dict(json.loads(python(site, "-c", "print(open('run/results.jsonl', encoding='utf-8').readline())")))


def test_its_stage_fills_it(site: Path, python: Callable[..., str]) -> None:
    result = saved(python, site)
    assert result["readability"] == {"sentence_lengths": LENGTHS, "longest_sentence": 8}
    assert result["extensions"] == {}
    assert result["rubric"]["regex_trait_scores"] == {"Names the target": True}


def test_it_is_read_again_as_its_class_and_without_its_package_as_it_is(site: Path, python: Callable[..., str]) -> None:
    assert json.loads(python(site, "-c", READ, "run/results.jsonl")) == ["ReadabilityPart", True]
    assert json.loads(python(None, "-c", READ, "run/results.jsonl")) == ["dict", True]


@pytest.mark.parametrize("installed", [True, False], ids=["installed", "not installed"])
def test_it_is_shown_and_exported(site: Path, python: Callable[..., str], installed: bool) -> None:
    here = site if installed else None
    shown = python(here, *KARENINA, "show", "run", "target")
    assert "readability.longest_sentence" in shown
    name = f"table-{installed}.csv"
    python(here, *KARENINA, "export", "run", "-o", name)
    text = python(here, "-c", f"print(open({name!r}, encoding='utf-8').read())")
    (row,) = csv.DictReader(text.strip().splitlines())
    assert row["readability.longest_sentence"] == "8"
    assert json.loads(row["readability.sentence_lengths"]) == LENGTHS


def test_it_is_listed_with_its_owner(site: Path, python: Callable[..., str]) -> None:
    found = json.loads(python(site, *KARENINA, "plugins", "--json"))
    listed = {part["name"]: part for part in found["result_parts"]}
    assert listed["readability"] == {
        "name": "readability",
        "kinds": ["result part"],
        "distribution": "karenina-stranger-readability",
        "version": "0.4.0",
        "state": "active",
        "reason": "",
    }
    assert {"template", "rubric", "checks"} <= listed.keys()
