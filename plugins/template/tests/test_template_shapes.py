"""Templates of one shape share what pydantic makes, and are what they would be alone."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from karenina_runs.plan.templates import KEPT, TemplateLoader
from karenina_template import declarative_templates, pydantic_handle, shapes
from karenina_template.declarative_templates import DeclarativeRuntime
from karenina_template.language.specs import template_spec
from karenina_template.lint.positions import read_schema
from karenina_template.pydantic_handle import ModelHandle, open_class
from karenina_vocabulary.kinds import PrimitiveRegistry
from pydantic._internal import _model_construction

from karenina_core import Karenina
from karenina_core.errors import FillError, TemplateError
from karenina_core.values.question import TemplateSource

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30).filter(str.strip)
hints = st.none() | texts
FIELDS = {
    "word": ("str", texts, "ExactMatch"),
    "count": ("int", st.integers(-5, 5), "NumericExact"),
    "share": ("float", st.floats(-1, 1), "NumericExact"),
    "true": ("bool", st.booleans(), "BooleanMatch"),
    "names": ("list_str", st.lists(texts, min_size=1, max_size=3), "SetContainment"),
    "day": ("date", st.dates().map(str), "DateMatch"),
    "kind": ("literal", st.sampled_from(["a", "b"]), "ExactMatch"),
}


@st.composite
def described(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """A template with these fields, and texts and right answers of its own."""
    fields = []
    for name in names:
        kind, values, primitive = FIELDS[name]
        more = {"literal_values": ["a", "b"]} if kind == "literal" else {}
        verify = {"type": primitive} | ({"mode": "exact"} if primitive == "SetContainment" else {})
        about = {"ground_truth": draw(values), "description": draw(texts), "extraction_hint": draw(hints)}
        weight = draw(st.integers(0, 3))
        fields.append({"name": name, "type": kind, "verify_with": verify, "weight": weight, **about, **more})
    fields.append(
        {
            **{"name": "cited", "type": "bool", "is_trace": True, "description": draw(texts)},
            **{"ground_truth": True, "verify_with": {"type": "TraceRegex", "pattern": "x+"}},
        }
    )
    strategy = draw(st.none() | st.sampled_from(names).map(lambda name: {"type": "field_check", "field": name}))
    return json.dumps({"class_name": "Answer", "fields": fields, "verify_strategy": strategy})


@pytest.fixture(scope="module")
def primitives() -> dict[str, type]:
    return {name: entry.load() for name, entry in Karenina.default().registry(PrimitiveRegistry).items()}


def load(text: str, primitives: dict[str, type]) -> ModelHandle:
    return asyncio.run(DeclarativeRuntime().load(text, primitives))


def seen(handle: ModelHandle, reply: dict[str, Any]) -> Any:
    """Everything that a stage can see of a template, and of one answer to it."""

    async def filled() -> Any:
        try:
            found = await handle.build(reply)
        except FillError as error:
            return str(error)
        verdict = await found.verify("xx")
        return found.values(), verdict, await found.granular(), await found.regex("xx"), found.not_acceptable()

    about = (handle.fields(), handle.trace_fields(), handle.ground_truth(), handle.accepted(), handle.warnings)
    return handle.schema(), about, template_spec(handle.cls), asyncio.run(filled())


@settings(max_examples=12, deadline=None, phases=[Phase.generate])
@given(st.data(), st.sampled_from([("word", "count"), ("share", "names", "day"), ("true", "kind")]))
def test_a_template_of_a_shape_that_is_known_is_the_one_that_it_is_alone(
    primitives: dict[str, type], data: st.DataObject, names: tuple[str, ...]
) -> None:
    first, second = data.draw(described(names)), data.draw(described(names))
    right = {row["name"]: row["ground_truth"] for row in json.loads(second)["fields"]}
    reply = data.draw(st.sampled_from([right, {**right, names[0]: None}, {names[0]: "?"}, {}]))
    try:
        alone = seen(by_itself(second, primitives), reply)
    except TemplateError as error:
        refused = str(error)
        with pytest.raises(TemplateError) as again:
            load(second, primitives)
        assert again.value.args == (refused,)  # both are refused with the same words
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(declarative_templates, "_shapes", shapes.Shapes())
        try:
            before = load(first, primitives)
        except TemplateError:
            return
        own, known = before.ground_truth(), load(second, primitives)
        assert seen(known, reply) == alone
        shape = shapes.shape_of(known.cls)
        assert shape is not None
        schema, reading = shape.described(known.cls)
        assert schema == known.schema()
        assert reading.places == read_schema(schema).places
        assert before.ground_truth() == own


def by_itself(text: str, primitives: dict[str, type]) -> ModelHandle:
    """The template as a class that pydantic makes for it alone."""
    spec, declared, strategy, problems = declarative_templates._examined(text, primitives)
    if problems:
        raise declarative_templates._refusal(problems)
    cls = declarative_templates._template_class(spec.class_name, declared)
    if strategy is not None:
        cls.__strategy__ = cls.__tree__ = strategy
    return open_class(cls, "no-code")


def numbered(number: int) -> str:
    row = {"name": "count", "type": "int", "description": f"How many in year {number}", "ground_truth": number}
    return json.dumps({"fields": [row | {"verify_with": {"type": "NumericExact"}}]})


def test_pydantic_makes_two_classes_of_a_shape_however_many_templates_have_it(
    primitives: dict[str, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    complete = _model_construction.complete_model_class

    def counted(cls: type, *arguments: Any, **options: Any) -> Any:
        made.append(cls.__name__)
        return complete(cls, *arguments, **options)

    monkeypatch.setattr(_model_construction, "complete_model_class", counted)
    monkeypatch.setattr(declarative_templates, "_shapes", shapes.Shapes())
    handles = [load(numbered(number), primitives) for number in range(20)]
    assert made == ["Answer", "Answer"]
    assert [handle.ground_truth()["count"] for handle in handles] == list(range(20))
    assert len({handle.fields()[0].description for handle in handles}) == 20


def test_the_class_of_a_template_that_is_gone_is_that_of_the_next_one(
    primitives: dict[str, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the collector would remove it, and that seldom looks in a run: what a run holds would grow."""
    monkeypatch.setattr(declarative_templates, "_shapes", shapes.Shapes())
    first, second = load(numbered(1), primitives), load(numbered(2), primitives)
    left, kept = first.cls, second.cls
    assert left is not kept
    gc.disable()
    try:
        del first
        third, fourth = load(numbered(3), primitives), load(numbered(4), primitives)
    finally:
        gc.enable()
    assert third.cls is left
    assert fourth.cls not in (left, kept)
    for number, handle in ((2, second), (3, third), (4, fourth)):
        assert handle.fields()[0].description == f"How many in year {number}"
        for reply, right in ((number, True), (number + 1, False)):
            filled = asyncio.run(handle.build({"count": reply}))
            assert asyncio.run(filled.verify("")).result is right


