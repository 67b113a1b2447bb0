"""Regex traits: what Python's `re` would find, except that no pattern can hold anything up."""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_rubric.patterns import THREAD, RegexEvaluator, RegexTraitSettings
from karenina_testing.strategies import regex_traits
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import Question, RegexRubricTrait, Rubric, TraitCase, TraitScore, VerificationConfig
from karenina_core.errors import ConfigError
from karenina_core.pipeline.context import VerificationContext
from karenina_core.testing import application

Make = Callable[..., Any]
LAW = settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=400,
    suppress_health_check=[HealthCheck.filter_too_much],
)
SLOW = r"(?!x)(a|aa)+$"
"""Takes time that doubles with every letter of a text such as aaaaaaaab."""
TRAP = "a" * 60 + "b"


def trait(pattern: str, name: str = "x", **facts: Any) -> RegexRubricTrait:
    return RegexRubricTrait(name=name, pattern=pattern, **facts)


def evaluated(*traits: RegexRubricTrait, text: str, seconds: float = 2.0) -> Mapping[str, TraitScore]:
    return asyncio.run(evaluation(*traits, text=text, seconds=seconds))


async def evaluation(*traits: RegexRubricTrait, text: str, seconds: float = 2.0) -> Mapping[str, TraitScore]:
    case = TraitCase(
        VerificationContext(question=Question(question="?")), EvaluationInput(text, True), asyncio.Semaphore(6)
    )
    return await RegexEvaluator(RegexTraitSettings(seconds=seconds)).evaluate(traits, case)


@pytest.mark.parametrize(
    ("pattern", "facts", "text", "found"),
    [
        (r"\[\d+\]", {}, "as shown [3]", True),
        (r"\[\d+\]", {}, "as shown", False),
        ("doi", {}, "DOI 10.1", False),
        ("doi", {"case_sensitive": False}, "DOI 10.1", True),
        ("straße", {"case_sensitive": False}, "STRAßE", True),
        ("doi", {"invert_result": True}, "nothing", True),
        ("doi", {"invert_result": True}, "doi", False),
        ("", {}, "", True),
        ("^$", {}, "", True),
        (".", {}, "", False),
        (r"\.$", {}, "One.\nTwo", False),
        (r"(?m)\.$", {}, "One.\nTwo", True),
        ("\ud800", {}, "a lone \ud800 surrogate", True),
        (r"\x00", {}, "nul \0", True),
    ],
)
def test_a_pattern_is_searched_for_and_the_result_may_be_turned_round(
    pattern: str, facts: dict[str, Any], text: str, found: bool
) -> None:
    assert evaluated(trait(pattern, **facts), text=text) == {"x": TraitScore(value=found)}


# The same as Python's own engine; plugins/template/tests/test_template_searches.py has the law for patterns of any kind


@LAW
@given(regex_traits(), st.text(max_size=12))
def test_the_score_is_that_of_python_s_own_engine(drawn: RegexRubricTrait, text: str) -> None:
    own = re.search(drawn.pattern, text, 0 if drawn.case_sensitive else re.IGNORECASE) is not None
    assert evaluated(drawn, text=text) == {drawn.name: TraitScore(value=own is not drawn.invert_result)}


@pytest.mark.parametrize("pattern", ["(?a:\\w)", "(?x: a b)", "(?-x:a b)", "(?i-s:a.)", "(?ax-i: a {1})"])
def test_groups_with_flags_of_their_own_are_searched_for_too(pattern: str) -> None:
    assert evaluated(trait(pattern), text="ab a b axb")["x"].value is True


# Patterns that take for ever


def test_a_pattern_that_takes_too_long_ends_and_every_other_one_has_its_score() -> None:
    traits = [trait("a", "before"), trait(SLOW, "slow"), trait("b$", "after")]
    began = time.monotonic()
    scores = evaluated(*traits, text=TRAP, seconds=0.2)
    assert time.monotonic() - began < 2
    assert (scores["before"].value, scores["after"].value) == (True, True)
    assert (scores["slow"].value, scores["slow"].state) == (None, "error")
    assert "was stopped after 0.2 s; rewrite it" in scores["slow"].reason
    assert "[plugins.trait-regex]" in scores["slow"].reason


def test_a_pattern_that_takes_long_does_not_stall_other_work() -> None:
    async def main() -> float:
        longest, last = 0.0, time.monotonic()
        work = asyncio.ensure_future(evaluation(trait(SLOW), text=TRAP, seconds=0.5))
        while not work.done():
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert (await work)["x"].state == "error"
        return longest

    assert asyncio.run(main()) < 0.25


