"""AbstentionCheck: an answer that declines is abstained, and no other one is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_checks.abstention import SCHEMA
from karenina_checks.judge import occurs
from karenina_vocabulary.prompt_config import PromptConfig

from karenina_core import RegexRubricTrait, Rubric
from karenina_core.errors import PortError
from karenina_core.pipeline.item import CachedAnswer

Verify = Callable[..., Any]
DECLINES = 'I am sorry, but "venetoclax" is not something\nthat I can discuss. BCL-2 proteins regulate apoptosis.'


def claim(
    disclaimer: str | None, detected: Any = True, reasoning: Any = "no answer is given", answer: Any = None
) -> dict[str, Any]:
    return {"answer": answer, "disclaimer": disclaimer, "reasoning": reasoning, "abstention_detected": detected}


def decision(detected: bool, reasoning: str = "looked at again") -> dict[str, Any]:
    """A reply to the question without a quotation."""
    return {"reasoning": reasoning, "abstention_detected": detected}


def declining(*replies: Any) -> dict[str, Any]:
    return {"generation": DECLINES, "abstention_detection": list(replies)}


def test_an_answer_that_declines_is_abstained_and_nothing_is_parsed(verify: Verify) -> None:
    done = verify(replies=declining(claim("venetoclax is not something that I can discuss")))
    assert done.outcome == "abstained"
    assert done.finding("abstention") == (True, True, True, "no answer is given")
    assert done.result.template.verify_result is False
    assert done.result.metadata.completed_without_errors
    assert [call.task for call in done.llm.calls] == ["generation", *["abstention_detection"] * 2], "nothing is parsed"
    (entry,) = done.result.ledger
    assert (entry.stage, entry.effect) == ("AbstentionCheck", {"verdict": False, "outcome": "abstained"})
    assert "venetoclax is not something that I can discuss" in entry.reason


def test_an_answer_that_does_not_decline_goes_on(verify: Verify) -> None:
    done = verify()
    assert (done.outcome, done.result.metadata.warnings) == ("passed", ())
    assert done.finding("abstention") == (True, False, False, "it names a protein")


def test_a_passage_that_declines_beside_an_answer_is_no_abstention(verify: Verify) -> None:
    reply = claim("that I can discuss", detected=False, reasoning="it answers all the same")
    assert verify(replies=declining(reply)).finding("abstention") == (True, False, False, "it answers all the same")


@pytest.mark.parametrize(
    "quoted",
    [
        "“venetoclax” is not something that I can discuss",
        "  I AM SORRY, but 'venetoclax' is  not something\tthat I can discuss.",
        "...that I can discuss…",
        "> **that I can discuss**",
    ],
)
def test_a_quotation_is_found_whatever_its_white_space_quotation_marks_and_case(verify: Verify, quoted: str) -> None:
    assert verify(replies=declining(claim(quoted))).outcome == "abstained"


@pytest.mark.parametrize("quoted", ["I cannot answer this question", None, "", " … "])
def test_a_claim_without_words_of_the_answer_is_asked_for_once_more_without_them_and_decides_nothing(
    verify: Verify, quoted: str | None
) -> None:
    done = verify(replies=declining(claim(quoted), claim(quoted), decision(True, "it evades the question")))
    assert done.outcome == "passed"
    assert done.finding("abstention") == (True, None, False, "it evades the question")
    assert done.result.metadata.caveats[0] == "unquoted_abstention"
    asked = done.llm.asked("abstention_detection")
    assert len(asked) == 3
    assert [list(call.output.schema["properties"]) for call in asked[1:]] == [
        ["answer", "disclaimer", "reasoning", "abstention_detected"],
        ["reasoning", "abstention_detected"],
    ]
    assert "disclaimer" not in asked[2].text
    assert DECLINES.strip() in asked[2].text
    warning = done.result.metadata.warnings[0]
    assert "does not hold the words" in warning
    assert "is not decided" in warning
    assert repr(quoted) in warning


def test_a_claim_that_is_withdrawn_without_a_quotation_is_none(verify: Verify) -> None:
    done = verify(replies=declining(claim("I refuse"), claim("I refuse"), decision(False, "it names a protein")))
    assert (done.outcome, done.result.metadata.caveats) == ("passed", ())
    assert done.finding("abstention") == (True, False, False, "it names a protein")


@pytest.mark.parametrize("failure", [PortError("who are you", kind="auth"), "It abstains.", {"abstention_detected": 1}])
def test_a_claim_stays_undecided_where_the_last_question_fails(verify: Verify, failure: Any) -> None:
    done = verify(replies=declining(claim("I refuse"), claim("I refuse"), failure))
    assert (done.outcome, done.result.metadata.caveats[0]) == ("passed", "unquoted_abstention")
    assert done.finding("abstention") == (True, None, False, "no answer is given")
    assert "gave no reply" in done.result.metadata.warnings[0]


ANSWERED = "The answer to this problem is BCL2."


@pytest.mark.parametrize("answer", ["The answer to this problem is BCL2", "is BCL2", "BCL2"])
@pytest.mark.parametrize("disclaimer", [ANSWERED, "to this problem", None, "I refuse"])
@pytest.mark.parametrize("retries", [0, 2])
def test_a_refusal_beside_an_answer_is_shown_to_the_judge_once_and_decides_nothing(
    verify: Verify, answer: str, disclaimer: str | None, retries: int
) -> None:
    replies = {"generation": ANSWERED, "abstention_detection": claim(disclaimer, answer=answer)}
    done = verify(replies=replies, model={"max_retries": retries})
    assert done.outcome == "passed", "it is parsed and compared"
    assert done.finding("abstention") == (True, None, False, "no answer is given")
    assert done.result.metadata.caveats[0] == "contradictory_abstention"
    assert "quotes a passage that answers" in done.result.metadata.warnings[0]
    asked = done.llm.asked("abstention_detection")
    assert len(asked) == 2
    assert "a response that answers does not abstain" in asked[1].text


def test_a_judge_that_takes_back_one_side_of_a_contradiction_is_believed(verify: Verify) -> None:
    first = claim("to this problem", answer="is BCL2")
    replies = {"generation": ANSWERED, "abstention_detection": [first, claim(None, detected=False, answer="is BCL2")]}
    done = verify(replies=replies)
    assert (done.outcome, done.finding("abstention")[1], done.result.metadata.caveats) == ("passed", False, ())
    done = verify(replies=declining(claim("that I can discuss", answer="regulate apoptosis"), claim("I can discuss")))
    assert (done.outcome, done.result.metadata.caveats) == ("abstained", ())


@pytest.mark.parametrize("answer", ["There is no answer in it", "null", "", " ", "BCL3"])
def test_what_the_judge_calls_an_answer_has_to_occur_in_the_response(verify: Verify, answer: str) -> None:
    done = verify(replies=declining(claim("that I can discuss", answer=answer)))
    assert (done.outcome, done.result.metadata.caveats) == ("abstained", ())


@pytest.mark.parametrize(("parsed", "beside"), [("BCL2", True), ("MCL1", True), (None, False)])
def test_an_undecided_refusal_beside_a_template_that_is_filled_in_whole_is_a_caveat(
    verify: Verify, parsed: str | None, beside: bool
) -> None:
    replies = declining(claim("I refuse"), claim("I refuse"), decision(True))
    done = verify(replies={**replies, "parsing": {"target": parsed}})
    assert ("abstention_beside_values" in done.result.metadata.caveats) is beside
    assert (
        any("every field of the template has a value" in warning for warning in done.result.metadata.warnings) is beside
    )
    assert "abstention_beside_values" not in verify().result.metadata.caveats


def test_a_judge_that_misquotes_is_asked_again(verify: Verify) -> None:
    done = verify(replies=declining(claim("I refuse"), claim("that I can discuss")))
    assert (done.outcome, done.result.metadata.warnings) == ("abstained", ())
    assert "does not hold the words" not in done.prompt("abstention")
    assert "does not hold the words" in done.llm.asked("abstention_detection")[1].text
    done = verify(replies=declining(claim("I refuse"), claim(None, detected=False)))
    assert (done.outcome, done.finding("abstention")[1]) == ("passed", False)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (PortError("who are you", kind="auth"), "who are you"),
        ("It abstains.", "no JSON object"),
        (claim("that I can discuss", detected="true"), "abstention_detected must be boolean"),
        (claim("that I can discuss", detected=1), "abstention_detected must be boolean"),
        (claim("that I can discuss", reasoning=None), "reasoning must be string"),
        ({"abstention_detected": True}, "disclaimer is missing"),
        ({key: value for key, value in claim("that I can discuss").items() if key != "answer"}, "answer is missing"),
    ],
)
def test_a_judge_that_fails_is_a_warning_and_decides_nothing(verify: Verify, reply: Any, message: str) -> None:
    done = verify(replies=declining(reply))
    assert done.outcome == "passed"
    assert done.finding("abstention") == (False, False, False, None)
    (warning,) = done.result.metadata.warnings
    assert warning.startswith("the abstention check was not performed: ")
    assert message in warning


def test_where_there_is_no_final_message_the_check_is_not_performed(verify: Verify) -> None:
    given_ = CachedAnswer(raw_llm_response="found", trace_messages=({"role": "tool", "content": "found"},))
    done = verify(cached_answer_data=given_)
    assert done.trail["AbstentionCheck"] == ("ran", "")
    assert done.finding("abstention") == (False, None, False, None)
    assert "not from the answering model" in done.result.metadata.warnings[0]
    assert done.llm.calls == []


REFUSED = "I cannot answer that"


def traced(tool: str, *texts: str) -> CachedAnswer:
    rows = ({"role": "tool", "content": tool}, *({"role": "assistant", "content": text} for text in texts))
    shown = [f"--- Tool Message (call_id: 1) ---\n{tool}", *(f"--- AI Message ---\n{text}" for text in texts)]
    return CachedAnswer(raw_llm_response="\n\n".join(shown), trace_messages=rows)


def over_the_trace(verify: Verify, given_: CachedAnswer, quoted: str) -> Any:
    return verify(
        cached_answer_data=given_,
        config={"use_full_trace_for_template": True},
        replies={"abstention_detection": [claim(quoted), claim(quoted), decision(True)]},
    )


def test_a_refusal_in_the_output_of_a_tool_is_not_the_answering_model_s(verify: Verify) -> None:
    done = over_the_trace(verify, traced(REFUSED, "It is BCL2."), REFUSED)
    assert (done.outcome, done.finding("abstention")[:2]) == ("passed", (True, None))
    warning = done.result.metadata.warnings[0]
    assert "the answering model's own text does not hold the words" in warning
    assert over_the_trace(verify, traced("nothing found", "let me look", f"{REFUSED}."), REFUSED).outcome == "abstained"


def test_the_prompt_for_a_whole_trace_says_whose_words_count(verify: Verify) -> None:
    done = over_the_trace(verify, traced("found", "It is BCL2."), REFUSED)
    assert "Only what the answering model itself wrote in this trace counts" in done.prompt("abstention")
    assert "Only what the answering model itself wrote" not in verify().prompt("abstention")


def test_a_refusal_of_one_word_counts_where_it_is_the_whole_final_message(verify: Verify) -> None:
    assert over_the_trace(verify, traced("found", "let me look", "No."), "No").outcome == "abstained"
    assert over_the_trace(verify, traced("found", "No, it is BCL2."), "No").outcome == "passed"
    assert verify(replies={"generation": "**No.**", "abstention_detection": claim("No.")}).outcome == "abstained"


ROWS = ({"role": "assistant", "content": "let me look"}, {"role": "assistant", "content": "It is BCL2."})


@pytest.mark.parametrize("full", [True, False])
def test_the_judge_sees_the_final_message_or_the_whole_trace(verify: Verify, full: bool) -> None:
    given_ = CachedAnswer(raw_llm_response="let me look ... It is BCL2.", trace_messages=ROWS)
    done = verify(cached_answer_data=given_, config={"use_full_trace_for_template": full})
    for check in ("abstention", "sufficiency"):
        assert ("let me look" in done.prompt(check)) is full
        assert ('label="trace"' in done.prompt(check)) is full


def test_one_call_at_temperature_zero_with_the_words_of_the_user(verify: Verify) -> None:
    prompts = PromptConfig(abstention_detection="Be lenient.", parsing="Never seen here.")
    done = verify(
        config={"prompt_config": prompts},
        model={"system_prompt": "You know proteins.", "temperature": 0.7},
        features=(),
    )
    assert done.llm.asked("abstention_detection") == [], "the feature is off"
    assert "AbstentionCheck" not in done.trail
    done = verify(config={"prompt_config": prompts}, model={"system_prompt": "You know proteins.", "temperature": 0.7})
    (call,) = done.llm.asked("abstention_detection")
    assert call.temperature == 0.0
    system, user = (message.text for message in call.messages)
    assert system.startswith("You know proteins.\n\n")
    assert "Be lenient." in system
    assert "Never seen here." not in call.text
    assert user.startswith("Question:\nWhich protein?\n\n")
    assert "<untrusted-" in user
    assert "It is BCL2." in user


def test_a_model_that_takes_no_temperature_is_sent_none(verify: Verify) -> None:
    done = verify(model={"temperature": None})
    for check in ("abstention", "sufficiency"):
        assert done.llm.asked(f"{check}_detection")[0].temperature is None


def test_quotations_come_first_the_answer_s_before_the_refusal_s_and_the_verdict_last() -> None:
    assert (
        list(SCHEMA["properties"]) == SCHEMA["required"] == ["answer", "disclaimer", "reasoning", "abstention_detected"]
    )


def test_without_a_template_the_check_runs_too(verify: Verify, rubric_stage: Any) -> None:
    rubric = Rubric(regex_traits=[RegexRubricTrait(name="cited", pattern="doi")])
    done = verify(
        rubric_stage,
        replies=declining(claim("that I can discuss")),
        rubric=rubric,
        evaluation_mode="rubric_only",
        features=("abstention",),
    )
    assert (done.outcome, done.result.template) == ("abstained", None)
    assert done.finding("abstention") == (True, True, True, "no answer is given")
    assert done.result.metadata.evaluation_mode == "rubric_only"
    assert done.trail["Rubrics"] == ("ran", "")


# Quotations

LAW = settings(database=None, deadline=None, derandomize=True)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "Nd")), min_size=1, max_size=6)
SPACED = st.text("abcdefgé", min_size=1, max_size=6)


@LAW
@given(TEXTS, st.lists(SPACED, min_size=2, max_size=4) | st.lists(WORDS, min_size=4, max_size=6), TEXTS)
def test_every_passage_of_whole_words_occurs_in_the_text(before: str, words: list[str], after: str) -> None:
    passage = " ".join(words)
    assert occurs(passage, f"{before} {passage} {after}")
    assert occurs(f"“ {passage} ”", f"{before} {passage}. {after}")


@LAW
@given(st.text("abc é\n.'", max_size=30), st.text("xyz", min_size=1, max_size=3))
def test_words_that_a_text_does_not_hold_do_not_occur_in_it(text: str, word: str) -> None:
    assert not occurs(word, text)
    assert not occurs(f"{text} {word}", text)
    assert not occurs("", text)


@LAW
@given(SPACED, st.lists(SPACED, min_size=1, max_size=3))
def test_a_single_word_is_a_quotation_only_of_a_text_that_has_no_other(word: str, others: list[str]) -> None:
    assert occurs(word, f"{word}.")
    assert not occurs(word, f"{word} {' '.join(others)}")


@pytest.mark.parametrize("quoted", ["no", "No.", "I", "a", "t", "know", "知道"])
def test_a_letter_or_a_word_of_a_longer_answer_is_no_refusal(verify: Verify, quoted: str) -> None:
    answer = "It is known: BCL2 is the target, no less. I say so (知道它是)."
    done = verify(replies={"generation": answer, "abstention_detection": claim(quoted)})
    assert (done.outcome, done.finding("abstention")[:2]) == ("passed", (True, None))


@pytest.mark.parametrize(
    ("quotation", "text"),
    [
        ("not able to", "a notable tool"),
        ("not able", "It is notable."),
        ("I cannot", "BCL2I cannot"),
        ("can not", "I cannot say"),
        ("decline to", "They decline together."),
        ("40 mg", "It is 140 mg."),
        ("?!", "what?!"),
    ],
)
def test_a_quotation_has_the_whole_words_of_the_text(quotation: str, text: str) -> None:
    assert not occurs(quotation, text)


@pytest.mark.parametrize(
    ("quotation", "text"),
    [
        ("I can't", "Sorry, I can’t."),
        ("I cant say", "I can't say."),
        ("I can´t say", "I canʼt say."),
        ("ﬁ NAÏVE", "fi naïve one"),
        ("不能回答", "我不能回答。"),
        ("我不知道", "我不知道。"),
        ("不知道", "不知道。"),
        ("I 拒绝", "I 拒绝 it"),
        ("the cafe\u0301", "in the café"),
        ("un\u00adable to", "I am unable to"),
        ("?!", " ?! "),
        ("No", "No."),
    ],
)
def test_how_a_passage_is_written_does_not_matter(quotation: str, text: str) -> None:
    assert occurs(quotation, text)


@pytest.mark.parametrize(
    "text",
    [
        "I’m sorry, I **can't** <b>discuss</b> venetoclax.",
        "<p>I can&#39;t</p><p class='x'>discuss<br/>venetoclax</p>",
        "I can\\'t _discuss_ [venetoclax](https://example.org/v).",
        "> I `can't` dis**cuss**\n> ~~vene~~toclax",
        "I can't <!-- x --> <span style='a'>dis</span>cuss venetoclax",
    ],
)
def test_a_quotation_is_found_whatever_html_and_markdown_the_answer_holds(verify: Verify, text: str) -> None:
    assert occurs("I can't discuss venetoclax", text)
    assert occurs(text, text)
    replies = {"generation": text, "abstention_detection": claim("I can't discuss venetoclax")}
    assert verify(replies=replies).outcome == "abstained"


def test_what_only_looks_like_html_stays_in_the_text() -> None:
    assert occurs("and c> I cannot", "a <b and c> I cannot say")
    assert not occurs("I cannot say", "I <5 cannot> 6 say")
