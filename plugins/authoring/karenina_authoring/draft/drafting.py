"""The draft of one question: a plan with expected values, descriptions that are written without them, the template, and
its proof. What the proof finds is shown to the model once.

The descriptions are asked for in a call that knows neither the reference answer nor the expected values: what is not
known cannot be given away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from attrs import evolve, field, frozen
from karenina_calls.ports.client import ModelClient
from karenina_runs.plan.templates import TemplateLoader
from karenina_template.lint.lint import lint_template

from karenina_core.errors import PortError, one_line
from karenina_core.plugin.application import Karenina
from karenina_core.values.question import Question

from ..audit.probes import Probe
from ..audit.references import contradictions
from ..proof.proof import Proof
from ..proof.prove import prove
from ..proof.report import with_proof
from .prompts import DESCRIBE_SYSTEM, PLAN_SYSTEM, corrected_plan_prompt, describe_prompt, plan_prompt
from .replies import PLAN, Plan, described_as, read_descriptions, read_plan, template_of

KEY = "draft"
"""Of a question's `custom_metadata`: where its template is from."""
LANGUAGE = "karenina-template"
PLANNING, DESCRIBING = "drafting_plan", "drafting_descriptions"
"""The tasks of the model, as the ledger and the instructions for models name them."""
MOST_PROBLEMS = 10
"""Of a proof, that the model is shown. Chosen: the first ones are of the gravest kind, and many are alike."""

State = Literal["proven", "not_proven", "not_drafted"]


@frozen(kw_only=True)
class Draft:
    """What became of one question."""

    question: Question = field(repr=False)
    """With the template, as the file keeps it; not finished until a person accepts it."""
    state: State
    fields: Sequence[str] = ()
    proof: Proof | None = field(default=None, repr=False)
    repaired: bool = False
    """Whether it was drafted once more after its proof."""
    reasons: Sequence[str] = ()
    """Why it is not proven, or not drafted; of one that is proven, where the reference answer may say otherwise."""

    def document(self) -> dict[str, Any]:
        """Everything but the template, as JSON data."""
        proof = None if self.proof is None else self.proof.document()
        about = {"question": self.question.id, "state": self.state, "fields": list(self.fields)}
        return {**about, "repaired": self.repaired, "reasons": list(self.reasons), "proof": proof}


def wanted(question: Question) -> bool:
    """Whether a question is to be drafted: it has a reference answer and no template, or one that an earlier draft has
    left unproven and that has not been changed since."""
    if not question.raw_answer.strip():
        return False
    before = question.custom_metadata.get(KEY)
    if question.template is None or not isinstance(before, Mapping):
        return question.template is None
    return before.get("state") != "proven" and before.get("template") == question.template_id


@frozen(kw_only=True)
class _Attempt:
    """A template, and what is wrong with it."""

    plan: Plan
    question: Question
    proof: Proof
    doubts: Sequence[str] = ()
    """Where the reference answer seems to say something else: a guess, which proves nothing against the template."""
    leaking: Sequence[str] = ()
    """The fields whose description alone is at fault."""

    @property
    def problems(self) -> list[str]:
        return [*self.proof.reasons, *self.doubts]


