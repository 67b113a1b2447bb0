"""Runs of recorded answers whose truth is known: a judge that misreads some of them, at rates that are planted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import frozen
from click.testing import CliRunner, Result
from karenina_cli.root import karenina

FIELDS = ("gene", "dose")
EXPECTED: Mapping[str, Any] = {"gene": "BCL2", "dose": 200}
WRONG: Mapping[str, Any] = {"gene": "MCL1", "dose": 400}
OTHER: Mapping[str, Any] = {"gene": "TP53", "dose": 800}
TYPES = {"gene": "str", "dose": "int"}


def template(note: str = "") -> str:
    fields = [
        {
            "name": name,
            "type": TYPES[name],
            "description": f"The {name} that the response names{note}",
            "ground_truth": EXPECTED[name],
            "verify_with": {"type": "ExactMatch" if name == "gene" else "NumericExact"},
        }
        for name in FIELDS
    ]
    return json.dumps({"class_name": "Answer", "fields": fields})


@frozen(kw_only=True)
class Planted:
    """A run, and what its answers really say."""

    path: Path
    benchmark: Path
    truth: Mapping[str, Mapping[str, Any]]
    """`{question: {field: what the answer says}}`."""
    read: Mapping[str, Mapping[str, Any]]
    """The same as the judge extracted it."""

    def right(self, question: str) -> bool:
        return all(self.truth[question][name] == EXPECTED[name] for name in FIELDS)


def plant(count: int, seed: int, wrong: float = 0.3, misread: float = 0.15) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the answers say and what the judge reads: a field is wrong, and is misread, with these chances."""
    chance, truth, read = Random(seed), {}, {}
    for number in range(count):
        own = {name: WRONG[name] if chance.random() < wrong else EXPECTED[name] for name in FIELDS}
        seen = {
            name: chance.choice([OTHER[name], EXPECTED[name], WRONG[name]]) if chance.random() < misread else own[name]
            for name in FIELDS
        }
        truth[f"q{number:03}"], read[f"q{number:03}"] = own, seen
    return truth, read


def call(*arguments: Any, typed: str | None = None) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(karenina, [str(argument) for argument in arguments], input=typed)


def benchmark_file(path: Path, questions: int, note: str = "", pattern: str = "mg") -> Path:
    from karenina_core import Benchmark, Question, RegexRubricTrait, Rubric

    asked = [
        Question(
            id=f"q{number:03}",
            question=f"Which gene is target {number}, and what is the dose?",
            raw_answer="BCL2, 200 mg",
            answer_template=template(note),
            template_language="karenina-template",
        )
        for number in range(questions)
    ]
    rubric = Rubric(regex_traits=[RegexRubricTrait(name="names a unit", pattern=pattern)])
    Benchmark(name="targets", questions=asked, rubric=rubric).save(path)
    return path


def recorded(path: Path, truth: Mapping[str, Any], read: Mapping[str, Any]) -> Path:
    answers = {
        name: {"answer": f"It is {own['gene']}, and the dose is {own['dose']} mg.", "fields": read[name]}
        for name, own in truth.items()
    }
    path.write_text(json.dumps(answers), "utf-8")
    return path


@pytest.fixture(scope="session")
def planted_run() -> Callable[..., Planted]:
    """`planted_run(folder, questions, *options, seed=..., ...)` runs recorded answers with planted errors."""

    def make(folder: Path, count: int, *options: str, seed: int = 1, **about: str) -> Planted:
        folder.mkdir(parents=True, exist_ok=True)
        truth, read = plant(count, seed)
        benchmark = benchmark_file(folder / "targets.jsonld", count, **about)
        answers, run = recorded(folder / "answers.json", truth, read), folder / "run"
        done = call(
            *("verify", benchmark, "--interface", "manual", "--manual-traces", answers, "--out", run, "--quiet"),
            *options,
        )
        assert done.exit_code == 0, done.output
        return Planted(path=run, benchmark=benchmark, truth=truth, read=read)

    return make


@pytest.fixture(scope="session")
def labelled_run(planted_run: Callable[..., Planted], tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """A run of 120 questions, half of which are drawn and labelled rightly by ann: verdicts and fields."""
    found = planted_run(tmp_path_factory.mktemp("labelled"), 120)
    label(found, 60)
    return found


def label(
    found: Planted, size: int, *options: Any, annotator: str = "ann", kinds: tuple[str, ...] = ("verdict", "fields")
) -> Path:
    """Draw answers, and label them as they really are, through a sheet."""
    import csv

    sheet, what = found.path.parent / "sheet.csv", [part for kind in kinds for part in ("--what", kind)]
    done = call("label", found.path, "--n", size, "--annotator", annotator, "--export", sheet, *what, *options)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    for row in rows:
        number = row["question"].split()[4].rstrip(",")
        question = f"q{int(number):03}"
        row |= {f"field {name}": str(found.truth[question][name]) for name in FIELDS if "fields" in kinds}
        row |= {"verdict": "right" if found.right(question) else "wrong"} if "verdict" in kinds else {}
    with sheet.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    done = call("label", found.path, "--import", sheet, *[o for o in options if str(o).startswith("--labels")])
    assert done.exit_code == 0, done.output
    return sheet


@pytest.fixture(scope="session")
def command() -> Callable[..., Result]:
    """`command("certify", path, ...)`: the command line, in this process; `typed` is what a person types."""
    return call


@pytest.fixture(scope="session")
def labels_of() -> Callable[..., Path]:
    """`labels_of(run, size, ...)` draws answers and labels them as they really are; see `label`."""
    return label


@pytest.fixture(scope="session")
def make_benchmark() -> Callable[..., Path]:
    """`make_benchmark(path, questions, note=..., pattern=...)`; see `benchmark_file`."""
    return benchmark_file
