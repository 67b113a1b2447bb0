"""What people say of answers: the verdicts in a file of labels, by answer."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from karenina_calls.files.bounded import read_json

from karenina_core.errors import ConfigError, Problem
from karenina_core.values.identity import canonical_json
from karenina_core.values.result import VerificationResult


def answer_id(result: VerificationResult) -> str:
    """A digest of the question's id, the model, the replicate and the text: what labels name an answer by."""
    about = result.metadata
    key = [about.question_id, about.answering_model, about.replicate, result.generation.raw_llm_response]
    return hashlib.sha256(canonical_json(key).encode("ascii")).hexdigest()[:16]


def verdicts_of_people(path: Path) -> Mapping[str, bool]:
    """Whether an answer is right, by `answer_id`, as most people say who have labelled it; those of whom half say so
    are left out. Raises ConfigError for what is no file of labels, and for one without a verdict."""
    try:
        rows = read_json(path)["labels"]
        said: dict[str, dict[str, bool]] = defaultdict(dict)
        for row in rows:
            if row["target"] == "verdict" and isinstance(row["value"], bool):
                said[row["item"]][row["annotator"]] = row["value"]
    except OSError as error:
        raise ConfigError([Problem("--labels", f"{path} cannot be read: {error.strerror}")]) from None
    except (ValueError, KeyError, TypeError) as error:
        what = f"{path} is no file of labels ({error}); karenina label makes one"
        raise ConfigError([Problem("--labels", what)]) from None
    shares = {item: sum(votes.values()) / len(votes) for item, votes in said.items()}
    found = {item: share > 0.5 for item, share in shares.items() if share != 0.5}
    if not found:
        raise ConfigError([Problem("--labels", f"{path} has no verdict of a person; karenina label asks for them")])
    return found
