"""Ways to verify a template that look right and are not: each law holds for ours and rejects the variant."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from karenina_template.language.extraction import fill, judge_schema
from karenina_template.language.searches import pattern_problems, run_patterns
from karenina_template.language.strategies import evaluate
from karenina_template.language.to_json import plain
from karenina_template.pydantic_handle import open_class
from karenina_template.verify import VerifyTemplate
from karenina_vocabulary.traces import render_trace
from pydantic import BaseModel, Field, create_model

from karenina_core import ArtifactKeys, Question, VerificationContext
from karenina_core.templates import (
    AllOf,
    AnyOf,
    AtLeastN,
    BaseAnswer,
    FieldCheck,
    LiteralMatch,
    SetContainment,
    TraceContains,
    TraceLength,
    TracePrimitive,
    VerificationPrimitive,
    VerifiedField,
)
from karenina_core.values.message import Message, ToolUseBlock, trace_dicts

# Most cases make a class, which takes milliseconds.
LAW = settings(
    database=None,
    deadline=None,
    derandomize=True,
    report_multiple_bugs=False,
    max_examples=40,
    phases=(Phase.explicit, Phase.generate),
)


# A ground truth keeps its type: as JSON, a set, a tuple or a date is another value

Decide = Callable[[Any, Any, VerificationPrimitive], bool]
"""From a type, a ground truth and a primitive to the verdict on the reply of a judge that extracted it exactly."""


def template_of(type_: Any, truth: Any, primitive: VerificationPrimitive) -> type[BaseAnswer]:
    return create_model("Answer", __base__=BaseAnswer, x=(type_, VerifiedField("x", truth, primitive)))


def compares_live_values(type_: Any, truth: Any, primitive: VerificationPrimitive) -> bool:
    return fill(template_of(type_, truth, primitive), {"x": plain(truth)}).verify()


def compares_json(type_: Any, truth: Any, primitive: VerificationPrimitive) -> bool:
    """Keeps the ground truth as JSON, as in the metadata of a schema."""
    value: Any = fill(template_of(type_, truth, primitive), {"x": plain(truth)})
    return primitive.check(value.x, json.loads(json.dumps(plain(truth))))


TRUTHS = st.one_of(
    st.tuples(
        st.just(set[str]), st.sets(st.text("ab"), min_size=1), st.sampled_from([LiteralMatch(), SetContainment()])
    ),
    st.tuples(st.just(tuple[int, str]), st.tuples(st.integers(), st.text("ab")), st.just(LiteralMatch())),
    st.tuples(st.just(datetime.date), st.dates(), st.just(LiteralMatch())),
    st.tuples(st.just(list[datetime.date]), st.lists(st.dates(), min_size=1), st.just(SetContainment())),
)


def law_an_exact_extraction_is_right(decide: Decide) -> None:
    @LAW
    @given(TRUTHS)
    def law(case: tuple[Any, Any, VerificationPrimitive]) -> None:
        assert decide(*case) is True

    law()


def test_an_exact_extraction_of_any_type_is_right() -> None:
    law_an_exact_extraction_is_right(compares_live_values)


def test_keeping_the_ground_truth_as_json_breaks_that() -> None:
    with pytest.raises(AssertionError):
        law_an_exact_extraction_is_right(compares_json)


# A check on the response does not see headers and tool output

Judge = Callable[[TracePrimitive, Sequence[Message]], bool]
"""From a check and the messages of an answer to whether the check holds for it."""


def by_the_stage(primitive: TracePrimitive, messages: Sequence[Message]) -> bool:
    cls = create_model("Answer", __base__=BaseAnswer, x=(bool, VerifiedField("x", True, primitive)))
    handle = open_class(cls, "no-code")
    about = VerificationContext(question=Question(question="Which?"))
    about.set_artifact(ArtifactKeys.ANSWER, handle)
    about.set_artifact(ArtifactKeys.PARSED_ANSWER, asyncio.run(handle.build(None)))
    about.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, render_trace(messages))
    about.set_result_field("trace_messages", trace_dicts(messages))
    asyncio.run(VerifyTemplate().execute(about))
    result: bool = about.get_result_field("field_results")["x"]
    return result


def on_the_whole_trace(primitive: TracePrimitive, messages: Sequence[Message]) -> bool:
    return primitive.check_trace(render_trace(messages))


SAID = st.text("ab .", max_size=20)
TOOL = st.none() | st.sampled_from(["nothing", "canary", "the canary sings"])


def law_only_what_the_model_said_counts(judge: Judge) -> None:
    @LAW
    @given(SAID, TOOL, SAID)
    @example("a", "canary", "b")
    @example("", None, "a")
    def law(first: str, tool: str | None, last: str) -> None:
        messages = [Message.assistant(last)]
        if tool is not None:
            call = ToolUseBlock(id="1", name="look", input={})
            messages = [Message.assistant(first, [call]), Message.tool_result("1", tool), *messages]
        said = "\n\n".join(text for text in ([] if tool is None else [first]) + [last] if text)
        assert judge(TraceLength(max=len(said), scope="response"), messages)
        for word in ("canary", "AI Message", "call_"):
            assert not judge(TraceContains(word, scope="response"), messages)
        if said:
            assert judge(TraceContains(said, scope="response"), messages)

    law()


def test_only_what_the_model_said_counts_for_a_check_on_the_response() -> None:
    law_only_what_the_model_said_counts(by_the_stage)


def test_running_every_check_on_the_raw_trace_breaks_that() -> None:
    with pytest.raises(AssertionError):
        law_only_what_the_model_said_counts(on_the_whole_trace)


# Partial credit follows the strategy, all the way down

Weighed = Mapping[str, float]
Credit = Callable[[Any, Mapping[str, bool | None], Weighed], tuple[bool, float]]
"""From a tree, the fields' results and their weights to the verdict and the partial credit."""


