"""Asking for quotations again: what is named, what is kept, and who is left without any."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.wire.strict_schema import strict_schema
from karenina_deep_judgment.excerpts import ExcerptRules, Gathered, Rejected, gather
from karenina_deep_judgment.quotations.matching import Passage, Source
from karenina_deep_judgment.replies import (
    CONFIDENCES,
    RISKS,
    Offered,
    assessments_schema,
    excerpts_schema,
    read_assessments,
    read_excerpts,
    read_texts,
    texts_schema,
)

from karenina_core.errors import FillError, ParseError

exhaustive = settings(database=None, deadline=None, derandomize=True)
SENTENCES = ("Venetoclax targets BCL2.", "The dose is 400 mg.", "It was approved in 2016.", "It is taken by mouth.")
TEXT = Source(" ".join(SENTENCES))
INVENTED = "It was withdrawn last year."
NAMES = ("target", "dose")
Reply = Mapping[str, Sequence[str | Offered]] | ParseError


class Judge:
    """Says one reply after the other and remembers what it was asked for."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    async def __call__(self, names: Sequence[str], rejected: Sequence[Rejected]) -> Mapping[str, Sequence[Offered]]:
        self.asked.append((tuple(names), tuple(r.text for r in rejected)))
        reply = self.replies[len(self.asked) - 1]
        if isinstance(reply, ParseError):
            raise reply
        return {
            name: [Offered(o, "", "high") if isinstance(o, str) else o for o in reply.get(name, ())] for name in names
        }


def collect(judge: Judge, names: Sequence[str] = NAMES, **rules: Any) -> Gathered:
    return asyncio.run(gather(judge, names, TEXT, ExcerptRules(**rules)))


def texts(found: Gathered) -> dict[str, list[str]]:
    return {name: [e.text for e in rows] for name, rows in found.excerpts.items()}


def none(why: str) -> Offered:
    return Offered("", why, "none")


def test_what_is_found_at_once_is_not_asked_for_again() -> None:
    judge = Judge({"target": [SENTENCES[0]], "dose": ["The dose is 400 mg"]})
    found = collect(judge)
    assert texts(found) == {"target": [SENTENCES[0]], "dose": ["The dose is 400 mg"]}
    assert (found.without, found.retries, judge.asked) == ((), 0, [(NAMES, ())])
    excerpt = found.excerpts["dose"][0]
    assert excerpt.row() == {
        "text": "The dose is 400 mg",
        "confidence": "high",
        "similarity_score": 1.0,
        "start": 25,
        "end": 43,
    }


def test_a_retry_names_the_rejected_quotations_and_keeps_the_accepted_ones() -> None:
    judge = Judge({"target": [SENTENCES[0]], "dose": ["The dose is 40 mg.", SENTENCES[2]]}, {"dose": [SENTENCES[1]]})
    found = collect(judge)
    assert texts(found) == {"target": [SENTENCES[0]], "dose": [SENTENCES[2], SENTENCES[1]]}
    assert judge.asked == [(NAMES, ()), (("dose",), ("The dose is 40 mg.",))]
    assert (found.without, found.retries) == ((), 1)


def test_every_quotation_that_was_ever_rejected_is_named() -> None:
    judge = Judge({"dose": ["The dose is 4 mg."]}, {"dose": [INVENTED]}, {"dose": [INVENTED]}, {"dose": []})
    collect(judge, ["dose"], retries=3)
    assert [rejected for _, rejected in judge.asked] == [
        (),
        ("The dose is 4 mg.",),
        ("The dose is 4 mg.", INVENTED),
        ("The dose is 4 mg.", INVENTED),
    ]


def test_only_so_many_different_offers_are_looked_up_and_so_many_rejections_shown() -> None:
    class Counted(Source):
        looked_up: list[str]

        def find(self, quotation: str, threshold: float = 0.8) -> Passage | None:
            self.looked_up.append(quotation)
            return super().find(quotation, threshold)

    source = Counted(TEXT.text)
    source.looked_up = []
    invented = [f"It costs {number} dollars a day." for number in range(1_000)]
    judge = Judge(*[{"dose": [*["It is free."] * 50, *invented[i::2]]} for i in range(2)], {"dose": [SENTENCES[1]]})
    found = asyncio.run(gather(judge, ["dose"], source, ExcerptRules(most=3)))
    assert source.looked_up == [
        *("It is free.", *invented[0:22:2]),
        *("It is free.", *invented[1:23:2]),
        SENTENCES[1],
    ], "four different ones for each that is wanted"
    rejected = ["It is free.", *invented[0:22:2], *invented[1:23:2]]
    assert judge.asked[-1] == (("dose",), tuple(rejected[-20:]))
    assert texts(found) == {"dose": [SENTENCES[1]]}


