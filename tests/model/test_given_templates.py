"""`Question(answer_template=...)` takes a class, data or text, and finds out the language."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from attrs import evolve

from karenina_core import Question
from karenina_core.errors import ConfigError, TemplateError
from karenina_core.templates import BaseAnswer, ExactMatch, VerifiedField

FIELD = {"name": "gene", "type": "str", "description": "The gene", "ground_truth": "CFTR"}
FIELD |= {"verify_with": {"type": "ExactMatch"}}  # type: ignore[dict-item]  # of a plain dict


class Declared(BaseAnswer):
    gene: str = VerifiedField("The gene", "CFTR", ExactMatch())


class Coded(BaseAnswer):
    gene: str

    def verify(self) -> bool:
        return self.gene == "CFTR"


def made(template: Any) -> Question:
    return Question(question="Which gene?", answer_template=template)


def test_data_and_a_class_that_is_data_become_json() -> None:
    for template in ({"fields": [FIELD]}, Declared, json.dumps({"fields": [FIELD]})):
        question = made(template)
        assert question.template_language == "karenina-template"
        field = json.loads(question.answer_template or "")["fields"][0]
        assert (field["name"], field["ground_truth"], field["verify_with"]["type"]) == ("gene", "CFTR", "ExactMatch")


def test_a_class_with_code_becomes_its_source() -> None:
    question = made(Coded)
    assert question.template_language == "python"
    assert (question.answer_template or "").startswith("class Coded(BaseAnswer):\n    gene: str\n")


def test_python_source_is_python_and_a_given_language_wins() -> None:
    assert made("class Answer(BaseAnswer): ...").template_language == "python"
    assert Question(question="?", answer_template="{}", template_language="python").template_language == "python"
    assert made(None).template_language == "python"
    assert made("\n {}").template_language == "karenina-template"


def test_values_of_python_become_json() -> None:
    template = {
        "fields": [{**FIELD, "type": "date", "ground_truth": datetime.date(2024, 5, 31)}, {"values": ("a", "b")}]
    }
    found = json.loads(made(template).answer_template or "")["fields"]
    assert (found[0]["ground_truth"], found[1]["values"]) == ("2024-05-31", ["a", "b"])


def test_changing_another_field_keeps_the_template() -> None:
    question = made(Declared)
    assert evolve(question, raw_answer="x").template == question.template


@pytest.mark.parametrize(
    ("template", "error", "message"),
    [
        (
            5,
            ConfigError,
            "answer_template: must be a template class, a dict with its fields, or the source of one, not 5",
        ),
        ({"fields": [object()]}, ConfigError, "answer_template: the data cannot be written as JSON: <object object at"),
        (int, TemplateError, "<class 'int'> is not a template class; it must derive from BaseAnswer"),
        (type("Made", (BaseAnswer,), {}), TemplateError, "Made cannot be written as data:\n- it has no VerifiedField"),
    ],
)
def test_what_is_no_template_is_refused(template: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        made(template)
    assert message in str(caught.value)
