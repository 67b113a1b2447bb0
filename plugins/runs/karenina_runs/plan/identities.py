"""Names in a run, and what answers are compared with: none of them may hold a secret, which is removed from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from karenina_calls.models.overrides import overrides
from karenina_calls.secrets.redaction import Secrets
from karenina_vocabulary.template_kind import TemplateKind
from karenina_vocabulary.traits import RegexRubricTrait, ScoredTrait

from karenina_core.errors import ConfigError, ErrorKind, Problem
from karenina_core.values.config import VerificationConfig
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric, RubricTrait

OUTCOMES = ("auto_failed", "insufficient", *get_args(ErrorKind))
"""Words of results that are long enough to be a secret."""
NAMES_OF_MODELS = ("model_name", "id", "interface", "model_provider")
FOUND = (
    "holds the value of {}, which is taken out of all that models say and of all that is kept; change that place, or, "
    "where the value is no secret, unset the variable or give the setting another value"
)


def check_identities(
    secrets: Secrets,
    config: VerificationConfig,
    questions: Iterable[Question],
    rubrics: Iterable[Rubric | None],
    others: Mapping[str, Iterable[str]],
) -> None:
    """Refuse a run whose names hold a secret. `others` are more names, by what they are names of.

    Raises ConfigError; the secret is not in it, and neither is the name.
    """
    if not secrets:
        return
    listed = list(rubrics)
    models = (*config.answering_models, *config.parsing_models, *(model for _, model in overrides(listed)))
    names = [
        *(named for number, question in enumerate(questions, 1) for named in _of_question(number, question)),
        *(named for rubric in listed for trait in rubric or () for named in _of_trait(trait)),
        *((f"{name} of a model", getattr(model, name) or "") for model in models for name in NAMES_OF_MODELS),
        *(("the name of a tool server", server) for model in models for server in model.mcp_urls_dict),
        *((name, getattr(config, name)) for name in ("embedding_check_embedder", "embedding_check_model")),
        *((f"the {kind}", name) for kind, found in others.items() for name in found),
        *(("a word of every result", word) for word in OUTCOMES),
    ]
    problems = [
        Problem("", f"{what} {FOUND.format(source)}") for what, name in names for source in secrets.sources_in(name)
    ]
    if problems:
        raise ConfigError(dict.fromkeys(problems))


def _of_question(number: int, question: Question) -> Iterator[tuple[str, str]]:
    """What a template expects or calls its fields would never be found in an answer without secrets."""
    yield f"the id of question {number}", question.id
    if question.template is not None:
        yield f"the template of question {number}", question.template.text
    for keyword in question.keywords:  # results are grouped by them
        yield f"a keyword of question {number}", keyword


def _of_trait(trait: RubricTrait) -> Iterator[tuple[str, str]]:
    """Like the template of a question: what is looked for in an answer, and what a judge may say of it."""
    yield "the name of a trait", trait.name
    if isinstance(trait, RegexRubricTrait):
        yield "the pattern of a trait", trait.pattern
        yield "the pattern of a trait", re.sub(r"\\(.)", r"\1", trait.pattern)  # as `re.escape` may have written it
    if isinstance(trait, ScoredTrait):
        for name in trait.classes or ():
            yield "the name of a class of a trait", name
        if isinstance(trait.kind, TemplateKind):
            yield "the schema of a trait", json.dumps(trait.kind.schema, default=str)
