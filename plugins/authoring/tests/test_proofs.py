"""What a proof tries with a template, what it leaves out, and what it says of what failed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_authoring.proof.facts import Fact
from karenina_authoring.proof.mutants import mutants
from karenina_authoring.proof.proof import KEY, Proof, kept
from karenina_authoring.proof.prove import EVERYTHING, prove
from karenina_authoring.proof.report import with_proof
from karenina_authoring.proof.variants import variants
from karenina_runs.plan.templates import TemplateLoader
from karenina_template.language.primitives.text import ExactMatch

from karenina_core import Karenina, Question

from .conftest import question

EXACT = {"type": "ExactMatch"}


def declared(*fields: list[Any], strategy: Any = None, **facts: Any) -> Question:
    made = question({"id": "q", "question": "What is it?", "fields": fields})
    if strategy is not None:
        template = json.loads(made.answer_template or "") | {"verify_strategy": strategy}
        made = evolve(made, answer_template=json.dumps(template))
    return evolve(made, **facts)


def python(body: str) -> Question:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return question({"id": "q", "question": "What is it?", "python": f"class Answer(BaseAnswer):\n{lines}\n"})


def proof_of(app: Karenina, question: Question, **more: Any) -> Proof:
    return asyncio.run(prove(question, app, **more))


@given(st.integers(-(10**9), 10**9))
def test_any_number_that_is_compared_exactly_is_proven(app: Karenina, number: int) -> None:
    proof = proof_of(
        app, declared(["n", "int", "The number that the response gives", number, {"type": "NumericExact"}])
    )
    assert proof.holds, proof.reasons
    assert proof.mutants.made >= 2


@given(st.dates())
def test_any_day_is_proven(app: Karenina, day: Any) -> None:
    if 1000 < day.year < 9900:
        proof = proof_of(
            app, declared(["d", "date", "The day that the response gives", day.isoformat(), {"type": "DateMatch"}])
        )
        assert proof.holds, proof.reasons


@settings(deadline=None)
@given(
    st.text("abcdefgh123 -", min_size=2, max_size=20).filter(lambda text: text == text.strip() and text.strip("- 123"))
)
def test_any_name_that_is_compared_as_a_whole_rejects_all_wrong_values(app: Karenina, name: str) -> None:
    proof = proof_of(app, declared(["n", "str", "The name", name, {"type": "AliasMatch", "aliases": []}]))
    assert proof.mutants.right == proof.mutants.made > 0
    assert proof.own_values


@pytest.mark.parametrize(
    ("right", "wrong", "same"),
    [
        ("(S)-ibuprofen", "(R)-ibuprofen", "(S)\u2011ibuprofen"),
        ("D-glucose", "L-glucose", "d-glucose"),
        ("cis-2-butene", "trans-2-butene", "CIS-2-BUTENE"),
        ("9:3:3:1", "9:3:3:2", None),
        ("3.10", "3.11", None),
        ("v2.1.0-rc1", "v2.1.0-rc2", "V2.1.0-RC1"),
        ("p.V600E", "p.V600K", "p.v600e"),
        ("SO4^2-", "SO4^2+", "SO4^2\u2212"),
        ("+1", "-1", None),
        ("-195.8", "+195.8", "\u2212195.8"),
        ("0.5", "-0.5", None),
        ("\u00b5-opioid receptor", "not \u00b5-opioid receptor", "\u03bc-opioid receptor"),
        ("3.5-5.0", "3.5-5.1", "3.5 to 5.0"),
        ("10 to 20 mg", "11 to 20 mg", "10\u201320 mg"),
        ("18,015", "18,016", "18015"),
        ("0,5", "0,6", "0.5"),
        ("6.022e23", "6.022e24", "6.022 \u00d7 10^23"),
    ],
)
def test_wrong_and_right_values_of_hard_texts(right: str, wrong: str, same: str | None) -> None:
    fact = Fact(name="x", type="str", value=right, primitive=ExactMatch())
    made = [value for _, value in mutants(fact)]
    assert wrong in made
    assert right not in made
    other = [value for _, value in variants(fact)]
    assert same is None or same in other
    assert not set(made) & set(other)


@pytest.mark.parametrize(
    ("expected", "proven"),
    [
        ("\u00b5-opioid receptor", True),
        ("-195.8", True),
        ("D-glucose", True),
        ("50-78-2", True),
        ("2019-nCoV", True),
        ("1-2", False),
        ("3.5-5.0", False),
        ("18,015", False),
        ("6.022e23", False),
    ],
)
def test_texts_that_may_be_written_otherwise_are_not_proven(app: Karenina, expected: str, proven: bool) -> None:
    proof = proof_of(app, declared(["x", "str", "What the response says", expected, EXACT]))
    assert (proof.holds, proof.own_values, proof.mutants.made) == (proven, True, proof.mutants.right), proof.reasons


def test_a_failure_has_the_values_that_repeat_it(app: Karenina) -> None:
    asked = declared(
        ["mass", "float", "The mass in g that the response gives", 5.0, {"type": "NumericTolerance", "tolerance": 0.95}]
    )
    proof = proof_of(app, asked)
    (failure,) = [found for found in proof.failures if found.case.kind == "magnitude"]
    assert (failure.case.fields, dict(failure.case.values), failure.case.passes) == (("mass",), {"mass": 0.5}, False)

    async def again() -> bool:
        handle = await TemplateLoader(app, "sandbox").load(asked.template)
        return (await (await handle.build(failure.case.values)).verify("")).result

    assert asyncio.run(again()) is True
    document = json.loads(json.dumps(proof.document()))
    assert document["failures"][0]["kind"] == "magnitude"
    assert document["failures"][0]["problem"].endswith("narrow its tolerance or bounds")


def test_what_a_tolerance_allows_is_no_wrong_value(app: Karenina) -> None:
    close = {"type": "NumericTolerance", "tolerance": 2, "mode": "absolute"}
    assert proof_of(app, declared(["n", "int", "The number", 42, close])).holds


def test_a_strategy_may_accept_one_wrong_field_but_not_all(app: Karenina) -> None:
    fields = (["a", "str", "The first name", "alder", EXACT], ["b", "str", "The second name", "birch", EXACT])
    checks = [{"type": "field_check", "field": name} for name in "ab"]
    assert proof_of(app, declared(*fields, strategy={"type": "any_of", "conditions": checks})).holds
    one = proof_of(app, declared(*fields, strategy={"type": "field_check", "field": "a"}))
    assert one.own_values
    nothing = proof_of(app, declared(*fields, strategy={"type": "at_least_n", "n": 1, "conditions": checks}))
    assert EVERYTHING not in [found.case.kind for found in nothing.failures]


def test_swapped_fields_are_wrong(app: Karenina) -> None:
    both = python(
        "low: int = Field(description='The lower number')\nhigh: int = Field(description='The higher number')\n"
        "def ground_truth(self):\n    self.correct = {'low': 70, 'high': 120}\n"
        "def verify(self):\n    return sorted([self.low, self.high]) == [70, 120]\n"
    )
    (failure,) = proof_of(app, both).failures
    assert failure.case.kind == "swapped_fields"
    assert dict(failure.case.values) == {"low": 120, "high": 70}


def test_fields_that_need_an_answer_or_an_embedder_are_left_out_and_named(app: Karenina) -> None:
    traced = json.dumps(
        {
            "fields": [
                {
                    "name": "gene",
                    "type": "str",
                    "description": "The gene",
                    "ground_truth": "KRAS",
                    "verify_with": EXACT,
                },
                {
                    "name": "cites",
                    "type": "bool",
                    "description": "A DOI is given",
                    "ground_truth": True,
                    "verify_with": {"type": "TraceContains", "substring": "10."},
                    "is_trace": True,
                },
                {
                    "name": "advice",
                    "type": "str",
                    "description": "The advice",
                    "ground_truth": "stop smoking",
                    "verify_with": {"type": "SemanticMatch"},
                },
            ]
        }
    )
    proof = proof_of(app, Question(question="?", answer_template=traced, template_language="karenina-template"))
    assert proof.holds, proof.reasons
    assert set(proof.left_out) == {"cites", "advice"}
    alone = json.dumps({"fields": json.loads(traced)["fields"][2:]})
    proof = proof_of(app, Question(question="?", answer_template=alone, template_language="karenina-template"))
    assert not proof.holds
    assert "no wrong value could be made" in proof.reasons[0]


def test_python_with_aliases_validators_and_nested_models_is_filled_like_a_judge_would(app: Karenina) -> None:
    template = """
