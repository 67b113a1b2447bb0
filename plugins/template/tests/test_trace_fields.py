"""Fields that code decides on the text of the trace."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from karenina_template.primitives import NAMES
from karenina_template.python_source import InProcessRuntime

from karenina_core import ArtifactKeys
from karenina_core import templates as primitives
from karenina_core.errors import TemplateError
from karenina_core.templates import BaseAnswer, TraceContains, VerifiedField
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]
PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}


def load(body: str, header: str = "") -> Any:
    source = textwrap.dedent(header) + "class Answer(BaseAnswer):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return asyncio.run(InProcessRuntime().load(source, PRIMITIVES))


def verified(handle: Any, data: Any, trace: str, said: str | None = None) -> Any:
    async def run() -> Any:
        filled = await handle.build(data)
        return await filled.verify(trace, said=said), await filled.granular(), filled

    return asyncio.run(run())


BOTH = """
    target: str = VerifiedField("The target", "BCL2", ExactMatch())
    cites: bool = VerifiedField("A citation", True, TraceRegex(r"\\[\\d\\]"), weight=3)
    sorry: bool = VerifiedField("An apology", False, TraceContains("sorry", scope="response"))
"""


def test_the_judge_is_not_asked_for_a_field_of_the_trace() -> None:
    handle = load(BOTH)
    assert [field.name for field in handle.fields()] == ["target"]
    assert [(f.name, f.type, f.verified, f.weight) for f in handle.trace_fields()] == [
        ("cites", "bool", True, 3),
        ("sorry", "bool", True, 1),
    ]
    assert list(handle.schema()["properties"]) == ["target"]
    assert handle.ground_truth() == {"target": "BCL2", "cites": True, "sorry": False}


def test_the_ground_truth_says_whether_the_check_has_to_hold() -> None:
    handle = load(BOTH)
    for trace, cites, sorry in (("see [1]", True, True), ("none", False, True), ("sorry, [1]", True, False)):
        verdict, granular, filled = verified(handle, {"target": "BCL2"}, trace)
        assert verdict.field_results == {"target": True, "cites": cites, "sorry": sorry}
        assert verdict.result is (cites and sorry)
        assert granular == (1 + 3 * cites + sorry) / 5
        assert (filled.values(), filled.nulls) == ({"target": "BCL2"}, frozenset())


def test_what_a_judge_claims_about_the_trace_is_dropped() -> None:
    verdict, _, filled = verified(load(BOTH), {"target": "BCL2", "cites": True, "sorry": False}, "sorry")
    assert verdict.field_results == {"target": True, "cites": False, "sorry": False}
    assert filled.values() == {"target": "BCL2"}


def test_a_check_of_the_response_is_not_misled_by_tool_output_and_headers() -> None:
    handle = load(BOTH)
    verdict, _, _ = verified(handle, {"target": "BCL2"}, "--- Tool Message ---\nsorry\n\nsee [1]", said="see [1]")
    assert verdict.field_results == {"target": True, "cites": True, "sorry": True}
    verdict, _, _ = verified(handle, {"target": "BCL2"}, "sorry [1]", said="")
    assert verdict.field_results["sorry"] is True


def test_a_nested_field_of_the_same_name_is_still_asked_for() -> None:
    header = """
        from pydantic import BaseModel
        class Part(BaseModel):
            cites: bool
    """
    handle = load('parts: list[Part] = []\ncites: bool = VerifiedField("c", True, TraceContains("["))', header)
    assert set(handle.schema()["$defs"]["Part"]["properties"]) == {"cites"}
    assert set(handle.schema()["properties"]) == {"parts"}
    verdict, _, filled = verified(handle, {"parts": [{"cites": True}]}, "nothing")
    assert filled.values() == {"parts": [{"cites": True}]}
    assert verdict.result is False


def test_a_strategy_may_use_fields_of_the_trace() -> None:
    body = BOTH + '\n    class VerificationStrategy:\n        verify_strategy = AnyOf([FieldCheck("cites")])\n'
    handle = load(body)
    assert [w.partition(":")[0] for w in handle.warnings] == [
        "verify_strategy leaves out 'target'",
        "verify_strategy leaves out 'sorry'",
    ]
    verdict, granular, _ = verified(handle, {"target": None}, "[1]")
    assert (verdict.result, granular, verdict.composition_strategy) == (True, 1.0, "any_of")


def test_an_authors_verify_sees_what_was_found_in_the_trace() -> None:
    handle = load("""
        name: str
        cites: bool = VerifiedField("A citation", True, TraceContains("["))
        quiet: bool = VerifiedField("No shouting", False, TraceContains("!"))

        def verify(self):
            return self.cites is True and self.quiet is False

        def verify_granular(self):
            return 0.5 if self.cites else 0.25
    """)
    assert verified(handle, {"name": "a"}, "see [1]")[:2][0].result is True
    assert verified(handle, {"name": "a"}, "see [1]!")[0].result is False
    assert verified(handle, {"name": "a"}, "see [1]")[1] == 0.5
    assert verified(handle, {"name": "a"}, "see")[1] == 0.25


def test_the_automatic_verdict_that_an_author_extends_sees_the_trace_too() -> None:
    source = """
class Base(BaseAnswer):
    cites: bool = VerifiedField("A citation", True, TraceContains("["))

