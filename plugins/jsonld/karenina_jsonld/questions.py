"""Questions as items of a data feed, and back. Placeholder templates are recognised by their source."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from karenina_core.values.identity import question_urn
from karenina_core.values.question import Question
from karenina_core.values.rubric import DynamicRubric, Rubric

from . import values
from .nodes import Findings, merged, objects, plain, properties, property_value, with_list
from .others import OtherTypes
from .ratings import Rated, encode_rating, merged_ratings, rated, read_ratings, rubric_of
from .vocabulary import CUSTOM, DECLARATIVE

# Longer sources are never placeholders, and a bound on the length bounds the parser's recursion.
MAX_CHARACTERS = 4000
PROPERTIES: Mapping[str, Callable[[str, Any], Any]] = {
    "finished": values.boolean,
    "author": values.object_or_text,
    "sources": values.texts_or_text,
    "few_shot_examples": values.examples,
    "answer_notes": values.text,
    "workspace_path": values.text,
    "placeholder_template": values.boolean,
}
TITLE_LENGTH = 30
"""Characters of a question in the name of its template."""


def is_placeholder(source: str) -> bool:
    """Whether the source is one class with the single field `response: str` and a `verify` that only returns False."""
    if len(source) > MAX_CHARACTERS or "response" not in source or "verify" not in source:
        return False
    try:
        module = ast.parse(textwrap.dedent(source).strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError, Warning):
        return False
    match [node for node in _code(module.body) if not isinstance(node, ast.Import | ast.ImportFrom)]:
        case [ast.ClassDef(body=body)]:
            members = _code(body)
            return len(members) == 2 and sum(map(_is_response, members)) == 1 and sum(map(_returns_false, members)) == 1
    return False


def _code(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements without docstrings, other bare texts and `pass`."""

    def says_nothing(node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                return True
        return False

    return [node for node in body if not says_nothing(node)]


def _is_response(node: ast.stmt) -> bool:
    match node:
        case ast.AnnAssign(target=ast.Name(id="response"), annotation=ast.Name("str") | ast.Constant("str")):
            return True
    return False


def _returns_false(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef(name="verify", body=body):
            match _code(body):
                case [ast.Return(value=ast.Constant(value=False))]:
                    return True
    return False


@frozen
class Entry:
    """An item of the feed, its question, and the traits of its ratings, None for those that are not used."""

    node: dict[str, Any]
    question: Question
    traits: tuple[Rated | None, ...] = ()


def given_id(node: Any) -> str | None:
    """The item's own id, or one derived from the question's text; None where there is neither."""
    if not isinstance(node, dict):
        return None
    if node.get("@id"):
        return node["@id"] if isinstance(node["@id"], str) else None
    item = node.get("item")
    text = item.get("text") if isinstance(item, dict) else None
    return question_urn(text) if isinstance(text, str) else None


def assign_ids(given: Sequence[str | None]) -> list[str]:
    """One id for every item: the first with an id keeps it, later ones get the suffix -1, -2, ... that is free."""
    taken = {name for name in given if name is not None}
    repeats: dict[str, int] = {}
    ids = []
    for name in given:
        if name is None or name not in repeats:
            ids.append(name or "")
            repeats[name or ""] = 0
            continue
        candidate = name
        while candidate in taken:
            repeats[name] += 1
            candidate = f"{name}-{repeats[name]}"
        taken.add(candidate)
        ids.append(candidate)
    return ids


def read_item(node: Any, question_id: str, where: str, findings: Findings, others: OtherTypes) -> Entry | None:
    """The question of an item, or None and problems."""
    before = len(findings.problems)
    if not isinstance(node, dict) or not isinstance(node.get("item"), dict):
        findings.problems.append(
            f'{where}: the question is missing: add "item": {{"@type": "Question", "text": "...", ...}}'
        )
        return None
    if node.get("@id") and not isinstance(node["@id"], str):
        findings.problems.append(f"{where}: @id must be a text")
    item = node["item"]
    text = item.get("text")
    if not isinstance(text, str) or not text.strip():
        findings.problems.append(f'{where}: the question has no text: add "text": "..." to its item')
    answer = _part(item, "acceptedAnswer", '{"@type": "Answer", "text": "..."}', where, findings)
    code = _part(item, "hasPart", '{"@type": "SoftwareSourceCode", "text": "class Answer..."}', where, findings)
    language = DECLARATIVE if code.get("programmingLanguage") == DECLARATIVE else "python"
    fields = {
        "question": text,
        "raw_answer": answer.get("text"),
        "answer_template": code.get("text") or None,
        "template_language": language,
    }
    found = findings.attempt(where, properties, item) or {}
    for name, read in PROPERTIES.items():
        if found.get(name) is not None:
            fields[name] = findings.attempt(where, read, name, found[name])
    for key, name in (("dateCreated", "date_created"), ("dateModified", "date_modified")):
        if node.get(key) is not None:
            fields[name] = findings.attempt(where, values.text, key, node[key])
    fields["keywords"] = findings.attempt(where, _keywords, item, node)
    traits = read_ratings(item, "QuestionSpecific", f"{where}.item", findings, others, question_id)
    fields["question_rubric"] = findings.attempt(where, rubric_of, Rubric, traits)
    fields["question_dynamic_rubric"] = findings.attempt(where, rubric_of, DynamicRubric, traits)
    if len(findings.problems) > before:
        return None
    fields["custom_metadata"] = {name.removeprefix(CUSTOM): v for name, v in found.items() if name.startswith(CUSTOM)}
    if fields.get("placeholder_template") is None:
        fields["placeholder_template"] = _detected(fields["answer_template"], fields["template_language"])
    question = findings.attempt(where, lambda: Question(id=question_id, **fields))
    return None if question is None else Entry(node, question, tuple(traits))


def _detected(source: str | None, language: str) -> bool:
    return source is not None and language != DECLARATIVE and is_placeholder(source)


def _part(item: Mapping[str, Any], key: str, example: str, where: str, findings: Findings) -> Mapping[str, Any]:
    part = item.get(key)
    name = {"acceptedAnswer": "the reference answer", "hasPart": "the answer template"}[key]
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return part
    findings.problems.append(f'{where}: {name} is missing or has no text: add "{key}": {example} to its item')
    return {}


def _keywords(item: Mapping[str, Any], node: Mapping[str, Any]) -> tuple[str, ...]:
    """Older files keep them at the item of the feed; those of the question count where it has any."""
    found = item.get("keywords") or node.get("keywords") or []
    if not isinstance(found, list):
        raise ValueError("keywords must be a list of texts")
    return values.texts("keywords", [word for word in found if word is not None])


def encode_item(question: Question, title: str, now: str | None = None) -> dict[str, Any]:
    """The item of a question without its ratings. `title` names the template, `now` replaces missing dates."""
    language = question.template_language
    if language not in ("python", DECLARATIVE):
        raise ValueError(f"the template's language must be python or {DECLARATIVE}, not {language!r}")
    detected = _detected(question.answer_template, question.template_language)
    found = {
        "finished": question.finished,
        "author": None if question.author is None else values.written_text(question.author),
        "sources": None if question.sources is None else values.written_text(question.sources),
        "few_shot_examples": values.written_text(question.few_shot_examples) if question.few_shot_examples else None,
        "answer_notes": question.answer_notes,
        "workspace_path": question.workspace_path,
        "placeholder_template": None if question.placeholder_template == detected else question.placeholder_template,
    }
    written = [property_value(name, value) for name, value in found.items() if value is not None]
    item: dict[str, Any] = {
        "@type": "Question",
        "text": question.question,
        "acceptedAnswer": {"@type": "Answer", "text": question.raw_answer},
        "hasPart": {
            "@type": "SoftwareSourceCode",
            "name": title,
            "text": question.answer_template or "",
            "programmingLanguage": "Python" if language == "python" else DECLARATIVE,
        },
        "additionalProperty": written
        + [property_value(CUSTOM + key, plain(value)) for key, value in question.custom_metadata.items()],
    }
    if question.keywords:
        item["keywords"] = list(question.keywords)
    dates = {"dateCreated": question.date_created or now, "dateModified": question.date_modified or now}
    dates = {key: date for key, date in dates.items() if date is not None}
    return {"@type": "DataFeedItem", "@id": question.id, **dates, "item": item}


def new_item(question: Question, now: str, others: OtherTypes) -> dict[str, Any]:
    """The item of a question that is not in the file yet, in canonical form."""
    node = encode_item(question, f"{question.question[:TITLE_LENGTH]}... Answer Template", now)
    item = node["item"]
    if ratings := [encode_rating(one, "QuestionSpecific", others) for one in _rated(question)]:
        item["rating"] = ratings
    # The order in which existing files have them.
    for key in ("additionalProperty", "keywords"):
        if value := item.pop(key, None):
            item[key] = value
    return node


def _rated(question: Question) -> list[Rated]:
    return rated(question.question_rubric, question.question_dynamic_rubric)


def merged_item(entry: Entry, new: Question, others: OtherTypes) -> dict[str, Any]:
    """The item of a question that has changed; what karenina does not know stays as it is."""
    old = entry.question
    node = merged(entry.node, encode_item(old, ""), encode_item(new, ""))
    if list(old.keywords) != list(new.keywords):
        node.pop("keywords", None)
    item = node["item"]
    encode = partial(encode_rating, scope="QuestionSpecific", others=others)
    ratings = merged_ratings(objects(item, "rating"), entry.traits, _rated(new), encode)
    return node | {"item": with_list(item, "rating", ratings)}
