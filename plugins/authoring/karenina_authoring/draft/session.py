"""Drafting as work that is paid for: one model, its calls limited and kept in a journal. What is in the journal is not
asked again, so the same command continues what was interrupted, however it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen
from karenina_calls.limits.budget import check_limits
from karenina_calls.metering import Lanes, Metering
from karenina_calls.models.models import model_problems, open_models
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.ports.item_calls import ItemCalls, current_item
from karenina_calls.secrets.known_secrets import secrets_of
from karenina_calls.secrets.redaction import Secrets, hide
from karenina_judging.asking import unable_judges
from karenina_runs.execute.control import RunControl
from karenina_runs.execute.senders import Senders
from karenina_runs.files.atomic_files import write_json
from karenina_runs.files.run_files import CONTINUED_BY, check_place
from karenina_runs.journal.journal import Journal
from karenina_runs.plan.prepare import check_identities
from karenina_runs.plan.templates import TemplateLoader
from karenina_runs.summaries.summary import spent

from karenina_core.errors import ConfigError, Problem, RunDirectoryError, one_line, place_of
from karenina_core.plugin.application import Karenina
from karenina_core.ports.call_origin import current_stage
from karenina_core.values.config import VerificationConfig
from karenina_core.values.question import Question

from ..proof.prove import primitives_of
from .drafting import DESCRIBING, PLANNING, Draft, Drafter

STAGE, VERSION = "Draft", "1"
"""What the calls are kept under. With another version, replies that a journal holds are asked for again."""


@frozen(kw_only=True)
class Drafts:
    """What became of all questions, and what it took."""

    found: Sequence[Draft]
    """In the order of the questions."""
    ledger: Mapping[str, Any]
    """Of the journal: what was paid for in all, by whatever command."""
    notes: Sequence[str] = ()

    @property
    def spent(self) -> Mapping[str, Any] | None:
        """See `karenina_runs.summaries.summary.spent`; None where nothing was kept."""
        return spent(self.ledger)["paid"]  # type: ignore[no-any-return]  # of a document


def checked(app: Karenina, config: VerificationConfig, questions: Sequence[Question]) -> VerificationConfig:
    """The configuration with the one model that drafts. Raises ConfigError, before anything is asked."""
    models = config.parsing_models
    if len(models) != 1:
        what = "one model drafts; name it (--model NAME)" if models else "name the model that drafts (--model NAME)"
        raise ConfigError([Problem("model", what)])
    hide(secrets_of(app, models))
    if problems := model_problems(app, models[0], "parsing", "model"):
        raise ConfigError(problems)
    if unable := [p for task in (PLANNING, DESCRIBING) for p in unable_judges(app, models, task, "another one")]:
        raise ConfigError([Problem("model", unable[0].message)])
    config = evolve(config, answering_models=())
    check_limits(app, config)
    texts = {
        "reference answer": (question.raw_answer for question in questions),
        "note": (question.answer_notes or "" for question in questions),
        "source": (str(question.sources or "") for question in questions),
    }
    check_identities(Secrets(secrets_of(app, models)), config, questions, [], texts)
    return config


@frozen(kw_only=True)
class Session:
    """One open model, and the journal that keeps what it says."""

    app: Karenina = field(repr=False)
    config: VerificationConfig
    model: Model = field(repr=False)
    senders: Senders = field(repr=False)
    journal: Journal | None = field(default=None, repr=False)

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        app: Karenina,
        config: VerificationConfig,
        folder: Path | None,
        *,
        lanes: Lanes | None = None,
        typed: str = "",
    ) -> AsyncIterator[Session]:
        """`folder` is that of the journal; without one nothing is kept. `lanes` take the place of the way to the model.
        `typed` is the command that continues this, for whoever takes the folder for that of a run.

        Raises RunDirectoryError where the folder cannot keep a journal, or another process writes to it, and
        KareninaError where the model's adapter does not work."""
        secrets = secrets_of(app, config.parsing_models)
        senders = Senders.of_run(config, keeps=folder is not None)
        metering = Metering(lanes or senders, app=app, secrets=Secrets(secrets))
        async with open_models(app, config, config.parsing_models, metering=metering) as models:
            journal = None if folder is None else Journal.open(_made(folder), secrets=secrets)
            try:
                if folder is not None and typed:
                    write_json(folder / CONTINUED_BY, Secrets(secrets).text(typed))
                if journal is not None:
                    metering.keep_in(journal)
                    senders.keep_in(journal)
                    total = journal.ledger.total
                    senders.gateway.budget.spent_before(total.counted_usd, total.counted_tokens, total.counted)
                (model,) = models.values()
                yield cls(app=app, config=config, model=model, senders=senders, journal=journal)
            finally:
                senders.gateway.close()
                await senders.aclose()
                if journal is not None:
                    await journal.aclose()

    async def drafts(
        self, questions: Sequence[Question], on_draft: Callable[[Draft], None], control: RunControl
    ) -> Drafts:
        """Draft these questions. Raises CancelledError where `control` has ended it before all were done."""
        found: dict[str, Draft] = {}
        drafter = Drafter(self.app, TemplateLoader(self.app, "refuse"), primitives_of(self.app))
        places = asyncio.Semaphore(self.senders.items_at_once)

        async def draft(question: Question) -> None:
            async with places, self.senders.item():
                found[question.id] = await isolated(drafter, question, client_of(self.model, question))
            on_draft(found[question.id])

        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as group:
                for question in questions:
                    group.create_task(draft(question))

        await control.until_drained(all_of_them(), self.senders.gateway)
        gateway = self.senders.gateway
        notes = (*self.senders.notes, *gateway.left_undone, *gateway.advice)
        ledger: Mapping[str, Any] = {}
        if self.journal is not None:
            notes, ledger = (*self.journal.notes, *notes), self.journal.ledger.to_dict()
        return Drafts(found=[found[question.id] for question in questions], ledger=ledger, notes=notes)


async def isolated(drafter: Drafter, question: Question, client: ModelClient) -> Draft:
    """The draft, also where the code of a plugin, or this one, fails at it: the others are drafted all the same."""
    try:
        return await drafter.draft(question, client)
    except RunDirectoryError:  # nothing that is paid for could be kept
        raise
    except Exception as error:
        reason = f"unexpected error: {one_line(error)}{place_of(error, __name__)}"
        return Draft(question=question, state="not_drafted", reasons=[reason])


def client_of(model: Model, question: Question) -> ModelClient:
    """The model for one question. Called in the task that drafts it."""
    calls = ItemCalls(question.id)
    current_item.set(calls)
    current_stage.set((STAGE, VERSION))
    return ModelClient(model, [], question.id, question.question, item=calls)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(
            f"{folder} cannot be made: {error.strerror}; name another one (--journal DIR)"
        ) from None
    check_place(folder)
    return folder
