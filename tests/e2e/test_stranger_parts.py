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
import json
from karenina_core import VerificationResult
from karenina_core.values.convert import structure, unstructure
line = open("run/results.jsonl", encoding="utf-8").readline()
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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def python(folder: Path, site: Path, forking: Any) -> Callable[..., str]:
    """`python(site, *words, code="")`: what a process of the command prints, or of some code, that finds the packages
    of `site` too; a run is there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KARENINA_", "PYTHON"))}

    def run(site: Path | None, *words: str, code: str = "") -> str:
        environment = kept if site is None else {**kept, "PYTHONPATH": str(site)}
        prelude = f"{code}\nraise SystemExit(0)" if code else ""
        ran = forking.start(*words, prelude=prelude, folder=folder, environment=environment)
        assert ran.wait() == 0, f"{words} {ran.stdout}{ran.stderr}"
        printed: str = ran.stdout
        return printed

    (folder / "readable.jsonld").write_text(json.dumps(FEED), "utf-8")
    (folder / "answers.json").write_text(json.dumps({"target": ANSWER}), "utf-8")
    options = ("--mode", "rubric_only", "--out", "run", "--quiet", "--answering-interface", "manual")
    run(site, "verify", "readable.jsonld", *options, "--manual-traces", "answers.json")
    return run


@pytest.mark.usefixtures("python")
def test_its_stage_fills_it(folder: Path) -> None:
    result = json.loads((folder / "run" / "results.jsonl").read_text("utf-8"))
    assert result["readability"] == {"sentence_lengths": LENGTHS, "longest_sentence": 8}
    assert result["extensions"] == {}
    assert result["rubric"]["regex_trait_scores"] == {"Names the target": True}


def test_it_is_read_again_as_its_class_and_without_its_package_as_it_is(
    site: Path, folder: Path, python: Callable[..., str]
) -> None:
    """By an interpreter that starts: which classes parts of results have is looked up once for a process."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    started = subprocess.run(
        [sys.executable, "-c", READ], cwd=folder, env=environment, check=True, capture_output=True, timeout=60
    )
    assert json.loads(started.stdout) == ["ReadabilityPart", True]
    assert json.loads(python(None, code=READ)) == ["dict", True]


@pytest.mark.parametrize("installed", [True, False], ids=["installed", "not installed"])
def test_it_is_shown_and_exported(site: Path, folder: Path, python: Callable[..., str], installed: bool) -> None:
    here = site if installed else None
    shown = python(here, "show", "run", "target")
    assert "readability.longest_sentence" in shown
    name = f"table-{installed}.csv"
    python(here, "export", "run", "-o", name)
    text = (folder / name).read_text("utf-8")
    (row,) = csv.DictReader(text.strip().splitlines())
    assert row["readability.longest_sentence"] == "8"
    assert json.loads(row["readability.sentence_lengths"]) == LENGTHS


def test_it_is_listed_with_its_owner(site: Path, python: Callable[..., str]) -> None:
    found = json.loads(python(site, "plugins", "--json"))
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
