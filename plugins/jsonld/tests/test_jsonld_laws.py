"""Laws of reading and writing: nothing is lost, changes arrive, broken files are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, Literal

import karenina_jsonld
from attrs import evolve, field, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_jsonld.nodes import identical
from karenina_jsonld.questions import assign_ids
from karenina_jsonld.splice import splice
from karenina_vocabulary.traits import (
    METRICS,
    AgenticRubricTrait,
    CallableRubricTrait,
    LLMRubricTrait,
    MetricRubricTrait,
    RegexRubricTrait,
)

from karenina_core import Karenina, TraitEvaluator, hookimpl
from karenina_core.errors import BenchmarkError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import ModelConfig
from karenina_core.values.question import Question
from karenina_core.values.rubric import DynamicRubric, Rubric, RubricTrait

DATA = Path(__file__).parent / "data"


@frozen(kw_only=True)
class Tally(RubricTrait):
    """A type of another package that leaves reading and writing to the base class."""

    type_name: ClassVar[str] = "tally"
    words: tuple[str, ...] = field(converter=tuple)
    style: Literal["any", "all"] = "any"
    least: int = 0
    share: float | None = None
    weights: Mapping[str, float] = field(factory=dict)


@frozen(kw_only=True)
class Span(RubricTrait):
    """One that says itself how it is written."""

    type_name: ClassVar[str] = "span"
    low: int
    high: int


class TallyEvaluator(TraitEvaluator[Tally]):
    name = "tally"
    trait_class = Tally
    file_type = "TallyTrait"


class SpanEvaluator(TraitEvaluator[Span]):
    name = "span"
    trait_class = Span
    file_type = "SpanTrait"

    def encode(self, trait: Span) -> Mapping[str, Any]:
        return {"min_score": trait.low, "max_score": trait.high, "summary": trait.summary}

    def decode(self, data: Mapping[str, Any]) -> Span:
        texts = {name: data.get(name) for name in ("description", "summary")}
        return Span(name=data["name"], low=data["min_score"], high=data["max_score"], **texts)


class OtherTypes:
    @hookimpl
    def karenina_register_traits(self, registry: Any) -> None:
        registry.add(TallyEvaluator)
        registry.add(SpanEvaluator)


APP = Karenina({"jsonld": karenina_jsonld, "others": OtherTypes()})
TARGET = Path("law.jsonld")
EXAMPLES = settings().max_examples
SLOW = settings(
    deadline=None, max_examples=EXAMPLES // 2, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
labels = words.map(lambda word: word if word.strip() else f"x{word}")
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=5
)
directions = st.sampled_from([None, True, False])


def optional(strategy: Any) -> Any:
    return st.none() | strategy


def scales(cls: type, **fields: Any) -> Any:
    """Traits of a class in each of the kinds boolean, score, literal."""
    bounds = st.just((0, 1)) | st.integers(-9, 9).flatmap(lambda low: st.tuples(st.just(low), st.integers(low + 1, 20)))
    names = st.permutations(["poor", "fair", "good"]) | st.lists(labels, min_size=2, max_size=5, unique_by=str.casefold)
    classes = st.builds(lambda keys, text: dict.fromkeys(keys, text), names, optional(labels))
    return (
        st.builds(cls, kind=st.just("boolean"), **fields)
        | bounds.flatmap(
            lambda b: st.builds(cls, kind=st.just("score"), min_score=st.just(b[0]), max_score=st.just(b[1]), **fields)
        )
        | st.builds(cls, kind=st.just("literal"), classes=classes, **fields)
    )


def template_kinds(cls: type, **fields: Any) -> Any:
    plain = st.fixed_dictionaries(
        {"type": st.sampled_from(["boolean", "integer", "number", "string"])},
        optional={"description": words, "examples": values, "x-note": values},
    )
    schemas = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(words, plain, min_size=1, max_size=2)},
        optional={"x-origin": values},
    )
    kinds = st.builds(lambda schema: {"type": "template", "schema": schema}, schemas)
    return st.builds(cls, kind=kinds, **fields)


names = labels.map(lambda name: name.replace(".", "_"))
common = {"name": names, "description": optional(words), "summary": optional(words)}
described = {**common, "description": labels}
judged = {
    "deep_judgment_enabled": st.booleans(),
    "deep_judgment_excerpt_enabled": st.booleans(),
    "deep_judgment_max_excerpts": optional(st.integers(1, 9)),
    "deep_judgment_fuzzy_match_threshold": optional(st.floats(0, 1)),
    "deep_judgment_search_enabled": st.booleans(),
    "include_ground_truth": st.booleans(),
}
models = st.builds(
    ModelConfig,
    model_name=labels,
    interface=st.just("litellm"),
    temperature=optional(st.floats(0, 2)),
    max_retries=st.integers(0, 3),
)
agentic = {"context_mode": st.sampled_from(["trace_only", "trace_and_workspace"]), "max_turns": st.integers(1, 50)}
metrics = st.sampled_from(sorted(METRICS)).flatmap(
    lambda mode: st.builds(
        MetricRubricTrait,
        **common,
        evaluation_mode=st.just(mode),
        metrics=st.lists(st.sampled_from(METRICS[mode]), min_size=1, unique=True),
        tp_instructions=st.lists(labels, min_size=1, max_size=3),
        tn_instructions=st.lists(labels, min_size=1, max_size=3),
        repeated_extraction=st.booleans(),
        higher_is_better=directions,
    )
)
traits = st.one_of(
    scales(LLMRubricTrait, **common, **judged, higher_is_better=directions),
    template_kinds(LLMRubricTrait, **common, include_ground_truth=st.booleans()),
    st.builds(
        RegexRubricTrait,
        **common,
        pattern=st.sampled_from(["", r"\d+", "(?i)ja|nein", "[“”]"]),
        case_sensitive=st.booleans(),
        invert_result=st.booleans(),
        higher_is_better=directions,
    ),
    scales(
        CallableRubricTrait, **common, callable_code=st.binary(min_size=1, max_size=20), higher_is_better=directions
    ),
    st.builds(CallableRubricTrait, **common, kind=st.just("boolean"), invert_result=st.booleans()),
    metrics,
    scales(AgenticRubricTrait, **described, **agentic, higher_is_better=directions, model_override=optional(models)),
    template_kinds(AgenticRubricTrait, **described, **agentic),
    st.builds(
        Tally,
        **common,
        words=st.lists(words, max_size=2),
        style=st.sampled_from(["any", "all"]),
        least=st.integers(0, 3),
        share=optional(st.floats(0, 1)),
        weights=st.dictionaries(words, st.floats(0, 1), max_size=2),
    ),
    st.builds(Span, **common, low=st.integers(0, 1), high=st.integers(0, 9)),
)
about = st.builds(lambda trait, summary: evolve(trait, summary=summary), traits, labels) | traits.filter(
    lambda trait: bool((trait.summary or trait.description or "").strip())
)
rubrics = optional(st.lists(traits, min_size=1, max_size=5, unique_by=lambda t: t.name).map(Rubric.from_traits))
dynamics = optional(st.lists(about, min_size=1, max_size=3, unique_by=lambda t: t.name).map(DynamicRubric.from_traits))
authors = st.dictionaries(words, values, min_size=1, max_size=2) | words
questions = st.builds(
    Question,
    question=labels,
    raw_answer=words,
    answer_template=optional(labels),
    template_language=st.sampled_from(["python", "karenina-template"]),
    finished=directions,
    keywords=st.lists(words, max_size=3),
    question_rubric=rubrics,
    question_dynamic_rubric=dynamics,
    few_shot_examples=st.lists(st.fixed_dictionaries({"question": words, "answer": words}), max_size=2).map(tuple),
    answer_notes=optional(words),
    author=optional(authors),
    sources=optional(st.lists(values, max_size=2) | words),
    custom_metadata=st.dictionaries(words, values, max_size=3),
    workspace_path=optional(words),
    date_created=st.just("2024-01-01 10:00:00"),
    date_modified=st.just("2024-01-01T10:00:00.5Z"),
)
many = st.lists(questions, max_size=3, unique_by=lambda q: q.id)
metadata = st.dictionaries(words, values, max_size=3).map(
    lambda found: {"benchmark_format_version": "3.0.0-jsonld", **found}
)
benchmarks = st.builds(
    BenchmarkData,
    name=labels,
    description=words,
    version=words,
    creator=optional(words | st.dictionaries(words, values, max_size=2)),
    id=optional(words),
    questions=many,
    rubric=rubrics,
    dynamic_rubric=dynamics,
    metadata=metadata,
    date_created=st.just("2024-01-01"),
)


def load(data: bytes) -> BenchmarkData:
    benchmark = karenina_jsonld.karenina_load_benchmark(TARGET, data, APP)
    assert benchmark is not None
    return benchmark


def save(benchmark: BenchmarkData) -> bytes:
    data = karenina_jsonld.karenina_save_benchmark(benchmark, TARGET, APP)
    assert data is not None
    return data


def undated(benchmark: BenchmarkData) -> BenchmarkData:
    return evolve(benchmark, date_modified=None)


def same(a: BenchmarkData, b: BenchmarkData) -> bool:
    return identical(undated(a), undated(b))


@st.composite
def strange_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Documents with unknown keys, properties and ratings anywhere, and members in any order."""
    unknown = draw(st.dictionaries(words.map(lambda word: f"x-{word}"), values, min_size=1, max_size=5))
    chance = draw(st.randoms(use_true_random=True))

    def strange(node: Any) -> Any:
        if isinstance(node, list):
            return [strange(entry) for entry in node]
        if not isinstance(node, dict) or node.get("name") in ("classes", "kind", "model_override"):
            return node
        opaque = ("@context", "creator", "value")
        found = [(key, value if key in opaque else strange(value)) for key, value in node.items()]
        if chance.random() < 0.5:
            found.insert(chance.randint(0, len(found)), chance.choice(list(unknown.items())))
        if "additionalProperty" in node and chance.random() < 0.5:
            name, value = chance.choice(list(unknown.items()))
            extra = {"@type": "PropertyValue", "name": name, "value": value}
            found = [(key, [extra, *value] if key == "additionalProperty" else value) for key, value in found]
        if chance.random() < 0.5:
            chance.shuffle(found)
        return dict(found)

    root = json.loads(save(draw(benchmarks)))
    if draw(st.booleans()):
        root["rating"] = [{"@type": "Rating", "name": "odd", "additionalType": "x:Odd"}, *root.get("rating", [])]
    result: dict[str, Any] = strange(root)
    return result


