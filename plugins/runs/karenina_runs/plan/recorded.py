"""Whether the answers that were recorded by hand are to the questions of the benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from karenina_calls.records.manual import keys_of

from karenina_core.errors import ConfigError, Problem, did_you_mean, plural, shortened
from karenina_core.values.config import VerificationConfig
from karenina_core.values.question import Question

MOST_NAMED = 3
"""Keys in a note. Chosen: with their questions they fill a few lines."""
LONGEST_KEY = 80  # characters: a line


def check_recorded(config: VerificationConfig, every: Sequence[Question], chosen: Sequence[Question]) -> Iterator[str]:
    """Notes on recorded answers that are to no question of the benchmark. Of `every` question those are run that are
    `chosen`: raises ConfigError where the answers are to none of them."""
    for number, model in enumerate(config.answering_models):
        answers = model.manual_traces
        if answers is None:
            continue
        fitting = set(chain.from_iterable(keys_of(q.id, q.question, answers) for q in every))
        left = [key for key in answers if key not in fitting]
        ids = [question.id for question in every]
        named = [f"{shortened(key, LONGEST_KEY)!r}{did_you_mean(key, ids)}" for key in left[:MOST_NAMED]]
        if more := len(left) - len(named):
            named.append(f"and {more} more")
        if chosen and not any(keys_of(q.id, q.question, answers) for q in chosen):
            what = f"none of {plural(len(answers), 'recorded answer')} belongs to a question of the run"
            form = "a key is a question's id, its exact text, or the MD5 of its text"
            there = f"; for no question of the benchmark: {', '.join(named)}" if named else ""
            raise ConfigError([Problem(f"answering_models[{number}].manual_traces", f"{what}; {form}{there}")])
        if left:
            yield f"recorded answers for no question of the benchmark: {', '.join(named)}"
