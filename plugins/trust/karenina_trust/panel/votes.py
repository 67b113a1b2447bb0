"""The votes of judges on answers, from one run of several judges or from several runs of the same answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import field, frozen
from karenina_compare.statistics.arrays import Floats
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.summaries.rates import DECIDED, is_due

from karenina_core.errors import ConfigError, Problem
from karenina_core.plugin.application import Karenina
from karenina_core.values.result import VerificationResult

from ..estimators import votes_of
from ..labels.answers import answer_id


@frozen
class Item:
    """An answer that was judged. They are ordered by question, model and replicate."""

    question: str
    model: str
    replicate: int
    id: str
    """See `answer_id`."""


@frozen(kw_only=True)
class Ballot:
    """All votes, in an order that does not depend on that of the runs."""

    judges: Sequence[str]
    items: Sequence[Item]
    votes: Floats = field(repr=False)
    """Shape (items, judges): 1 passes, 0 fails, NaN where a judge has no verdict."""


def ballot_of(runs: Iterable[tuple[str, Iterable[VerificationResult]]]) -> Ballot:
    """Of named runs. A judge that has judged an answer in several runs has a vote for each of them.

    Errors are no votes. Raises ConfigError where no answer has the votes of two judges.
    """
    cast: dict[str, dict[str, dict[Item, bool]]] = defaultdict(lambda: defaultdict(dict))
    for name, results in runs:
        for result in results:
            about = result.metadata
            if is_due(about) and about.outcome in DECIDED:
                item = Item(about.question_id, about.answering_model, about.replicate or 1, answer_id(result))
                cast[about.parsing_model][name][item] = about.outcome == "passed"
    columns = dict(sorted((name, votes) for judge in cast for name, votes in _columns(judge, cast[judge])))
    items = sorted({item for votes in columns.values() for item in votes}, key=_order)
    rows = [[votes.get(item) for votes in columns.values()] for item in items]
    if not any(sum(vote is not None for vote in row) > 1 for row in rows):
        raise ConfigError([Problem("runs", f"no answer was judged by two judges; {ANOTHER}")])
    return Ballot(judges=list(columns), items=items, votes=votes_of(rows))


ANOTHER = "have another judge read the same answers: karenina verify BENCHMARK --answers RUN --parsing-model JUDGE"


def _order(item: Item) -> tuple[str, str, int, str]:
    return item.question, item.model, item.replicate, item.id


def _columns(judge: str, runs: dict[str, dict[Item, bool]]) -> list[tuple[str, dict[Item, bool]]]:
    """One for a judge whose runs have no answer in common, else one for each of its runs."""
    joined: dict[Item, bool] = {}
    for votes in runs.values():
        joined |= votes
    if len(joined) == sum(map(len, runs.values())):
        return [(judge, joined)]
    return [(f"{judge} in {name}", votes) for name, votes in runs.items()]


def read_ballot(paths: Sequence[Path], app: Karenina) -> Ballot:
    """Of run directories or files of results, each once. Raises BenchmarkError and ConfigError."""
    different = {path.resolve(): path for path in paths}
    return ballot_of((str(path), VerificationResultSet.load(path, app)) for path in different.values())
