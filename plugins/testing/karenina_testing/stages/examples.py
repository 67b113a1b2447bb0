"""Random items for one stage, made from what it declares."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, get_args

from attrs import evolve, fields
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from karenina_vocabulary.artifact_keys import ArtifactKeys

from karenina_core.errors import did_you_mean
from karenina_core.pipeline.artifact_keys import VERDICT_VIEWS, Key
from karenina_core.pipeline.declaration import check_result_field, field_types, result_fields
from karenina_core.pipeline.stage import PlanRequest, Stage
from karenina_core.values.config import EvaluationMode, VerificationConfig
from karenina_core.values.outcome import Effect
from karenina_core.values.question import Question
from karenina_core.values.result import all_parts
from karenina_core.values.rubric import Rubric

from .. import strategies as values
from ..checks import Raised, attempt
from ..examples import every
from ..fakes import FakeHandle
from ..strategies.values import ODD_TEXTS
from .inputs import Behaviour, StageInput

Strategies = Mapping[str, SearchStrategy[Any]]
Request = tuple[EvaluationMode, frozenset[str], str | None]
"""A mode, features, and the kind of the rubric's traits."""
KNOWN_KEYS: Mapping[str, Key[Any]] = {
    str(key): key for key in (getattr(ArtifactKeys, name) for name in dir(ArtifactKeys)) if isinstance(key, Key)
}
TRAITS: Mapping[str, SearchStrategy[Any]] = {
    "llm": values.llm_traits(),
    "regex": values.regex_traits(),
    "callable": values.callable_traits(),
    "metric": values.metric_traits(),
    "agentic": values.agentic_traits(),
}
RUBRICS: Mapping[str, SearchStrategy[Rubric]] = {
    kind: st.lists(traits, min_size=1, max_size=2, unique_by=lambda trait: str(trait.name)).map(Rubric.from_traits)
    for kind, traits in TRAITS.items()
}
SOME_KEYS = st.sets(st.sampled_from(sorted(KNOWN_KEYS)), max_size=4)
GOOD: Behaviour = "good"
BEHAVIOUR: SearchStrategy[Behaviour] = st.sampled_from([GOOD, GOOD, GOOD, "odd", "empty", "failing"])
ERROR = st.none() | values.texts()
POOL = 30
"""Values of each kind that items are made from."""


def _with_template(question: Question) -> Question:
    return question if question.template else evolve(question, answer_template="{}", placeholder_template=False)


MADE: Strategies = {
    "questions": values.questions() | values.questions().map(_with_template),
    "configs": values.verification_configs(with_models=False),
    "handles": values.template_handles(),
    "traces": values.traces(),
    "cached": st.none() | values.cached_answers(),
    "effects": st.lists(values.effects(), max_size=2),
    "results": values.results(),
}
"""What items are made from."""


def stage_inputs(
    stage: Stage, strategies: Strategies | None = None, config: VerificationConfig | None = None
) -> SearchStrategy[StageInput]:
    """Items of plans that the stage is in, with every artifact that it requires and some of those that it may read.

    `strategies` says what artifacts and fields of the result look like, by key; other artifacts are made from the type
    of their key. Raises ValueError for artifacts that the stage does not read, and fields that it sets itself.
    """
    given = dict(strategies or {})
    readable = set(map(str, (*stage.requires, *stage.reads, *(result_fields().keys() - set(stage.result_fields)))))
    for key in given:
        if str(key) not in readable and not stage.final:
            raise ValueError(f"strategies: {stage.name} does not read {str(key)!r}{did_you_mean(key, readable)}")
    return st.deferred(lambda: _prepared(stage, given, config))  # many checks draw none


def _prepared(stage: Stage, given: Strategies, config: VerificationConfig | None) -> SearchStrategy[StageInput]:
    """The strategy itself, with all that it needs: nothing can be prepared while an example is drawn."""
    unused = {"traces"} if stage.final else set()
    if not (stage.final or ArtifactKeys.FINAL_RESULT in (*stage.requires, *stage.reads)):
        unused.add("results")  # they take the longest
    if config is not None:
        unused.add("configs")
    for name in MADE:
        if name not in unused:
            _pool(name)
    modes: Iterable[EvaluationMode] = get_args(EvaluationMode)
    if config is not None and config.evaluation_mode is not None:
        modes = (config.evaluation_mode,)
    features = {frozenset[str](), frozenset(stage.features), *(frozenset({name}) for name in stage.features)}
    wanted = sorted(features, key=sorted) if config is None else [config.features]
    requests = list(itertools.product(modes, wanted, (None, *TRAITS)))
    # With a rubric only where the stage needs one.
    plain = [request for request in requests if request[2] is None and _included(stage, request)]
    chosen = plain or [request for request in requests if _included(stage, request)] or requests
    return _inputs(stage, given, config, tuple(chosen))


def corners(drawn: Sequence[StageInput], described: Collection[str]) -> list[StageInput]:
    """Every odd text in every artifact that is a text, of an otherwise ordinary item: no matter of chance.

    Artifacts that the author described (`described`) stay as they are.
    """
    texts = [
        key
        for item in drawn
        for key, value in item.artifacts.items()
        if isinstance(value, str) and key not in described
    ]
    plain = next((item for item in drawn if texts and set(texts) <= item.artifacts.keys()), None)
    if plain is None:
        return []
    usual = evolve(plain, answering="good", parsing="good", error=None)
    return [
        evolve(
            usual,
            artifacts={**plain.artifacts, **dict.fromkeys(texts, odd)},
            result_fields={**plain.result_fields, **dict.fromkeys(texts & plain.result_fields.keys(), odd)},
        )
        for odd in ("", *ODD_TEXTS)
    ]


