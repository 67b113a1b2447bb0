"""What a journal knows of schemas that models refuse: so that a reply is found whoever the provider is by then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field
from karenina_calls.ports.metered import StoredCall
from karenina_calls.records.refusals import Refusals
from karenina_calls.records.requests import Request

REFUSED = "refused:"
"""Prefix of the ids of such rows of `meta`; the channel, a colon, and the key of model and schema follow."""


@define(eq=False)
class KeptRefusals(Refusals):
    """Those of a journal, and those of the runs from which it takes replies over."""

    _kept: set[str] = field(factory=set)
    """Ids of the rows that are in this journal, or on their way to it."""

    @classmethod
    def found_in(cls, meta: Mapping[str, str], sources: Iterable[Mapping[str, str]]) -> KeptRefusals:
        """From the rows of `meta` of the journal, and of its sources."""
        found = cls()
        for name in (name for rows in (meta, *sources) for name in rows if name.startswith(REFUSED)):
            channel, _, key = name.removeprefix(REFUSED).partition(":")
            found.learn(key, [channel])
        found._kept = {name for name in meta if name.startswith(REFUSED)}
        return found

    def rows(self, call: StoredCall) -> Iterator[str]:
        """The ids of rows that have to be in the journal before the reply to this call, and are not there."""
        if not call.refused or not isinstance(call.request, Request):
            return
        key = self.key(call.request.model, call.request.schema or {})
        self.learn(key, call.refused)
        for channel in call.refused:
            name = f"{REFUSED}{channel}:{key}"
            if name not in self._kept:
                self._kept.add(name)
                yield name