def test_the_schema_of_a_shape_is_taken_apart_once(
    primitives: dict[str, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []

    def counted(schema: Any) -> Any:
        taken.append(schema)
        return read_schema(schema)

    for module in (shapes, pydantic_handle):
        monkeypatch.setattr(module, "read_schema", counted)
    monkeypatch.setattr(declarative_templates, "_shapes", shapes.Shapes())
    for number in range(1980, 2000):
        assert "names the expected value" in " ".join(load(numbered(number), primitives).warnings)
    assert len(taken) == 1


def test_shapes_that_were_not_used_for_long_are_forgotten() -> None:
    kept = shapes.Shapes()
    found = [kept.get(number, lambda: load(numbered(1), _PRIMITIVES).cls.__mro__[2]) for number in range(2)]
    assert kept.get(0, lambda: pytest.fail("it is known")) is found[0]
    for number in range(2, shapes.MOST):
        kept._kept[number] = found[1]
    kept.get("one more", lambda: load(numbered(1), _PRIMITIVES).cls.__mro__[2])
    assert (0 in kept._kept, 1 in kept._kept, len(kept._kept)) == (True, False, shapes.MOST)


_PRIMITIVES = {name: entry.load() for name, entry in Karenina.default().registry(PrimitiveRegistry).items()}


def test_a_run_keeps_the_templates_that_items_have_and_some_of_the_last_ones() -> None:
    async def look() -> tuple[bool, bool, int, int]:
        loader = TemplateLoader(Karenina.default(), "sandbox")
        sources = [TemplateSource(numbered(number), "karenina-template") for number in range(3 * KEPT)]
        held = await loader.load(sources[0])
        alive = [weakref.ref(await loader.load(source)) for source in sources[1:]]
        same = await loader.load(sources[0]) is held
        recent = await loader.load(sources[-1]) is alive[-1]()
        gc.collect()
        return same, recent, sum(one() is not None for one in alive), len(loader._handles)

    same, recent, alive, kept = asyncio.run(look())
    assert (same, recent) == (True, True)
    assert alive <= kept <= KEPT
