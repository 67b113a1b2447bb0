"""From a request to an ordered list of stages. Knows declarations, no stage by name."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from ..errors import PlanError, PluginError, did_you_mean, one_line
from ..plugin.application import Karenina, current
from ..values.config import EvaluationMode
from ..values.config import switches as known_switches
from ..values.fields import names
from ..values.result import VerificationResult
from ..values.rubric import Rubric
from .artifact_keys import VERDICT_VIEWS, CoreKeys
from .context import VerificationContext
from .engine import Engine
from .stage import Condition, PlanRequest, Stage


@frozen
class Explained:
    """Why one stage is in a plan, or why it is not."""

    name: str
    included: bool
    reason: str
    plugin: str

    def __str__(self) -> str:
        return f"{'in ' if self.included else 'out'} {self.name} ({self.plugin}): {self.reason}"


class StageOrchestrator:
    """An ordered list of stages and the reasons for it."""

    def __init__(
        self,
        stages: Iterable[Stage],
        *,
        request: PlanRequest | None = None,
        left_out: Mapping[Stage, Explained] | None = None,
        owners: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        app: Karenina | None = None,
    ) -> None:
        self.request = request
        self.app = app
        self._owners = dict(owners or {})
        self.left_out = dict(left_out or {})
        """The installed stages that are not in the plan, and why."""
        self.stages: tuple[Stage, ...] = tuple(_sorted(list(stages), self._owners, aliases or {}))
        self._engine: Engine | None = None

    @classmethod
    def from_config(
        cls,
        evaluation_mode: EvaluationMode = "template_only",
        rubric: Rubric | None = None,
        *,
        features: Iterable[str] = (),
        app: Karenina | None = None,
        **switches: bool,
    ) -> StageOrchestrator:
        """Choose and order the stages. `switches` are those of a configuration; `features` names more of them.

        Raises PlanError (a ValueError) for a feature that no installed stage serves, an unknown mode, two stages that
        produce the same artifact, and stages that wait for each other.
        """
        known = known_switches()
        for name in switches:
            if name not in known:
                raise TypeError(f"there is no switch {name!r}{did_you_mean(name, known)}")
        wanted = {*names(features), *(known[name] for name, on in switches.items() if on)}
        return cls.for_request(PlanRequest(mode=evaluation_mode, features=frozenset(wanted), rubric=rubric), app=app)

    @classmethod
    def for_request(cls, request: PlanRequest, *, app: Karenina | None = None) -> StageOrchestrator:
        """Like `from_config`, from a request."""
        app = current(app)
        made = {name: _make(app, name) for name in app.stages}
        _check_features(request, made.values(), app)
        chosen, left_out = [], {}
        for name, stage in made.items():
            condition: Condition = stage.included_when
            try:
                included = condition(request)
            except Exception as error:
                raise PlanError(f"included_when of stage {stage.name} failed: {one_line(error)}") from error
            if included:
                chosen.append(stage)
            else:
                left_out[stage] = Explained(stage.name, False, condition.explain(request), app.stages[name].plugin)
        return cls(
            chosen,
            request=request,
            left_out=left_out,
            owners={stage.name: app.stages[name].plugin for name, stage in made.items()},
            aliases={str(e.replaces): made[name].name for name, e in app.stages.items() if e.replaces},
            app=app,
        )

    def validate_dependencies(self) -> list[str]:
        """What is wrong with this plan, in words; an empty list where it can run."""
        problems = []
        made: set[str] = set()
        for stage in self.stages:
            for key in stage.requires:
                if key not in made:
                    owner = f" (plugin {self._owners[stage.name]})" if stage.name in self._owners else ""
                    problems.append(f"{stage.name}{owner} requires {str(key)!r}, which no earlier stage produces")
            made |= set(stage.produces)
        for key, why in self._goals():
            if key not in made:
                problems.append(f"no stage produces {key!r}: {why}")
        problems += self._unscored()
        missing = self.app.inactive() if self.app is not None and problems else ""
        return [*problems[:-1], f"{problems[-1]}.{missing}"] if missing else problems

    def explain(self) -> list[Explained]:
        """Every stage: those that run, in order, then those that do not, by name."""
        features = self.request.features if self.request else frozenset()
        chosen = []
        for stage in self.stages:
            on = sorted(features & set(stage.features))
            reason = f"feature {', '.join(on)} is on" if on else "always, in this mode"
            chosen.append(Explained(stage.name, True, reason, self.owner(stage.name)))
        return chosen + sorted(self.left_out.values(), key=lambda explained: explained.name)

    def describe(self) -> dict[str, Any]:
        """The plan as plain data: `{"mode", "features", "stages": [...], "left_out": [...]}`."""
        request = self.request or PlanRequest()
        stages = [
            {
                "name": stage.name,
                "plugin": self.owner(stage.name),
                "category": stage.category.name.lower(),
                "requires": list(map(str, stage.requires)),
                "reads": list(map(str, stage.reads)),
                "produces": list(map(str, stage.produces)),
            }
            for stage in self.stages
        ]
        left_out = [{"name": e.name, "reason": e.reason} for e in self.explain() if not e.included]
        return {"mode": request.mode, "features": sorted(request.features), "stages": stages, "left_out": left_out}

    def owner(self, stage: str) -> str:
        """The plugin that a stage is from."""
        return self._owners.get(stage, "in memory")

    async def arun(self, context: VerificationContext) -> VerificationResult:
        """Run one item.

        Raises PlanError before any work where the plan is invalid, and nothing else but cancellation.
        """
        return await self.ready().run(context)

    def ready(self) -> Engine:
        """What runs items, made once: the plan is checked and its stages are wrapped by middleware.

        Raises PlanError where the plan is invalid, PluginError where middleware fails.
        """
        if self._engine is None:
            if problems := self.validate_dependencies():
                raise PlanError("\n".join(problems))
            self._engine = Engine(self.stages, self.app)
        return self._engine

    def _goals(self) -> list[tuple[str, str]]:
        """What a plan for this request must produce, and why."""
        if self.request is None:
            return []
        verifies = [(str(CoreKeys.VERIFY_RESULT), f"the mode {self.request.mode} verifies templates")]
        return [
            (str(CoreKeys.FINAL_RESULT), "there would be no result"),
            (str(CoreKeys.RAW_LLM_RESPONSE), "there would be no answer"),
            *(verifies if self.request.evaluates_template else []),
        ]

    def _unscored(self) -> list[str]:
        """That traits of the request would be scored by none of the stages, or that there are none to score."""
        request = self.request
        if request is None or not request.evaluates_rubric:
            only = request is not None and request.mode == "rubric_only"
            return ["the mode rubric_only needs a rubric with traits"] if only else []
        scoring = [stage for stage in self.stages if hasattr(stage, "scores")]
        unscored = sorted(name for name in request.traits if not any(stage.scores(name) for stage in scoring))
        hint = "run with evaluation_mode template_only (--mode template_only), or install the stage"
        return [f"no stage scores traits of the type {', '.join(unscored)}; {hint}"] if unscored else []


def _make(app: Karenina, name: str) -> Stage:
    """The stage itself, with its plugin's settings where its constructor takes an argument."""
    entry = app.stages[name]
    entry.load()  # a class that cannot be imported has an error of its own
    try:
        stage: Stage = app.stages.make(name)
    except Exception as error:
        raise PluginError(f"stage {name!r} of plugin {entry.plugin!r} cannot be made: {one_line(error)}") from error
    return stage


