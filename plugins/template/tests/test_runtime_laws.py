"""What holds for every template, whichever runtime loads it."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import json
import subprocess
import sys
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template import declarative, in_process
from karenina_template import primitives as primitives_plugin
from karenina_template.declarative_templates import DeclarativeRuntime
from karenina_template.language.primitives.base import VerificationPrimitive
from karenina_template.language.strategies import condition_problems, condition_spec
from karenina_template.primitives import NAMES
from karenina_template.python_source import InProcessRuntime
from karenina_vocabulary.kinds import PrimitiveRegistry, TemplateRuntimeRegistry

from karenina_core import templates as primitives
from karenina_core.errors import FillError, TemplateError
from karenina_core.templates import AllOf, AnyOf, AtLeastN, FieldCheck, TemplateRuntime

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
WORD = st.sampled_from(["a", "A ", "b", "yes", "No", "7", ""])
NUMBER = st.integers(-3, 3) | st.sampled_from([0.5, 1.05, 1e9])
# type -> (Python annotation, ground truths, primitives as Python and as data, values that a judge may send)
KINDS: dict[str, tuple[str, Any, list[dict[str, Any]], Any]] = {
    "str": (
        "str",
        WORD,
        [
            {"type": "ExactMatch"},
            {"type": "ExactMatch", "normalize": ["strip"]},
            {"type": "LiteralMatch"},
            {"type": "ContainsAny", "substrings": ["a", "7"], "normalize": ["lowercase"]},
            {"type": "RegexMatch", "pattern": "^a", "flags": ["IGNORECASE"]},
        ],
        WORD | st.integers(),
    ),
    "bool": ("bool", st.booleans(), [{"type": "BooleanMatch"}, {"type": "LiteralMatch"}], st.booleans() | WORD),
    "int": ("int", st.integers(-3, 3), [{"type": "NumericExact"}, {"type": "LiteralMatch"}], NUMBER | WORD),
    "float": (
        "float",
        st.floats(-3, 3),
        [
            {"type": "NumericTolerance", "tolerance": 0.5, "mode": "absolute"},
            {"type": "NumericTolerance", "tolerance": 0.1},
        ],
        NUMBER,
    ),
    "list_str": (
        "list[str]",
        st.lists(WORD, max_size=3),
        [{"type": "SetContainment", "mode": m} for m in ("exact", "subset", "superset")],
        st.lists(WORD, max_size=3) | WORD,
    ),
    "date": (
        "datetime.date",
        st.dates(datetime.date(2016, 1, 1), datetime.date(2016, 1, 5)).map(str),
        [{"type": "DateMatch"}, {"type": "DateTolerance", "tolerance": 2}],
        st.sampled_from(["2016-01-02", "2016-01-09", "yesterday"]),
    ),
    "literal": (
        "Literal['up', 'down']",
        st.sampled_from(["up", "down"]),
        [{"type": "LiteralMatch"}],
        st.sampled_from(["up", "down", "x"]),
    ),
}


def trees(names: list[str]) -> st.SearchStrategy[Any]:
    """Strategies over these fields."""
    return st.recursive(
        st.sampled_from(names).map(FieldCheck),
        lambda child: st.lists(child, max_size=3).flatmap(
            lambda found: (
                st.sampled_from([AllOf(found), AnyOf(found)])
                | st.integers(0, len(found)).map(lambda n: AtLeastN(n, found))
            )
        ),
        max_leaves=5,
    )


@st.composite
def templates(draw: Any) -> tuple[str, str, dict[str, Any]]:
    """One template as Python and as data, and a judge's reply."""
    specs, lines, reply = [], [], {}
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        annotation, truths, choices, values = KINDS[kind]
        truth, primitive, weight = draw(truths), draw(st.sampled_from(choices)), draw(st.sampled_from([0, 1, 2.5]))
        arguments = ", ".join(f"{key}={value!r}" for key, value in primitive.items() if key != "type")
        written = f"datetime.date.fromisoformat({truth!r})" if kind == "date" else repr(truth)
        lines.append(
            f"    f{number}: {annotation} = "
            f"VerifiedField('field {number}', {written}, {primitive['type']}({arguments}), weight={weight})"
        )
        spec = {"name": f"f{number}", "type": kind, "description": f"field {number}", "ground_truth": truth}
        specs.append({**spec, "verify_with": primitive, "weight": weight})
        if kind == "literal":
            specs[-1]["literal_values"] = ["up", "down"]
        if draw(st.integers(0, 4)):
            reply[f"f{number}"] = draw(st.none() | values | st.just(truth))
    names = [f"f{number}" for number in range(len(specs))]
    tree = draw(st.none() | trees(names).filter(lambda tree: not condition_problems(tree, names)))
    if tree is not None:
        lines += ["    class VerificationStrategy:", f"        verify_strategy = {tree!r}"]
    strategy = None if tree is None else condition_spec(tree)
    source = "import datetime\nclass Answer(BaseAnswer):\n" + "\n".join(lines) + "\n"
    return source, json.dumps({"fields": specs, "verify_strategy": strategy}), reply


