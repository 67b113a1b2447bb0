"""What a benchmark file means."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import karenina_jsonld
import pytest
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.traits import CallableRubricTrait, LLMRubricTrait

from karenina_core import Karenina
from karenina_core.errors import BenchmarkError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.identity import question_urn

DATA = Path(__file__).parent / "data"
APP = Karenina({"jsonld": karenina_jsonld})


def load_file(name: str) -> BenchmarkData:
    path = DATA / name
    benchmark = karenina_jsonld.karenina_load_benchmark(path, path.read_bytes(), APP)
    assert benchmark is not None
    return benchmark


def load(root: Any, path: str = "b.jsonld") -> BenchmarkData | None:
    return karenina_jsonld.karenina_load_benchmark(Path(path), json.dumps(root).encode(), APP)


def loaded(root: Any) -> BenchmarkData:
    benchmark = load(root)
    assert benchmark is not None
    return benchmark


def prop(name: str, *value: Any) -> dict[str, Any]:
    return {"@type": "PropertyValue", "name": name, **({"value": value[0]} if value else {})}


def item(**parts: Any) -> dict[str, Any]:
    question = {
        "@type": "Question",
        "text": "What is heavier, lead or cork?",
        "acceptedAnswer": {"@type": "Answer", "text": "Lead"},
        "hasPart": {"@type": "SoftwareSourceCode", "text": "class Answer: ...", "programmingLanguage": "Python"},
        **parts,
    }
    return {"@type": "DataFeedItem", "@id": "q1", "item": {k: v for k, v in question.items() if v is not ...}}


def feed(*items: Any, **root: Any) -> dict[str, Any]:
    return {"@type": "DataFeed", "name": "Weights", "dataFeedElement": list(items), **root}


def rating(kind: str, name: str = "t", *properties: Any, **fields: Any) -> dict[str, Any]:
    return {"@type": "Rating", "name": name, "additionalType": kind, "additionalProperty": list(properties), **fields}


def trait(*properties: Any, kind: str = "karenina:GlobalRubricTrait", **fields: Any) -> Any:
    rubric = loaded(feed(rating=[rating(kind, "t", *properties, **fields)])).rubric
    assert rubric is not None
    return next(iter(rubric))


def problems(root: Any) -> str:
    with pytest.raises(BenchmarkError) as caught:
        load(root, "weights.jsonld")
    assert str(caught.value).startswith("weights.jsonld: ")
    return str(caught.value)


# Which files are ours


def test_other_files_are_left_to_other_loaders() -> None:
    assert load({"questions": []}, "b.json") is None
    assert load({"note": '"DataFeed"'}, "b.json") is None
    assert load({"about": ["DataFeed"]}, "b.json") is None
    assert karenina_jsonld.karenina_load_benchmark(Path("b.yaml"), b"questions: []", APP) is None
    assert load(feed(), "b.json") == load(feed(), "b.jsonld") == load(feed(), "b")


def test_the_suffix_claims_a_file() -> None:
    assert "DataFeed" in problems({"@type": "Dataset"})
    with pytest.raises(BenchmarkError, match="line 1"):
        karenina_jsonld.karenina_load_benchmark(Path("b.jsonld"), b"{", APP)


@pytest.mark.parametrize("name", ["https://schema.org/DataFeed", "schema:DataFeed", ["Thing", "DataFeed"]])
def test_the_type_may_be_spelt_in_full(name: Any) -> None:
    assert loaded(feed() | {"@type": name}).name == "Weights"


def test_entry_module_imports_nothing_heavy() -> None:
    heavy = ("karenina_jsonld.", "attr", "cattrs", "pydantic")
    code = f"import sys, karenina_jsonld; print([name for name in sys.modules if name.startswith({heavy})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Questions


def test_minimal_file() -> None:
    benchmark = load_file("minimal.jsonld")
    (question,) = benchmark
    assert (benchmark.name, benchmark.id, benchmark.version) == ("Moons", "urn:example:moons", "0.2.0")
    assert (benchmark.creator, benchmark.rubric, dict(benchmark.metadata)) == ("Observatory", None, {})
    assert question.id == "urn:example:moons:mars"
    assert question.raw_answer == "Two: Phobos and Deimos"
    assert question.keywords == ("planets", "moons")
    assert (question.finished, question.placeholder_template) == (None, False)
    assert question.date_modified == "2024-03-02T10:00:00Z"
    assert not benchmark.warnings


def test_older_file() -> None:
    benchmark = load_file("legacy.jsonld")
    first, second, third = benchmark
    assert benchmark.date_created == "2023-11-14 22:13:20"
    assert first.keywords == ("rivers", "Europe")
    assert first.author == {"@type": "Person", "name": "Zoë", "affiliation": "Geographic society"}
    assert first.sources == [{"url": "https://example.org/loire"}, "atlas"]
    assert list(first.few_shot_examples) == [{"question": "Longest in Egypt?", "answer": "The Nile"}]
    assert (first.answer_notes, first.workspace_path) == ("Also accept: Loire river", "rivers/loire")
    assert first.custom_metadata == {"difficulty": 3, "custom_x": {"weights": [1, 1.0, 1e-05]}, "empty": None}
    assert (second.id, second.keywords) == ("urn:example:legacy:1-1", ("moons",))
    assert (second.author, list(second.few_shot_examples)) == (
        "Anonymous (not JSON)",
        [{"question": "Moons of Venus?", "answer": "0"}],
    )
    assert third.id == question_urn(third.question)
    assert (third.author, third.sources) == ({"@type": "Person", "name": "Ida"}, "a note in the margin")
    assert ["'urn:example:legacy:1' is already used" in warning for warning in benchmark.warnings] == [True]


def test_legacy_root_properties_hold_traits() -> None:
    benchmark = load_file("legacy.jsonld")
    assert benchmark.rubric is not None
    assert benchmark.rubric.names() == ["Depth", "Agrees", "No hedging", "Terse", "Lost code", "Names"]
    (hedging,) = benchmark.rubric.regex_traits
    assert (hedging.invert_result, hedging.case_sensitive) == (True, False)
    assert [code.usable for code in benchmark.rubric.callable_traits] == [True, False]
    assert set(benchmark.metadata) == {"benchmark_format_version"}


def test_a_rating_hides_the_legacy_trait_of_its_name() -> None:
    old = prop("global_regex_rubric_traits", json.dumps([{"name": "t", "pattern": "old"}]))
    new = rating("GlobalRegexTrait", "t", prop("pattern", "new"))
    benchmark = loaded(feed(rating=[new], additionalProperty=[old]))
    assert benchmark.rubric is not None
    assert [t.pattern for t in benchmark.rubric.regex_traits] == ["new"]
    assert "same name" in benchmark.warnings[0]


def test_metadata_keeps_every_root_property() -> None:
    metadata = load_file("unknown.jsonld").metadata
    assert metadata["last_verification_run"] == {"id": "r1", "scores": [0.5, 1]}
    assert (metadata["nothing"], metadata["custom_root"]) == (None, [True, False])
    assert metadata["benchmark_format_version"] == "3.0.0-jsonld"


def test_the_last_property_of_a_name_counts() -> None:
    (question,) = load_file("unknown.jsonld")
    assert question.finished is True


def test_ids_of_duplicates_never_collide() -> None:
    benchmark = loaded(feed(*({**item(), "@id": name} for name in ("x", "x", "x-1", "x", "x-1"))))
    assert [q.id for q in benchmark] == ["x", "x-2", "x-1", "x-3", "x-1-1"]
    assert len(benchmark.warnings) == 3


def test_scenarios_are_kept_but_not_run() -> None:
    benchmark = load_file("scenario.jsonld")
    assert len(benchmark) == 1
    assert "1 scenario(s)" in benchmark.warnings[0]


def test_template_languages() -> None:
    _, placeholder, declared = load_file("traits.jsonld")
    assert (declared.template_language, declared.placeholder_template) == ("karenina-template", False)
    assert (placeholder.template_language, placeholder.placeholder_template, placeholder.template) == (
        "python",
        True,
        None,
    )


PLACEHOLDER = "class Answer(BaseAnswer):\n    response: str\n    def verify(self):\n        return False"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (PLACEHOLDER, True),
        ("\n".join("    " + line for line in PLACEHOLDER.splitlines()), True),
        ("from pydantic import Field\n\n" + PLACEHOLDER.replace("str\n", "str = Field('x')\n\n    # to do\n"), True),
        (PLACEHOLDER.replace("        return", "        '''To do.'''\n        return"), True),
        (PLACEHOLDER.replace("False", "True"), False),
        (PLACEHOLDER.replace("False", "self.response == 'False'"), False),
        (PLACEHOLDER.replace("response: str", "response: int"), False),
        (PLACEHOLDER.replace("response: str", "response: str\n    other: str"), False),
        (PLACEHOLDER + "\n    def model_post_init(self, _): self.correct = {}", False),
        (PLACEHOLDER + "\nprint('more')", False),
        (PLACEHOLDER + "(", False),
        (PLACEHOLDER + "\x00", False),
    ],
)
def test_placeholder_templates(source: str, expected: bool) -> None:
    (question,) = loaded(feed(item(hasPart={"text": source})))
    assert question.placeholder_template is expected


def test_an_empty_template_is_none() -> None:
    (question,) = loaded(feed(item(hasPart={"text": ""})))
    assert (question.answer_template, question.template_id) == (None, "no_template")


# Traits


def test_traits_of_every_type_in_both_places() -> None:
    benchmark = load_file("traits.jsonld")
    whole, own = benchmark.rubric, benchmark.questions[0].question_rubric
    assert whole is not None
    assert own is not None
    for rubric in (whole, own):
        lists = ("llm_traits", "regex_traits", "callable_traits", "metric_traits", "agentic_traits")
        assert [len(getattr(rubric, name)) for name in lists] == [6, 1, 4, 2, 3]
    clear, depth, short, tone, again, style = whole.llm_traits
    assert (clear.kind, clear.deep_judgment_max_excerpts, clear.deep_judgment_fuzzy_match_threshold) == (
        "boolean",
        4,
        0.85,
    )
    assert (depth.kind, depth.min_score, depth.max_score) == ("score", 0, 10)
    assert (short.kind, short.min_score, short.max_score, short.higher_is_better) == ("score", 0, 1, False)
    assert (tone.get_class_names(), tone.max_score, tone.include_ground_truth) == (["rude", "neutral", "warm"], 2, True)
    assert again.classes == {"no": "Not at all", "yes": "Entirely"}
    assert isinstance(style.kind, TemplateKind)
    assert (style.kind.schema["x-origin"], style.higher_is_better) == ("hand-made", None)
    brief, reasons, pickled, inert = whole.callable_traits
    assert (brief.callable_code or b"").startswith(b"def evaluate(trace)")
    assert (reasons.min_score, reasons.max_score) == (1, 10)
    assert pickled.callable_code == bytes([0x80, 5, 0x95, 0, 1, 2, 255])
    assert (inert.usable, inert.kind, inert.max_score) == (False, "score", 5)
    facts, matrix = whole.metric_traits
    assert (facts.higher_is_better, facts.tp_instructions) == (None, ("names the planet", "names the year"))
    assert (matrix.metrics, matrix.tn_instructions) == (("accuracy",), ("calls a moon a planet",))
    sources, effort, _ = whole.agentic_traits
    assert (sources.max_turns, sources.model_override.name, sources.model_override.temperature) == (6, "audit-1", 0.0)
    assert sources.model_override.agent_timeout == 30
    assert (effort.max_score, effort.timeout_seconds) == (2, 120)


def test_what_is_not_used_is_reported() -> None:
    text = "\n".join(load_file("traits.jsonld").warnings)
    for expected in (
        "additionalType 'karenina:GlobalQuantumTrait' is unknown",
        "write QuestionSpecificRubricTrait to use it",
        "settings that are not used: agent_memory",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("properties", "best", "worst", "expected"),
    [
        ((), 1, 0, ("boolean", None, None)),
        ((), 1.0, 0.0, ("boolean", None, None)),
        ((), 5, 1, ("score", 1, 5)),
        ((), 100.0, -3.0, ("score", -3, 100)),
        ((prop("min_score", 2),), 5, 1, ("score", 2, 5)),
        ((prop("kind", "score"),), 1, 0, ("score", 0, 1)),
        ((prop("kind", "score"), prop("max_score", 3.0)), None, None, ("score", 1, 3)),
        ((prop("kind", "boolean"), prop("min_score", 1), prop("max_score", 5)), 5, 1, ("boolean", 1, 5)),
    ],
)
def test_kind_and_bounds(properties: Any, best: Any, worst: Any, expected: Any) -> None:
    found = trait(*properties, bestRating=best, worstRating=worst)
    assert (found.kind, found.min_score, found.max_score) == expected


def test_a_direction_without_a_value_is_none_and_an_absent_one_the_default() -> None:
    assert trait(prop("higher_is_better"), bestRating=1, worstRating=0).higher_is_better is None
    assert trait(bestRating=1, worstRating=0).higher_is_better is True


def test_a_template_kind_has_no_direction_and_no_deep_judgment() -> None:
    kind = {"type": "template", "schema": {"type": "object", "properties": {"plain": {"type": "boolean"}}}}
    for value in (kind, json.dumps(kind)):
        found = trait(
            prop("kind", value),
            prop("higher_is_better", True),
            prop("deep_judgment_enabled", True),
            kind="GlobalLLMRubricTrait",
        )
        assert isinstance(found, LLMRubricTrait)
        assert (found.higher_is_better, found.deep_judgment_enabled) == (None, False)


@pytest.mark.parametrize("value", [(), ("",), (None,)])
def test_a_callable_without_code_is_inert(value: Any) -> None:
    found = trait(*(prop("callable_code", code) for code in value), kind="karenina:GlobalCallableTrait")
    assert isinstance(found, CallableRubricTrait)
    assert (found.usable, found.kind) == (False, "boolean")


def test_a_regex_without_a_pattern_is_reported() -> None:
    benchmark = loaded(feed(rating=[rating("GlobalRegexTrait")]))
    assert "no pattern" in benchmark.warnings[0]


def test_masked_keys_are_no_keys_and_real_ones_are_reported() -> None:
    def override(key: str) -> dict[str, Any]:
        settings = {"model_name": "m", "interface": "litellm", "endpoint_api_key": key, "mcp_urls_dict": None}
        return feed(rating=[rating("GlobalAgenticRubricTrait", "t", prop("model_override", settings), description="d")])

    masked, real = loaded(override("**********")), loaded(override("sk-real"))
    assert masked.rubric is not None
    assert real.rubric is not None
    assert masked.rubric.agentic_traits[0].model_override.endpoint_api_key is None
    assert not masked.warnings
    assert real.rubric.agentic_traits[0].model_override.api_key() == "sk-real"
    assert "API key" in real.warnings[0]
    assert "sk-real" not in repr(real)


# Broken files


def test_all_problems_at_once_with_place_and_remedy() -> None:
    text = problems(
        feed(
            item(text=...),
            item(acceptedAnswer=...),
            item(hasPart={"name": "x"}),
            {"@type": "DataFeedItem", "@id": "q4"},
            item(rating=[rating("QuestionSpecificRegexTrait", "Cites", prop("pattern", "("))]),
            rating=[rating("QuestionSpecificRubricTrait", "Elsewhere", bestRating=1, worstRating=0)],
            name=" ",
        )
    )
    for expected in (
        "7 problems",
        "dataFeedElement[0] (q1): the question has no text: add ",
        "dataFeedElement[1] (q1-1): the reference answer is missing or has no text: add ",
        "dataFeedElement[2] (q1-2): the answer template is missing or has no text: add ",
        'dataFeedElement[3] (q4): the question is missing: add "item"',
        "(trait 'Cites'): trait 'Cites': the pattern does not compile",
        "write GlobalRubricTrait",
        "the benchmark has no name",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("kind", "properties", "expected"),
    [
        ("RubricTrait", (), "the kind is missing"),
        ("RubricTrait", (prop("kind", "percent"),), "kind must be boolean"),
        ("RubricTrait", (prop("kind", "score"), prop("min_score", "1")), "min_score must be a whole number"),
        ("RubricTrait", (prop("kind", "score"), prop("min_score", 5), prop("max_score", 5)), "not below"),
        ("RubricTrait", (prop("kind", "score"), prop("max_score", 10**400)), "max_score must be a whole number"),
        ("LLMRubricTrait", (prop("kind", "literal"), prop("classes", "a, b")), "classes must be an object"),
        ("LLMRubricTrait", (prop("kind", "literal"), prop("classes", {"a": None})), "2 to 20 classes"),
        ("RegexTrait", (prop("pattern", "a{1,99999999999999999999}"),), "repetition"),
        ("CallableTrait", (prop("callable_code", "%%%"),), "callable_code must be base64"),
        ("CallableTrait", (prop("kind", {"type": "template", "schema": {}}),), "no template kind"),
        ("MetricRubricTrait", (prop("tp_instructions", ["x"]),), "metrics must be some of"),
        ("MetricRubricTrait", (prop("metrics", "recall"), prop("tp_instructions", ["x"])), "metrics must be a list"),
        ("AgenticRubricTrait", (), "needs a description"),
        ("AgenticRubricTrait", (prop("model_override", {"interface": "litellm"}),), "a model needs a name"),
        ("AgenticRubricTrait", (prop("model_override", "m"),), "model_override must be an object"),
    ],
)
def test_a_trait_that_cannot_be_built_fails_the_load(kind: str, properties: Any, expected: str) -> None:
    own = feed(item(rating=[rating(f"karenina:QuestionSpecific{kind}", "Odd", *properties)]))
    text = problems(own)
    assert expected in text
    assert "(q1)" in text
    assert "'Odd'" in text
    assert expected in problems(feed(rating=[rating(f"karenina:Global{kind}", "Odd", *properties)]))


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (feed() | {"dataFeedElement": None}, "the list of questions is missing"),
        (feed() | {"name": 7}, "name must be a text"),
        (feed(additionalProperty=[{"value": 1}]), "additionalProperty[0] needs a name"),
        (feed(additionalProperty=[prop("global_regex_rubric_traits", "[{]")]), "global_regex_rubric_traits"),
        (feed(additionalProperty=[prop("global_metric_rubric_traits", '[{"name": "m"}]')]), "(trait 'm')"),
        (feed(rating=[rating("GlobalRegexTrait", "t"), rating("GlobalRegexTrait", "t")]), "more than once: t"),
        (feed({**item(), "@id": 7}), "@id must be a text"),
        (feed(item(keywords="one")), "keywords must be a list of texts"),
        (feed(item(additionalProperty=[prop("finished", "yes")])), "finished must be true or false"),
        (feed(item(additionalProperty=[prop("few_shot_examples", "1. ...")])), "few_shot_examples must be a list"),
        (feed(item(additionalProperty={"finished": True})), "additionalProperty must be a list of objects"),
    ],
)
def test_broken_parts(root: Any, expected: str) -> None:
    assert expected in problems(root)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"@type": "DataFeed", "score": NaN}', "NaN"),
        (b'{"@type": "DataFeed", "score": -Infinity}', "-Infinity"),
        (b'{"@type": "DataFeed", "score": 1e999}', "too large"),
        (b'{"@type": "DataFeed", "score": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"@type": "DataFeed", "deep": ' + b"[" * 64 + b"]" * 64 + b"}", "nested deeper than 64"),
        (b'{"@type": "DataFeed", "deep": ' + b"[" * 100_000, "nested deeper than 64"),
        (b'{"@type": "DataFeed", "name": "a", "name": "b"}', "'name' occurs twice"),
        (b'{"@type": "DataFeed", "name": "\xff"}', "not UTF-8 at byte 31"),
        (b'{"@type": "DataFeed",\n "name": }', "line 2, column 10"),
    ],
)
def test_unsafe_json_is_refused(data: bytes, expected: str) -> None:
    for name in ("b.jsonld", "b.json"):
        with pytest.raises(BenchmarkError, match=rf"^{name}: cannot be read") as caught:
            karenina_jsonld.karenina_load_benchmark(Path(name), data, APP)
        assert expected in str(caught.value)


def test_64_levels_are_allowed() -> None:
    deep = json.loads("[" * 63 + "]" * 63)
    assert loaded(feed(deep=deep)).name == "Weights"


def test_too_large_a_file_is_refused() -> None:
    with pytest.raises(BenchmarkError, match="split the benchmark"):
        karenina_jsonld.karenina_load_benchmark(Path("b.jsonld"), bytes(256 * 1024 * 1024 + 1), APP)


# Nothing is executed

WATCH = """
import json, sys
from pathlib import Path
import karenina_jsonld
from karenina_core import Karenina

