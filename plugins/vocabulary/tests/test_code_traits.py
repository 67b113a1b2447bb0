"""Callable traits as values: a function in, bytes in the file, and nothing that runs by itself."""

from __future__ import annotations

import base64
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from karenina_core import CallableRubricTrait
from karenina_core.errors import ConfigError, PluginError
from karenina_core.values.convert import structure, unstructure

LOCK = threading.Lock()


def is_short(text: str) -> bool:
    return len(text) < 20


def made(function: Callable[..., Any] = is_short, **facts: Any) -> CallableRubricTrait:
    return CallableRubricTrait.from_callable("t", function, **{"kind": "boolean", **facts})


# What a function must be


class Scorer:
    def __call__(self, text: str) -> bool:
        return True

    def method(self, text: str) -> bool:
        return True


@pytest.mark.parametrize("function", [is_short, lambda text: True, len, Scorer(), Scorer().method, partial(is_short)])
def test_a_function_of_one_parameter_makes_a_trait(function: Any) -> None:
    trait = made(function)
    assert trait.function is function
    assert trait.usable
    assert callable(pickle.loads(trait.callable_code or b""))


async def coroutine(text: str) -> bool:
    return True


async def async_generator(text: str) -> Any:
    yield True


class AsyncScorer:
    async def __call__(self, text: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: True, r"exactly one parameter, the text; it takes \(none\)"),
        (lambda text, other: True, r"it takes \(text, other\)"),
        (lambda text, other=1: True, r"it takes \(text, other=1\)"),
        (lambda *texts: True, "exactly one parameter"),
        (lambda **texts: True, "exactly one parameter"),
        (lambda *, text: True, "exactly one parameter"),
        (bool, "does not say what parameters it takes"),
        ("is_short", "is not a function"),
        (None, "is not a function"),
        (coroutine, "the function is async; give a plain one"),
        (partial(coroutine), "the function is async"),
        (AsyncScorer(), "the function is async"),
        (async_generator, "the function is an async generator"),
        (lambda text: (yield), "the function is a generator"),
    ],
)
def test_anything_else_is_refused(function: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made(function)


def test_a_function_that_cannot_be_pickled_is_refused_with_the_reason() -> None:
    lock = threading.Lock()
    with pytest.raises(
        ValueError, match=r"cannot be saved: TypeError: cannot pickle '_thread.lock'.*inside the function"
    ):
        made(lambda text: lock.locked())
    with pytest.raises(ValueError, match="cannot be saved"):
        made(lambda text: LOCK.locked())


def test_without_cloudpickle_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(PluginError, match="pip install karenina-rubric"):
        made()


# What its score may be


def test_a_score_needs_both_bounds_in_order() -> None:
    trait = made(len, kind="score", min_score=0, max_score=10)
    assert (trait.min_score, trait.max_score) == (0, 10)
    assert [trait.validate_score(value) for value in (0, 2.5, 10, 10.5, True, "3")] == [
        *(True, True, True),
        *(False, False, False),
    ]
    for low, high in ((None, None), (1, None), (None, 5), (5, 5), (6, 5)):
        with pytest.raises(ValueError, match="min_score"):
            made(len, kind="score", min_score=low, max_score=high)


@pytest.mark.parametrize("kind", ["boolean", "literal"])
@pytest.mark.parametrize("bound", ["min_score", "max_score"])
def test_bounds_are_for_scores_alone(kind: str, bound: str) -> None:
    facts: dict[str, Any] = {"kind": kind, bound: 0, "classes": {"a": None, "b": None} if kind == "literal" else None}
    with pytest.raises(ValueError, match="min_score and max_score are for the kind score"):
        made(**facts)


def test_a_literal_trait_takes_its_bounds_from_its_classes() -> None:
    trait = made(kind="literal", classes={"low": "Little", "high": None, "top": None})
    assert (trait.min_score, trait.max_score) == (0, 2)
    with pytest.raises(ValueError, match="2 to 20 classes"):
        made(kind="literal")
    with pytest.raises(ValueError, match="classes are for the kind literal"):
        made(classes={"a": None, "b": None})


def test_only_booleans_are_inverted_and_template_kinds_are_refused() -> None:
    assert made(invert_result=True).invert_result
    with pytest.raises(ValueError, match="invert_result is for boolean traits"):
        made(len, kind="score", min_score=0, max_score=1, invert_result=True)
    with pytest.raises(ValueError, match="no template kind"):
        made(kind={"type": "template", "schema": {"type": "object"}})


def test_every_field_arrives() -> None:
    facts: dict[str, Any] = {"description": "d", "summary": "s", "higher_is_better": False, "invert_result": True}
    trait = made(**facts)
    assert {name: getattr(trait, name) for name in facts} == facts


# The live function belongs to this process


def test_the_function_is_not_compared_shown_or_saved() -> None:
    live = made()
    data = unstructure(live)
    assert "function" not in data
    assert base64.b64decode(data["callable_code"]) == live.callable_code
    read = structure(data, CallableRubricTrait)
    assert read.function is None
    assert read == live
    assert "is_short" not in repr(live)


def test_a_copy_keeps_the_function() -> None:
    assert attrs.evolve(made(), name="other").function is is_short


def test_data_cannot_bring_a_function() -> None:
    data = {"name": "t", "kind": "boolean", "callable_code": base64.b64encode(b"x").decode()}
    with pytest.raises(ConfigError, match="function"):
        structure({**data, "function": "os.system"}, CallableRubricTrait)


def test_a_function_without_its_code_would_be_lost_in_the_file_and_is_refused() -> None:
    with pytest.raises(ValueError, match="from_callable"):
        CallableRubricTrait(name="t", kind="boolean", function=is_short)


def test_reading_code_runs_nothing() -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return pytest.fail, ("the code was run",)

    code = base64.b64encode(pickle.dumps(Trap())).decode()
    trait = structure({"name": "t", "kind": "boolean", "callable_code": code}, CallableRubricTrait)
    assert trait.usable


def test_a_trait_of_an_older_file_without_code_is_kept_and_cannot_be_used() -> None:
    trait = CallableRubricTrait(name="t", kind="score")
    assert not trait.usable
    assert not unstructure(trait)["callable_code"]


# The bytes need no other file of their author

MODULE = """
import re

PATTERN = re.compile(r"COX-\\d")

def found(text):
    return PATTERN.findall(text)

def targets(text):
    return len(found(text))
"""
WRITE = """
import sys, pathlib
from karenina_core import CallableRubricTrait
import my_scorers
trait = CallableRubricTrait.from_callable("t", my_scorers.targets, kind="score", min_score=0, max_score=9)
pathlib.Path(sys.argv[1]).write_bytes(trait.callable_code)
import cloudpickle
assert not cloudpickle.list_registry_pickle_by_value()
"""
READ = """
import sys, pathlib, pickle
targets = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
print(targets("COX-1 and COX-2"), "my_scorers" in sys.modules)
"""


def test_a_function_of_the_authors_own_module_runs_where_that_module_is_missing(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "my_scorers.py").write_text(MODULE, "utf-8")
    file = tmp_path / "code"
    command = [sys.executable, "-c"]
    subprocess.run([*command, WRITE, file], cwd=here, check=True, timeout=120)
    ran = subprocess.run([*command, READ, file], cwd=there, check=True, timeout=30, capture_output=True, text=True)
    assert ran.stdout.split() == ["2", "False"]


def test_functions_of_python_and_of_installed_packages_are_named_and_not_copied() -> None:
    assert len(made(len, kind="score", min_score=0, max_score=9).callable_code or b"") < 100
    assert len(made(attrs.fields, kind="score", min_score=0, max_score=9).callable_code or b"") < 100
