"""What is written, and what stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import karenina_jsonld
import pytest
from attrs import evolve
from karenina_vocabulary.traits import (
    AgenticRubricTrait,
    CallableRubricTrait,
    LLMRubricTrait,
    MetricRubricTrait,
    RegexRubricTrait,
)

from karenina_core import Benchmark, Karenina
from karenina_core.errors import BenchmarkError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import ModelConfig
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric

DATA = Path(__file__).parent / "data"
APP = Karenina({"jsonld": karenina_jsonld})
FILES = sorted(path.name for path in DATA.glob("*.jsonld"))
TARGET = Path("saved.jsonld")


def load(data: bytes) -> BenchmarkData:
    benchmark = karenina_jsonld.karenina_load_benchmark(TARGET, data, APP)
    assert benchmark is not None
    return benchmark


def load_file(name: str) -> BenchmarkData:
    return load((DATA / name).read_bytes())


def save(benchmark: BenchmarkData) -> bytes:
    data = karenina_jsonld.karenina_save_benchmark(benchmark, TARGET, APP)
    assert data is not None
    return data


def saved(benchmark: BenchmarkData) -> dict[str, Any]:
    root: dict[str, Any] = json.loads(save(benchmark))
    return root


def undated(data: bytes) -> bytes:
    """Without the root's date, the only thing that saving changes."""
    return re.sub(rb'(?m)^(\s{1,4}"dateModified": )"[^"]*"', rb"\1", data, count=1)


def with_question(benchmark: BenchmarkData, index: int, **changes: Any) -> BenchmarkData:
    questions = list(benchmark.questions)
    questions[index] = evolve(questions[index], **changes)
    return evolve(benchmark, questions=questions)


def changed_lines(before: bytes, after: bytes) -> list[str]:
    old = undated(before).decode().splitlines()
    return [line.strip() for line in undated(after).decode().splitlines() if line not in old]


# Lossless


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "layout",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip() + "\n\n  ",
        lambda text: json.dumps(json.loads(text), indent=4),
        lambda text: json.dumps(json.loads(text), indent="\t", ensure_ascii=False),
    ],
    ids=["as-is", "crlf", "bom", "trailing-space", "four-spaces-escaped", "tabs"],
)
def test_unchanged_files_are_saved_letter_by_letter(name: str, layout: Callable[[str], str]) -> None:
    data = layout((DATA / name).read_bytes().decode()).encode()
    again = save(load(data))
    assert undated(again) == undated(data)
    assert again != data


@pytest.mark.parametrize("name", FILES)
def test_files_on_one_line_stay_on_one_line(name: str) -> None:
    root = json.loads((DATA / name).read_bytes())
    data = save(load(json.dumps(root, separators=(",", ":")).encode()))
    assert b"\n" not in data
    again = json.loads(data)
    assert json.dumps(again | {"dateModified": ""}) == json.dumps(root | {"dateModified": ""})


def test_numbers_keep_their_spelling() -> None:
    data = (DATA / "unknown.jsonld").read_bytes().replace(b"0.5", b"5.0E-1").replace(b": 12", b": 1.20e1")
    assert undated(save(load(data))) == undated(data)
    changed = save(with_question(load(data), 0, answer_notes="new"))
    assert b"5.0E-1" in changed
    assert b"1.20e1" in changed


def test_the_root_says_when_it_was_saved() -> None:
    moment = datetime.fromisoformat(saved(load_file("minimal.jsonld"))["dateModified"])
    assert moment.utcoffset() == timedelta(0)
    assert abs(datetime.now(moment.tzinfo) - moment) < timedelta(minutes=1)


def test_values_changed_in_place_are_saved() -> None:
    benchmark = load_file("legacy.jsonld")
    benchmark.questions[0].custom_metadata["custom_x"]["weights"].append("heavy")
    values = {q.id: q for q in load(save(benchmark))}
    assert values["urn:example:legacy:1"].custom_metadata["custom_x"] == {"weights": [1, 1.0, 1e-05, "heavy"]}


def test_other_suffixes_are_left_to_other_writers() -> None:
    benchmark = load_file("minimal.jsonld")
    assert karenina_jsonld.karenina_save_benchmark(benchmark, Path("b.yaml"), APP) is None
    assert karenina_jsonld.karenina_save_benchmark(benchmark, Path("b.JSON"), APP) is not None


# Changes touch what they must


