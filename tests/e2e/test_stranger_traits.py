"""A trait type of a package from elsewhere: installed beside karenina, it is read, scored, shown and saved.

The package is built to a wheel and unpacked into a folder that is added to the path of the processes that are started
here: found by its metadata alone, as any installed package. Nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_judging.untrusted_text import UNTRUSTED_NOTE

from karenina_core.testing import Reply, ScriptedServer, ServedRequest

PACKAGE = Path(__file__).parents[1] / "packages" / "citations"
DOIS = "It binds BCL-2 (10.1038/nm.3048) with high affinity (doi:10.1056/NEJMoa1513257)."
LISTED = "It binds BCL-2 [1], as was shown twice [2].\n\n[1] Souers et al., 2013\n[2] Roberts et al., 2016"
UNLISTED = "It binds BCL-2 [1], as was shown twice [2]."
ANSWERS = {"dois": DOIS, "listed": LISTED, "unlisted": UNLISTED}


def prop(name: str, value: Any) -> dict[str, Any]:
    return {"@type": "PropertyValue", "name": name, "value": value}


def rating(name: str, kind: str, *properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "@type": "Rating",
        "name": name,
        "bestRating": 1,
        "worstRating": 0,
        "additionalType": f"karenina:{kind}",
        "additionalProperty": list(properties),
        **more,
    }


def item(name: str, *ratings: dict[str, Any]) -> dict[str, Any]:
    question = {
        "@type": "Question",
        "text": f"What does venetoclax bind? ({name})",
        "acceptedAnswer": {"@type": "Answer", "text": "BCL-2"},
        "hasPart": {"@type": "SoftwareSourceCode", "name": "Template", "text": "", "programmingLanguage": "Python"},
        "rating": list(ratings),
        "additionalProperty": [prop("finished", True)],
    }
    return {"@type": "DataFeedItem", "@id": name, "item": question}


PAPERS = [prop("style", "doi"), prop("minimum", 2)]
FEED = {
    "@context": "https://schema.org/",
    "@type": "DataFeed",
    "name": "Citations",
    "dateModified": "2024-01-01",
    "rating": [
        rating("Cites papers", "GlobalCitationTrait", *PAPERS, description="Two papers", **{"lab:reviewer": "Ada"}),
        rating("Numbers refer", "GlobalCitationTrait", prop("style", "numbered")),
        rating("Names the target", "GlobalRegexTrait", prop("pattern", "BCL-?2")),
        rating("Cites", "GlobalDynamicRubricTrait", prop("dynamic_trait_type", "citation"), prop("summary", "papers")),
    ],
    "dataFeedElement": [
        item("dois", rating("Cites three", "QuestionSpecificCitationTrait", prop("minimum", 3))),
        item("listed"),
        item("unlisted"),
    ],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages that has the stranger's one."""
    folder = tmp_path_factory.mktemp("stranger")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, timeout=60)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def python(tmp_path: Path, forking: Any) -> Callable[..., str]:
    """`python(site, *words, code="")`: what a process of the command prints, or of some code, that finds the packages
    of `site` too; it must succeed."""
    (tmp_path / "citations.jsonld").write_text(json.dumps(FEED, indent=2), "utf-8")
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS), "utf-8")

    def run(site: Path | None, *words: str, code: str = "") -> str:
        environment = kept() if site is None else {**kept(), "PYTHONPATH": str(site)}
        prelude = f"{code}\nraise SystemExit(0)" if code else ""
        ran = forking.start(*words, prelude=prelude, folder=tmp_path, environment=environment)
        assert ran.wait() == 0, f"{words} {ran.stdout}{ran.stderr}"
        printed: str = ran.stdout
        return printed

    return run


def kept() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("KARENINA_", "PYTHON"))}


RUN = ("verify", "citations.jsonld", "--mode", "rubric_only", "--out", "run", "--quiet")
MANUAL = ("--answering-interface", "manual", "--manual-traces", "answers.json")


def results(folder: Path) -> dict[str, Any]:
    lines = (folder / "run" / "results.jsonl").read_text("utf-8").splitlines()
    return {result["metadata"]["question_id"]: result for result in map(json.loads, lines)}