@st.composite
def laid_out(draw: st.DrawFn, value: Any) -> str:
    indent = draw(st.sampled_from([None, 0, 2, 4, "\t"]))
    text = json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans()))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@SLOW
@given(benchmarks)
def test_new_documents_hold_everything(benchmark: BenchmarkData) -> None:
    again = load(save(benchmark))
    assert undated(again) == undated(benchmark)
    assert same(again, benchmark)


@SLOW
@given(st.data(), strange_documents())
def test_load_save_load_is_load_and_the_document_stays(data: st.DataObject, root: dict[str, Any]) -> None:
    text = data.draw(laid_out(root))
    first = load(text.encode())
    written = save(first).decode()
    stamp = json.dumps(json.loads(written)["dateModified"])
    assert written == text.replace(json.dumps(root["dateModified"]), stamp)
    assert same(load(written.encode()), first)


@SLOW
@given(st.data(), strange_documents(), benchmarks)
def test_changes_arrive_and_unknown_parts_stay(data: st.DataObject, root: dict[str, Any], other: BenchmarkData) -> None:
    first = load(data.draw(laid_out(root)).encode())
    old = {q.id: q for q in first}
    changed = [evolve(q, id=data.draw(st.sampled_from([q.id, *old]))) for q in other]
    unique = {q.id: q for q in [*first, *changed]}
    kept = data.draw(st.lists(st.sampled_from(sorted(unique)), unique=True)) if unique else []
    second = evolve(
        other, document=first.document, questions=[unique[name] for name in kept], date_created="2025-01-01"
    )
    written = json.loads(save(second))
    assert undated(load(json.dumps(written).encode())) == undated(second)

    nodes = {q.id: node for q, node in zip(first, root["dataFeedElement"], strict=True)}
    for question, node in zip(second, written["dataFeedElement"], strict=True):
        if question.id in old and identical(question, old[question.id]):
            assert json.dumps(node) == json.dumps(nodes[question.id])
        elif question.id in nodes:
            assert unknown(nodes[question.id]).items() <= unknown(node).items()
    assert unknown(root).items() <= unknown(written).items()


