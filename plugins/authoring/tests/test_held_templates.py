"""Templates that were written by hand, with wrong and right values that were: how much of both a proof can tell."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from karenina_authoring.proof.facts import facts_of
from karenina_authoring.proof.proof import Proof
from karenina_authoring.proof.prove import prove
from karenina_runs.plan.templates import TemplateLoader

from karenina_core import Karenina
from karenina_core.errors import FillError, TemplateError

from .conftest import question, rows

TEMPLATES, FAULTY = rows("templates"), rows("faulty")
LEAST = 0.95


async def accepted(app: Karenina, row: dict[str, Any], given: Any) -> bool:
    """Whether the template accepts its expected values with these in place of its own."""
    handle = await TemplateLoader(app, "sandbox").load(question(row).template)
    facts = facts_of(handle, "", {})
    changed = given if isinstance(given, dict) else {handle.fields()[0].name: given}
    values = {item.name: handle.ground_truth()[item.name] for item in handle.fields()} | changed
    try:
        filled = await handle.build({facts.keys[name]: value for name, value in values.items()})
        return (await filled.verify(row["answer"])).result
    except (FillError, TemplateError):
        return False


async def misses(app: Karenina, values: str, *, right: bool) -> list[tuple[str, Any]]:
    cases = [(row, value) for row in TEMPLATES for value in row[values]]
    return [(row["question"], value) for row, value in cases if await accepted(app, row, value) is not right]


def rate(missed: int, made: int) -> float:
    return 1 - missed / made


@pytest.fixture(scope="module")
def proofs(app: Karenina) -> dict[str, Proof]:
    async def proven() -> list[Proof]:
        return [await prove(question(row), app) for row in (*TEMPLATES, *FAULTY)]

    return {proof.question: proof for proof in asyncio.run(proven())}


def test_the_set_has_sixty_templates_of_twelve_kinds() -> None:
    kinds = Counter(row["kind"] for row in TEMPLATES)
    assert len(TEMPLATES) == 60
    assert len(kinds) == 12
    assert set(kinds.values()) == {5}


def test_wrong_values_that_people_wrote_are_rejected(app: Karenina) -> None:
    missed = asyncio.run(misses(app, "wrong", right=False))
    made = sum(len(row["wrong"]) for row in TEMPLATES)
    assert rate(len(missed), made) >= LEAST, missed
    assert missed == WRONG_BUT_ACCEPTED


def test_right_values_that_people_wrote_are_accepted(app: Karenina) -> None:
    missed = asyncio.run(misses(app, "right", right=True))
    made = sum(len(row["right"]) for row in TEMPLATES)
    assert rate(len(missed), made) >= LEAST, missed
    assert missed == RIGHT_BUT_REJECTED


def test_generated_cases_end_as_they_have_to(proofs: dict[str, Proof]) -> None:
    own = [proofs[row["id"]] for row in TEMPLATES]
    assert all(proof.own_values for proof in own)
    failures = [(proof.question, found.problem) for proof in own for found in proof.failures]
    for made, right in (
        (sum(proof.mutants.made for proof in own), sum(proof.mutants.right for proof in own)),
        (sum(proof.variants.made for proof in own), sum(proof.variants.right for proof in own)),
    ):
        assert right / made >= LEAST, failures
    assert [question for question, _ in failures] == NOT_PROVEN
    assert [proof.question for proof in own if proof.faults] == []


@pytest.mark.parametrize("row", FAULTY, ids=lambda row: f"{row['id']}-{row['fault']}")
def test_a_faulty_template_is_never_proven(proofs: dict[str, Proof], row: dict[str, Any]) -> None:
    proof = proofs[row["id"]]
    assert proof.state == "not_proven"
    assert not proof.holds
    words = {"leaks": "gives its answer away", "cannot fail": "cannot fail", "own values": "it rejects"}
    if row["fault"] == "weak":
        assert proof.faults == []
    else:
        assert any(words[row["fault"]] in fault for fault in proof.faults), proof.reasons


WRONG_BUT_ACCEPTED: list[tuple[str, Any]] = []
RIGHT_BUT_REJECTED: list[tuple[str, Any]] = []
NOT_PROVEN: list[str] = []