@cache
def _pool(name: str) -> SearchStrategy[Any]:
    """What belongs to every item, the shortest values first. Made once: to draw it for every example takes long."""
    found = sorted(every(MADE[name], POOL), key=lambda value: len(repr(value)))
    return st.sampled_from(range(len(found))).map(found.__getitem__)


@st.composite
def _inputs(
    draw: DrawFn, stage: Stage, strategies: Strategies, config: VerificationConfig | None, requests: tuple[Request, ...]
) -> StageInput:
    mode, features, kind = draw(st.sampled_from(requests))
    base = config or draw(_pool("configs"))
    handle = draw(_pool("handles"))
    artifacts = draw(_artifacts(stage, strategies, handle))
    return StageInput(
        question=draw(_pool("questions")),
        config=evolve(base, features=features, evaluation_mode=mode),
        mode=mode,
        rubric=draw(RUBRICS[kind]) if kind else None,
        artifacts=artifacts,
        result_fields=draw(_result_fields(stage, strategies, artifacts)),
        effects=tuple(draw(_effects(stage))),
        cached_answer_data=draw(_pool("cached")),
        handle=draw(st.sampled_from([handle, handle, handle, None])),
        answering=draw(BEHAVIOUR),
        parsing=draw(BEHAVIOUR),
        error=draw(ERROR) if stage.final else None,
    )


def _included(stage: Stage, request: Request) -> bool:
    mode, features, kind = request
    if kind is not None and mode == "template_only":
        return False
    plan_request = PlanRequest(mode=mode, features=features, rubric=_simplest(kind) if kind else None)
    included = attempt(stage.included_when, plan_request)  # what it raises is reported by the check of included_when
    return not isinstance(included, Raised) and bool(included)


@cache
def _simplest(kind: str) -> Rubric:
    """A rubric with one trait of a kind."""
    return every(RUBRICS[kind], 1)[0]


@st.composite
def _artifacts(draw: DrawFn, stage: Stage, strategies: Strategies, handle: FakeHandle) -> dict[str, Any]:
    keys = {str(key): key for key in stage.requires}
    if stage.final:
        keys |= {key: KNOWN_KEYS[key] for key in draw(SOME_KEYS)}
    keys |= {str(key): key for key in stage.reads if draw(st.booleans())}
    found: dict[str, Any] = {}
    for name, key in keys.items():
        if name not in VERDICT_VIEWS and name not in stage.produces:
            found[name] = draw(strategies[name] if name in strategies else _of_key(key, handle))
    return found


def _of_key(key: str, handle: FakeHandle) -> SearchStrategy[Any]:
    """Values of one artifact: as karenina's own stages write it, else anything of its type."""
    if key in (ArtifactKeys.RAW_ANSWER, ArtifactKeys.ANSWER):
        return st.just(handle)
    if key == ArtifactKeys.PARSED_ANSWER:
        return values.fillings_of(handle)
    if key == ArtifactKeys.FINAL_RESULT:
        return _pool("results")
    if key == ArtifactKeys.REGEX_VERIFICATION_RESULTS:
        return st.fixed_dictionaries(
            {"success": st.booleans(), "results": st.dictionaries(values.names(), st.booleans(), max_size=2)}
        )
    known: object = KNOWN_KEYS.get(key, key)
    return values.of_type(known.type if isinstance(known, Key) else object)


def _effects(stage: Stage) -> SearchStrategy[list[Effect]]:
    """What earlier stages recorded; where the stage requires a verdict, there is one."""
    earlier = _pool("effects")
    needed = {
        name: st.booleans()
        for name, key in (("field", ArtifactKeys.FIELD_VERIFICATION_RESULT), ("verdict", ArtifactKeys.VERIFY_RESULT))
        if key in stage.requires
    }
    if not needed:
        return earlier
    last = st.builds(Effect, stage=st.just("an earlier stage"), **needed)
    return st.builds(lambda some, one: [*some, one], earlier, last)


@st.composite
def _result_fields(draw: DrawFn, stage: Stage, strategies: Strategies, artifacts: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that earlier stages set: those named like an artifact, the trace, for final stages any, and those that
    `strategies` gives."""
    found = {name: value for name, value in artifacts.items() if result_fields().get(name) in all_parts()}
    if stage.final:
        result = draw(_pool("results"))
        parts = (part for part in map(partial(getattr, result), all_parts()) if part is not None)
        names = ((part, attribute.name) for part in parts for attribute in fields(type(part)))
        found |= {name: getattr(part, name) for part, name in names if name in result_fields()}
    elif draw(st.booleans()):
        found["trace_messages"] = draw(_pool("traces"))
    given = {name: drawn for name, drawn in strategies.items() if name in result_fields() and name not in artifacts}
    found |= {str(name): draw(drawn) for name, drawn in given.items()}
    own = {*stage.result_fields, *VERDICT_VIEWS}
    # An artifact may be None where the result's field of the same name may not.
    settable = {n for n, value in found.items() if not isinstance(attempt(check_result_field, n, value), Raised)}
    found = {name: value for name, value in found.items() if name not in own and name in settable}
    types = {name: key.type for name, key in field_types().items()}
    return found | {str(name): draw(values.of_type(types.get(name, object))) for name in stage.revises}