def unknown(node: dict[str, Any]) -> dict[str, str]:
    """Unknown keys and properties of a node and its question. Root properties are metadata, which may change."""
    found = {key: json.dumps(value) for key, value in node.items() if key.startswith("x-")}
    if "item" in node:
        found |= {f"item {key}": value for key, value in unknown(node["item"]).items()}
    if "dataFeedElement" not in node:
        entries = [entry for entry in node.get("additionalProperty", []) if entry["name"].startswith("x-")]
        found |= {f"property {index}": json.dumps(entry) for index, entry in enumerate(entries)}
    return found


def holding(trait: RubricTrait, dynamic: bool) -> dict[str, Any]:
    """The fields of a benchmark with one trait."""
    static = None if dynamic else Rubric.from_traits([trait])
    return {"rubric": static, "dynamic_rubric": DynamicRubric.from_traits([trait]) if dynamic else None}


@SLOW
@given(about, about, st.booleans(), st.booleans())
def test_a_trait_may_turn_into_any_other(old: Any, new: Any, was_dynamic: bool, is_dynamic: bool) -> None:
    """Of another type and in the other rubric; what its rating says besides stays."""
    root = json.loads(save(BenchmarkData(name="b", **holding(old, was_dynamic))))
    root["rating"][0]["x-reviewed-by"] = "Ada"
    root["rating"][0]["additionalProperty"].append({"@type": "PropertyValue", "name": "x-note", "value": [1]})
    fields = holding(evolve(new, name=old.name), is_dynamic)
    written = save(evolve(load(json.dumps(root).encode()), **fields))
    again = load(written)
    assert {name: getattr(again, name) for name in fields} == fields
    (rating,) = json.loads(written)["rating"]
    assert rating["x-reviewed-by"] == "Ada"
    assert {"@type": "PropertyValue", "name": "x-note", "value": [1]} in rating["additionalProperty"]


