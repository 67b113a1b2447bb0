"""Ways to collect evidence that look right and are not: each law holds for the real thing and rejects the variant."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from karenina_deep_judgment.excerpts import ExcerptRules, Rejected, gather
from karenina_deep_judgment.quotations.matching import Source
from karenina_deep_judgment.replies import Offered

exhaustive = settings(
    database=None, deadline=None, derandomize=True, report_multiple_bugs=False, phases=(Phase.explicit, Phase.generate)
)


# What an earlier attempt did not find stays on the list of what is missing, although a later one finds it.

Replies = Sequence[Mapping[str, Sequence[str]]]
Missing = Callable[[Replies, str], Coroutine[Any, Any, Sequence[str]]]
TRUE, FALSE = "BCL2 is the target", "MCL1 is the target"
NAMES = ("target", "dose")


async def missing_over_all_attempts(replies: Replies, text: str) -> Sequence[str]:
    missing: list[str] = []
    for reply in replies:
        rejected = False
        for name in NAMES:
            if not reply[name]:
                missing.append(name)
            rejected = rejected or any(quotation not in text for quotation in reply[name])
        if not rejected:
            break
    return missing


async def missing_after_the_last_attempt(replies: Replies, text: str) -> Sequence[str]:
    attempts = iter(replies)

    async def ask(names: Sequence[str], rejected: Sequence[Rejected]) -> Mapping[str, Sequence[Offered]]:
        reply = next(attempts)
        return {name: [Offered(quotation, "", "high") for quotation in reply[name]] for name in names}

    rules = ExcerptRules(retries=len(replies) - 1)
    return (await gather(ask, NAMES, Source(text), rules)).without


OFFERED = st.sampled_from([[], [TRUE], [FALSE], [TRUE, FALSE]])


def law_missing_is_what_has_no_quotation_in_the_end(missing_in: Missing) -> None:
    """`dose` is rejected until the last attempt, so that there are as many attempts as replies."""

    @given(st.lists(OFFERED, min_size=1, max_size=3))
    @exhaustive
    def law(offered: list[list[str]]) -> None:
        dose = [[FALSE]] * (len(offered) - 1) + [[TRUE]]
        replies = [dict(zip(NAMES, pair, strict=True)) for pair in zip(offered, dose, strict=True)]
        missing = asyncio.run(missing_in(replies, f"It is known that {TRUE}."))
        assert list(missing) == ([] if any(TRUE in quotations for quotations in offered) else ["target"])

    law()


def test_the_list_of_what_is_missing_is_made_anew_by_every_attempt() -> None:
    law_missing_is_what_has_no_quotation_in_the_end(missing_after_the_last_attempt)


def test_the_law_of_the_missing_rejects_a_list_that_only_grows() -> None:
    with pytest.raises(AssertionError):
        law_missing_is_what_has_no_quotation_in_the_end(missing_over_all_attempts)


# A fixed bar beside the threshold: below one of them the threshold has no effect, above the other neither.

Accepts = Callable[[str, str, float], bool]
FIXED = 0.75


def similarity(text: str, quotation: str) -> float:
    """By the words' own measure: what the real thing says where every threshold is met."""
    free = Source(text).find(quotation, 0.0)
    return free.similarity if free else 0.0


def either_bar(text: str, quotation: str, threshold: float) -> bool:
    score = similarity(text, quotation)
    return score >= FIXED or score >= threshold


def both_bars(text: str, quotation: str, threshold: float) -> bool:
    score = similarity(text, quotation)
    return score >= FIXED and score >= threshold


def one_bar(text: str, quotation: str, threshold: float) -> bool:
    return Source(text).find(quotation, threshold) is not None


def law_the_threshold_alone_decides(accepts: Accepts) -> None:
    @given(st.integers(0, 20), st.floats(0, 1))
    @exhaustive
    def law(marks: int, threshold: float) -> None:
        text = f"It binds BCL2 {',' * marks} tightly."
        score = similarity(text, "BCL2 tightly")
        assert score > 0
        assert accepts(text, "BCL2 tightly", threshold) is (score >= threshold)

    law()


