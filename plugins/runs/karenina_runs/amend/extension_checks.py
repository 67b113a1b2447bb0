"""What a run adds to a finished one, and everything that only a new run could change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from karenina_core.errors import ConfigError, Problem
from karenina_core.values.rubric import Rubric

from ..folder.directory import RunDirectory, read_fingerprint
from ..folder.fingerprint import differences
from ..plan.items import Item, Prepared
from ..workspaces.workspace_sources import first_of, investigated_modes

Table = Mapping[str, Any]
OF_RUBRICS = ("rubric_", "agentic_rubric_", "deep_judgment_rubric_", "use_full_trace_for_rubric")
"""How names of settings begin that say how traits are scored."""
MODES = ("template_only", "template_and_rubric")
"""They do the same where there is no trait."""


@frozen(kw_only=True)
class Prior:
    """What a finished run was about: its questions and models as they are named in results, and its replicates."""

    questions: frozenset[str]
    answering: frozenset[str]
    parsing: frozenset[str]
    replicates: int

    def has(self, item: Item) -> bool:
        """Whether the item is one of that run."""
        return (
            item.question.id in self.questions
            and str(item.answering.identity) in self.answering
            and str(item.parsing.identity) in self.parsing
            and item.replicate <= self.replicates
        )


def fingerprints(folder: Path, prepared: Prepared) -> tuple[Table, Table]:
    """What the numbers of a run directory depend on, and those of the run that is to extend it. Raises ConfigError."""
    before = read_fingerprint(folder)
    return before, RunDirectory(folder, prepared).fingerprint(prepared)


def prior_of(manifest: Table, fingerprint: Table) -> Prior:
    """What the finished run was about."""
    return Prior(
        questions=frozenset(manifest["questions"]),
        answering=frozenset(fingerprint["models"]["answering"]),
        parsing=frozenset(fingerprint["models"]["parsing"]),
        replicates=manifest["config"]["replicate_count"],
    )


def changes(before: Table, now: Table) -> list[str]:
    """Everything that affects the results which are there and is not as it was, one line each; what is added aside."""
    found: dict[str, list[str]] = {}  # questions, by what has become of their traits
    for question in (name for name in now["questions"] if name in before["questions"]):
        rubric = before["questions"][question].get("rubric")
        if rubric == now["questions"][question].get("rubric"):
            continue
        if rubric is not None and rubric not in before.get("rubrics", {}):
            found.setdefault("another rubric, and the run does not name its traits", []).append(question)
            continue
        traits = _traits(now, question)
        for name, digest in _traits(before, question).items():
            if name not in traits:
                found.setdefault(f"no trait {name!r} any more", []).append(question)
            elif traits[name] != digest:
                what = f"another trait {name!r}; give it a name that no trait had"
                found.setdefault(what, []).append(question)
    lines = differences(_compared(before, before), _compared(now, before))
    for what, having in found.items():
        one = len(having) == 1
        subject = f"the question{'' if one else 's'} {first_of([repr(name) for name in having])}"
        lines.append(f"{subject} {'has' if one else 'have'} {what}")
    return lines


def added_traits(before: Table, now: Table, prepared: Prepared) -> dict[str, Rubric]:
    """The traits that questions of the finished run did not have, by question, as far as something can score them."""
    found = {}
    for question in before["questions"]:
        rubric = prepared.rubrics.get(question)
        if rubric is None or question not in now["questions"]:
            continue
        had = _traits(before, question)
        more = rubric.only(name for name in rubric.names() if name not in had)
        if len(more.usable):
            found[question] = more
    return found


def check_folders(prepared: Prepared, prior: Prior, rubrics: Mapping[str, Rubric]) -> None:
    """Refuse what would have to look into the folders that answers were worked out in: they are gone.

    Raises ConfigError.
    """
    if prepared.workspace_root is None:
        return
    more_judges = any(str(model.identity) not in prior.parsing for model in prepared.config.parsing_models)
    of_traits = evolve(prepared.config, evaluation_mode="rubric_only")  # how fields are extracted does not matter
    judged: list[str] = []
    traits: list[str] = []
    for question in (question.id for question in prepared.questions if question.id in prior.questions):
        if more_judges and investigated_modes(prepared.config, prepared.rubrics.get(question)):
            judged.append(question)
        elif investigated_modes(of_traits, rubrics.get(question)):
            traits.append(question)
    gone = "agents investigate the folders in which the answers were made, and these are gone; start a new run"
    problems = [
        Problem(where, f"{gone} (question {first_of(names)})")
        for where, names in (("parsing_models", judged), ("rubric", traits))
        if names
    ]
    if problems:
        raise ConfigError(problems)


def _compared(side: Table, before: Table) -> dict[str, Any]:
    """What of a fingerprint has to be as it was `before`: nothing that is added, no traits, which are compared one by
    one, and no recorded answers, for results say which answers they are about."""
    untouched = not any(parts.get("rubric") for parts in before["questions"].values())
    models, were = side["models"], before["models"]
    return {
        **side,
        "questions": _known(side["questions"], before["questions"], "rubric"),
        "settings": _settings(side["settings"], untouched=untouched),
        "models": {role: _known(models[role], were[role], "recorded_answers") for role in models},
        "plugins": _known(side["plugins"], before["plugins"]),
        "code": _known(side["code"], before["code"]),
    }


def _known(table: Table, known: Table, without: str = "") -> dict[str, Any]:
    """Its rows that were there already, without this field."""
    return {name: {f: v for f, v in row.items() if f != without} for name, row in table.items() if name in known}


def _settings(settings: Table, *, untouched: bool) -> dict[str, Any]:
    """Settings that matter to what is there. Which traits there are is compared trait by trait, and where there was
    none, nothing depends on how they are scored."""
    kept = {name: value for name, value in settings.items() if name != "rubric_trait_names"}
    if untouched:
        kept = {name: value for name, value in kept.items() if not name.startswith(OF_RUBRICS)}
    if untouched and kept.get("evaluation_mode") in MODES:
        kept["evaluation_mode"] = MODES[0]
    return kept


def _traits(fingerprint: Table, question: str) -> Mapping[str, str]:
    """Digests of a question's traits."""
    rubric = fingerprint["questions"].get(question, {}).get("rubric")
    traits: Mapping[str, str] = fingerprint.get("rubrics", {}).get(rubric, {})
    return traits
