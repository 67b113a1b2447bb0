"""What a judge is held to beyond what the code asks for: lists and texts that come to an end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.wire.strict_schema import strict_schema
from karenina_judging.asking import MOST_CHARACTERS, MOST_ENTRIES, ask_judge, check_reply, closed_object

from karenina_core import ModelConfig, Question, VerificationContext
from karenina_core.errors import FillError, ParseError
from karenina_core.ports import ParsePortResult
from karenina_core.prompts import PromptTask
from karenina_core.testing import ScriptedLLM

TEXTS = {"type": "array", "items": {"type": "string"}}


def asked(
    schema: dict[str, Any], *replies: Any, channel: Any = "json_schema", answer: str = ""
) -> tuple[ParsePortResult, ScriptedLLM]:
    llm = ScriptedLLM(*replies, channels=(channel,))
    config = ModelConfig(model_name="j", interface="scripted", max_retries=len(replies) - 1)
    client = ModelClient(Model(config=config, llm=llm), [])
    context = VerificationContext(question=Question(question="Which?"), parsing=client, calls=client.calls)
    context.set_result_field("raw_llm_response", answer)
    return asyncio.run(ask_judge(context, PromptTask.PARSING, ("Extract.", "This."), schema)), llm


@pytest.mark.parametrize("nested", [False, True])
def test_a_list_without_a_limit_gets_one_in_what_the_judge_is_held_to_and_shown(nested: bool) -> None:
    inner = closed_object(
        {"names": TEXTS, "own": {**TEXTS, "maxItems": 3}, "maybe": {**TEXTS, "type": ["array", "null"]}}
    )
    given = {**closed_object({"part": {"$ref": "#/$defs/Part"}}), "$defs": {"Part": inner}} if nested else inner
    data = {"names": [], "own": [], "maybe": None}
    before = json.dumps(given)
    _, llm = asked(given, {"part": data} if nested else data)
    assert json.dumps(given) == before, "the schema of the template itself stays as it is"
    sent = llm.calls[0].output.schema  # type: ignore[union-attr]  # it was asked for data
    found = (sent["$defs"]["Part"] if nested else sent)["properties"]
    assert {name: part["maxItems"] for name, part in found.items()} == {"names": 256, "own": 3, "maybe": 256}
    assert llm.calls[0].text.count("maxItems 256") == 2
    assert strict_schema(sent)[1], "a strict provider takes it"


def test_data_in_a_schema_is_no_schema() -> None:
    value = {"type": "array"}
    schema = closed_object({"x": {"enum": [value, None]}, "y": {"type": "string", "default": value}})
    _, llm = asked(schema, {"x": None, "y": ""})
    assert llm.calls[0].output.schema == schema  # type: ignore[union-attr]  # as above


def test_a_longer_list_is_taken_where_no_server_holds_the_judge_to_the_limit() -> None:
    """The limit is in the judge's schema only; a reply beyond it is kept as it is."""
    names = [str(number) for number in range(MOST_ENTRIES + 44)]
    result, _ = asked(closed_object({"names": TEXTS}), {"names": names}, channel="text")
    assert result.data["names"] == names


def test_a_limit_that_a_schema_has_itself_is_checked() -> None:
    schema = closed_object({"names": {**TEXTS, "maxItems": 2}})
    check_reply({"names": ["a", "b"]}, schema)
    with pytest.raises(FillError, match="names has 3 entries, and may have 2"):
        check_reply({"names": ["a", "b", "c"]}, schema)


LONG = {"names": ["a", "b" * (MOST_CHARACTERS + 1)]}


def test_a_text_that_never_ends_is_shown_to_the_judge_as_a_mistake() -> None:
    result, llm = asked(closed_object({"names": TEXTS}), LONG, {"names": ["a", "b"]})
    assert (result.data["names"], result.repairs) == (["a", "b"], 1)
    assert "names[1] has 16,385 characters, and may have 16,384" in llm.calls[1].text
    with pytest.raises(ParseError, match="Texts are too long"):
        asked(closed_object({"names": TEXTS}), LONG)


def test_a_text_may_be_as_long_as_the_answer_that_the_judge_reads() -> None:
    result, llm = asked(closed_object({"names": TEXTS}), LONG, answer="b" * (MOST_CHARACTERS + 1))
    assert (result.data, len(llm.calls)) == (LONG, 1)