def test_its_evaluators_are_listed_by_the_console_script(site: Path) -> None:
    command = [str(Path(sys.executable).with_name("karenina")), "plugins", "--json"]
    environment = {**kept(), "PYTHONPATH": str(site)}
    found = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60).stdout)
    listed = {plugin["name"]: plugin for plugin in found["plugins"]}
    for name, evaluator in (("citations", "citation"), ("jargon", "jargon")):
        assert listed[name] | {"reason": ""} == {
            "name": name,
            "kinds": ["trait evaluator"],
            "distribution": "karenina-stranger-citations",
            "version": "1.2.0",
            "state": "active",
            "reason": "",
            "brings": {"trait evaluator": [evaluator]},
        }


def test_its_traits_are_scored_in_a_run_and_one_that_fails_costs_no_other_its_score(
    site: Path, python: Callable[..., str], tmp_path: Path
) -> None:
    """Numbers refer to nothing in some answers: a failure with a reason, not a score."""
    python(site, *RUN, *MANUAL)
    found = results(tmp_path)
    rubric = found["dois"]["rubric"]
    assert rubric["extra_trait_scores"]["citation"] == {
        "Cites papers": True,
        "Cites three": False,
        "Numbers refer": None,
        "Cites": True,
    }
    papers = {"found": 2, "examples": ["10.1038/nm.3048", "10.1056/NEJMoa1513257"]}
    assert rubric["trait_details"] == dict.fromkeys(("Cites papers", "Cites three", "Cites"), papers)
    assert rubric["trait_provenance"] == {
        "Cites papers": "global",
        "Numbers refer": "global",
        "Names the target": "global",
        "Cites three": "question_specific",
        "Cites": "dynamic",
    }
    assert "Cites papers" in python(site, "show", "run", "dois")
    assert {name: found[name]["rubric"]["extra_trait_scores"]["citation"]["Numbers refer"] for name in ANSWERS} == {
        "dois": None,
        "listed": True,
        "unlisted": None,
    }
    rubric = found["unlisted"]["rubric"]
    assert rubric["trait_states"]["Numbers refer"]["state"] == "error"
    assert "no list of references" in rubric["trait_states"]["Numbers refer"]["reason"]
    assert rubric["extra_trait_scores"]["citation"]["Cites papers"] is False
    assert rubric["regex_trait_scores"] == {"Names the target": True}
    assert found["unlisted"]["metadata"]["completed_without_errors"] is True


JARGON = {
    "@context": "https://schema.org/",
    "@type": "DataFeed",
    "name": "Jargon",
    "dateModified": "2024-01-01",
    "rating": [
        rating("Plain", "GlobalJargonTrait"),
        rating("Hardly any jargon", "GlobalJargonTrait", prop("most", 1)),
        rating("Names a cell", "GlobalRegexTrait", prop("pattern", "cell")),
    ],
    "dataFeedElement": [item("works"), item("fails")],
}
PLAIN = "It lets tumour cells die by apoptosis."


def judge(request: ServedRequest) -> Any:
    """Answers, and lists words. What it lists first is not in the answer; about one question it cannot be asked."""
    if not request.schema:
        return PLAIN
    if "(fails)" in request.text:
        return Reply.error(401)
    return {"words": ["apoptosis"] if "these are not in the response" in request.text else ["hepatotoxic"]}


def test_a_trait_of_it_asks_the_judge(site: Path, python: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "jargon.jsonld").write_text(json.dumps(JARGON), "utf-8")
    with ScriptedServer(judge) as server:
        model = ("model", "any", "interface", "openai_endpoint", "base-url", server.url)
        models = [
            word
            for role in ("answering", "parsing")
            for name, value in zip(model[::2], model[1::2], strict=True)
            for word in (f"--{role}-{name}", value)
        ]
        words = [word.replace("citations.jsonld", "jargon.jsonld") for word in RUN]
        python(site, *words, *models)
        asked = [request for request in server.requests if request.schema and "(works)" in request.text]
    found = results(tmp_path)
    rubric = found["works"]["rubric"]
    assert rubric["extra_trait_scores"]["jargon"] == {"Plain": False, "Hardly any jargon": True}
    assert rubric["trait_details"]["Plain"] == {"words": ["apoptosis"]}
    marked = f'label="trace">\n{PLAIN}\n</untrusted-'
    assert all(UNTRUSTED_NOTE in request.text and marked in request.text for request in asked)
    rubric = found["fails"]["rubric"]
    assert rubric["extra_trait_scores"]["jargon"] == {"Plain": None, "Hardly any jargon": None}
    assert rubric["trait_states"]["Plain"]["state"] == "error"
    assert rubric["regex_trait_scores"] == {"Names a cell": True}