def _check_features(request: PlanRequest, stages: Iterable[Stage], app: Karenina) -> None:
    served = {feature for stage in stages for feature in stage.features}
    for name in sorted(request.features - served):
        known = ", ".join(sorted(served)) or "none"
        hint = did_you_mean(name, served)
        raise PlanError(f"no installed stage serves the feature {name!r}{hint}; available: {known}.{app.inactive()}")


def _sorted(stages: Sequence[Stage], owners: Mapping[str, str], aliases: Mapping[str, str]) -> list[Stage]:
    """Kahn's algorithm: data, `after` and `before` decide; then category; then name. The order is unique."""
    by_name = {stage.name: stage for stage in stages}
    if len(by_name) < len(stages):
        twice = sorted({s.name for s in stages if [t.name for t in stages].count(s.name) > 1})
        raise PlanError(f"two stages are called {', '.join(twice)}; rename one of them")
    waits = _dependencies(stages, owners, aliases)
    ready = [(by_name[name].category, name) for name, firsts in waits.items() if not firsts]
    heapq.heapify(ready)
    order: list[Stage] = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(by_name[name])
        for other, firsts in waits.items():
            if name in firsts:
                firsts.remove(name)
                if not firsts:
                    heapq.heappush(ready, (by_name[other].category, other))
    if len(order) < len(stages):
        raise PlanError(
            f"these stages wait for each other: {', '.join(_circle(waits))}; check their requires, reads, after and "
            "before"
        )
    return order


def _circle(waits: Mapping[str, set[str]]) -> list[str]:
    """Those that really wait for each other, without those that only wait for them."""
    left = {name for name, firsts in waits.items() if firsts}
    while waiting := {name for name in left if not any(name in waits[other] for other in left)}:
        left -= waiting
    return sorted(left)


def _dependencies(
    stages: Sequence[Stage], owners: Mapping[str, str], aliases: Mapping[str, str]
) -> dict[str, set[str]]:
    waits: dict[str, set[str]] = {stage.name: set() for stage in stages}
    makers = _makers(stages, owners)

    def add(name: str, first: str) -> None:
        if name != first and name in waits and first in waits:
            waits[name].add(first)

    for stage in stages:
        for key in (*stage.requires, *stage.reads):
            if key in makers:
                add(stage.name, makers[key])
        for name in stage.after:
            add(stage.name, aliases.get(name, name))
        for name in stage.before:
            add(aliases.get(name, name), stage.name)
    for last in (s for s in stages if s.final):
        makes_result = CoreKeys.FINAL_RESULT in last.produces
        for stage in stages:
            if not stage.final or (makes_result and stage is not last):
                add(last.name, stage.name)
    return waits


def _makers(stages: Sequence[Stage], owners: Mapping[str, str]) -> dict[str, str]:
    makers: dict[str, str] = {}
    for stage in sorted(stages, key=lambda s: s.name):
        for key in stage.produces:
            if key in VERDICT_VIEWS and key in (*stage.requires, *stage.reads):
                continue  # it changes a verdict that another stage gives
            if key in makers and key not in VERDICT_VIEWS:
                first = makers[key]
                raise PlanError(
                    f"{first} (plugin {owners.get(first, 'in memory')}) and {stage.name} (plugin "
                    f"{owners.get(stage.name, 'in memory')}) both produce {str(key)!r}; block one of the plugins"
                )
            makers.setdefault(key, stage.name)
    return makers