def everything(runtime: TemplateRuntime, text: str, reply: Any) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        handle = await runtime.load(text, PRIMITIVES)
        behaviour: dict[str, Any] = {
            "schema": handle.schema(),
            "fields": handle.fields(),
            "ground_truth": handle.ground_truth(),
        }
        try:
            filled = await handle.build(reply)
            behaviour |= {"values": filled.values(), "nulls": filled.nulls, "verdict": await filled.verify("trace")}
            behaviour |= {"granular": await filled.granular(), "regex": await filled.regex("trace")}
        except TemplateError as error:
            behaviour["error"] = (type(error), str(error))
        return behaviour

    return asyncio.run(run())


@settings(deadline=None, max_examples=settings().max_examples * 6 // 5)
@given(templates())
def test_python_and_data_forms_of_a_template_say_the_same(made: tuple[str, str, dict[str, Any]]) -> None:
    source, spec, reply = made
    in_python = everything(InProcessRuntime(), source, reply)
    assert in_python == everything(DeclarativeRuntime(), spec, reply)
    if "error" in in_python:
        assert in_python["error"][0] is FillError  # nothing here makes a primitive fail
        return
    verdict = in_python["verdict"]
    if verdict.composition_strategy is None:
        assert verdict.result is all(result is True for result in verdict.field_results.values())
    assert 0.0 <= in_python["granular"] <= 1.0
    for name, value in in_python["values"].items():
        assert (name in in_python["nulls"]) is (value is None) is (verdict.field_results[name] is None)
        assert verdict.field_scores[name] == (None if value is None else float(verdict.field_results[name]))


@settings(deadline=None, max_examples=settings().max_examples // 2)
@given(templates())
def test_extracted_values_can_be_filled_in_again(made: tuple[str, str, dict[str, Any]]) -> None:
    _, spec, reply = made
    first = everything(DeclarativeRuntime(), spec, reply)
    if "error" not in first:
        again = json.loads(json.dumps(first["values"], allow_nan=False))
        assert everything(DeclarativeRuntime(), spec, again) == first


@settings(deadline=None, max_examples=settings().max_examples // 2)
@given(
    templates(), st.lists(st.dictionaries(st.sampled_from(["f0", "f1", "f2"]), WORD | NUMBER | st.none()), max_size=3)
)
def test_what_others_filled_in_changes_nothing(made: tuple[str, str, dict[str, Any]], others: list[Any]) -> None:
    source, _, reply = made

    async def run(before: list[Any]) -> Any:
        handle = await InProcessRuntime().load(source, PRIMITIVES)
        verdicts: list[Any] = []
        for data in [*before, reply]:
            try:
                filled = await handle.build(data)
                verdicts.append((await filled.verify(""), await filled.granular(), filled.values()))
            except FillError as error:
                verdicts.append((str(error), None, {}))
        return verdicts[-1]

    assert asyncio.run(run(others)) == asyncio.run(run([]))


def test_the_entry_modules_register_without_importing_anything_heavy() -> None:
    code = (
        "import sys; from karenina_template import declarative, in_process, primitives; "
        "heavy = [m for m in ('pydantic', 'cattrs', 'karenina_template.python_source') if m in sys.modules]; "
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_registered_can_be_loaded() -> None:
    runtimes = TemplateRuntimeRegistry("karenina-template")
    declarative.karenina_register_template_runtimes(runtimes)
    in_process.karenina_register_template_runtimes(runtimes)
    assert {name: runtimes.load(name)().isolation for name in runtimes} == {
        "declarative": "no-code",
        "in-process": "in-process",
    }
    assert {runtimes.load(name)().name for name in runtimes} == set(runtimes)
    registry = PrimitiveRegistry("karenina-template")
    primitives_plugin.karenina_register_primitives(registry)
    shipped = {
        name
        for name in dir(primitives)
        if inspect.isclass(found := getattr(primitives, name))
        and issubclass(found, VerificationPrimitive)
        and not inspect.isabstract(found)
    }
    assert set(registry) == shipped
    assert all(registry.load(name).__name__ == name for name in registry)
