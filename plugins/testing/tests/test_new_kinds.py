"""Checks of primitives, loaders and commands: planted faults are found, each by the promise that it breaks."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from attrs import define, field, frozen
from karenina_testing.checks import BrokenPromise, Check, run_checks

from karenina_core import BenchmarkData, Question, hookimpl
from karenina_core.errors import BenchmarkError, ConfigError
from karenina_core.templates import ExactMatch, NumericTolerance, RegexMatch, VerificationPrimitive
from karenina_core.testing import command_checks, loader_checks, primitive_checks


@frozen
class Sound(VerificationPrimitive):
    """The same text but for capitals. Each fault below changes one thing of it."""

    def check(self, extracted: Any, expected: Any) -> bool:
        return _text(extracted).lower() == _text(expected).lower()

    def check_ground_truth(self, expected: Any) -> None:
        _text(expected)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


TURNS = itertools.count()


@frozen
class Truthy(Sound):
    def check(self, extracted: Any, expected: Any) -> Any:
        return _text(extracted) in _text(expected) and extracted


@frozen
class Crashing(Sound):
    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(extracted[0] == expected[0])


@frozen
class Moody(Sound):
    def check(self, extracted: Any, expected: Any) -> bool:
        return next(TURNS) % 2 == 0


@frozen
class Generous(Sound):
    def score(self, extracted: Any, expected: Any) -> float:
        return 1.5 if self.check(extracted, expected) else 0.0


@frozen
class Contradicting(Sound):
    def score(self, extracted: Any, expected: Any) -> float:
        return 0.0 if self.check(extracted, expected) else 1.0


@frozen
class Different(Sound):
    def check(self, extracted: Any, expected: Any) -> bool:
        return _text(extracted) != _text(expected)


@frozen
class Sorting(Sound):
    def check(self, extracted: Any, expected: Any) -> bool:
        if isinstance(extracted, list):
            extracted.append("seen")
        return super().check(extracted, expected)


@frozen
class Ignoring(Sound):
    uses_ground_truth = False


@frozen
class Chatty(Sound):
    def remark(self, extracted: Any, expected: Any) -> Any:
        return ["nothing to say"]


@define
class Changeable(VerificationPrimitive):
    """It can be changed, and so it has no hash."""

    least: int = 0

    def check(self, extracted: Any, expected: Any) -> bool:
        return _text(extracted) == _text(expected)


@frozen
class Unwritable(Sound):
    words: Any = field(factory=lambda: frozenset({"a"}))


class NoBase:
    def check(self, extracted: Any, expected: Any) -> bool:
        return True


FAULTS = {
    "bool": Truthy,
    "errors": Crashing,
    "repeatable": Moody,
    "score": Generous,
    "ground_truth": Different,
    "untouched": Sorting,
    "placeholder": Ignoring,
    "remark": Chatty,
    "frozen": Changeable,
    "as_data": Unwritable,
    "derived": NoBase,
}


def message(checks: list[Check], name: str) -> str:
    with pytest.raises(BrokenPromise) as broken:
        next(check for check in checks if check.name == name).run()
    return str(broken.value)


@pytest.mark.parametrize("primitive", [Sound, ExactMatch])
def test_a_sound_primitive_passes(primitive: type) -> None:
    run_checks(primitive_checks(primitive, pairs=[("Gout", "gout"), ("EGFR", "EGFR")]))


@pytest.mark.parametrize(
    "example", [NumericTolerance(0.1), NumericTolerance(2, mode="absolute"), RegexMatch(pattern=r"\d+")]
)
def test_built_in_primitives_pass_with_examples(example: Any) -> None:
    run_checks(primitive_checks(type(example), examples=[example], pairs=[("a 1", "a 1"), (1, 1)]))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_primitive_is_found_with_its_line(name: str) -> None:
    said = message(primitive_checks(FAULTS[name], pairs=[("Gout", "gout"), ("a", "ab")]), name)
    assert said.startswith(f"primitive {FAULTS[name].__name__} breaks {name}: ")
    if name != "derived":
        assert "test_new_kinds.py:" in said


def test_scores_that_contradict_the_verdict_are_found() -> None:
    assert "check said" in message(primitive_checks(Contradicting), "score")


def test_a_primitive_with_parameters_needs_examples() -> None:
    with pytest.raises(ConfigError, match=r"examples=\[NumericTolerance"):
        primitive_checks(NumericTolerance)


FILE = b'{"question": "Which enzyme splits lactose?", "answer": "lactase"}\n'


class Lines:
    """A sound loader and writer of JSON lines. Each fault below changes one thing of it."""

    @hookimpl
    def karenina_load_benchmark(self, path: Path, data: bytes) -> Any:
        return self.read(path, data) if path.suffix == ".lines" else None

    @hookimpl
    def karenina_save_benchmark(self, benchmark: BenchmarkData, path: Path) -> Any:
        if path.suffix != ".lines":
            return None
        rows = [{"question": q.question, "answer": q.raw_answer} for q in benchmark.questions]
        return "".join(f"{json.dumps(row)}\n" for row in rows).encode()

    def read(self, path: Path, data: bytes) -> Any:
        try:
            rows = [json.loads(line) for line in data.decode().splitlines() if line.strip()]
            questions = {q.id: q for q in (self.question(path, row) for row in rows)}
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise BenchmarkError(f"{path.name}: {error}") from error
        return BenchmarkData(name="lines", questions=tuple(questions.values()))

    def question(self, path: Path, row: Any) -> Question:
        if not isinstance(row, dict) or not isinstance(row["answer"], str):
            raise ValueError("no question")
        return Question(question=row["question"], raw_answer=row["answer"])


class Greedy(Lines):
    @hookimpl
    def karenina_load_benchmark(self, path: Path, data: bytes) -> Any:
        return BenchmarkData(name="all") if path.suffix != ".lines" else self.read(path, data)


class TakesJson(Lines):
    @hookimpl
    def karenina_load_benchmark(self, path: Path, data: bytes) -> Any:
        return BenchmarkData(name="all") if path.suffix == ".json" else super().karenina_load_benchmark(path, data)


class Fragile(Lines):
    def read(self, path: Path, data: bytes) -> Any:
        rows = [json.loads(line) for line in data.splitlines()]
        return BenchmarkData(name="lines", questions=[Question(question=r["question"]) for r in rows])


class Evaluating(Lines):
    def question(self, path: Path, row: Any) -> Question:
        with suppress(SyntaxError):
            eval(row["question"])
        return super().question(path, row)


class PathIds(Lines):
    def question(self, path: Path, row: Any) -> Question:
        return Question(id=f"{path}-1", question=super().question(path, row).question)


class Dictionaries(Lines):
    def read(self, path: Path, data: bytes) -> Any:
        return {"questions": []}


class Forgetful(Lines):
    def question(self, path: Path, row: Any) -> Question:
        sound = super().question(path, row)
        return Question(question=sound.question, raw_answer=sound.raw_answer, keywords=["enzyme"] * len(row))

    def read(self, path: Path, data: bytes) -> Any:
        return BenchmarkData(name=f"lines-{len(data)}", questions=super().read(path, data).questions)


class WritesAll(Lines):
    @hookimpl
    def karenina_save_benchmark(self, benchmark: BenchmarkData, path: Path) -> Any:
        return super().karenina_save_benchmark(benchmark, path.with_suffix(".lines"))


def checks_of(loader: Any) -> list[Check]:
    return loader_checks(loader, files={"lactose.lines": FILE.replace(b'": ', b'" : ')})


def test_a_sound_loader_passes() -> None:
    run_checks(checks_of(Lines()))


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("others", Greedy),
        ("json_ld", TakesJson),
        ("broken", Fragile),
        ("inert", Evaluating),
        ("repeatable", PathIds),
        ("reads", Dictionaries),
        ("round_trip", Forgetful),
        ("other_suffixes", WritesAll),
    ],
)
def test_a_fault_of_a_loader_is_found_with_its_line(name: str, loader: type) -> None:
    said = message(checks_of(loader()), name)
    assert said.startswith(f"loader of benchmarks breaks {name}: ")
    assert "test_new_kinds.py:" in said


def test_a_loader_needs_files() -> None:
    with pytest.raises(ValueError, match="give the checks files that it reads"):
        loader_checks(Lines(), files={})


@click.command(short_help="Count lines.")
@click.argument("file")
@click.option("--twice", is_flag=True, help="Count twice.")
def sound(file: str, twice: bool) -> None:
    """Count the lines of FILE."""
    if not Path(file).exists():
        raise BenchmarkError(f"there is no file {file}")


@click.command()
@click.argument("file")
def helpless(file: str) -> None:
    raise BenchmarkError("no")


@click.command(short_help="Count lines.")
@click.argument("file")
def raising(file: str) -> None:
    Path(file).read_text("utf-8")


@click.command(short_help="Count lines.")
@click.argument("file")
def silent(file: str) -> None:
    click.echo("done")


@click.command(short_help="Count lines.", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1)
def lenient(words: tuple[str, ...]) -> None:
    click.echo("done")


@click.command(short_help="Show results.", name="show")
def taken() -> None:
    click.echo("done")


@click.command(short_help="Count lines.", add_help_option=False)
@click.option("--help", "wanted", is_flag=True, help="Help.")
def unhelpful(wanted: bool) -> None:
    raise SystemExit(5)


def test_a_sound_command_passes() -> None:
    run_checks([c for c in command_checks(sound, name="count-lines") if c.name != "light_import"])


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("help", helpless),
        ("errors", raising),
        ("errors", silent),
        ("wrong_option", lenient),
        ("own_name", taken),
        ("help_option", unhelpful),
        ("command", "no command"),
    ],
)
def test_a_fault_of_a_command_is_found(name: str, command: Any) -> None:
    assert message(command_checks(command, name=getattr(command, "name", "count")), name).startswith("command ")