def test_who_has_enough_is_not_asked_for_more() -> None:
    judge = Judge({"target": [INVENTED, SENTENCES[0]], "dose": [SENTENCES[1]]})
    found = collect(judge, most=1)
    assert (len(judge.asked), found.without) == (1, ())


def test_long_texts_are_searched_in_a_thread() -> None:
    threads: list[bool] = []

    class Watched(Source):
        def find(self, quotation: str, threshold: float = 0.8) -> Passage | None:
            threads.append(threading.current_thread() is threading.main_thread())
            return super().find(quotation, threshold)

    for text in (TEXT.text, f"{TEXT.text}\n" * 500):
        asyncio.run(gather(Judge({"target": [SENTENCES[0]]}), ["target"], Watched(text), ExcerptRules()))
    assert threads == [True, False]


def test_every_attempt_makes_its_own_list_of_what_is_missing() -> None:
    """Nothing to quote at first, found on the second attempt: not missing any more, and never named twice."""
    judge = Judge({"target": [], "dose": [INVENTED]}, {"target": [SENTENCES[0]], "dose": [INVENTED]}, {"dose": []})
    found = collect(judge)
    assert [names for names, _ in judge.asked] == [NAMES, NAMES, ("dose",)]
    assert found.without == ("dose",)
    assert texts(found) == {"target": [SENTENCES[0]]}


def test_nothing_to_quote_is_an_answer_and_not_asked_for_again() -> None:
    for honest in ([], [none("the text does not say")], [none("")]):
        judge = Judge({"target": [SENTENCES[0]], "dose": honest})
        found = collect(judge)
        assert (len(judge.asked), found.without, found.retries) == (1, ("dose",), 0)


def test_the_explanation_of_why_there_is_nothing_is_kept() -> None:
    judge = Judge({"target": [none("it refuses to answer")], "dose": [none("")]})
    (placeholder,) = collect(judge).excerpts["target"]
    assert placeholder.row() == {
        "text": "",
        "confidence": "none",
        "similarity_score": 0.0,
        "explanation": "it refuses to answer",
    }
    assert "dose" not in collect(Judge({"dose": [none("")]}), ["dose"]).excerpts


def test_an_explanation_of_an_earlier_attempt_does_not_outlive_it() -> None:
    found = collect(Judge({"target": [none("no")], "dose": [INVENTED]}, {"target": [SENTENCES[0]], "dose": []}))
    assert texts(found) == {"target": [SENTENCES[0]]}
    assert found.without == ("dose",)


def test_after_the_last_attempt_what_is_rejected_is_dropped() -> None:
    reply = {"target": [INVENTED, SENTENCES[0]], "dose": [INVENTED]}
    for retries in range(3):
        judge = Judge(*[reply] * (retries + 1))
        found = collect(judge, retries=retries)
        assert (len(judge.asked), found.retries) == (retries + 1, retries)
        assert (found.without, texts(found)) == (("dose",), {"target": [SENTENCES[0]]})


def test_no_more_quotations_than_allowed() -> None:
    for most in (1, 2, 3):
        judge = Judge({"target": [*SENTENCES, INVENTED]})
        found = collect(judge, ["target"], most=most)
        assert texts(found) == {"target": list(SENTENCES[:most])}
        assert len(judge.asked) == 1, "there is no room for another one, so nothing is asked for again"
    assert excerpts_schema(["target"], 2)["properties"]["target"]["maxItems"] == 2


def test_a_passage_counts_once() -> None:
    judge = Judge({"target": [SENTENCES[0], SENTENCES[0], f"**{SENTENCES[0]}**", SENTENCES[2]]})
    assert texts(collect(judge, ["target"], most=3)) == {"target": [SENTENCES[0], SENTENCES[2]]}


def test_a_reply_that_cannot_be_used_is_not_asked_for_again_with_the_same_request() -> None:
    """It was corrected as often as it may be before it came here."""
    judge = Judge(ParseError("first"), {"target": [SENTENCES[0]], "dose": [SENTENCES[1]]})
    with pytest.raises(ParseError, match="first"):
        collect(judge)
    assert len(judge.asked) == 1