def test_one_changed_question_changes_its_lines_only() -> None:
    before = (DATA / "minimal.jsonld").read_bytes()
    after = save(with_question(load(before), 0, raw_answer="2 (Phobos, Deimos)", keywords=["planets"]))
    assert changed_lines(before, after) == ['"text": "2 (Phobos, Deimos)"', '"keywords": ["planets"]']
    assert len(after.splitlines()) == len(before.splitlines())


def test_1_and_true_are_different_values() -> None:
    benchmark = with_question(load_file("legacy.jsonld"), 0, custom_metadata={"difficulty": 3, "new": 1})
    again = with_question(load(save(benchmark)), 0, custom_metadata={"difficulty": 3.0, "new": True})
    (first, *_) = load(save(again))
    assert [(type(v), v) for v in first.custom_metadata.values()] == [(float, 3.0), (bool, True)]


def test_unknown_parts_of_a_changed_question_survive() -> None:
    benchmark = load_file("unknown.jsonld")
    old = json.loads((DATA / "unknown.jsonld").read_bytes())
    rubric = benchmark.questions[0].question_rubric
    assert rubric is not None
    rubric = evolve(rubric, regex_traits=[evolve(rubric.regex_traits[0], pattern="^100$")])
    new = saved(
        with_question(
            benchmark,
            0,
            question="At what temperature does water boil?",
            finished=False,
            question_rubric=rubric,
        )
    )
    was, now = old["dataFeedElement"][0], new["dataFeedElement"][0]
    item = now["item"]
    assert {k: v for k, v in now.items() if k != "item"} == {k: v for k, v in was.items() if k != "item"}
    assert (item["text"], item["@id"], item["eduLevel"]) == (
        "At what temperature does water boil?",
        was["item"]["@id"],
        2,
    )
    assert item["hasPart"] == was["item"]["hasPart"]
    names = [(entry["name"], entry.get("value")) for entry in item["additionalProperty"]]
    assert names[0] == ("finished", False)
    assert names[-1] == ("finished", False)
    assert ("mystery", {"a": [[]]}) in names
    rating = item["rating"][0]
    assert rating["reviewer"] == was["item"]["rating"][0]["reviewer"]
    assert rating["additionalProperty"][0] == {
        "@type": "PropertyValue",
        "name": "pattern",
        "value": "^100$",
        "unit": "°C",
    }
    assert rating["additionalProperty"][1]["name"] == "colour"
    assert (rating["bestRating"], type(rating["bestRating"])) == (1, int)


def test_a_new_question_is_appended_in_canonical_form() -> None:
    before = (DATA / "minimal.jsonld").read_bytes()
    new = Question(
        question="Which gas do plants take up?",
        raw_answer="Carbon dioxide — CO₂",
        answer_template="class Answer(BaseAnswer): ...",
        finished=True,
        keywords=["biology"],
        question_rubric=Rubric(regex_traits=[RegexRubricTrait(name="Formula", pattern="CO[2₂]")]),
        author={"@type": "Person", "name": "Ada"},
        sources=[{"url": "https://example.org"}],
        custom_metadata={"custom_x": None},
        date_created="2024-01-01T00:00:00+00:00",
    )
    benchmark = load(before)
    after = save(evolve(benchmark, questions=[*benchmark.questions, new]))
    head = undated(before).decode().rstrip().removesuffix("}").rstrip().removesuffix("]").rstrip()
    assert undated(after).decode().startswith(head + ",\n    {\n")
    element = json.loads(after)["dataFeedElement"][1]
    assert list(element) == ["@type", "@id", "dateCreated", "dateModified", "item"]
    assert (element["@id"], element["dateCreated"]) == (new.id, "2024-01-01T00:00:00+00:00")
    assert datetime.fromisoformat(element["dateModified"]).tzinfo is not None
    item = element["item"]
    assert list(item) == ["@type", "text", "acceptedAnswer", "hasPart", "rating", "additionalProperty", "keywords"]
    assert item["hasPart"] == {
        "@type": "SoftwareSourceCode",
        "name": "Which gas do plants take up?... Answer Template",
        "text": "class Answer(BaseAnswer): ...",
        "programmingLanguage": "Python",
    }
    assert item["additionalProperty"] == [
        {"@type": "PropertyValue", "name": "finished", "value": True},
        {"@type": "PropertyValue", "name": "author", "value": '{"@type": "Person", "name": "Ada"}'},
        {"@type": "PropertyValue", "name": "sources", "value": '[{"url": "https://example.org"}]'},
        {"@type": "PropertyValue", "name": "custom_custom_x"},
    ]
    assert load(after).questions[1] == evolve(new, date_modified=element["dateModified"])


