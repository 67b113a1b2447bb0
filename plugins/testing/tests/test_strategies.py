"""The public strategies make valid values, and odd ones among them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_calls.ports.text import sanitize
from karenina_runs.plan.rubrics import rubric_of
from karenina_testing import strategies
from karenina_testing.examples import every, smallest
from karenina_testing.fakes import FakeHandle

from karenina_core import ModelConfig, VerificationConfig, VerificationResult
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.message import Message
from karenina_core.values.rubric import DynamicRubric, Rubric

QUICK = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
TYPES: list[Any] = [
    *(int, str, bool, float, list[str], dict[str, int], tuple[int, ...], tuple[int, str], set[int], frozenset[str]),
    *(None, int | None, str | list[float], Literal["a", 1], list, dict, object, Any),
]


@pytest.mark.parametrize("name", sorted(name for name, made in vars(strategies).items() if callable(made)))
def test_every_strategy_makes_values(name: str) -> None:
    arguments = {
        "of_type": (dict[str, int],),
        "fillings_of": (FakeHandle(expected={"a": "b"}),),
        "json_objects": (["a", "b"],),
    }
    assert every(getattr(strategies, name)(*arguments.get(name, ())), 5)


@QUICK
@given(strategies.results())
def test_results_survive_being_written_and_read(result: VerificationResult) -> None:
    written = json.dumps(unstructure(result), allow_nan=False)
    assert structure(json.loads(written), VerificationResult) == result


@QUICK
@given(strategies.verification_configs())
def test_configurations_survive_being_written_and_read(config: VerificationConfig) -> None:
    recorded = [m for m in (*config.answering_models, *config.parsing_models) if m.interface == "manual"]
    if not recorded:  # recorded answers are never written
        assert structure(json.loads(json.dumps(unstructure(config))), VerificationConfig) == config


@QUICK
@given(strategies.messages())
def test_messages_survive_being_written_and_read(message: Message) -> None:
    assert Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message


@QUICK
@given(strategies.rubrics())
def test_rubrics_have_traits_of_all_kinds_with_names_of_their_own(rubric: Rubric) -> None:
    assert len(set(rubric.names())) == len(rubric)


@QUICK
@given(strategies.dynamic_rubrics())
def test_dynamic_traits_say_what_they_are_about(rubric: DynamicRubric) -> None:
    assert isinstance(rubric, DynamicRubric)
    assert all((trait.summary or trait.description or "").strip() for trait in rubric)


@QUICK
@given(strategies.benchmarks())
def test_the_rubrics_of_a_benchmark_can_be_merged(benchmark: BenchmarkData) -> None:
    """The static and the dynamic ones, with those of any question."""
    for question in benchmark:
        own = (benchmark.rubric, benchmark.dynamic_rubric, question.question_rubric, question.question_dynamic_rubric)
        names = sorted(trait.name for rubric in own for trait in rubric or ())
        merged = rubric_of(benchmark, question, "rubric_only")
        assert merged is None or sorted(merged.names()) == names


def test_scales_that_begin_at_zero_and_classes_out_of_alphabetical_order_come_up() -> None:
    found = [trait for rubric in every(strategies.rubrics(), 200) for trait in rubric.llm_traits]
    assert [trait for trait in found if trait.kind == "score" and trait.min_score == 0 and trait.max_score == 1]
    classes = [trait.get_class_names() for trait in found if trait.kind == "literal"]
    assert [names for names in classes if names != sorted(names)]


@QUICK
@given(strategies.llm_responses())
def test_replies_are_as_adapters_leave_them(response: Any) -> None:
    assert sanitize(response.content) == (response.content, response.flags)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_values_fit_their_type(type_: Any) -> None:
    from karenina_core import Key

    key: Key[Any] = Key("planted.value", type_)
    for value in every(strategies.of_type(type_), 30):
        key.check(value)


def test_texts_are_odd() -> None:
    found = every(strategies.texts(), 200)
    assert {"\0", "\u2028", "\u202e"} <= set("".join(found))
    assert max(map(len, found)) > 5_000


def test_models_of_every_kind_come_up() -> None:
    models = every(strategies.model_configs(), 60)
    assert {m.interface for m in models} >= {"manual", "litellm", "openai_endpoint"}
    assert all(isinstance(model, ModelConfig) for model in models)


def test_the_same_examples_come_every_time() -> None:
    assert every(strategies.questions(), 20) == every(strategies.questions(), 20)


def test_the_smallest_example_is_found_and_the_search_ends() -> None:
    numbers = st.integers(0, 10**6)
    assert smallest(numbers, lambda n: n > 1234, known=10**6, tries=500) == 1235
    assert smallest(numbers, lambda n: n == 77_777, known=77_777, tries=5) == 77_777
    assert smallest(numbers, lambda n: n > 10, known=10**6, tries=1) <= 10**6


def test_hypothesis_is_imported_only_for_random_examples() -> None:
    script = (
        "import sys, karenina_testing.authoring.verdicts, karenina_core.testing as t\n"
        "t.application, t.ScriptedServer, t.ScriptedLLM\n"
        "assert 'hypothesis' not in sys.modules\n"
        "t.stage_checks\n"
        "assert 'hypothesis' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_without_hypothesis_the_extra_is_named() -> None:
    names = ("stage_checks", "sink_checks", "runtime_checks", "plugin_checks", "strategies")
    script = (
        f"import sys, karenina_core.testing\nsys.modules['hypothesis'] = None\nfor name in {names}:\n"
        "    try:\n        getattr(karenina_core.testing, name)\n"
        "    except ModuleNotFoundError as error:\n        print(name, error)"
    )
    ran = subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True, text=True)
    said = [
        line.partition(" ")[0] for line in ran.stdout.splitlines() if "pip install 'karenina-core[testing]'" in line
    ]
    assert said == list(names)