NO_JSON = ParseError("no JSON")


@pytest.mark.parametrize("explained", [False, True])
def test_a_last_reply_that_cannot_be_read_is_an_error(explained: bool) -> None:
    """A name that still lacks a quotation then is not `without` one, and no answer may fail for it."""
    made_up: Reply = {"target": [SENTENCES[0]], "dose": [INVENTED]}
    for replies in ([made_up, NO_JSON], [made_up, made_up, NO_JSON]):
        judge = Judge(*replies)
        with pytest.raises(ParseError, match="no JSON"):
            collect(judge, explained=explained)
        assert len(judge.asked) == len(replies)


def test_an_unreadable_reply_loses_no_quotation_or_explanation_of_earlier_ones() -> None:
    replies: Reply = {"target": [SENTENCES[0], INVENTED], "dose": [none("it does not say")]}
    found = collect(Judge(replies, NO_JSON))
    assert [e.text for e in found.excerpts["target"]] == [SENTENCES[0]]
    assert (found.without, found.retries) == (("dose",), 1)


@pytest.mark.parametrize(("deterministic", "calls"), [(True, 2), (False, 4)])
def test_a_request_is_not_repeated_where_the_judge_would_say_the_same(deterministic: bool, calls: int) -> None:
    judge = Judge(*[{"dose": [INVENTED]}] * 4)
    found = collect(judge, ["dose"], retries=3, deterministic=deterministic)
    assert len(judge.asked) == calls
    assert (found.without, found.invented, found.retries) == (("dose",), ("dose",), calls - 1)
    judge = Judge({"dose": [INVENTED]}, {"dose": ["The dose is 4 mg."]}, {"dose": [SENTENCES[1]]})
    assert texts(collect(judge, ["dose"], deterministic=deterministic)) == {"dose": [SENTENCES[1]]}
    judge = Judge({"dose": []}, {"dose": [SENTENCES[1]]})
    assert collect(judge, ["dose"], explained=True, deterministic=deterministic).without == ()


def test_invented_quotations_are_distinguished_from_a_text_that_has_nothing() -> None:
    made_up: Reply = {"target": [INVENTED], "dose": [none("it does not say")]}
    found = collect(Judge(*[made_up] * 3))
    assert (found.without, found.invented) == (NAMES, ("target",))
    assert [excerpt.explanation for excerpt in found.excerpts["dose"]] == ["it does not say"]
    silent = collect(Judge(made_up, {"target": [none("nor that")], "dose": []}))
    assert (silent.without, silent.invented) == (NAMES, ())
    some = collect(Judge(*[{"target": [INVENTED, SENTENCES[0]], "dose": [SENTENCES[1]]}] * 3))
    assert (some.without, some.invented) == ((), ())


@pytest.mark.parametrize("silence", [[], [none("")], [Offered("", "why", "low")], [Offered("", "", "high")]])
def test_where_it_has_to_be_explained_that_there_is_nothing_silence_is_asked_about_again(
    silence: list[Offered],
) -> None:
    judge = Judge({"dose": silence}, {"dose": [SENTENCES[1]]})
    found = collect(judge, ["dose"], explained=True)
    assert (texts(found), found.retries, found.without) == ({"dose": [SENTENCES[1]]}, 1, ())
    assert len(collect(Judge({"dose": silence}), ["dose"]).without) == 1, "else it is an answer"
    judge = Judge(*[{"dose": silence}] * 3)
    assert (collect(judge, ["dose"], explained=True).without, len(judge.asked)) == (("dose",), 3)


def test_an_explanation_that_there_is_nothing_is_an_end() -> None:
    judge = Judge({"dose": [none("it does not say")]})
    found = collect(judge, ["dose"], explained=True)
    assert (found.without, found.retries) == (("dose",), 0)
    assert found.excerpts["dose"][0].explanation == "it does not say"


def test_what_the_last_reply_made_up_is_reported_and_not_what_earlier_ones_did() -> None:
    for last, rejected in (([INVENTED], [INVENTED]), ([none("no")], []), ([], [])):
        judge = Judge({"dose": ["The dose is 4 mg."]}, {"dose": last}, {"dose": last})
        found = collect(judge, ["dose"], retries=1)
        assert [r.text for r in found.rejected] == rejected