def test_one_threshold_decides_about_a_quotation() -> None:
    law_the_threshold_alone_decides(one_bar)


@pytest.mark.parametrize("accepts", [either_bar, both_bars])
def test_the_law_of_the_threshold_rejects_a_second_bar(accepts: Accepts) -> None:
    with pytest.raises(AssertionError):
        law_the_threshold_alone_decides(accepts)


# A matcher that ignores what is frequent: in a long text every letter is, and verbatim quotations are not found.


def by_popular_letters_left_out(text: str, quotation: str, threshold: float) -> bool:
    matcher = SequenceMatcher(None, " ".join(quotation.split()), " ".join(text.split()))
    block = matcher.find_longest_match()
    return block.size / len(quotation) >= threshold


def by_likeness_alone(text: str, quotation: str, threshold: float) -> bool:
    matcher = SequenceMatcher(None, quotation, text, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / len(quotation) >= threshold


WORDS = (
    "protein",
    "binds",
    "target",
    "mitochondria",
    "membrane",
    "apoptosis",
    "inhibitor",
    "dose",
    "cells",
    "leukemia",
)


def law_what_is_quoted_verbatim_is_found_and_its_opposite_is_not(accepts: Accepts) -> None:
    draw = random.Random(7)
    words = draw.choices(WORDS, k=4_000)
    words[2_000:2_000] = ["the drug does not harm healthy tissue at all"]
    text = " ".join(words)
    quotations = [" ".join(words[i : i + 10]) for i in draw.sample(range(len(words) - 10), 10)]
    assert all(accepts(text, quotation, 0.8) for quotation in quotations)
    assert not accepts(text, "the drug does harm healthy tissue at all", 0.8)


def test_verbatim_quotations_of_a_long_text_are_found() -> None:
    law_what_is_quoted_verbatim_is_found_and_its_opposite_is_not(one_bar)


@pytest.mark.parametrize("accepts", [by_popular_letters_left_out, by_likeness_alone])
def test_the_law_of_verbatim_quotations_rejects_a_matcher_of_likeness(accepts: Accepts) -> None:
    with pytest.raises(AssertionError):
        law_what_is_quoted_verbatim_is_found_and_its_opposite_is_not(accepts)


# Words alone, or digits and letters wherever they stand: marks that negate, signs and bounds are lost on both.


def by_words_alone(text: str, quotation: str, threshold: float) -> bool:
    return " ".join(re.findall(r"\w+", quotation)) in " ".join(re.findall(r"\w+", text))


def by_containment(text: str, quotation: str, threshold: float) -> bool:
    return quotation in text


MARKED = {
    "if a != b then stop": "if a = b then stop",
    "if !enabled then stop": "enabled then stop",
    "the tumour is HER2 (-) and grows": "the tumour is HER2 and grows",
    "the dose is >= 40 mg daily": "40 mg daily",
    "there were 1 000 mg of it": "000 mg of it",
    "take 1⁄2 tablet daily": "2 tablet daily",
    "take 100 – 200 mg daily": "200 mg daily",
    "take 40 mg / kg daily": "take 40 mg",
}


def law_marks_that_change_the_meaning_count(accepts: Accepts) -> None:
    assert all(accepts(text, text, 0.8) for text in MARKED)
    assert [text for text, quotation in MARKED.items() if accepts(text, quotation, 0.0)] == []


def test_marks_that_change_the_meaning_count() -> None:
    law_marks_that_change_the_meaning_count(one_bar)


@pytest.mark.parametrize("accepts", [by_words_alone, by_containment])
def test_the_law_of_marks_rejects_what_reads_words_alone(accepts: Accepts) -> None:
    with pytest.raises(AssertionError):
        law_marks_that_change_the_meaning_count(accepts)
