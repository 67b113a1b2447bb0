"""Checks before parsing: which fields count, which way the verdict points, and what a prompt does to an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import frozen
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from karenina_calls.ports.client import Model, ModelClient
from karenina_checks.abstention import AbstentionCheck
from karenina_checks.judge import occurs
from karenina_checks.sufficiency import SufficiencyCheck
from karenina_vocabulary.traces import evaluation_input

from karenina_core import ArtifactKeys, ModelConfig, Question, Stage, VerificationConfig, VerificationContext
from karenina_core.testing import FakeHandle, ScriptedCall, ScriptedLLM

LAW = settings(
    database=None, deadline=None, derandomize=True, report_multiple_bugs=False, phases=(Phase.explicit, Phase.generate)
)


@frozen(kw_only=True)
class Record(FakeHandle):
    """A template with this schema."""

    given: Mapping[str, Any]

    def schema(self) -> dict[str, Any]:
        return dict(self.given)


def run(
    stage: Stage,
    handle: FakeHandle,
    reply: Callable[[ScriptedCall], Any],
    answer: str = "BCL2",
    rows: Sequence[Mapping[str, str]] = (),
) -> Any:
    """The context after one check, and the model that was asked. Where there are rows, the judge sees all of them."""
    llm = ScriptedLLM(reply, channels=("json_schema",))
    client = ModelClient(Model(config=ModelConfig(model_name="j", interface="scripted", max_retries=0), llm=llm), [])
    config = VerificationConfig(use_full_trace_for_template=bool(rows))
    context = VerificationContext(question=Question(question="Which {protein}?"), parsing=client, config=config)
    context.set_result_field("trace_messages", tuple(rows))
    context.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, answer)
    context.set_artifact(ArtifactKeys.ANSWER, handle)
    with context.acting(stage):
        asyncio.run(stage.execute(context))  # type: ignore[arg-type]  # both checks are coroutines
    return context, llm


def judging(found: Mapping[str, bool]) -> Callable[[ScriptedCall], Any]:
    fields = {name: {"evidence": None, "found": there} for name, there in found.items()}
    return lambda call: {"fields": fields, "reasoning": "because", "sufficient": all(found.values())}


# Every field that the judge must fill in counts, whatever its default

Chooser = Callable[[Mapping[str, Any]], list[str]]
"""From the judge's schema to the fields that the check asks about."""
FIELDS = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.booleans(), min_size=1, max_size=4)


def fields_of_ours(schema: Mapping[str, Any]) -> list[str]:
    found = dict.fromkeys(schema["required"], True)
    _, llm = run(SufficiencyCheck(), Record(given=schema), judging(found))
    return list(llm.calls[0].output.schema["properties"]["fields"]["properties"])


def fields_without_default(schema: Mapping[str, Any]) -> list[str]:
    return [name for name, described in schema["properties"].items() if "default" not in described]


def required_fields_count(choose: Chooser) -> None:
    @LAW
    @given(FIELDS)
    @example({"dose": True})
    def law(fields: dict[str, bool]) -> None:
        properties = {name: {"type": "string", **({"default": ""} if has else {})} for name, has in fields.items()}
        assert choose({"type": "object", "properties": properties, "required": list(fields)}) == list(fields)

    law()


def test_a_required_field_with_a_default_counts() -> None:
    required_fields_count(fields_of_ours)


def test_taking_a_default_for_an_option_breaks_that() -> None:
    with pytest.raises(AssertionError):
        required_fields_count(fields_without_default)


# True means sufficient

Decider = Callable[[Mapping[str, bool]], str]
"""From what the judge found to what becomes of the item: `insufficient`, or `goes on`."""


def decided_by_ours(found: Mapping[str, bool]) -> str:
    handle = FakeHandle(expected=dict.fromkeys(found, "x"))
    context, _ = run(SufficiencyCheck(), handle, judging(found))
    return "goes on" if context.verdict.verdict is None else str(context.outcome)


def read_as_a_finding_against_the_answer(found: Mapping[str, bool]) -> str:
    """Takes `detected` for bad news, as it is for abstention."""
    context, _ = run(SufficiencyCheck(), FakeHandle(expected=dict.fromkeys(found, "x")), judging(found))
    return "insufficient" if context.get_artifact(ArtifactKeys.SUFFICIENCY_DETECTED) else "goes on"


def sufficient_goes_on_and_insufficient_does_not(decide: Decider) -> None:
    @LAW
    @given(FIELDS)
    @example({"target": True})
    @example({"target": False})
    def law(found: dict[str, bool]) -> None:
        assert decide(found) == ("goes on" if all(found.values()) else "insufficient")

    law()


def test_what_is_sufficient_goes_on_and_what_is_not_is_insufficient() -> None:
    sufficient_goes_on_and_insufficient_does_not(decided_by_ours)