class Answer(Base):
    name: str

    def verify(self):
        return super().verify() and self.name == "a"
"""
    handle = asyncio.run(InProcessRuntime().load(source, PRIMITIVES))
    assert verified(handle, {"name": "a"}, "see [1]")[0].result is True
    assert verified(handle, {"name": "a"}, "see")[0].result is False


def test_a_template_of_trace_fields_alone_asks_for_nothing() -> None:
    handle = load('short: bool = VerifiedField("Short", True, TraceLength(max=10))')
    assert handle.fields() == ()
    assert handle.schema()["properties"] == {}
    assert verified(handle, None, "it is so")[0].result is True
    assert verified(handle, {}, "it is so, and so on")[0].result is False


def test_a_trace_primitive_of_the_templates_own_works_and_its_faults_are_no_verdict() -> None:
    handle = load(
        'ends: bool = VerifiedField("The end", True, LastLine())',
        """
        class LastLine(TracePrimitive):
            def check_trace(self, text):
                return {"boom": 1}[text] if text.startswith("b") else text.splitlines()[-1] == "done" or None
        """,
    )
    assert verified(handle, None, "so\ndone")[0].result is True
    with pytest.raises(TemplateError, match="field 'ends': LastLine raised KeyError: 'bust'"):
        verified(handle, None, "bust")
    with pytest.raises(TemplateError, match=r"field 'ends': LastLine.check_trace returned None; it must return True"):
        verified(handle, None, "so")


def test_without_a_trace_there_is_no_verdict() -> None:
    class Direct(BaseAnswer):
        cites: bool = VerifiedField("A citation", True, TraceContains("["))

    with pytest.raises(TemplateError, match=r"field 'cites': TraceContains looks at the trace, and there is none yet"):
        Direct().verify()
    filled = asyncio.run(load(BOTH).build({"target": "a"}))
    with pytest.raises(TemplateError, match=r"call verify\(trace\) first"):
        asyncio.run(filled.granular())


def test_a_trace_field_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="TraceContains holds or does not: write True or False, not 'yes'"):
        VerifiedField("x", "yes", TraceContains("a"))
    with pytest.raises(TemplateError, match="cites: TraceContains holds or does not, so declare the field as bool"):
        load('cites: str = VerifiedField("A citation", True, TraceContains("["))')


# In the stages


ROWS = [
    {"role": "assistant", "content": "Let me look."},
    {"role": "tool", "content": "sorry, BAX [1]"},
    {"role": "assistant", "content": "", "tool_calls": []},
    {"role": "assistant", "content": "It is BCL2."},
]
RAW = "--- AI Message ---\nLet me look.\n\n--- Tool Message (call_id: 1) ---\nsorry, BAX [1]\n\nIt is BCL2."


def spec(primitive: dict[str, Any], truth: bool) -> str:
    fields: dict[str, Any] = {"name": "f", "type": "bool", "description": "d", "ground_truth": truth, "is_trace": True}
    return json.dumps({"fields": [{**fields, "verify_with": primitive}]})


@pytest.mark.parametrize(
    ("primitive", "scope", "holds"),
    [
        ({"type": "TraceContains", "substring": "BAX"}, "trace", True),
        ({"type": "TraceContains", "substring": "BAX"}, "response", False),
        ({"type": "TraceContains", "substring": "AI Message"}, "response", False),
        ({"type": "TraceContains", "substring": "look.\n\nIt is"}, "response", True),
        ({"type": "TraceLength", "max": len("Let me look.\n\nIt is BCL2.")}, "response", True),
        ({"type": "TraceLength", "max": len("Let me look.\n\nIt is BCL2.")}, "trace", False),
        ({"type": "TraceLength", "max": 6, "unit": "words"}, "response", True),
        ({"type": "TraceRegex", "pattern": r"\[\d\]"}, "response", False),
    ],
)
def test_the_stage_distinguishes_texts_of_the_model_from_what_it_was_sent(
    context: Make, run: Make, primitive: dict[str, Any], scope: str, holds: bool
) -> None:
    about = context(spec({**primitive, "scope": scope}, True), ScriptedLLM(), RAW)
    about.set_result_field("trace_messages", ROWS)
    run(about)
    assert about.get_result_field("field_results") == {"f": holds}
    assert about.verdict.verdict is holds


def test_without_messages_the_raw_response_is_the_text_of_the_model(context: Make, run: Make) -> None:
    about = context(
        spec({"type": "TraceContains", "substring": "BAX", "scope": "response"}, True), ScriptedLLM(), "BAX"
    )
    run(about)
    assert about.verdict.verdict is True


def test_patterns_still_read_the_whole_trace(context: Make, run: Make) -> None:
    template = """
class Answer(BaseAnswer):
    sorry: bool = VerifiedField("An apology", False, TraceContains("sorry", scope="response"))

    def ground_truth(self):
        self.regex = {"cites": {"pattern": "BAX", "expected": "BAX"}}
"""
    about = context(template, ScriptedLLM(), RAW)
    about.set_result_field("trace_messages", ROWS)
    run(about)
    assert about.get_result_field("regex_overall_success") is True
    assert about.verdict.verdict is True
    assert about.get_artifact(ArtifactKeys.PARSING_MODEL_STR) == "trace_only (no LLM)"