def test_a_removed_question_takes_its_item_along() -> None:
    benchmark = load_file("traits.jsonld")
    old = json.loads((DATA / "traits.jsonld").read_bytes())["dataFeedElement"]
    kept = [benchmark.questions[2], benchmark.questions[1]]
    assert saved(evolve(benchmark, questions=kept))["dataFeedElement"] == [old[2], old[1]]
    assert saved(evolve(benchmark, questions=[]))["dataFeedElement"] == []


def test_ids_stay_when_others_go() -> None:
    benchmark = load_file("legacy.jsonld")
    _, twin, derived = benchmark.questions
    rewritten = evolve(derived, question="Who saw the rings of Saturn first?")
    assert [q.id for q in load(save(evolve(benchmark, questions=[twin, rewritten])))] == [twin.id, derived.id]


def test_keywords_of_an_older_place_do_not_come_back() -> None:
    benchmark = with_question(load_file("legacy.jsonld"), 0, keywords=())
    root = saved(benchmark)
    assert "keywords" not in root["dataFeedElement"][0]
    assert root["dataFeedElement"][1]["keywords"] == ["ignored"]


def test_root_fields_and_metadata() -> None:
    benchmark = load_file("unknown.jsonld")
    metadata = {"benchmark_format_version": "3.0.0-jsonld", "nothing": 1, "fresh": [2]}
    root = saved(evolve(benchmark, name="New", description="d", creator="me", metadata=metadata))
    assert (root["name"], root["description"], root["creator"]) == ("New", "d", "me")
    assert "version" not in root
    assert [(p["name"], p["value"]) for p in root["additionalProperty"]] == list(metadata.items())
    assert root["lab:site"]["zzz_unknown"]


def test_a_context_without_terms_that_are_needed_is_completed() -> None:
    root = json.loads((DATA / "unknown.jsonld").read_bytes())
    del root["@context"]["rating"]
    context = saved(load(json.dumps(root).encode()))["@context"]
    assert context == root["@context"] | {"rating": {"@id": "contentRating", "@container": "@set"}}
    del root["@context"]
    whole = saved(load(json.dumps(root).encode()))
    assert (next(iter(whole)), whole["@context"]["@version"]) == ("@context", 1.1)
    root["@context"] = "https://example.org/context.jsonld"
    assert saved(load(json.dumps(root).encode()))["@context"] == root["@context"]


# Traits


def test_a_changed_trait_says_its_kind() -> None:
    benchmark = load_file("legacy.jsonld")
    assert benchmark.rubric is not None
    depth, agrees = benchmark.rubric.llm_traits
    rubric = evolve(benchmark.rubric, llm_traits=[evolve(depth, min_score=0, max_score=1), agrees])
    changed = evolve(benchmark, rubric=rubric)
    root = saved(changed)
    assert (root["rating"][0]["bestRating"], root["rating"][0]["worstRating"]) == (1.0, 0.0)
    assert {"@type": "PropertyValue", "name": "kind", "value": "score"} in root["rating"][0]["additionalProperty"]
    assert root["rating"][1] == json.loads((DATA / "legacy.jsonld").read_bytes())["rating"][1]
    assert load(save(changed)).rubric == rubric


def test_ratings_that_are_no_static_traits_stay() -> None:
    benchmark = with_question(load_file("traits.jsonld"), 0, question_rubric=None)
    root = saved(evolve(benchmark, rubric=None))
    assert [r["name"] for r in root["rating"]] == ["Global sometimes", "Global unheard"]
    assert [r["name"] for r in root["dataFeedElement"][0]["item"]["rating"]] == [
        "misplaced",
        "QuestionSpecific sometimes",
    ]


def test_the_order_of_traits_is_the_rubrics() -> None:
    benchmark = load_file("traits.jsonld")
    assert benchmark.rubric is not None
    rubric = Rubric(
        llm_traits=[
            LLMRubricTrait(name="first", kind="boolean"),
            *reversed(benchmark.rubric.llm_traits),
        ],
        callable_traits=reversed(benchmark.rubric.callable_traits),
    )
    assert load(save(evolve(benchmark, rubric=rubric))).rubric == rubric