KIT = """
import karenina_stranger_citations as citations, karenina_stranger_jargon as jargon
from karenina_core.testing import check_trait_evaluator

numbers = citations.CitationTrait(name="numbers", style="numbered")
papers = [citations.CitationTrait(name="papers"), citations.CitationTrait(name="many papers", minimum=3)]
check_trait_evaluator(citations.CitationEvaluator, papers, broken=[numbers])
check_trait_evaluator(jargon.JargonEvaluator, [jargon.JargonTrait(name="plain"), jargon.JargonTrait(name="b", most=3)])
"""


def test_it_keeps_the_promises_of_trait_evaluators(site: Path, python: Callable[..., str]) -> None:
    assert python(site, code=KIT) == ""


ROUND_TRIP = """
import json
from attrs import evolve
from karenina_core import Benchmark

first = Benchmark.load("citations.jsonld")
assert not first.warnings, first.warnings
again = Benchmark.load(first.save("again.jsonld"))
copy = Benchmark.load(Benchmark(name="new", rubric=first.rubric, dynamic_rubric=first.dynamic_rubric,
                                questions=first.questions).save("new.jsonld"))
trait = first.rubric.extra_traits[0]
changed = evolve(first.rubric, extra_traits=[evolve(trait, minimum=5), *first.rubric.extra_traits[1:]])
first.with_rubric(changed).save("changed.jsonld")
print(json.dumps({
    "type": type(trait).__name__,
    "same": again == evolve(first, date_modified=again.date_modified),
    "copied": [copy.rubric == first.rubric, copy.dynamic_rubric == first.dynamic_rubric,
               [q.question_rubric for q in copy] == [q.question_rubric for q in first]],
    "changed": Benchmark.load("changed.jsonld").rubric == changed,
}))
"""


def test_a_benchmark_is_the_same_after_saving_and_loading(
    site: Path, python: Callable[..., str], tmp_path: Path
) -> None:
    assert json.loads(python(site, code=ROUND_TRIP)) == {
        "type": "CitationTrait",
        "same": True,
        "copied": [True, True, True],
        "changed": True,
    }
    again = json.loads((tmp_path / "again.jsonld").read_text("utf-8"))
    assert again | {"dateModified": ""} == FEED | {"dateModified": ""}
    node = json.loads((tmp_path / "changed.jsonld").read_text("utf-8"))["rating"][0]
    assert node["lab:reviewer"] == "Ada"
    assert prop("minimum", 5) in node["additionalProperty"]


WITHOUT = """
from karenina_core import Benchmark

benchmark = Benchmark.load("citations.jsonld")
benchmark.save("again.jsonld")
print(len(benchmark.rubric), benchmark.dynamic_rubric, *benchmark.warnings, sep="\\n")
"""


def test_without_it_the_ratings_are_kept_and_told(python: Callable[..., str], tmp_path: Path) -> None:
    count, dynamic, *warnings = python(None, code=WITHOUT).splitlines()
    assert (count, dynamic) == ("1", "None")
    assert len(warnings) == 4
    assert all("unknown" in warning and "install the package" in warning for warning in warnings)
    before, after = ((tmp_path / name).read_text("utf-8") for name in ("citations.jsonld", "again.jsonld"))
    assert after == before.replace("2024-01-01", json.loads(after)["dateModified"])


def test_the_trait_scores_as_its_page_says() -> None:
    """The package is small enough to be read as an example, so its rules are tested where they stand."""
    names: dict[str, Any] = {"__name__": "karenina_stranger_citations"}
    exec(compile((PACKAGE / "karenina_stranger_citations.py").read_text("utf-8"), "citations", "exec"), names)
    citations = names["citations"]
    assert citations(DOIS, "doi") == ["10.1038/nm.3048", "10.1056/NEJMoa1513257"]
    assert citations(f"{DOIS} {DOIS}", "doi") == citations(DOIS, "doi")
    assert citations(LISTED, "numbered") == ["1", "2"]
    assert citations(LISTED.replace("[2] Rob", "Rob"), "numbered") == ["1"]
    with pytest.raises(ValueError, match="no list of references"):
        citations(UNLISTED, "numbered")
