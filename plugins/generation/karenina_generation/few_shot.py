"""Few-shot examples: which ones a question gets. None of them holds the question's own answer."""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from karenina_vocabulary.prompt_config import FewShotConfig, FewShotQuestion

from karenina_core.errors import ConfigError, Problem, plural, shortened
from karenina_core.values.question import Question

Example = Mapping[str, Any]
LABELS = frozenset({("yes",), ("no",), ("true",), ("false",)})
"""Answers that many questions share, as they share single letters and digits. An example with one tells nothing, and
without all that have one, what is left would tell the answer."""
MOST_NAMED = 5
"""Ids in a message. Chosen: it stays readable."""


def examples_for(config: FewShotConfig | None, question: Question) -> tuple[list[Example], list[Example]]:
    """The examples for one question, those of its own pool before the global ones; and those that are withheld because
    they hold its answer. Raises ConfigError."""
    if config is None or config.source == "disabled":
        return [], []
    own = config.question_configs.get(question.id, FewShotQuestion())
    mode = config.pool_mode if own.mode == "inherit" else own.mode
    pool = _pool(question, own, mode) if config.source in ("question_pool", "both") else []
    shared = config.global_examples if config.source in ("global", "both") else ()
    tells = _telling(question)
    chosen = [example for example in pool if not tells(example)]
    if mode == "k-shot":
        chosen = _drawn(chosen, own.k or config.pool_k, question.id)
    chosen += [example for example in shared if not tells(example)]
    return chosen, [example for example in (*pool, *shared) if tells(example)]


def with_examples(examples: Sequence[Example], question: str) -> str:
    """The prompt: `Question:`/`Answer:` pairs, the question last; the bare question without examples."""
    if not examples:
        return question
    pairs = [f"Question: {example['question']}\nAnswer: {example['answer']}" for example in examples]
    return "\n\n".join([*pairs, f"Question: {question}\nAnswer:"])


def few_shot_problems(config: FewShotConfig | None, questions: Sequence[Question]) -> Iterator[Problem]:
    """What is wrong with the examples of these questions; and, as notes, what becomes of them otherwise than it may
    seem."""
    if config is None or config.source == "disabled":
        return
    malformed = [f"global_examples[{i}]" for i, example in enumerate(config.global_examples) if not _is_pair(example)]
    for question in questions if config.source != "global" else ():
        places = (i for i, example in enumerate(question.few_shot_examples) if not _is_pair(example))
        malformed += [f"question {question.id}, example {i}" for i in places]
    if malformed:
        what = f'write every example as {{"question": "...", "answer": "..."}}; not so are {_listed(malformed)}'
        yield Problem("few_shot_config", what)
        return
    given, without = 0, []
    for question in questions:
        try:
            chosen, withheld = examples_for(config, question)
        except ConfigError as error:
            yield from error.problems
            continue
        given += len(chosen)
        without += [question.id] if withheld else []
    if without:
        what = f"examples that hold a question's own answer are left out, for {plural(len(without), 'question')}"
        yield Problem("few_shot_config", f"{what}: {_listed(without)}", fatal=False)
    if unknown := sorted(config.question_configs.keys() - {question.id for question in questions}):
        what = f"no question of this run is called {_listed(unknown)}"
        yield Problem("few_shot_config.question_configs", what, fatal=False)
    if not given:
        yield Problem("few_shot_config", "has no effect: it gives no question of this run an example", fatal=False)


def _pool(question: Question, own: FewShotQuestion, mode: str) -> list[Example]:
    """The question's own examples without those that are excluded; with `custom` only those that are selected."""
    excluded = _positions(own.excluded_examples, question)
    kept = set(range(len(question.few_shot_examples))) - excluded
    if mode == "custom":
        kept &= _positions(own.selected_examples, question)
    return [example for i, example in enumerate(question.few_shot_examples) if i in kept]


def _drawn(pool: Sequence[Example], k: int, question_id: str) -> list[Example]:
    """The same examples for the same question in every run, whatever else is drawn; in the order of the pool."""
    digest = hashlib.md5(question_id.encode("utf-8"), usedforsecurity=False).hexdigest()
    draw = random.Random(int(digest, 16) & 0x7FFFFFFF).sample(range(len(pool)), min(k, len(pool)))
    return [pool[i] for i in sorted(draw)]


def _positions(picks: Sequence[int | str], question: Question) -> set[int]:
    """Positions in the pool, given as such or as the MD5 of an example's question.

    Raises ConfigError for unknown ones.
    """
    hashes = {
        hashlib.md5(str(example["question"]).encode("utf-8"), usedforsecurity=False).hexdigest(): i
        for i, example in enumerate(question.few_shot_examples)
    }
    found: set[int] = set()
    for pick in picks:
        position = pick if isinstance(pick, int) else hashes.get(pick)
        if position is None or not 0 <= position < len(question.few_shot_examples):
            what = f"question {question.id} has no example {pick!r}; it has {len(hashes)} of them"
            raise ConfigError([Problem("few_shot_config", what)])
        found.add(position)
    return found


def _telling(question: Question) -> Callable[[Example], bool]:
    """Whether an example holds the answer of the question: it is the same question, or its answer has the words of the
    reference answer in their order. Case, punctuation and white space do not count."""
    asked, truth = _words(question.question), _words(question.raw_answer)
    common = truth in LABELS or sum(map(len, truth)) <= 1

    def tells(example: Example) -> bool:
        if _words(example["question"]) == asked:
            return True
        answer = _words(example["answer"])
        starts = range(0 if common else len(answer) - len(truth) + 1)
        return any(answer[i : i + len(truth)] == truth for i in starts)

    return tells


def _words(text: str) -> tuple[str, ...]:
    """Those of a text; where it has none, its signs."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return tuple(re.findall(r"\w+", plain) or plain.split())


def _is_pair(example: Example) -> bool:
    return all(isinstance(example.get(name), str) for name in ("question", "answer"))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(shortened(name, 80) for name in names[:MOST_NAMED]) + more
