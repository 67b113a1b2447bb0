"""Which items of a run replay an answer, and which answers are missing: known before a model is called."""

from __future__ import annotations

from collections import Counter

from karenina_core.errors import ConfigError, Problem, plural
from karenina_core.pipeline.item import CachedAnswer

from ..plan.items import Generation, Item, Prepared
from ..workspaces.workspace_sources import investigated_modes
from .answers import ReplayStore

MOST_NAMED = 5
ASK = (
    "have the models asked for what is missing (--ask-missing; in Python a store with miss_policy fall_through, or "
    "ask_missing=True of extend_run), or judge only the questions that have all of theirs (--only-answered; in Python "
    "miss_policy leave_out)"
)
NO_ANSWER = "has no answer to be replayed, or not of every model and replicate"


def replayed(prepared: Prepared, generation: Generation) -> CachedAnswer | None:
    """The answer that was captured for these items; None where their answering model is to be asked.

    Not where a repair has it generated again, nor where agents look into the folder that an answer was worked out in:
    it is gone.
    """
    store, item = prepared.answers, generation.items[0]
    if store is None or _asked_again(store, item) or judged_by_folder(prepared, item):
        return None
    found = store.lookup(item.question.id, str(item.answering.identity), item.replicate)
    return None if found is None else found.replayed(strict=store.miss_policy != "fall_through")


def judged_by_folder(prepared: Prepared, item: Item) -> bool:
    """Whether agents that judge an item look into the folder that its answer was worked out in."""
    return prepared.workspace_root is not None and bool(investigated_modes(prepared.config, item.rubric))


def unanswered(prepared: Prepared) -> frozenset[str]:
    """The questions of which an answer is missing, where the answers say that they are left out (`leave_out`).

    Raises ConfigError where no question is left.
    """
    store = prepared.answers
    if store is None or store.miss_policy != "leave_out":
        return frozenset()
    without = frozenset(
        generation.items[0].question.id
        for generation in prepared.generations()
        if not _asked_again(store, generation.items[0]) and replayed(prepared, generation) is None
    )
    if len(without) == len(prepared.questions):
        raise ConfigError([Problem("answers", f"no question has all of its answers; {_there(store)}")])
    return without


def _there(store: ReplayStore) -> str:
    """Whose answers there are: the models' names have to be those of the configuration."""
    counts = Counter(key.answering_model or "any model" for key, _ in store)
    named = [f"{count} of {model}" for model, count in counts.most_common(MOST_NAMED)]
    more = f", and of {plural(len(counts) - MOST_NAMED, 'other model')}" if len(counts) > MOST_NAMED else ""
    return f"the answers that were given: {', '.join(named) or 'none'}{more}"


def check_answers(prepared: Prepared) -> list[str]:
    """Notes on the answers that the run was given. Raises ConfigError where some are missing and must not be."""
    store = prepared.answers
    if store is None:
        return []
    missing, again, total = 0, 0, 0
    named: list[str] = []
    for generation in prepared.generations():
        total += 1
        if _asked_again(store, generation.items[0]):
            again += 1
        elif replayed(prepared, generation) is None:
            missing += 1
            if len(named) < MOST_NAMED:
                item = generation.items[0]
                gone = "agents look into the folder that the answer was worked out in, which is gone"
                why = f": {gone}" if judged_by_folder(prepared, item) else ""
                named.append(f"{item.question.id}, {item.answering.identity}, replicate {item.replicate}{why}")
    if missing and store.miss_policy == "strict":
        if missing > len(named):
            named.append(f"and {missing - len(named)} more")
        what = f"{missing} of {plural(total, 'answer')} are not there; give them too, {ASK}"
        raise ConfigError([Problem("answers", "\n  ".join([what, *named, _there(store)]))])
    notes = [f"{total - missing - again} of {plural(total, 'answer')} are replayed; their models are not asked"]
    if again:
        notes.append(f"{plural(again, 'answer')} not replayed, although given: a repair generates them again")
    if store.overwritten:
        differing = plural(store.overwritten, "answer")
        notes.append(f"{differing} to be replayed: given twice and differ; the last one counts")
    return notes


def _asked_again(store: ReplayStore, item: Item) -> bool:
    return (item.question.id, str(item.answering.identity), item.replicate) in store.asked_again