from pydantic import BaseModel, Field, field_validator
class Dose(BaseModel):
    value: float
    unit: str
class Answer(BaseAnswer):
    dose: Dose = Field(description='The dose that the response gives', alias='the_dose')
    note: str = Field(description='What else the response mentions')
    gene: str = VerifiedField('The gene that the response names', 'KRAS', ExactMatch(), alias='the_gene')
    def ground_truth(self):
        self.correct = {'dose': {'value': 5.0, 'unit': 'mg'}, 'gene': 'KRAS'}
    @field_validator('gene')
    @classmethod
    def known(cls, value):
        if value is not None and not value.strip():
            raise ValueError('a gene has a name')
        return value
    def verify(self):
        return self.gene.strip().upper() == 'KRAS' and (self.dose.value, self.dose.unit) == (5.0, 'mg')
"""
    proof = proof_of(app, Question(question="?", answer_template=template))
    assert proof.holds, proof.reasons
    assert proof.mutants.made > 5


def test_python_that_may_not_run_is_not_checked_and_a_broken_template_is_no_exception(app: Karenina) -> None:
    asked = python("gene: str = VerifiedField('The gene', 'KRAS', ExactMatch())")
    assert proof_of(app, asked, loader=TemplateLoader(app, "refuse")).state == "not_checked"
    assert proof_of(app, evolve(asked, answer_template="class Answer(")).state == "unusable"
    assert proof_of(app, evolve(asked, answer_template=None)).state == "no_template"
    assert proof_of(app, asked).template == asked.template_id


@pytest.mark.parametrize("finished", [True, False, None])
def test_the_figures_are_kept_with_the_digest_of_the_template(app: Karenina, finished: bool | None) -> None:
    asked = declared(
        ["gene", "str", "The gene, such as KRAS", "KRAS", EXACT], finished=finished, custom_metadata={"by": "me"}
    )
    proof = proof_of(app, asked)
    written = with_proof(asked, proof)
    assert written.finished is False, "a template that gives its answer away is never finished"
    assert written.custom_metadata["by"] == "me"
    assert written.custom_metadata[KEY]["mutants"] == {"made": proof.mutants.made, "rejected": proof.mutants.right}
    assert (kept(asked), kept(written)) == ("none", "current")
    changed = declared(["gene", "str", "The gene that the response names", "KRAS", EXACT], finished=finished)
    assert kept(evolve(changed, custom_metadata=written.custom_metadata)) == "stale"
    assert with_proof(changed, proof_of(app, changed)).finished is finished


def test_the_sandbox_has_what_quantities_and_expressions_import_late(app: Karenina) -> None:
    asked = python(
        "dose: str = VerifiedField('The dose that the response gives', '5 mg', QuantityMatch())\n"
        "rate: str = VerifiedField('The rate law that the response gives', 'v s/(k+s)', ExpressionMatch())\n"
    )
    handle = asyncio.run(TemplateLoader(app, "sandbox").load(asked.template))
    assert handle.isolation.startswith("sandbox")
    assert [item.primitive["type"] for item in handle.fields()] == ["QuantityMatch", "ExpressionMatch"]
    proof = proof_of(app, asked)
    assert proof.holds, proof.reasons
