"""Few-shot examples: which ones a question gets, and how they are put before it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

from karenina_vocabulary.prompt_config import FewShotConfig, FewShotQuestion

from karenina_core.errors import ConfigError, Problem
from karenina_core.values.question import Question

__all__ = ["examples_for", "with_examples"]

Example = Mapping[str, Any]


def examples_for(config: FewShotConfig | None, question: Question) -> list[Example]:
    """The examples for one question: those of its own pool, then the global ones."""
    if config is None or config.source == "disabled":
        return []
    chosen: list[Example] = []
    if config.source in ("question_pool", "both"):
        chosen += _from_pool(config, question)
    if config.source in ("global", "both"):
        chosen += config.global_examples
    return chosen


def with_examples(examples: Sequence[Example], question: str) -> str:
    """The prompt: `Question:`/`Answer:` pairs, the question last; the bare question without examples."""
    if not examples:
        return question
    pairs = [f"Question: {example['question']}\nAnswer: {example['answer']}" for example in examples]
    return "\n\n".join([*pairs, f"Question: {question}\nAnswer:"])


def _from_pool(config: FewShotConfig, question: Question) -> list[Example]:
    own = config.question_configs.get(question.id, FewShotQuestion())
    mode = config.pool_mode if own.mode == "inherit" else own.mode
    excluded = _positions(own.excluded_examples, question)
    pool = [(i, example) for i, example in enumerate(question.few_shot_examples) if i not in excluded]
    if mode == "all":
        return [example for _, example in pool]
    if mode == "custom":
        selected = _positions(own.selected_examples, question)
        return [example for i, example in pool if i in selected]
    k = min(own.k or config.pool_k, len(pool))
    # the same examples for the same question in every run, whatever else is drawn
    digest = hashlib.md5(question.id.encode("utf-8"), usedforsecurity=False).hexdigest()
    drawn = sorted(random.Random(int(digest, 16) & 0x7FFFFFFF).sample(range(len(pool)), k))
    return [pool[i][1] for i in drawn]


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
            raise ConfigError(
                [
                    Problem(
                        "few_shot_config",
                        f"question {question.id} has no example {pick!r}; it has {len(hashes)} of them",
                    )
                ]
            )
        found.add(position)
    return found
