"""The one mutable thing: what is known about one item while its stages run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, TypeVar, overload

from ..errors import ContractError, ErrorKind, did_you_mean
from ..values.config import DEFAULT_SYSTEM_PROMPT, EvaluationMode, ModelConfig, VerificationConfig
from ..values.identity import ModelIdentity, TaskIdentity
from ..values.outcome import Effect, Outcome, OutcomeName, Verdict, fold, outcome_of
from ..values.question import Question
from ..values.result import TrailEntry
from ..values.rubric import Rubric
from .artifact_keys import VERDICT_VIEWS, CoreKeys, Key
from .declaration import Category, Declaration, Usual, check_result_field
from .item import CachedAnswer, ItemError, ReadThrough

if TYPE_CHECKING:
    from ..plugin.application import Karenina
    from ..ports.model_client import CallRecord, ModelClient

T = TypeVar("T")
D = TypeVar("D")
REQUIRED: Any = object()
NO_MODEL, NO_STAGE, NO_VERDICT = ModelIdentity("none", "none"), Usual(), Verdict()
Before = tuple[Declaration | None, Usual, ItemError | None]
MAX_WARNINGS = 50
"""Of one item: a stage that warns in a loop fills no result. Chosen, not measured."""


class Services(Protocol):
    """What a run offers, by kind; a dictionary is one."""

    def get(self, kind: Key[Any], default: Any, /) -> Any: ...


class VerificationContext(ReadThrough):
    """Identity, configuration, artifacts, result fields, ledger and error state of one item.

    While a stage runs, reads and writes are checked against its declaration. Outside of any stage everything is
    allowed, for preparing and inspecting a context.
    """

    def __init__(
        self,
        *,
        question: Question,
        task: TaskIdentity | None = None,
        config: VerificationConfig | None = None,
        mode: EvaluationMode = "template_only",
        rubric: Rubric | None = None,
        answering: ModelClient | None = None,
        parsing: ModelClient | None = None,
        app: Karenina | None = None,
        run_name: str | None = None,
        cached_answer_data: CachedAnswer | None = None,
        calls: list[CallRecord] | None = None,
        workspace: Path | None = None,
        services: Services | None = None,
    ) -> None:
        self.question = question
        self.task = task or TaskIdentity(question.id, question.template_id, NO_MODEL, NO_MODEL)
        self.config = config or VerificationConfig()
        self.mode = mode
        self.rubric = rubric
        self.run_name = run_name
        self.cached_answer_data = cached_answer_data
        self.workspace = workspace
        """The folder that the answering model works in, or has worked in; None where there is none."""
        self.started = datetime.now(UTC).astimezone()
        self.calls = calls if calls is not None else []
        """Every model call of this item, in order."""
        self.warnings: list[str] = []
        self.trail: list[TrailEntry] = []
        self._answering = answering
        self._parsing = parsing
        self._app = app
        self._services = services or {}
        self._artifacts: dict[str, Any] = {}
        self._result_fields: dict[str, Any] = {}
        self._effects: list[Effect] = []
        self._verdict = NO_VERDICT
        self._error: ItemError | None = None
        self._stage: Declaration | None = None
        self._usual = NO_STAGE
        self._note = ""

    # Identity and configuration

    @property
    def app(self) -> Karenina:
        """The application, for the registries of strategies, embedders and the like."""
        return _given(self._app, "an application")

    @property
    def answering(self) -> ModelClient:
        """The answering model."""
        return _given(self._answering, "an answering model")

    @property
    def is_recorded(self) -> bool:
        """Whether the answer was recorded beforehand, so that nothing is sent to the answering model."""
        if self._answering is not None:
            return self._answering.config.manual_traces is not None
        return self._app is not None and self._app.adapters.is_recorded(self.task.answering.interface)

    @property
    def parsing(self) -> ModelClient:
        """The parsing model, the judge."""
        return _given(self._parsing, "a parsing model")

    @overload
    def service(self, kind: Key[T]) -> T: ...
    @overload
    def service(self, kind: Key[T], default: D) -> T | D: ...
    def service(self, kind: Key[Any], default: Any = REQUIRED) -> Any:
        """What the run offers of this kind, such as `services.OTHER_MODEL`; `default` where it offers none.

        Raises ContractError where there is none and no default is given.
        """
        found = self._services.get(kind, default)
        return _given(None if found is REQUIRED else found, str(kind)) if default is REQUIRED else found

    @property
    def answering_model(self) -> ModelConfig:
        return self.answering.config

    @property
    def parsing_model(self) -> ModelConfig:
        return self.parsing.config

    def system_prompt(self, role: Literal["answering", "parsing"]) -> str | None:
        """The system prompt that the user configured for a model, or the answering model's default."""
        return self.configured_prompt(role) or (DEFAULT_SYSTEM_PROMPT if role == "answering" else None)

    def configured_prompt(self, role: Literal["answering", "parsing"]) -> str | None:
        """The system prompt that the user configured for a model; None where there is none."""
        client = self._answering if role == "answering" else self._parsing
        return client.config.system_prompt if client else None

    # Artifacts

    def set_artifact(self, key: str, value: Any) -> None:
        """Write an artifact, once. Raises ContractError where the running stage did not declare it."""
        usual = self._usual.artifacts.get(key)
        if usual is None or type(value) not in usual or key in self._artifacts:
            self._check_artifact(key, value)
        self._artifacts[key] = value

    def _check_artifact(self, key: str, value: Any) -> None:
        if key in VERDICT_VIEWS:
            _refuse_view(key)
        try:
            keys = (key,) if self._stage is None else self._stage.produces
            declared = keys[keys.index(key)]
        except ValueError:
            self._undeclared("produces", key)
        if key in self._artifacts:
            text = f"{self._who()} writes {str(key)!r}, which already exists"
            raise ContractError(f"{text}; artifacts are written once")
        if isinstance(declared, Key):
            declared.check(value)

    @overload
    def get_artifact(self, key: Key[T]) -> T: ...
    @overload
    def get_artifact(self, key: Key[T], default: T) -> T: ...
    @overload
    def get_artifact(self, key: str, default: Any = None) -> Any: ...
    def get_artifact(self, key: str, default: Any = None) -> Any:
        """Read an artifact; `default` where it does not exist. Raises ContractError where it was not declared."""
        if key not in self._usual.readable:
            self._may_read(key)
            if key in VERDICT_VIEWS:
                value = self._view(key)
                return default if value is None else value
        return self._artifacts.get(key, default)

    def has_artifact(self, key: str) -> bool:
        if key not in self._usual.readable:
            self._may_read(key)
        return self._view(key) is not None if key in VERDICT_VIEWS else key in self._artifacts

    # Result fields

    def set_result_field(self, name: str, value: Any) -> None:
        """Set a field of the result, once. Raises ContractError where the running stage did not declare it."""
        usual = self._usual.fields.get(name)
        if usual is None or type(value) not in usual or name in self._result_fields:
            self._check_field(name, value)
        self._result_fields[name] = value

    def _check_field(self, name: str, value: Any) -> None:
        if name in VERDICT_VIEWS:
            _refuse_view(name)
        self._declared("result_fields", name)
        if name in self._result_fields:
            raise ContractError(f"{self._who()} sets {str(name)!r}, which is set already; result fields are set once")
        check_result_field(name, value)

    def revise_result_field(self, name: str, value: Any) -> None:
        """Set a field of the result again. Raises ContractError where the running stage does not declare that it
        revises the field, or where no stage has set it."""
        if name in VERDICT_VIEWS:
            _refuse_view(name)
        self._declared("revises", name)
        if name not in self._result_fields:
            raise ContractError(f"{self._who()} revises {str(name)!r}, which no stage has set")
        check_result_field(name, value)
        self._result_fields[name] = value

    def extend_result_field(self, name: str, entries: Mapping[str, Any] | Sequence[Any]) -> None:
        """Add entries to a table or a list of the result, which is made where no stage has set it.

        Raises ContractError where the running stage does not declare that it extends the field, where the table has one
        of the keys already, and where the field is neither a table nor a list.
        """
        if name in VERDICT_VIEWS:
            _refuse_view(name)
        self._declared("extends", name)
        there = self._result_fields.get(name, {} if isinstance(entries, Mapping) else [])
        if isinstance(entries, Mapping) and isinstance(there, Mapping):
            if twice := sorted(map(str, entries.keys() & there.keys())):
                raise ContractError(f"{self._who()} adds {twice[0]!r} to {str(name)!r}, which has it already")
            extended: Any = {**there, **entries}
        elif isinstance(entries, Sequence) and isinstance(there, list | tuple) and not isinstance(entries, str):
            extended = [*there, *entries]
        else:
            kinds = f"{type(entries).__name__} to {type(there).__name__}"
            raise ContractError(f"{self._who()} cannot add {kinds} in {str(name)!r}; add a table to a table")
        check_result_field(name, extended)
        self._result_fields[name] = extended

    def get_result_field(self, name: str, default: Any = None) -> Any:
        """A field that an earlier stage set. Any stage may read any of them."""
        return self._result_fields.get(name, default)

    def set_artifact_and_result(self, key: str, value: Any) -> None:
        """Write an artifact and the result field of the same name; both must be declared."""
        usual = self._usual.both.get(key)
        if usual is None or type(value) not in usual or key in self._artifacts or key in self._result_fields:
            self.set_artifact(key, value)
            self.set_result_field(key, value)
        else:
            self._artifacts[key] = self._result_fields[key] = value

    @property
    def result_fields(self) -> Mapping[str, Any]:
        return self._result_fields

    # Verdict

    def record(
        self,
        *,
        field: bool | None = None,
        verdict: bool | None = None,
        reason: str = "",
        outcome: OutcomeName | None = None,
    ) -> None:
        """Record an effect on the verdict. What is None stays as it was.

        `outcome` names what a False verdict is called: `failed` by default for template stages, `auto_failed` for all
        others; checks that say `abstained` or `insufficient` give it.
        """
        for view, value in ((CoreKeys.FIELD_VERIFICATION_RESULT, field), (CoreKeys.VERIFY_RESULT, verdict)):
            if value is not None and not isinstance(value, bool):
                raise ContractError(f"{self._who()} records {str(view)!r} as {value!r}; it must be True or False")
        stage = self._stage
        if outcome is None:
            outcome = "failed" if stage is None or stage.category is Category.TEMPLATE else "auto_failed"
        self._effects.append(Effect(stage.name if stage else "", field, verdict, reason, outcome))
        self._verdict = fold(self._effects)

    @property
    def effects(self) -> tuple[Effect, ...]:
        return tuple(self._effects)

    @property
    def verdict(self) -> Verdict:
        return self._verdict

    @property
    def outcome(self) -> Outcome:
        kind = self._error.kind if self._error else None
        return outcome_of(self._verdict, error_kind=kind, evaluates_template=self.evaluates_template)

    # Errors

    def mark_error(self, message: str, *, kind: ErrorKind = "stage", stage: str | None = None) -> None:
        """Set the error of this item. The first error stays the cause; later ones become warnings."""
        if self._error is not None:
            self.warn(message)
            return
        self._error = ItemError(message, kind, stage or (self._stage.name if self._stage else None))

    def warn(self, message: str) -> None:
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(message)

    def note(self, text: str) -> None:
        """Say in the trail what the running stage did, or why it did nothing. The last note of a stage counts."""
        self._note = text

    def take_note(self) -> str:
        """The note of the stage that ran last, once."""
        note, self._note = self._note, ""
        return note

    @property
    def error(self) -> str | None:
        return self._error.message if self._error else None

    @property
    def error_kind(self) -> ErrorKind | None:
        return self._error.kind if self._error else None

    @property
    def error_stage(self) -> str | None:
        return self._error.stage if self._error else None

    @property
    def completed_without_errors(self) -> bool:
        return self._error is None

    # The running stage

    @property
    def progress(self) -> tuple[Declaration | None, int, int, str]:
        """The running stage, and what changes while stages work: lines of the trail, warnings, and the note."""
        return self._stage, len(self.trail), len(self.warnings), self._note

    @contextmanager
    def acting(self, stage: Declaration, usual: Usual = NO_STAGE) -> Iterator[None]:
        """Check reads and writes against the declaration of this stage; `usual` is that of the stage."""
        before = self.begin(stage, usual)
        try:
            yield
        finally:
            self.end(before)

    def begin(self, stage: Declaration, usual: Usual) -> Before:
        """As `acting` does, until `end`, which takes what this returns. What was noted before is not the stage's."""
        before = self._stage, self._usual, self._error
        self._stage, self._usual, self._note = stage, usual, ""
        return before

    def end(self, before: Before) -> str | None:
        """Returns the error that was set meanwhile."""
        self._stage, self._usual, error = before
        return None if self._error is error or self._error is None else self._error.message

    def _declared(self, attribute: str, key: str) -> None:
        if self._stage is not None and key not in getattr(self._stage, attribute):
            self._undeclared(attribute, key)

    def _undeclared(self, attribute: str, key: str) -> NoReturn:
        stage = self._stage
        assert stage is not None  # outside of stages nothing has to be declared
        hint = did_you_mean(key, getattr(stage, attribute))
        text = f"{stage.name} writes {str(key)!r} without declaring it{hint}"
        raise ContractError(f"{text}; add it to {type(stage).__name__}.{attribute}") from None

    def _may_read(self, key: str) -> None:
        stage = self._stage
        if stage is None or stage.final or key in {*VERDICT_VIEWS, *stage.requires, *stage.reads, *stage.produces}:
            return
        hint = did_you_mean(key, [*stage.requires, *stage.reads])
        raise ContractError(
            f"{stage.name} reads {str(key)!r} without declaring it{hint}; "
            f"add it to {type(stage).__name__}.reads (or .requires, where it must exist)"
        )

    def _view(self, key: str) -> bool | None:
        return self._verdict.verdict if key == CoreKeys.VERIFY_RESULT else self._verdict.field

    def _who(self) -> str:
        return self._stage.name if self._stage else "the code outside of any stage"


def _refuse_view(key: str) -> NoReturn:
    raise ContractError(f"{str(key)!r} is a view of the ledger: call context.record(...) instead of writing it")


def _given(value: T | None, what: str) -> T:
    if value is None:
        raise ContractError(f"this context was made without {what}")
    return value