def test_legacy_traits_stay_until_one_changes() -> None:
    benchmark = load_file("legacy.jsonld")
    assert benchmark.rubric is not None
    names = [entry["name"] for entry in saved(benchmark)["additionalProperty"]]
    extra = LLMRubricTrait(name="More", kind="boolean")
    more = evolve(benchmark, rubric=evolve(benchmark.rubric, llm_traits=[*benchmark.rubric.llm_traits, extra]))
    assert [entry["name"] for entry in saved(more)["additionalProperty"]] == names

    (hedging,) = benchmark.rubric.regex_traits
    rubric = evolve(benchmark.rubric, regex_traits=[evolve(hedging, pattern="perhaps")])
    changed = evolve(benchmark, rubric=rubric)
    root = saved(changed)
    assert [entry["name"] for entry in root["additionalProperty"]] == [names[0], *names[2:]]
    assert root["rating"][-1]["additionalType"] == "karenina:GlobalRegexTrait"
    assert load(save(changed)).rubric == rubric


def test_code_of_callables_is_kept_byte_by_byte() -> None:
    code = bytes(range(256))
    trait = CallableRubricTrait(name="c", kind="score", min_score=0, max_score=3, callable_code=code)
    benchmark = BenchmarkData(name="b", rubric=Rubric(callable_traits=[trait]))
    again = load(save(benchmark)).rubric
    assert again is not None
    assert again.callable_traits[0].callable_code == code


def test_every_trait_type_in_canonical_form() -> None:
    override = ModelConfig(model_name="m", temperature=None, endpoint_api_key="sk-secret", api_key_env="LAB_KEY")
    rubric = Rubric(
        llm_traits=[
            LLMRubricTrait(name="a", kind="boolean"),
            LLMRubricTrait(name="b", kind="literal", classes={"x": None, "y": "z"}),
        ],
        regex_traits=[RegexRubricTrait(name="c", pattern="p")],
        callable_traits=[CallableRubricTrait(name="d", kind="boolean", callable_code=b"x")],
        metric_traits=[MetricRubricTrait(name="e", metrics=["f1"], tp_instructions=["i"])],
        agentic_traits=[AgenticRubricTrait(name="f", kind="score", description="d", model_override=override)],
    )
    data = save(BenchmarkData(name="b", rubric=rubric))
    assert b"sk-secret" not in data
    ratings = json.loads(data)["rating"]
    assert [r["additionalType"].removeprefix("karenina:Global") for r in ratings] == [
        "RubricTrait",
        "LLMRubricTrait",
        "RegexTrait",
        "CallableTrait",
        "MetricRubricTrait",
        "AgenticRubricTrait",
    ]
    assert all(type(r[end]) is float for r in ratings for end in ("bestRating", "worstRating"))
    found = [{p["name"]: p.get("value") for p in r["additionalProperty"]} for r in ratings]
    assert [f.get("kind") for f in found] == ["boolean", "literal", None, "boolean", None, "score"]
    assert list(found[1]["classes"]) == ["x", "y"]
    assert found[5]["model_override"]["temperature"] is None
    again = load(data).rubric
    assert again is not None
    assert again.agentic_traits[0].model_override == evolve(override, endpoint_api_key=None)
    assert evolve(again, agentic_traits=[]) == evolve(rubric, agentic_traits=[])


def test_secrets_are_never_written() -> None:
    settings = {"model_name": "m", "endpoint_api_key": "sk-old", "anthropic_api_key": "sk-older", "zzz": 1}
    root = json.loads((DATA / "traits.jsonld").read_bytes())
    override = next(p for p in root["rating"][13]["additionalProperty"] if p["name"] == "model_override")
    override["value"] = settings
    root["hasPart"] = [{"nodes": {"n": {"modelOverride": {"parsing_model": {"endpoint_api_key": "sk-node"}}}}}]
    benchmark = load(json.dumps(root, indent=2).encode())
    assert any("3 API key(s)" in warning for warning in benchmark.warnings)
    data = save(benchmark)
    assert b"sk-" not in data
    assert b'"zzz": 1' in data


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"endpoint_base_url": "http://me:sesame@host/v1"}, "endpoint_base_url"),
        ({"endpoint_base_url": "https://host/v1?api_key=sesame"}, "endpoint_base_url"),
        ({"mcp_urls_dict": {"lab": "env LAB_TOKEN=sesame python serve.py"}}, "mcp_urls_dict.lab"),
        ({"mcp_urls_dict": {"lab": "https://host/mcp?key=sesame"}}, "mcp_urls_dict.lab"),
        ({"extra_kwargs": {"extra_headers": {"Authorization": "Bearer sesame-open"}}}, "extra_kwargs.extra_headers"),
    ],
)
def test_a_trait_whose_model_holds_a_secret_is_not_saved(settings: dict[str, Any], where: str, tmp_path: Path) -> None:
    def benchmark(**given: Any) -> Benchmark:
        model = ModelConfig(model_name="m", **given)
        trait = AgenticRubricTrait(name="f", kind="boolean", description="d", model_override=model)
        return Benchmark(name="b", rubric=Rubric(agentic_traits=[trait]))

    place = tmp_path / "b.jsonld"
    with pytest.raises(BenchmarkError, match=rf"'f'.* has a key or a password in {where}, .*api_key_env") as caught:
        benchmark(**settings).save(place)
    assert "sesame" not in str(caught.value)
    assert not place.exists()
    plain = {"endpoint_base_url": "https://host/v1?api-version=2024-02-01", "extra_kwargs": {"seed": 7}}
    benchmark(**plain, mcp_urls_dict={"lab": "python serve.py --quiet"}, api_key_env="LAB_KEY").save(place)