def test_reading_the_flag_the_other_way_round_breaks_that() -> None:
    with pytest.raises(AssertionError):
        sufficient_goes_on_and_insufficient_does_not(read_as_a_finding_against_the_answer)


# A prompt holds the answer as it was given

Prompter = Callable[[str], str]
DECLINES_NOT = {"answer": None, "disclaimer": None, "reasoning": "because", "abstention_detected": False}


def prompt_of_ours(answer: str) -> str:
    _, llm = run(AbstentionCheck(), FakeHandle(), lambda call: DECLINES_NOT, answer)
    return "\n".join(message.text for message in llm.calls[0].messages)


def formatted_once_more(answer: str) -> str:
    """A text that already holds the answer is filled in again."""
    return f"Response: {answer}\nThe schema: {{schema}}".format(schema={})


def answers_stay_as_they_are(prompt: Prompter) -> None:
    @LAW
    @given(st.text(min_size=1).filter(str.strip))
    @example('{"target": "BCL2"}')
    @example("{} {0} {schema} %s {{x}}")
    def law(answer: str) -> None:
        try:
            text = prompt(answer)
        except (KeyError, IndexError, ValueError) as error:
            raise AssertionError(f"{answer!r} cannot be put into the prompt") from error
        assert answer.strip() in text

    law()


def test_an_answer_with_braces_stays_as_it_is_in_the_prompt() -> None:
    answers_stay_as_they_are(prompt_of_ours)


def test_formatting_a_prompt_that_holds_an_answer_breaks_that() -> None:
    with pytest.raises(AssertionError):
        answers_stay_as_they_are(formatted_once_more)


# A quotation shows something: whole words, and more than one of them

Finder = Callable[[str, str], bool]
"""Whether a quotation stands in a text."""
WORDS = st.text("abnot", min_size=1, max_size=4)


def found_among_the_letters(quotation: str, text: str) -> bool:
    """Leaves blanks out, so that line breaks do not count."""
    return "".join(filter(str.isalnum, quotation.lower())) in "".join(filter(str.isalnum, text.lower()))


def found_anywhere(quotation: str, text: str) -> bool:
    return quotation.lower() in text.lower()


def quotations_are_whole_words_and_more_than_one(finds: Finder) -> None:
    @LAW
    @given(WORDS, WORDS, WORDS)
    @example("no", "table", "tool")
    @example("a", "tool", "b")
    def law(first: str, second: str, third: str) -> None:
        assert finds(f"{first} {second}", f"{third} {first} {second}.")
        assert not finds(f"{first} {second}", f"x{first}{second} {third}")
        assert not finds(f"{first} {second}", f"x{first} {second}x {third}")
        assert not finds(first, f"{first} {second} {third}")

    law()


def test_a_quotation_is_whole_words_and_more_than_one() -> None:
    quotations_are_whole_words_and_more_than_one(occurs)


@pytest.mark.parametrize("naive", [found_among_the_letters, found_anywhere])
def test_looking_for_letters_breaks_that(naive: Finder) -> None:
    with pytest.raises(AssertionError):
        quotations_are_whole_words_and_more_than_one(naive)


# Only the answering model abstains, not the tools that it called

Claimed = Callable[[str, str, str], bool]
"""From the output of a tool, the answer behind it and a quotation to whether the model abstains."""
SENTENCES = st.sampled_from(["I cannot answer that", "It is BCL2", "Access was denied", "I do not know"])


def abstains_by_ours(tool: str, answer: str, quotation: str) -> bool:
    rows = ({"role": "tool", "content": tool}, {"role": "assistant", "content": answer})
    claim = {"answer": None, "disclaimer": quotation, "reasoning": "because", "abstention_detected": True}
    context, _ = run(AbstentionCheck(), FakeHandle(), lambda call: claim, f"{tool}\n\n{answer}", rows)
    return str(context.outcome) == "abstained"


def abstains_by_all_that_is_shown(tool: str, answer: str, quotation: str) -> bool:
    """Looks for the quotation in what the judge was shown."""
    return occurs(quotation, evaluation_input((), f"{tool}\n\n{answer}", full_trace=True).text)


def only_the_model_s_own_words_are_its_refusal(abstains: Claimed) -> None:
    @LAW
    @given(SENTENCES, SENTENCES, SENTENCES)
    @example("I cannot answer that", "It is BCL2", "I cannot answer that")
    def law(tool: str, answer: str, quotation: str) -> None:
        assert abstains(tool, answer, quotation) is (quotation == answer)

    law()


def test_a_refusal_that_a_tool_returned_is_not_the_model_s() -> None:
    only_the_model_s_own_words_are_its_refusal(abstains_by_ours)


def test_looking_through_the_whole_trace_breaks_that() -> None:
    with pytest.raises(AssertionError):
        only_the_model_s_own_words_are_its_refusal(abstains_by_all_that_is_shown)
