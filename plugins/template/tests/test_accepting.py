"""Accepting fields whose extracted value somebody else found to be right."""

from __future__ import annotations

import asyncio
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.primitives import NAMES
from karenina_template.python_source import InProcessRuntime

from karenina_core import templates as primitives
from karenina_core.errors import TemplateError

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}


def load(body: str) -> Any:
    source = "import datetime\nclass Answer(BaseAnswer):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return asyncio.run(InProcessRuntime().load(source, PRIMITIVES))


def fill(handle: Any, data: Any) -> Any:
    return asyncio.run(handle.build(data))


def verified(filled: Any, trace: str = "see [1]", **more: Any) -> tuple[Any, dict[str, Any], float | None]:
    async def run() -> tuple[Any, dict[str, Any], float | None]:
        verdict = await filled.verify(trace, **more)
        return verdict.result, dict(verdict.field_results), await filled.granular()

    return asyncio.run(run())


VERIFIED = """
    drug: str = VerifiedField("The drug", "aspirin", ExactMatch())
    dose: int = VerifiedField("The dose", 500, NumericMinimum(exclusive=True), weight=2)
    day: datetime.date = VerifiedField("The day", datetime.date(2016, 4, 11), DateMatch())
    advice: str = VerifiedField("The advice", "take one", SemanticMatch())
    name: str = VerifiedField("The name", "N/A", RegexMatch("^A"))
    cites: bool = VerifiedField("A citation", True, TraceContains("["))
"""
WRONG = {"drug": "ibuprofen", "dose": 100, "day": None, "advice": "take two", "name": "A"}
ASKED = ["drug", "dose", "day", "advice"]


def test_accepted_fields_are_right_with_full_credit() -> None:
    filled = fill(load(VERIFIED), WRONG)
    copied = filled.accepting(ASKED)
    assert verified(copied) == (True, dict.fromkeys([*ASKED, "name", "cites"], True), 1.0)
    assert verified(copied, "no citation")[:2] == (False, dict.fromkeys([*ASKED, "name"], True) | {"cites": False})


def test_the_filled_template_itself_stays_as_it_is() -> None:
    filled = fill(load(VERIFIED), WRONG)
    before = verified(filled, similarities={"advice": 0.1})
    filled.accepting(ASKED)
    assert verified(filled, similarities={"advice": 0.1}) == before
    assert before[1] == {"drug": False, "dose": False, "day": None, "advice": False, "name": True, "cites": True}


def test_what_was_extracted_is_still_recorded() -> None:
    filled = fill(load(VERIFIED), WRONG)
    copied = filled.accepting(["drug", "day"])
    assert copied.values() == filled.values() == WRONG
    assert copied.nulls == filled.nulls == {"day"}


def test_accepting_adds_up_and_an_empty_list_changes_nothing() -> None:
    filled = fill(load(VERIFIED), WRONG)
    step_by_step = filled.accepting(["drug"]).accepting(["dose", "day"]).accepting(["advice"])
    assert verified(step_by_step) == verified(filled.accepting(ASKED))
    assert verified(filled.accepting([]), similarities={"advice": 0.1}) == verified(
        filled, similarities={"advice": 0.1}
    )


def test_credit_may_be_asked_without_verifying_again() -> None:
    filled = fill(load(VERIFIED), WRONG)
    verified(filled, similarities={"advice": 0.1})
    assert asyncio.run(filled.accepting(["drug", "dose", "day"]).granular()) == 6 / 7


def test_the_strategy_is_decided_again() -> None:
    handle = load("""
        a: str = VerifiedField("A", "a", ExactMatch())
        b: str = VerifiedField("B", "b", ExactMatch())
        c: str = VerifiedField("C", "c", ExactMatch())

        class VerificationStrategy:
            verify_strategy = AtLeastN(2, FieldCheck("a"), FieldCheck("b"), FieldCheck("c"))
    """)
    filled = fill(handle, {"a": "x", "b": "b", "c": None})
    assert verified(filled) == (False, {"a": False, "b": True, "c": None}, 0.5)
    assert verified(filled.accepting(["a"])) == (True, {"a": True, "b": True, "c": None}, 1.0)


def test_an_authors_verify_finds_the_expected_values() -> None:
    handle = load("""
        drug: str
        doses: list[int]
        remark: str = ""

        def ground_truth(self):
            self.correct = {"drug": "aspirin", "doses": [1, 2]}

        def verify(self):
            passed = self.drug == self.correct["drug"] and self.doses == self.correct["doses"]
            self.correct["doses"].append("spoilt")
            self.doses.append("spoilt")
            return passed and self.remark == "seen"

        def verify_granular(self):
            return float(self.drug == self.correct["drug"])
    """)
    filled = fill(handle, {"drug": "ibuprofen", "doses": [1, 2], "remark": "seen"})
    assert verified(filled) == (False, {}, 0.0)
    assert verified(filled.accepting(["drug"])) == (True, {}, 1.0)
    assert verified(filled.accepting(["drug", "doses"])) == (True, {}, 1.0)
    assert verified(filled.accepting(["doses"]))[0] is False


def test_an_author_who_extends_the_automatic_verdict_gets_the_accepted_one() -> None:
    source = """
class Base(BaseAnswer):
    a: str = VerifiedField("A", "a", SemanticMatch())
    b: str = VerifiedField("B", "b", ExactMatch())

class Answer(Base):
    def verify(self):
        return super().verify() and self.b == "b"
"""
    filled = fill(asyncio.run(InProcessRuntime().load(source, PRIMITIVES)), {"a": "x", "b": "x"})
    assert verified(filled.accepting(["a", "b"])) == (True, {"a": True, "b": True}, 1.0)
    assert verified(filled.accepting(["a"]))[:2] == (False, {"a": True, "b": False})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("drog", r"the template has no field 'drog' \(did you mean 'drug'\?\)"),
        ("id", "the template has no field 'id'"),
        ("name", "field 'name' has no expected value: RegexMatch decides without one"),
        ("cites", "field 'cites' is decided on the trace, where no extracted value can be replaced"),
    ],
)
def test_a_field_without_an_expected_value_cannot_be_accepted(name: str, message: str) -> None:
    filled = fill(load(VERIFIED), WRONG)
    with pytest.raises(TemplateError, match=message):
        filled.accepting(["drug", name])


def test_a_classic_field_needs_an_entry_in_correct() -> None:
    handle = load("x: int\ndef verify(self):\n    return self.x == 3\n")
    with pytest.raises(TemplateError, match=r"field 'x' has no expected value; set self.correct\['x'\] in the hook"):
        fill(handle, {"x": 1}).accepting(["x"])


NAMED = ["a", "b", "c"]


@settings(database=None, deadline=None, derandomize=True, max_examples=60)
@given(
    st.fixed_dictionaries({name: st.sampled_from(["right", "wrong", None]) for name in NAMED}).filter(
        lambda data: any(data.values())
    ),
    st.sets(st.sampled_from(NAMED)),
)
def test_accepting_is_as_good_as_having_extracted_it(data: dict[str, str | None], accepted: set[str]) -> None:
    fields = "".join(
        f"{n}: str = VerifiedField('{n}', 'right', ExactMatch(), weight={i})\n" for i, n in enumerate("abc", 1)
    )
    handle = load(fields)
    as_if = fill(handle, data | dict.fromkeys(accepted, "right"))
    assert verified(fill(handle, data).accepting(accepted)) == verified(as_if)