def along_the_tree(tree: Any, results: Mapping[str, bool | None], weights: Weighed) -> tuple[bool, float]:
    found = evaluate(tree, results, {name: float(found is True) for name, found in results.items()}, weights)
    return found.passed, found.score


def by_the_root(tree: Any, results: Mapping[str, bool | None], weights: Weighed) -> tuple[bool, float]:
    """Looks at the root of the tree alone, and at every field of the template."""
    credits = [weights[name] * (found is True) for name, found in results.items()]
    if isinstance(tree, AnyOf):
        credits = [max(credits)]
    elif isinstance(tree, AtLeastN):
        credits = sorted(credits)[len(credits) - tree.n :]
    return along_the_tree(tree, results, weights)[0], sum(credits) / sum(weights.values())


CHECKS = st.sampled_from("abc").map(FieldCheck)
TREES = st.recursive(
    CHECKS,
    lambda child: st.lists(child, min_size=1, max_size=3).flatmap(
        lambda found: st.sampled_from([AllOf(found), AnyOf(found), AtLeastN(1, found)])
    ),
    max_leaves=6,
)
RESULTS = st.fixed_dictionaries({name: st.sampled_from([True, False, None]) for name in "abc"})
WEIGHTS = st.fixed_dictionaries({name: st.sampled_from([0.5, 1.0, 3.0]) for name in "abc"})


def law_what_passes_has_full_credit(credit: Credit) -> None:
    @LAW
    @given(TREES, RESULTS, WEIGHTS)
    def law(tree: Any, results: Mapping[str, bool | None], weights: Weighed) -> None:
        passed, score = credit(tree, results, weights)
        assert 0.0 <= score <= 1.0
        assert score == 1.0 or not passed

    law()


def test_what_passes_has_full_credit() -> None:
    law_what_passes_has_full_credit(along_the_tree)


def test_looking_at_the_root_of_the_strategy_alone_breaks_that() -> None:
    with pytest.raises(AssertionError):
        law_what_passes_has_full_credit(by_the_root)


# A capture group takes the place of the match, so a pattern with one may never match what it expects

Pattern = Callable[[dict[str, Any], str], bool | None]
"""From a check and a text to whether the check passes; None where the check is refused beforehand."""


def checked_beforehand(check: dict[str, Any], text: str) -> bool | None:
    return None if pattern_problems({"x": check}) else run_patterns({"x": check}, text).success


def run_as_it_is(check: dict[str, Any], text: str) -> bool | None:
    return run_patterns({"x": check}, text).success


PIECES = st.lists(
    st.tuples(st.sampled_from(["BCL2", "BAX", "[1]"]), st.sampled_from(["", "(", "(?:"])), min_size=1, max_size=3
)


def law_a_pattern_finds_its_own_text_or_is_refused(run: Pattern) -> None:
    @LAW
    @given(PIECES, st.sampled_from(["exact", "contains", "all"]))
    def law(pieces: list[tuple[str, str]], kind: str) -> None:
        pattern = "".join(f"{opened}{re.escape(text)}{')' if opened else ''}" for text, opened in pieces)
        text = "".join(piece for piece, _ in pieces)
        check = {"pattern": pattern, "expected": [text] if kind == "all" else text, "match_type": kind}
        assert run(check, text) is not False
        if all(opened != "(" for _, opened in pieces):
            assert run(check, text) is True

    law()


def test_a_pattern_finds_its_own_text_or_is_refused_before_a_run() -> None:
    law_a_pattern_finds_its_own_text_or_is_refused(checked_beforehand)


def test_running_patterns_with_capture_groups_unseen_breaks_that() -> None:
    with pytest.raises(AssertionError):
        law_a_pattern_finds_its_own_text_or_is_refused(run_as_it_is)


# Fields of the trace leave the top of the schema, and nothing below it

Schema = Callable[[type[BaseAnswer]], dict[str, Any]]


def without_names(cls: type[BaseAnswer]) -> dict[str, Any]:
    """Drops every property that has the name of a trace field, wherever it stands."""
    names = {name for name, found in cls.__verified__.items() if found.kind == "trace"}

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(part) for part in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("properties"), dict):
            kept = {name: part for name, part in node["properties"].items() if name not in names}
            node = {**node, "properties": kept}
        return {key: walk(part) for key, part in node.items()}

    found: dict[str, Any] = walk(cls.model_json_schema())
    return found


def law_only_the_templates_own_trace_fields_leave(schema_of: Schema) -> None:
    @LAW
    @given(
        st.sets(st.sampled_from(["cites", "short", "name"]), min_size=1), st.sets(st.sampled_from(["cites", "short"]))
    )
    @example({"cites"}, {"cites"})
    def law(nested: set[str], traced: set[str]) -> None:
        below: dict[str, Any] = {name: (bool, Field(description=name)) for name in nested}
        part: type[BaseModel] = create_model("Part", **below)
        fields: dict[str, Any] = {name: (bool, VerifiedField(name, True, TraceContains("["))) for name in traced}
        cls: type[BaseAnswer] = create_model("Answer", __base__=BaseAnswer, parts=(list[part], ...), **fields)  # type: ignore[valid-type]  # made at run time
        schema = schema_of(cls)
        assert not traced & set(schema["properties"])
        assert set(schema["$defs"]["Part"]["properties"]) == nested

    law()


def test_only_the_templates_own_trace_fields_leave_the_schema() -> None:
    law_only_the_templates_own_trace_fields_leave(judge_schema)


def test_removing_trace_fields_by_name_at_every_level_breaks_that() -> None:
    with pytest.raises(AssertionError):
        law_only_the_templates_own_trace_fields_leave(without_names)