APP = Karenina({"jsonld": karenina_jsonld})

def load(path):
    return karenina_jsonld.karenina_load_benchmark(Path(path), Path(path).read_bytes(), APP)

# Everything is imported and every converter made before the watch begins.
karenina_jsonld.karenina_save_benchmark(load(sys.argv[1]), Path(sys.argv[1]), APP)
path = Path(sys.argv[2])
data = path.read_bytes()
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if watching else None)
watching = True
benchmark = karenina_jsonld.karenina_load_benchmark(path, data, APP)
karenina_jsonld.karenina_save_benchmark(benchmark, path, APP)
watching = False
print(json.dumps(sorted(set(seen))))
"""


def test_nothing_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    attack = f"open({str(mark)!r}, 'w').write('x')"
    pickled = b"cbuiltins\nexec\n(V" + attack.encode() + b"\ntR."
    code = base64.b64encode(pickled).decode()
    source = f"{attack}\n{PLACEHOLDER}"
    root = feed(
        item(
            hasPart={"text": source}, additionalProperty=[prop("author", "__import__('os')"), prop("custom_x", attack)]
        ),
        item(hasPart={"text": PLACEHOLDER.replace("False", attack)}),
        rating=[
            rating("GlobalCallableTrait", "p", prop("callable_code", code)),
            rating("GlobalCallableTrait", "s", prop("callable_code", base64.b64encode(attack.encode()).decode())),
        ],
        additionalProperty=[prop("global_callable_rubric_traits", json.dumps([{"name": "l", "callable_code": code}]))],
    )
    path = tmp_path / "hostile.jsonld"
    path.write_text(json.dumps(root))
    command = [sys.executable, "-c", WATCH, str(DATA / "traits.jsonld"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # `compile` is the parser that looks for placeholders; object.__getattr__ is how attrs sets fields of frozen values.
    assert set(json.loads(done.stdout)) <= {"compile", "object.__getattr__", "object.__setattr__"}
    assert not mark.exists()
