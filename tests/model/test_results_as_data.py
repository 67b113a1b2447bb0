"""Results as JSON and back, names that read through, and identifiers that hold no time."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import re
import textwrap
from enum import Enum
from typing import Any

import pytest
from attrs import evolve, fields
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from karenina_vocabulary.evaluation_parts import ChecksPart, TemplatePart

from karenina_core import ModelIdentity, TaskIdentity, VerificationResult
from karenina_core.errors import ConfigError
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.identity import canonical_json, question_urn, template_id
from karenina_core.values.result import GenerationPart, MetadataPart, TrailEntry, all_parts

ME = ModelIdentity("litellm", "m")
METADATA = MetadataPart(question_id="q", template_id="t", result_id="r", question_text="Why?", answering=ME, parsing=ME)


@given(st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=2 * settings().max_examples // 3)
def test_a_result_survives_json(results: Any, data: Any) -> None:
    result = data.draw(results)
    text = json.dumps(unstructure(result), ensure_ascii=False, allow_nan=False)
    again = structure(json.loads(text), VerificationResult)
    assert again == result
    assert json.dumps(unstructure(again), ensure_ascii=False) == text


def test_a_result_survives_pickling() -> None:
    result = VerificationResult(metadata=METADATA, template=TemplatePart(verify_result=True))
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.template.raw_llm_response == ""


def test_every_default_survives_too() -> None:
    for parts in ({}, {name: cls() for name, cls in all_parts().items()}):
        result = VerificationResult(metadata=METADATA, **parts)
        assert structure(unstructure(result), VerificationResult) == result


def test_unknown_fields_and_wrong_types_are_refused_with_their_paths() -> None:
    data = unstructure(VerificationResult(metadata=METADATA, template=TemplatePart()))
    data["template"]["verify_result"] = "yes"
    data["metadata"]["weather"] = "fine"
    del data["metadata"]["question_id"]
    with pytest.raises(ConfigError) as caught:
        structure(data, VerificationResult)
    told = {problem.path: problem.message for problem in caught.value.problems}
    assert told["template.verify_result"] == "expected true or false, got 'yes'"
    assert told["metadata.question_id"] == "is missing"
    assert told["metadata.weather"].startswith("unknown setting")


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=3) | st.builds(TrailEntry),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), NESTED, max_size=4))
@settings(deadline=None)
def test_tables_of_anything_become_plain_data_all_the_way_down(table: dict[str, Any]) -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [plain(item) for item in value]
        if isinstance(value, TrailEntry):
            return {"stage": value.stage, "status": value.status, "reason": value.reason, "seconds": value.seconds}
        return base64.b64encode(value).decode() if isinstance(value, bytes) else value

    result = VerificationResult(metadata=METADATA, extensions={"mine": table})
    data = unstructure(result)
    assert data["extensions"] == {"mine": plain(table)}
    assert data["extensions"]["mine"] is not table


class Colour(Enum):
    RED = "red"


def test_names_that_are_no_texts_are_written_as_what_they_stand_for() -> None:
    table = {"counts": {Colour.RED: 2, "blue": [{Colour.RED: Colour.RED}]}}
    data = unstructure(VerificationResult(metadata=METADATA, extensions={"mine": table}))
    assert data["extensions"] == {"mine": {"counts": {"red": 2, "blue": [{"red": "red"}]}}}


# Names that read through

READ = [
    *((a.name, GenerationPart) for a in fields(GenerationPart)),
    *((a.name, ChecksPart) for a in fields(ChecksPart)),
]


@pytest.mark.parametrize(("name", "part"), READ)
def test_the_template_part_reads_through(name: str, part: type) -> None:
    generation = GenerationPart(raw_llm_response="BCL2", trace_messages=[{"role": "assistant"}], text_flags=["nul"])
    checks = ChecksPart(abstention_detected=True, trace_validation_error="cut off")
    result = VerificationResult(metadata=METADATA, template=TemplatePart(), generation=generation, checks=checks)
    home = generation if part is GenerationPart else checks
    assert getattr(result.template, name) == getattr(home, name)
    changed = evolve(result, generation=GenerationPart(), checks=ChecksPart())
    assert getattr(changed.template, name) == getattr(part(), name)
    assert getattr(TemplatePart(), name) == getattr(part(), name)


def test_nothing_else_is_invented() -> None:
    for name in ("weather", "_generation_", "question_id", "__deepcopy__"):
        with pytest.raises(AttributeError, match="TemplatePart"):
            getattr(TemplatePart(), name)


def test_names_of_parts_are_unique() -> None:
    """A result field has one home."""
    names = [a.name for cls in all_parts().values() for a in fields(cls) if not a.name.startswith("_")]
    assert len(names) == len(set(names))


# Identifiers

TEXT = st.text(max_size=12)
IDENTITIES = st.builds(ModelIdentity, TEXT, TEXT, st.none() | TEXT, st.lists(TEXT, max_size=2), st.none() | TEXT)
TASKS = st.builds(TaskIdentity, TEXT, TEXT, IDENTITIES, IDENTITIES, st.integers(1, 5))


@given(TASKS, st.none() | TEXT)
@settings(deadline=None)
def test_the_id_of_a_result_is_short_and_always_the_same(task: TaskIdentity, run_name: str | None) -> None:
    found = task.result_id(run_name)
    assert re.fullmatch(r"[0-9a-f]{16}", found)
    assert evolve(task).result_id(run_name) == found
    assert evolve(task, answering=evolve(task.answering)).result_id(run_name) == found


@given(TASKS, TASKS, st.none() | TEXT, st.none() | TEXT)
@settings(deadline=None)
def test_different_tasks_have_different_ids(a: TaskIdentity, b: TaskIdentity, run_a: Any, run_b: Any) -> None:
    assume((a, run_a) != (b, run_b))
    assert a.result_id(run_a) != b.result_id(run_b)


@pytest.mark.parametrize(
    "change",
    [
        {"question_id": "other"},
        {"template_id": "other"},
        {"replicate": 2},
        {"answering": ModelIdentity("litellm", "other")},
        {"parsing": ModelIdentity("litellm", "m", "provider")},
        {"parsing": ModelIdentity("litellm", "m", None, ["tool"])},
        {"parsing": ModelIdentity("litellm", "m", None, [], "config")},
    ],
)
def test_every_part_of_the_identity_counts(change: dict[str, Any]) -> None:
    task = TaskIdentity("q", "t", ME, ME)
    assert evolve(task, **change).result_id("run") != task.result_id("run")
    assert task.result_id("run") != task.result_id("another")


def test_no_time_is_in_the_id() -> None:
    """The whole recipe: exactly these facts, as JSON with sorted keys and no white space."""
    model = '{"config_id":null,"interface":"litellm","model_name":"m","provider":null,"tools":[]}'
    recipe = (
        f'{{"answering":{model},"parsing":{model},"question_id":"q","replicate":1,"run_name":"run",'
        '"scenario_id":null,"scenario_node":null,"scenario_turn":null,"template_id":"t"}'
    )
    expected = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    assert TaskIdentity("q", "t", ME, ME).result_id("run") == expected


SOURCE_LINE = st.text(st.sampled_from("ab =:#(\t "), max_size=8).map(lambda text: text.rstrip())
SOURCES = st.lists(SOURCE_LINE, min_size=1, max_size=6).map("\n".join).filter(lambda text: text.strip())


@given(
    SOURCES, st.integers(0, 8), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", " ", "\t "]), st.booleans()
)
@settings(deadline=None)
def test_the_id_of_a_template_ignores_layout(
    source: str, indent: int, newline: str, trailing: str, framed: bool
) -> None:
    moved = textwrap.indent(source, " " * indent)
    lines = [f"{line}{trailing}" for line in moved.split("\n")]
    text = newline.join(["", *lines, ""] if framed else lines)
    assert template_id(text) == template_id(source)


@given(SOURCES, SOURCES)
@settings(deadline=None)
def test_the_id_of_a_template_sees_content(a: str, b: str) -> None:
    def content(source: str) -> str:
        return "\n".join(line.rstrip() for line in textwrap.dedent(source).split("\n")).strip()

    assert (template_id(a) == template_id(b)) == (content(a) == content(b))


@pytest.mark.parametrize("nothing", [None, "", " \n\t\r\n"])
def test_without_a_template_there_is_a_word_for_it(nothing: str | None) -> None:
    assert template_id(nothing) == "no_template"


@given(st.text(max_size=80))
@settings(deadline=None)
def test_question_ids_are_stable_and_readable(text: str) -> None:
    found = question_urn(text)
    assert found == question_urn(text)
    assert re.fullmatch(r"urn:uuid:question-(?s:.){0,50}-[0-9a-f]{8}", found)
    assert not set("?,. ") & set(found)


def test_published_question_ids() -> None:
    assert question_urn("What is the putative target of venetoclax?").startswith(
        "urn:uuid:question-what-is-the-putative-target-of-venetoclax-"
    )


@given(st.dictionaries(st.text(), st.text()))
@settings(deadline=None)
def test_equal_values_have_equal_canonical_json(value: dict[str, str]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)
    assert canonical_json(value).isascii()