@frozen
class Drafter:
    """Drafts the template of a question with an open model."""

    app: Karenina = field(repr=False)
    loader: TemplateLoader = field(repr=False)
    primitives: Mapping[str, type] = field(repr=False)

    async def draft(self, question: Question, client: ModelClient) -> Draft:
        """Two calls where the first template is proven, else one or two more. Raises nothing for what a model or a
        provider does: the state is `not_drafted` then, or that of the template before."""
        first: _Attempt | None = None
        try:
            first = attempt = await self._attempt(question, client, await self._plan(question, client))
            if first.problems:
                second = await self._repaired(question, client, first)
                attempt = first if first.proof.holds and not second.proof.holds else second
        except PortError as error:
            return self._failed(question, client, first, error)
        return self._ended(client, attempt, repaired=attempt is not first)

    async def _plan(self, question: Question, client: ModelClient, before: _Attempt | None = None) -> Plan:
        text = plan_prompt(question)
        if before is not None:
            text = corrected_plan_prompt(question, before.plan, before.problems[:MOST_PROBLEMS])
        read = partial(read_plan, primitives=self.primitives)
        shape = {"json_schema": PLAN, "format_instructions": ""}
        messages = client.prompt(PLANNING, PLAN_SYSTEM, text, shape)
        plan: Any = (await client.parse(PLANNING, messages, PLAN, validate=read, temperature=0.0)).parsed
        return plan  # type: ignore[no-any-return]  # what `read_plan` returns

    async def _attempt(
        self, question: Question, client: ModelClient, plan: Plan, leaking: Sequence[str] = ()
    ) -> _Attempt:
        schema = described_as([spec["name"] for spec in plan.fields])
        read = partial(read_descriptions, schema=schema)
        shape = {"json_schema": schema, "format_instructions": ""}
        messages = client.prompt(DESCRIBING, DESCRIBE_SYSTEM, describe_prompt(question, plan, leaking), shape)
        reply: Any = (await client.parse(DESCRIBING, messages, schema, validate=read, temperature=0.0)).parsed
        return await self._proven(question, plan, template_of(plan, reply))

    async def _proven(self, question: Question, plan: Plan, text: str) -> _Attempt:
        """The template is put to the proof, and compared with the reference answer."""
        drafted = evolve(question, answer_template=text, template_language=LANGUAGE, placeholder_template=False)
        proof = await prove(drafted, self.app, loader=self.loader)
        if drafted.template is None or proof.state == "unusable":
            return _Attempt(plan=plan, question=drafted, proof=proof)
        handle = await self.loader.load(drafted.template)
        against = await contradictions(drafted, Probe.of(handle))
        doubts = [found.message for found in against if found.severity == "fault"]
        leaks = [found for found in lint_template(handle, question=question.question) if found.severity == "leak"]
        leaking: list[str] = []
        if len(proof.reasons) + len(doubts) == len(leaks) and all(found.where == "description" for found in leaks):
            leaking = list(dict.fromkeys(found.field.partition(".")[0] for found in leaks if found.field))
        return _Attempt(plan=plan, question=drafted, proof=proof, doubts=doubts, leaking=leaking)

    async def _repaired(self, question: Question, client: ModelClient, first: _Attempt) -> _Attempt:
        if first.leaking:
            return await self._attempt(question, client, first.plan, first.leaking)
        return await self._attempt(question, client, await self._plan(question, client, first))

    def _ended(self, client: ModelClient, attempt: _Attempt, *, repaired: bool) -> Draft:
        state: State = "proven" if attempt.proof.holds else "not_proven"
        found = with_proof(attempt.question, attempt.proof)
        about = {
            "state": state.replace("_", " "),
            "model": str(client.model.identity),
            "template": found.template_id,
            "plan": attempt.plan.text,
            "yes/no because": "; ".join(f"{name}: {why}" for name, why in attempt.plan.booleans.items()),
            "reason": "; ".join(attempt.proof.reasons),
            "doubt": "; ".join(attempt.doubts),
        }
        return Draft(
            question=_noted(found, about),
            state=state,
            fields=[spec["name"] for spec in attempt.plan.fields],
            proof=attempt.proof,
            repaired=repaired,
            reasons=attempt.problems,
        )

    def _failed(self, question: Question, client: ModelClient, first: _Attempt | None, error: PortError) -> Draft:
        reason = f"{error.kind}: {one_line(error).partition(': ')[2] or one_line(error)}"
        if first is not None:
            ended = self._ended(client, first, repaired=False)
            return evolve(ended, state="not_drafted", reasons=[*ended.reasons, f"not repaired, {reason}"])
        return Draft(question=question, state="not_drafted", reasons=[reason])


def _noted(question: Question, about: Mapping[str, str]) -> Question:
    """Not finished, whatever it was, with what is known of the draft; nothing that is empty."""
    metadata = {**question.custom_metadata, KEY: {name: text for name, text in about.items() if text}}
    return evolve(question, custom_metadata=metadata, finished=False)