@SLOW
@given(st.lists(about, min_size=1, max_size=4, unique_by=lambda t: t.name), st.data())
def test_a_trait_stays_in_the_rubric_that_it_is_in(found: list[Any], data: st.DataObject) -> None:
    """Global or of a question, static or dynamic: none of the four places is lost or mixed up with another."""
    flags = {trait.name: data.draw(st.booleans()) for trait in found}
    static = Rubric.from_traits(trait for trait in found if not flags[trait.name])
    dynamic = DynamicRubric.from_traits(trait for trait in found if flags[trait.name])
    question = Question(question="q?", question_rubric=static, question_dynamic_rubric=dynamic)
    again = load(save(BenchmarkData(name="b", rubric=static, dynamic_rubric=dynamic, questions=[question])))
    for rubric, wanted in (
        (again.rubric, static),
        (again.dynamic_rubric, dynamic),
        (again.questions[0].question_rubric, static),
        (again.questions[0].question_dynamic_rubric, dynamic),
    ):
        assert rubric == (wanted if len(wanted) else None)
        assert type(rubric) is (type(wanted) if len(wanted) else type(None))


@given(st.data(), values, values)
def test_splicing_writes_the_new_value(data: st.DataObject, old: Any, new: Any) -> None:
    text = data.draw(laid_out(old))
    assert splice(text, old, old) == text
    assert identical(json.loads(splice(text, old, new)), new)
    wrapped = data.draw(laid_out([old, {"@id": "a", "v": old}, {"name": "b", "v": 1}]))
    changed = [{"name": "b", "v": new}, old, {"@id": "a", "v": [new, old]}]
    assert identical(json.loads(splice(wrapped, json.loads(wrapped), changed)), changed)


@given(st.lists(st.none() | st.sampled_from(["a", "a-1", "a-2", "b", "a-1-1"]), max_size=12))
def test_ids_are_unique_and_the_first_keeps_its_own(given_ids: list[str | None]) -> None:
    ids = assign_ids(given_ids)
    named = [name for name in ids if name]
    assert len(set(named)) == len(named) == sum(name is not None for name in given_ids)
    for name in filter(None, given_ids):
        assert ids[given_ids.index(name)] == name


def subtrees(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path] * bool(path) + [found for key, child in children for found in subtrees(child, (*path, key))]


FIXTURES = {path.name: path.read_bytes() for path in sorted(DATA.glob("*.jsonld"))}
PLACES = {name: subtrees(json.loads(data)) for name, data in FIXTURES.items()}


def attempt(data: bytes, name: str) -> None:
    try:
        benchmark = karenina_jsonld.karenina_load_benchmark(Path(name), data, APP)
    except BenchmarkError:
        return
    if benchmark is not None:
        save(benchmark)


@settings(deadline=None, max_examples=400)
@given(st.data(), st.sampled_from(sorted(FIXTURES)), values)
def test_any_part_may_be_replaced_or_missing(data: st.DataObject, name: str, value: Any) -> None:
    root = json.loads(FIXTURES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(PLACES[name]))
        try:
            node = root
            for key in path:
                node = node[key]
            node[last]
        except (KeyError, IndexError, TypeError):
            continue
        if data.draw(st.booleans()):
            node[last] = deepcopy(value)
        else:
            del node[last]
    attempt(json.dumps(root).encode(), data.draw(st.sampled_from(["b.jsonld", "b.json"])))


HARMFUL = [b"NaN", b"[" * 70, b'"', b"}", b"1e999", b","]


@settings(deadline=None, max_examples=200)
@given(st.data(), st.sampled_from(sorted(FIXTURES)))
def test_damaged_bytes_are_refused(data: st.DataObject, name: str) -> None:
    content = bytearray(FIXTURES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = start + data.draw(st.sampled_from([0, 1, 2, 40, len(content)]))
        content[start:end] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b"NaN", b"[" * 70, b'"', b"}", b"1e999", b","])
        )
    attempt(bytes(content), data.draw(st.sampled_from(["b.jsonld", "b.json"])))
