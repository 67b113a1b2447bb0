"""A panel in numbers: majority, votes weighted by reliability, the best member, and how many votes it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen
from karenina_compare.statistics.arrays import Floats, np
from karenina_compare.statistics.quantiles import even_binomial_two_sided
from karenina_runs.summaries.intervals import Estimate

from ..estimators import DawidSkene, dawid_skene, effective_votes, error_correlation, majority
from ..estimators.prevalence import LEAST_OF_CLASS
from ..judges.rates import rate_document, rate_of_rows, shown
from .votes import Ballot

Verdicts = Sequence[bool | None]


@frozen(kw_only=True)
class Panel:
    """What there is to say of a ballot. Without labels, all that is known of judges is how they agree."""

    ballot: Ballot = field(repr=False)
    truth: Sequence[bool | None] = field(repr=False)
    """What people say of each answer; None where it has no label."""
    majority: Verdicts = field(repr=False)
    """None on a tie."""
    everybody: DawidSkene = field(repr=False)
    """With all judges."""
    weighted: DawidSkene = field(repr=False)
    """Without inverted ones: none is used with its votes turned round."""
    inverted: Mapping[str, str]
    """Judges whose sensitivity and specificity are below 1 together, and by what that is known."""
    kept: Sequence[int] = field(repr=False)
    """The places of the others; of all judges, where all are inverted."""

    @property
    def labels(self) -> int:
        return sum(label is not None for label in self.truth)

    def accuracy(self, verdicts: Verdicts) -> Estimate:
        """The share of labelled answers on which a verdict is right; where there is none, it is not."""
        return rate_of_rows(
            (item.question, verdict is label)
            for item, verdict, label in zip(self.ballot.items, verdicts, self.truth, strict=True)
            if label is not None
        )

    def member(self, judge: int) -> Verdicts:
        return [None if np.isnan(vote) else bool(vote) for vote in self.ballot.votes[:, judge].tolist()]

    @property
    def best(self) -> int | None:
        """The judge that is right most often on labelled answers; None without labels. It looks better than it is, as
        it is chosen on them."""
        if not self.labels:
            return None
        values = [self.accuracy(self.member(judge)).value or 0.0 for judge in range(len(self.ballot.judges))]
        return max(range(len(values)), key=lambda judge: values[judge])

    @property
    def correlation(self) -> float | None:
        """Of the errors of judges that are not inverted, against labels, else against the weighted verdicts, from which
        errors that most judges share cannot be seen: then it is too low."""
        votes = self.ballot.votes[:, self.kept]
        if self.labels:
            rows = [place for place, label in enumerate(self.truth) if label is not None]
            return error_correlation(votes[rows], [bool(self.truth[place]) for place in rows])
        return error_correlation(votes, self.weighted.verdicts)

    @property
    def effective(self) -> float | None:
        """How many independent votes the judges that are not inverted are worth; None where no two of them have errors
        that vary."""
        found = self.correlation
        return None if found is None else effective_votes(len(self.kept), found)

    @property
    def warnings(self) -> list[str]:
        found = [
            f"{judge} is inverted ({how}): it is right more often when reversed. It is left out of the weighted "
            "verdicts; check its prompt and templates, or leave it out of the panel"
            for judge, how in self.inverted.items()
        ]
        if (best := self.best) is None:
            return found
        own = self.member(best)
        for name, verdicts in (("the majority", self.majority), ("the weighted panel", self.weighted.verdicts)):
            lost, won = self._discordant(own, verdicts)
            if lost > won:
                chance = even_binomial_two_sided(won, lost + won)
                sure = f"exact sign test p = {chance:.2g}" + ("" if chance < 0.05 else ", which chance may explain")
                found.append(
                    f"{name} is worse than its best member {self.ballot.judges[best]}: right on "
                    f"{shown(self.accuracy(verdicts))} of the labelled answers, that member on "
                    f"{shown(self.accuracy(own))} ({sure})"
                )
        return found

    def _discordant(self, own: Verdicts, verdicts: Verdicts) -> tuple[int, int]:
        """Labelled answers on which only the member is right, and only the panel."""
        rows = [(a is t, b is t) for a, b, t in zip(own, verdicts, self.truth, strict=True) if t is not None]
        return sum(a and not b for a, b in rows), sum(b and not a for a, b in rows)

    def document(self) -> dict[str, Any]:
        """Plain data; rates are shares from 0 to 1 with limits of 95 %, answers to one question being a cluster."""
        best, effective = self.best, self.effective
        return {
            "answers": len(self.ballot.items),
            "labels": self.labels,
            "judges": [self._judge(judge) for judge in range(len(self.ballot.judges))],
            "majority": {**self._verdicts(self.majority), "ties": sum(verdict is None for verdict in self.majority)},
            "weighted": self._verdicts(self.weighted.verdicts),
            "best": None if best is None else self.ballot.judges[best],
            "effective_votes": effective,
            "votes": len(self.kept),
            "error_correlation": self.correlation,
            "errors_against": "labels" if self.labels else "weighted verdicts",
            "inverted": dict(self.inverted),
            "warnings": self.warnings,
            "verdicts": [
                {
                    "question": item.question,
                    "answering_model": item.model,
                    "replicate": item.replicate,
                    "answer": item.id,
                    "majority": vote,
                    "weighted": verdict,
                    "probability": chance,
                    "label": label,
                }
                for item, vote, verdict, chance, label in zip(
                    self.ballot.items,
                    self.majority,
                    self.weighted.verdicts,
                    self.weighted.probability.tolist(),
                    self.truth,
                    strict=True,
                )
            ],
        }

    def _judge(self, judge: int) -> dict[str, Any]:
        verdicts = self.member(judge)
        return {
            "judge": self.ballot.judges[judge],
            **self._verdicts(verdicts),
            "sensitivity": float(self.everybody.sensitivity[judge]),
            "specificity": float(self.everybody.specificity[judge]),
        }

    def _verdicts(self, verdicts: Verdicts) -> dict[str, Any]:
        rows = [(item.question, verdict) for item, verdict in zip(self.ballot.items, verdicts, strict=True)]
        passes = rate_of_rows((question, verdict) for question, verdict in rows if verdict is not None)
        right = rate_document(self.accuracy(verdicts)) if self.labels else None
        return {"passes": rate_document(passes), "right": right}


def panel_of(ballot: Ballot, people: Mapping[str, bool] | None = None) -> Panel:
    """`people` has the labels by answer; see `verdicts_of_people`. Raises StatisticsError where nobody has voted."""
    truth = [(people or {}).get(item.id) for item in ballot.items]
    everybody = dawid_skene(ballot.votes)
    inverted = {ballot.judges[judge]: "by agreement with the other judges" for judge in everybody.inverted}
    inverted |= dict.fromkeys(_inverted_by_labels(ballot, truth), "by labels")
    kept = [place for place, judge in enumerate(ballot.judges) if judge not in inverted]
    kept = kept or list(range(len(ballot.judges)))
    return Panel(
        ballot=ballot,
        truth=truth,
        majority=majority(ballot.votes),
        everybody=everybody,
        weighted=dawid_skene(ballot.votes[:, kept]) if len(kept) < len(ballot.judges) else everybody,
        kept=kept,
        inverted=dict(sorted(inverted.items())),
    )


def _inverted_by_labels(ballot: Ballot, truth: Sequence[bool | None]) -> list[str]:
    labels = np.asarray([np.nan if label is None else float(label) for label in truth])
    found = []
    for place, judge in enumerate(ballot.judges):
        votes: Floats = ballot.votes[:, place]
        right, wrong = votes[(labels == 1) & ~np.isnan(votes)], votes[(labels == 0) & ~np.isnan(votes)]
        if min(len(right), len(wrong)) >= LEAST_OF_CLASS and right.mean() + (1 - wrong).mean() < 1:
            found.append(judge)
    return found