def test_a_cancelled_evaluation_searches_for_no_further_pattern() -> None:
    async def main() -> None:
        work = asyncio.ensure_future(evaluation(*(trait(SLOW, f"x{n}") for n in range(40)), text=TRAP, seconds=0.2))
        await asyncio.sleep(0.1)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    began = time.monotonic()
    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(5)
    assert time.monotonic() - began < 3


def test_items_with_patterns_that_take_for_ever_hold_up_no_other_item() -> None:
    """Nor other work that uses the threads of the loop: here, it has one."""

    async def main() -> list[str]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        ended: list[str] = []

        async def item(name: str, pattern: str) -> Any:
            scores = await evaluation(trait(pattern, "x0"), text=TRAP, seconds=0.1)
            ended.append(name)
            return scores

        slow = [asyncio.ensure_future(item("slow", SLOW)) for _ in range(8)]
        await asyncio.sleep(0.05)
        assert {score.value for score in (await item("quick", "a")).values()} == {True}
        await asyncio.to_thread(ended.append, "other work")
        for scores in await asyncio.gather(*slow):
            assert {score.state for score in scores.values()} == {"error"}
        return ended

    assert asyncio.run(main()) == ["quick", "other work", *["slow"] * 8]


def test_the_time_of_a_pattern_is_its_own_whatever_else_the_process_does() -> None:
    def busy() -> None:
        while not done.is_set():
            hashlib.sha256(block).digest()

    block, done = bytes(1_000_000), threading.Event()
    pattern, length, taken = regex.compile(SLOW), 14, 0.0
    while taken < 0.02:  # the time of the last one is less than 0.04 s, far from the limit of a loaded machine
        length, began = length + 1, time.thread_time()
        pattern.search("a" * length + "b", concurrent=True)
        taken = time.thread_time() - began
    others = [threading.Thread(target=busy, daemon=True) for _ in range(16)]
    for thread in others:
        thread.start()
    try:
        assert evaluated(trait(SLOW), text="a" * length + "b", seconds=0.4)["x"].value is False
    finally:
        done.set()
        for thread in others:
            thread.join(5)


def test_the_limit_is_a_setting_of_the_plugin(scored: Make) -> None:
    rubric = Rubric(regex_traits=[trait(SLOW, "slow"), trait("a", "quick")])
    settings_ = {"trait-regex": {"seconds": 0.1}}
    done = scored(rubric, answer=TRAP, settings=settings_)
    assert done.rubric.regex_trait_scores == {"slow": None, "quick": True}
    assert "stopped after 0.1 s" in done.reason("slow")
    with pytest.raises(ConfigError, match="seconds"):
        scored(rubric, answer=TRAP, settings={"trait-regex": {"seconds": 0}})


# Patterns that cannot be used


def test_a_pattern_that_cannot_be_used_is_reported_before_a_run(scored: Make) -> None:
    broken = trait("a", "broken")
    object.__setattr__(broken, "pattern", "(?<=a+)b")
    rubric = Rubric(regex_traits=[broken, trait("a", "fine")])
    with pytest.raises(ConfigError, match=r"trait 'broken': the pattern .* cannot be used: .*correct it") as caught:
        scored(rubric)
    assert len(caught.value.problems) == 1
    assert list(RegexEvaluator().check_config([trait("a")], VerificationConfig(), application())) == []


@pytest.mark.parametrize(
    ("pattern", "facts"),
    [
        ("(?a:k)", {"case_sensitive": False}),
        ("(?i)(?a:k)", {}),
        ("(?ai:k)", {}),
        ("(?u:x)(?i:k)", {}),
        (r"(?a)\w(?u:\w)", {}),
    ],
)
def test_a_pattern_that_would_be_read_otherwise_is_refused_with_a_remedy(pattern: str, facts: dict[str, Any]) -> None:
    (problem,) = RegexEvaluator().check_config([trait(pattern, **facts)], VerificationConfig(), application())
    assert "group with the flag 'a' or 'u'" in problem.message
    assert "classes spelt out, as [0-9A-Za-z_]" in problem.message
    assert evaluated(trait(pattern, **facts), text="k")["x"].state == "error"


def test_a_pattern_that_cannot_be_used_is_an_error_of_that_trait_alone() -> None:
    broken = trait("a", "broken")
    object.__setattr__(broken, "pattern", "(")
    scores = evaluated(broken, trait("a", "fine"), text="a")
    assert scores["fine"].value is True
    assert scores["broken"].state == "error"
    assert "correct it in the benchmark" in scores["broken"].reason