OFFERS = st.lists(st.sampled_from([*SENTENCES, INVENTED, "The dose is 4 mg.", none("no"), none("")]), max_size=4)


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, OFFERS)), min_size=3, max_size=3), st.integers(1, 3))
@exhaustive
def test_whatever_the_judge_says_the_record_is_consistent(replies: list[Any], most: int) -> None:
    judge = Judge(*replies)
    found = collect(judge, most=most, retries=2)
    real = {name: [e for e in rows if e.text] for name, rows in found.excerpts.items()}
    assert found.without == tuple(name for name in NAMES if not real.get(name))
    assert len(judge.asked) == found.retries + 1
    for rows in real.values():
        assert len(rows) <= most
        assert len({(e.start, e.end) for e in rows}) == len(rows)
        for excerpt in rows:
            assert excerpt.text in SENTENCES
            assert TEXT.text[excerpt.start : excerpt.end] == excerpt.text
    for names, rejected in judge.asked[1:]:
        assert set(rejected) & {INVENTED, "The dose is 4 mg."}
        assert not set(rejected) & set(SENTENCES)
        assert names


# Replies


SCHEMAS = [excerpts_schema(NAMES, 3), texts_schema(NAMES, "what follows"), assessments_schema(NAMES)]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema_has_a_strict_form(schema: dict[str, Any]) -> None:
    strict, is_strict = strict_schema(schema)
    assert is_strict
    assert list(strict["properties"]) == list(NAMES)


def test_reasons_come_before_verdicts() -> None:
    assert list(SCHEMAS[0]["$defs"]["Excerpt"]["properties"]) == ["text", "explanation", "confidence"]
    assert list(SCHEMAS[2]["$defs"]["Assessment"]["properties"]) == ["justification", "hallucination_risk"]


GOOD = {"text": "x", "explanation": None, "confidence": "high"}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "target: expected a list"),
        ({"target": None}, "target: expected a list"),
        ({"target": "x"}, "target: expected a list"),
        ({"target": ["x"]}, r"target\[0\]: expected an object"),
        ({"target": [{**GOOD, "text": None}]}, r"target\[0\].text"),
        ({"target": [GOOD, {**GOOD, "confidence": "certain"}]}, r"target\[1\].confidence: expected one of high"),
        ({"target": [{**GOOD, "confidence": 1}]}, "confidence"),
        ({"target": [{**GOOD, "explanation": 3}]}, "explanation"),
    ],
)
def test_excerpts_that_do_not_fit_are_reported_to_the_judge(data: dict[str, Any], problem: str) -> None:
    with pytest.raises(FillError, match=problem):
        read_excerpts(data, ["target"])


@given(st.text(max_size=20).filter(str.strip), st.sampled_from(CONFIDENCES[:-1]), st.none() | st.text(max_size=9))
@exhaustive
def test_excerpts_that_fit_are_taken(text: str, confidence: str, explanation: str | None) -> None:
    row = {"text": text, "confidence": confidence, "explanation": explanation}
    (offered,) = read_excerpts({"target": [row], "other": 1}, ["target"])["target"]
    assert offered == Offered(text.strip(), (explanation or "").strip(), confidence)
    slip = {"text": text, "confidence": "none", "explanation": explanation}
    assert read_excerpts({"target": [slip]}, ["target"])["target"] == (
        Offered(text.strip(), (explanation or "").strip(), "low"),
    )
    assert read_excerpts({"target": [{"text": "", "confidence": "none"}]}, ["target"]) == {
        "target": (Offered("", "", "none"),)
    }


@pytest.mark.parametrize("value", [None, 1, [], {}])
def test_texts_and_assessments_that_do_not_fit_are_reported_to_the_judge(value: Any) -> None:
    with pytest.raises(FillError, match="dose: expected a text"):
        read_texts({"target": "x", "dose": value}, NAMES)
    with pytest.raises(FillError, match="dose: expected a justification"):
        read_assessments({"target": {"justification": "", "hallucination_risk": "low"}, "dose": value}, NAMES)
    assert read_texts({"target": " x ", "dose": ""}, NAMES) == {"target": "x", "dose": ""}
    for risk in RISKS:
        found = read_assessments({"target": {"justification": "j", "hallucination_risk": risk}}, ["target"])
        assert found["target"].risk == risk
    with pytest.raises(FillError):
        read_assessments({"target": {"justification": "j", "hallucination_risk": "certain"}}, ["target"])


def test_only_some_of_many_problems_are_reported() -> None:
    with pytest.raises(FillError, match="and 30 more"):
        read_texts({}, [f"field_{i}" for i in range(50)])