# New documents


def test_a_new_document() -> None:
    data = save(BenchmarkData(name="Größen", creator={"@type": "Person", "name": "Ada"}, metadata={"team": None}))
    assert data.decode().startswith('{\n  "@context": {\n    "@version": 1.1,\n')
    assert "Größen" in data.decode()
    root = json.loads(data)
    assert list(root["@context"]) == [
        "@version",
        "@vocab",
        "karenina",
        "dataFeedElement",
        "item",
        "acceptedAnswer",
        "rating",
        "additionalProperty",
        "hasPart",
        "keywords",
    ]
    dates = [root.pop(key) for key in ("dateCreated", "dateModified")]
    assert all(datetime.fromisoformat(date).tzinfo is not None for date in dates)
    del root["@context"]
    assert root == {
        "@type": "DataFeed",
        "name": "Größen",
        "version": "0.1.0",
        "creator": {"@type": "Person", "name": "Ada"},
        "dataFeedElement": [],
        "additionalProperty": [
            {"@type": "PropertyValue", "name": "benchmark_format_version", "value": "3.0.0-jsonld"},
            {"@type": "PropertyValue", "name": "team"},
        ],
    }


def test_another_loaders_record_is_ignored() -> None:
    assert saved(BenchmarkData(name="b", document={"format": "yaml"}))["@type"] == "DataFeed"


@pytest.mark.parametrize(
    "author", ["Ada", '{"name": "a text that looks like an object"}', '"quoted"', "12", {"name": "Ada"}, ""]
)
def test_authors_of_every_form_come_back(author: Any) -> None:
    question = Question(question="q?", author=author, sources=author if isinstance(author, str) else [author])
    (again,) = load(save(BenchmarkData(name="b", questions=[question])))
    assert (again.author, again.sources) == (question.author, question.sources)


@pytest.mark.parametrize("flag", [True, False])
def test_a_placeholder_flag_that_the_source_does_not_show_is_written(flag: bool) -> None:
    source = "class Answer:\n    response: str\n    def verify(self):\n        return False"
    question = Question(
        question="q?", answer_template=source if not flag else "class Answer: ...", placeholder_template=flag
    )
    (again,) = load(save(BenchmarkData(name="b", questions=[question])))
    assert again.placeholder_template is flag


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (Question(question="q?", custom_metadata={"x": float("nan")}), "nan cannot be written as JSON"),
        (Question(question="q?", custom_metadata={"x": {1: 2}}), "the key 1 is not a text"),
        (Question(question="q?", custom_metadata={"x": object()}), "cannot be written as JSON"),
        (Question(question="q?", template_language="perl"), "language must be python or karenina-template"),
        (Question(question="q?", custom_metadata={"x": json.loads("[" * 80 + "]" * 80)}), "nested deeper than 64"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(question: Question, expected: str) -> None:
    for benchmark in (
        BenchmarkData(name="b", questions=[question]),
        evolve(load_file("minimal.jsonld"), questions=[question]),
    ):
        with pytest.raises(BenchmarkError, match=r"saved\.jsonld") as caught:
            save(benchmark)
        assert expected in str(caught.value)


def test_reserved_metadata_is_refused() -> None:
    with pytest.raises(BenchmarkError, match="put them into the rubric"):
        save(BenchmarkData(name="b", metadata={"global_regex_rubric_traits": "x"}))


def test_lone_surrogates_are_escaped() -> None:
    question = Question(question="q?", raw_answer="a\ud800b")
    data = save(BenchmarkData(name="b", questions=[question]))
    assert rb"a\ud800b" in data
    assert load(data).questions[0].raw_answer == "a\ud800b"
