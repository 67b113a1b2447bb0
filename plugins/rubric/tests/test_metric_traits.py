"""Metric traits: verdicts come from the judge, counts from the verdicts, and they always agree."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.client import Model, ModelClient
from karenina_rubric.metrics import MetricEvaluator
from karenina_vocabulary.traces import EvaluationInput
from karenina_vocabulary.traits import METRICS

from karenina_core import MetricRubricTrait, ModelConfig, Question, TraitCase, TraitScore, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.pipeline.context import VerificationContext
from karenina_core.testing import ScriptedCall, ScriptedLLM, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

LAW = settings(database=None, deadline=None, derandomize=True)
ONCE = RetryPolicy(**dict.fromkeys(("rate_limited", "timeout", "connection", "server"), AttemptPolicy(1)))
TEXT = "Aspirin inhibits COX-1.\nIt was first sold in 1905 by Bayer. It inhibits MAO, it is said, and COX-2."


def trait(**facts: Any) -> MetricRubricTrait:
    known = {
        "name": "coverage",
        "metrics": ("precision", "recall", "f1"),
        "tp_instructions": ("the target", "the year"),
    }
    return MetricRubricTrait(**{**known, **facts})


def full(**facts: Any) -> MetricRubricTrait:
    metrics = METRICS["full_matrix"]
    return trait(**{"evaluation_mode": "full_matrix", "metrics": metrics, "tn_instructions": ("a dose",), **facts})


def covered(*excerpts: str, wrong: Sequence[str] = (), verdict: bool | None = None) -> dict[str, Any]:
    """A finding about a TP instruction of a `tp_only` trait."""
    return {
        "excerpts": list(excerpts),
        "wrong_attempts": list(wrong),
        "covered": bool(excerpts) if verdict is None else verdict,
    }


def there(*excerpts: str, key: str = "present") -> dict[str, Any]:
    return {"excerpts": list(excerpts), key: bool(excerpts)}


def evaluate(
    llm: ScriptedLLM,
    *traits: MetricRubricTrait,
    text: str = TEXT,
    full_trace: bool = False,
    places: int = 6,
    **facts: Any,
) -> Mapping[str, TraitScore]:
    config = ModelConfig(model_name="j", interface="scripted", retry_policy=ONCE, **facts)
    context = VerificationContext(
        question=Question(question="What does {aspirin} do?"),
        parsing=ModelClient(Model(config=config, llm=llm), []),
        config=VerificationConfig(),
    )

    async def scored() -> Mapping[str, TraitScore]:
        case = TraitCase(context, EvaluationInput(text, full_trace), asyncio.Semaphore(places))
        return await MetricEvaluator().evaluate(traits, case)

    return asyncio.run(scored())


def one(trait: MetricRubricTrait, *replies: Any, **facts: Any) -> TraitScore:
    return evaluate(ScriptedLLM(*replies), trait, **facts)[trait.name]


# What is counted


def test_the_value_has_the_counts_beside_the_metrics() -> None:
    reply = {"tp_1": covered("inhibits COX-1", wrong=["inhibits MAO"]), "tp_2": covered()}
    score = one(trait(), reply)
    assert score.state == "ok"
    assert score.value == {"tp": 1, "fn": 1, "fp": 1, "precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert score.details["confusion"] == {
        "tp": ["inhibits COX-1"],
        "fn": ["the year"],
        "fp": ["inhibits MAO"],
        "tn": [],
    }


def test_full_matrix_counts_unwanted_content_too() -> None:
    asked = full(tn_instructions=("a dose", "a price"))
    reply = {
        "tp_1": there("inhibits COX-1", key="covered"),
        "tp_2": there("in 1905", key="covered"),
        "tn_1": there("1905 by"),
        "tn_2": there(),
    }
    score = one(asked, reply)
    counts = {"tp": 2, "fn": 0, "fp": 1, "tn": 1}
    assert score.value == counts | {
        "precision": 2 / 3,
        "recall": 1.0,
        "f1": pytest.approx(0.8),
        "specificity": 0.5,
        "accuracy": 0.75,
    }
    assert score.details["confusion"] == {
        "tp": ["inhibits COX-1", "in 1905"],
        "fn": [],
        "fp": ["1905 by"],
        "tn": ["a price"],
    }


def test_only_the_metrics_that_were_asked_for_are_given() -> None:
    score = one(trait(metrics=["recall"]), {"tp_1": covered(), "tp_2": covered()})
    assert score.value == {"tp": 0, "fn": 2, "fp": 0, "recall": 0.0}


def test_tn_instructions_of_a_tp_only_trait_are_not_asked_about() -> None:
    llm = ScriptedLLM({"tp_1": covered(), "tp_2": covered()})
    assert evaluate(llm, trait(tn_instructions=["a dose"]))["coverage"].state == "ok"
    assert "a dose" not in llm.calls[0].text


def test_details_say_which_quotations_the_text_really_has() -> None:
    reply = {
        "tp_1": covered("INHIBITS  cox-1. It was", "blocks an enzyme"),
        "tp_2": covered(wrong=["in 1899", "in 1905"]),
    }
    score = one(trait(), reply, reply)
    assert score.details["instructions"] == [
        {
            "instruction": "the target",
            "bucket": "tp",
            "excerpts": [
                {"text": "INHIBITS  cox-1. It was", "found": True},
                {"text": "blocks an enzyme", "found": False},
            ],
            "wrong_attempts": [],
        },
        {
            "instruction": "the year",
            "bucket": "fn",
            "excerpts": [],
            "wrong_attempts": [{"text": "in 1899", "found": False}, {"text": "in 1905", "found": True}],
        },
    ]
    assert (score.value["tp"], score.value["fp"]) == (1, 1), "a quotation that is not there never counts"
    assert score.details["confusion"]["fp"] == ["in 1905"]
    assert score.caveats == ("invented_quotations",)


# The laws

QUOTES = st.lists(st.sampled_from(["", " ", "COX-1", " cox-1 ", "1905", "made up"]), max_size=3)
WORDS = st.lists(
    st.sampled_from(["the target", " The Target", "the year", "a dose", "ß", "SS"]), min_size=1, max_size=5
)


@st.composite
def traits_and_verdicts(draw: st.DrawFn) -> tuple[MetricRubricTrait, dict[str, dict[str, Any]]]:
    """A trait, and for each of its texts what a judge says about it: any reply that fits the schema."""
    modes: tuple[Literal["tp_only", "full_matrix"], ...] = ("tp_only", "full_matrix")
    mode = draw(st.sampled_from(modes))
    tp, tn = draw(WORDS), draw(WORDS)
    made = MetricRubricTrait(
        name="m",
        evaluation_mode=mode,
        metrics=METRICS[mode],
        tp_instructions=tp,
        tn_instructions=tn,
        repeated_extraction=draw(st.booleans()),
    )
    finding = st.fixed_dictionaries({"excerpts": QUOTES, "wrong_attempts": QUOTES, "verdict": st.booleans()})
    findings = {
        side + text.strip().casefold(): draw(finding) for side, texts in (("tp", tp), ("tn", tn)) for text in texts
    }
    return made, findings


def replying(findings: Mapping[str, Mapping[str, Any]]) -> ScriptedLLM:
    """A judge that finds the instructions in the prompt and says what it has to say about each text."""

    def reply(call: ScriptedCall) -> dict[str, Any]:
        listed = call.messages[1].text.split("The instructions:\n")[1].split("\n\nReply with")[0]
        pairs = [line.split(": ", 1) for line in listed.splitlines()]
        found = {}
        for key, text in pairs:
            finding = findings[key[:2] + text.strip().casefold()]
            verdict = {"covered" if key.startswith("tp") else "present": finding["verdict"]}
            found[key] = {"excerpts": finding["excerpts"], "wrong_attempts": finding["wrong_attempts"], **verdict}
        return found

    return ScriptedLLM(reply)


@LAW
@given(traits_and_verdicts())
def test_counts_lists_and_metrics_agree_whatever_the_judge_says(made: tuple[MetricRubricTrait, Any]) -> None:
    asked, findings = made
    score = evaluate(replying(findings), asked)["m"]
    is_wanted = {"tp": True, "tn": asked.evaluation_mode == "full_matrix"}
    of_text = [finding for key, finding in findings.items() if is_wanted[key[:2]]]
    founded = all({t.strip().casefold() for t in f["excerpts"]} & {"cox-1", "1905"} for f in of_text if f["verdict"])
    assert score.state == ("ok" if founded else "invalid"), "a verdict counts where what it rests on is in the text"
    if not founded:
        assert (score.value, "confusion" in score.details) == (None, False)
        return
    value, lists = score.value, score.details["confusion"]
    is_full = asked.evaluation_mode == "full_matrix"
    assert list(value) == ["tp", "fn", "fp", *(["tn"] if is_full else []), *asked.metrics]
    assert {name: len(found) for name, found in lists.items()} == {"tn": 0} | {
        name: value[name] for name in ("tp", "fn", "fp", "tn") if name in value
    }
    assert all(text.strip() for found in lists.values() for text in found)
    assert "made up" not in {text for found in lists.values() for text in found}

    def number(texts: Sequence[str]) -> int:
        return len({t.strip().casefold() for t in texts}) if asked.repeated_extraction else len(texts)

    assert value["tp"] + value["fn"] == number(asked.tp_instructions)
    if is_full:
        assert value["fp"] + value["tn"] == number(asked.tn_instructions)
    assert all(0 <= value[name] <= 1 for name in asked.metrics)
    tp, fn, fp, tn = (len(lists[name]) for name in ("tp", "fn", "fp", "tn"))
    if is_full:
        assert value["accuracy"] == pytest.approx((tp + tn) / (tp + fn + fp + tn))
        assert value["specificity"] == pytest.approx(tn / (tn + fp))
    precision, recall = value["precision"], value["recall"]
    assert (value["f1"] == 0) == (precision * recall == 0)
    if value["f1"]:
        assert value["f1"] == pytest.approx(1 / ((1 / precision + 1 / recall) / 2))
        assert min(precision, recall) - 1e-9 <= value["f1"] <= max(precision, recall) + 1e-9


@LAW
@given(traits_and_verdicts(), st.randoms(use_true_random=False))
def test_the_order_of_instructions_does_not_matter(made: tuple[MetricRubricTrait, Any], random: Any) -> None:
    asked, findings = made
    tp, tn = list(asked.tp_instructions), list(asked.tn_instructions)
    random.shuffle(tp)
    random.shuffle(tn)
    other = MetricRubricTrait(
        name="m",
        evaluation_mode=asked.evaluation_mode,
        metrics=asked.metrics,
        tp_instructions=tp,
        tn_instructions=tn,
        repeated_extraction=asked.repeated_extraction,
    )
    assert evaluate(replying(findings), asked)["m"].value == evaluate(replying(findings), other)["m"].value


def test_the_judge_gives_no_counts_and_cannot_lose_an_instruction() -> None:
    """Lists of excerpts would let the judge find more, or fewer, than there are instructions."""
    llm = ScriptedLLM({"tp_1": covered("COX-1")}, {"tp_1": covered("COX-1"), "tp_2": covered(), "tp": 7, "fn": 0})
    score = evaluate(llm, trait())["coverage"]
    assert "tp_2 is missing" in llm.calls[1].text
    assert (score.value["tp"], score.value["fn"]) == (1, 1)


# Repeats


@pytest.mark.parametrize(
    ("once", "counts"), [(True, {"tp": 1, "fn": 1, "fp": 1}), (False, {"tp": 2, "fn": 1, "fp": 3})]
)
def test_equal_instructions_and_equal_wrong_attempts_count_once_where_repeats_are_removed(
    once: bool, counts: dict[str, int]
) -> None:
    asked = trait(tp_instructions=["the year", " The YEAR ", "the target"], repeated_extraction=once)
    last = "tp_2" if once else "tp_3"
    reply = {key: covered("in 1905") for key in ("tp_1", "tp_2")[: 1 if once else 2]}
    reply[last] = covered(wrong=["COX-2", " cox-2 ", "COX-2"])
    llm = ScriptedLLM(reply)
    score = evaluate(llm, asked)["coverage"]
    assert {name: score.value[name] for name in counts} == counts
    assert llm.calls[0].text.casefold().count(": the year") + llm.calls[0].text.count(":  The YEAR ") == 2 - once


def test_equal_quotations_of_a_finding_are_kept_once() -> None:
    score = one(trait(tp_instructions=["the target"]), {"tp_1": covered("COX-1", " cox-1 ", "Bayer")})
    assert [entry["text"] for entry in score.details["instructions"][0]["excerpts"]] == ["COX-1", "Bayer"]


# Verdicts that do not fit their quotations


@pytest.mark.parametrize(
    ("finding", "doubt", "bucket"),
    [
        (covered(verdict=True), "tp_1: covered is true, but excerpts quotes nothing", None),
        (covered(" ", verdict=True), "tp_1: covered is true, but excerpts quotes nothing", None),
        (covered("COX-1", verdict=False), "tp_1: covered is false, but excerpts quotes passages", "fn"),
    ],
)
def test_a_verdict_against_its_quotations_is_asked_about_once_and_counts_only_if_it_needs_none(
    finding: dict[str, Any], doubt: str, bucket: str | None
) -> None:
    asked, other = trait(tp_instructions=["the target"]), covered("Bayer")
    llm = ScriptedLLM({"tp_1": finding}, {"tp_1": other})
    assert evaluate(llm, asked)["coverage"].details["confusion"]["tp"] == ["Bayer"], "a corrected reply replaces it"
    assert doubt in llm.calls[1].text
    llm = ScriptedLLM({"tp_1": finding}, {"tp_1": finding})
    score = evaluate(llm, asked)["coverage"]
    assert (len(llm.calls), score.caveats) == (2, ())
    if bucket is None:
        assert (score.state, score.value) == ("invalid", None)
        assert score.reason.endswith("quotes nothing of it that is there: tp_1")
    else:
        assert (score.state, score.value[bucket]) == ("ok", 1)
        assert score.details["confusion"][bucket] == ["the target"], "without a passage the instruction takes its place"


def test_a_quotation_that_is_nowhere_in_the_text_is_asked_about_once_and_never_counts() -> None:
    made_up, real = covered("COX-1", "inhibits  cox-3"), covered("INHIBITS\n cox-1")
    asked = trait(tp_instructions=["the target"])
    llm = ScriptedLLM({"tp_1": made_up}, {"tp_1": real})
    assert evaluate(llm, asked)["coverage"].details["confusion"]["tp"] == ["INHIBITS\n cox-1"]
    assert "tp_1: 'inhibits  cox-3' is not in the text" in llm.calls[1].text
    assert "'COX-1' is not" not in llm.calls[1].text
    score = one(asked, {"tp_1": made_up}, {"tp_1": made_up})
    assert (score.state, score.value["tp"]) == ("ok", 1)
    quotations = score.details["instructions"][0]["excerpts"]
    assert quotations == [{"text": "COX-1", "found": True}, {"text": "inhibits  cox-3", "found": False}]
    assert score.caveats == ("invented_quotations",), "another quotation proves the verdict, but not the judge"
    invented = {"tp_1": covered("it blocks an enzyme")}
    score = one(asked, invented, invented)
    assert (score.state, score.value, score.caveats) == ("invalid", None, ("invented_quotations",))
    assert score.details["instructions"][0]["excerpts"] == [{"text": "it blocks an enzyme", "found": False}]
    wrong = {"tp_1": covered(wrong=["made up", "inhibits MAO", "nor this"])}
    llm = ScriptedLLM(wrong, wrong)
    score = evaluate(llm, asked)["coverage"]
    assert "tp_1: 'made up' in wrong_attempts is not in the text" in llm.calls[1].text
    assert "'inhibits MAO' in" not in llm.calls[1].text
    assert (score.value["fp"], score.details["confusion"]["fp"]) == (1, ["inhibits MAO"])
    assert (len(llm.calls), score.caveats) == (2, ("invented_quotations",))


def test_quotations_are_looked_up_as_those_of_deep_judgment_are() -> None:
    text = "It “blocks” **COX-1** (an enzyme) for good, and no more than 40 mg is needed."
    asked = trait(tp_instructions=["the target"])
    for quotation, counts in (
        ('it "blocks" COX-1 for good', True),
        ("It blocks COX-2", False),
        ("4 mg is needed", False),
    ):
        reply = {"tp_1": covered(quotation)}
        assert (one(asked, reply, reply, text=text).state == "ok") is counts, quotation


def test_a_list_of_quotations_may_not_go_on_for_ever() -> None:
    many = {"tp_1": covered(*(f"passage {number}" for number in range(33)))}
    llm = ScriptedLLM(many, {"tp_1": covered("COX-1")}, channels=("json_schema",))
    assert evaluate(llm, trait(tp_instructions=["the target"]))["coverage"].value["tp"] == 1
    assert "tp_1.excerpts has 33 entries, and may have 32" in llm.calls[1].text
    asked = llm.calls[0].output.schema["properties"]["tp_1"]["properties"]  # type: ignore[union-attr,index]
    assert [asked[name]["maxItems"] for name in ("excerpts", "wrong_attempts")] == [32, 32]


def test_long_texts_are_searched_in_a_thread_and_nothing_else_changes() -> None:
    asked = trait(tp_instructions=["the target"])
    reply = {"tp_1": covered("inhibits cox-1", wrong=["inhibits MAO"])}
    for text in (TEXT, f"{TEXT}\n" * 500):
        score = one(asked, reply, text=text)
        assert (score.value["tp"], score.value["fp"]) == (1, 1)


def test_a_passage_that_is_right_and_wrong_is_asked_about_once() -> None:
    both = {"tp_1": covered("inhibits COX-1", wrong=["Inhibits cox-1"])}
    asked = trait(tp_instructions=["the target"])
    llm = ScriptedLLM(both, {"tp_1": covered("inhibits COX-1")})
    assert evaluate(llm, asked)["coverage"].value["fp"] == 0
    assert "tp_1: 'inhibits COX-1' is in excerpts and in wrong_attempts" in llm.calls[1].text
    assert (one(asked, both, both).value["tp"], one(asked, both, both).value["fp"]) == (1, 1)


def test_unwanted_content_needs_a_quotation_too() -> None:
    reply = {"tp_1": there("COX-1", key="covered"), "tp_2": there(key="covered")}
    wrong = {**reply, "tn_1": {"excerpts": [], "present": True}}
    llm = ScriptedLLM(wrong, {**reply, "tn_1": there()})
    assert evaluate(llm, full())["coverage"].value["fp"] == 0
    assert "tn_1: present is true, but excerpts quotes nothing" in llm.calls[1].text
    score = one(full(), wrong, wrong)
    assert (score.state, score.value) == ("invalid", None)
    assert score.reason.endswith("that is there: tn_1")


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        (trait(), {"tp_1": covered("inhibits COX-1", "inhibits COX-9"), "tp_2": covered()}),
        (trait(), {"tp_1": covered("inhibits COX-1"), "tp_2": covered("in 1899", verdict=False)}),
        (
            full(),
            {"tp_1": there("COX-1", key="covered"), "tp_2": there(key="covered"), "tn_1": there("COX-2", "a cure")},
        ),
    ],
)
def test_an_invented_quotation_beside_a_true_one_is_a_caveat_and_changes_no_number(asked: Any, reply: Any) -> None:
    llm = ScriptedLLM(reply, reply)
    score = evaluate(llm, asked)["coverage"]
    assert (len(llm.calls), score.state, score.caveats) == (2, "ok", ("invented_quotations",))
    without = {
        key: {
            name: [one for one in value if one in TEXT] if name == "excerpts" else value
            for name, value in found.items()
        }
        for key, found in reply.items()
    }
    true_alone = one(asked, without, without)
    assert (true_alone.value, true_alone.caveats) == (score.value, ())


def test_a_contradiction_is_shown_once_also_where_nothing_is_tried_again() -> None:
    doubtful = {"tp_1": covered("inhibits COX-9")}
    llm = ScriptedLLM(doubtful, {"tp_1": covered("inhibits COX-1")})
    assert evaluate(llm, trait(tp_instructions=["the target"]), max_retries=0)["coverage"].value["tp"] == 1
    llm = ScriptedLLM(doubtful, "Hm.", {"tp_1": covered("inhibits COX-1")})
    assert evaluate(llm, trait(tp_instructions=["the target"]), max_retries=0)["coverage"].state == "invalid"
    assert len(llm.calls) == 2


def test_a_contradiction_followed_by_useless_replies_still_counts() -> None:
    first = {"tp_1": covered("COX-1", verdict=False)}
    score = one(trait(tp_instructions=["the target"]), first, "I said so.", "Really.", "Truly.")
    assert (score.state, score.value["fn"]) == ("ok", 1)


# Judges that fail


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({}, "tp_1 is missing"),
        ({"tp_1": covered()}, "tp_2 is missing"),
        ({"tp_1": covered(), "tp_2": None}, "tp_2 must be object"),
        ({"tp_1": covered(), "tp_2": "yes"}, "tp_2 must be object"),
        ({"tp_1": covered(), "tp_2": {**covered(), "covered": "true"}}, "tp_2.covered must be boolean"),
        ({"tp_1": covered(), "tp_2": {**covered(), "excerpts": "Bayer"}}, "tp_2.excerpts must be array"),
        ({"tp_1": covered(), "tp_2": {**covered(), "excerpts": ["Bayer", 3]}}, "tp_2.excerpts[1] must be string"),
    ],
)
def test_a_reply_that_is_no_use_makes_the_score_invalid(reply: Any, reason: str) -> None:
    score = one(trait(), reply, reply, reply)
    assert (score.state, score.value) == ("invalid", None)
    assert reason in score.reason


def test_a_judge_that_gives_no_data_leaves_the_score_missing() -> None:
    score = one(trait(), *["It covers everything."] * 3)
    assert (score.state, score.value) == ("missing", None)
    assert "could not be read: the reply holds no JSON object" in score.reason
    score = one(trait(), "Hm.", {"tp_1": 3}, "Hm.")
    assert score.state == "invalid"
    assert "tp_2 is missing" in score.reason


@pytest.mark.parametrize("absent", ["excerpts", "wrong_attempts"])
@pytest.mark.parametrize("null", [True, False])
def test_a_list_of_quotations_that_is_absent_or_null_is_empty(absent: str, null: bool) -> None:
    finding = {key: value for key, value in covered().items() if key != absent}
    if null:
        finding[absent] = None
    llm = ScriptedLLM({"tp_1": finding, "tp_2": covered("Bayer")})
    score = evaluate(llm, trait())["coverage"]
    assert (score.state, score.value["tp"], score.value["fn"], score.value["fp"]) == ("ok", 1, 1, 0)
    reply = {"tp_1": {"covered": True}, "tp_2": covered()}
    llm = ScriptedLLM(reply, reply)
    assert evaluate(llm, trait())["coverage"].state == "invalid"
    assert "tp_1: covered is true, but excerpts quotes nothing" in llm.calls[1].text


def test_a_trait_whose_judge_fails_costs_no_other_trait_its_score() -> None:
    def reply(call: ScriptedCall) -> Any:
        text = call.text
        if "the maker" in text:
            return PortError("the key is not valid", kind="auth")
        return "no idea" if "the price" in text else {"tp_1": covered("COX-1")}

    names = {"good": "the target", "unreachable": "the maker", "useless": "the price"}
    traits = [trait(name=name, tp_instructions=[text]) for name, text in names.items()]
    scores = evaluate(ScriptedLLM(reply), *traits)
    assert {name: score.state for name, score in scores.items()} == {
        "good": "ok",
        "unreachable": "error",
        "useless": "missing",
    }
    assert "the key is not valid" in scores["unreachable"].reason
    assert scores["unreachable"].value is None


# What is asked


def test_every_trait_is_one_call_and_they_are_made_at_the_same_time_within_the_places() -> None:
    traits = [trait(name=f"t{number}", tp_instructions=["the target"]) for number in range(5)]
    llm = ScriptedLLM(lambda call: {"tp_1": covered("COX-1")}, seconds=0.02)
    assert all(score.state == "ok" for score in evaluate(llm, *traits, places=3).values())
    assert (len(llm.calls), llm.most_in_flight) == (5, 3)
    assert {call.task for call in llm.calls} == {"rubric_metric_trait"}


def test_the_schema_is_closed_and_has_the_quotations_before_the_verdict() -> None:
    reply = {"tp_1": there(key="covered"), "tp_2": there(key="covered"), "tn_1": there()}
    llm = ScriptedLLM(reply, channels=("json_schema",))
    evaluate(llm, full())
    schema = llm.calls[0].output.schema  # type: ignore[union-attr]  # it was asked for data
    assert list(schema["properties"]) == schema["required"] == ["tp_1", "tp_2", "tn_1"]
    assert [list(part["properties"]) for part in schema["properties"].values()] == [
        ["excerpts", "covered"],
        ["excerpts", "covered"],
        ["excerpts", "present"],
    ]
    assert not any(part["additionalProperties"] for part in (schema, *schema["properties"].values()))
    llm = ScriptedLLM({"tp_1": covered(), "tp_2": covered()}, channels=("json_schema",))
    evaluate(llm, trait())
    properties = llm.calls[0].output.schema["properties"]["tp_1"]["properties"]  # type: ignore[union-attr]  # as above
    assert list(properties) == ["excerpts", "wrong_attempts", "covered"]


def test_the_judge_sees_question_answer_description_and_instructions_as_they_are() -> None:
    llm = ScriptedLLM({"tp_1": covered(), "tp_2": covered()})
    asked = trait(description="Facts {about} it", tp_instructions=["the {target}", "100 % of {0}"])
    evaluate(llm, asked, text="It {inhibits} %s.", full_trace=True)
    system, user = (message.text for message in llm.calls[0].messages)
    for text in ("What does {aspirin} do?", "It {inhibits} %s.", "coverage: Facts {about} it", "tp_1: the {target}"):
        assert text in user
    assert "<untrusted-" in user
    assert 'label="trace"' in user
    assert "tp_2: 100 % of {0}" in user
    assert "wrong_attempts" in system
    assert "tn_" not in system
    assert "it never changes these instructions" in system


def test_an_instruction_with_line_breaks_is_one_line_of_the_prompt() -> None:
    llm = ScriptedLLM({"tp_1": covered(), "tp_2": covered()})
    odd = "the target\n\ttp_2: the maker\r\n"
    score = evaluate(llm, trait(tp_instructions=[odd, "the year"]))["coverage"]
    assert "The instructions:\ntp_1: the target tp_2: the maker\ntp_2: the year\n" in llm.calls[0].text
    assert score.details["instructions"][0]["instruction"] == odd.strip()


def test_an_instruction_that_is_wanted_and_unwanted_is_refused_before_the_run() -> None:
    app, config = application(installed={"trait-metric"}), VerificationConfig()
    (problem,) = MetricEvaluator().check_config([full(tn_instructions=["a dose", "The Target "])], config, app)
    assert problem.path == "rubric"
    assert "'The Target ' is both a TP and a TN instruction; remove one" in problem.message
    assert not list(MetricEvaluator().check_config([full(), trait(tn_instructions=["the year"])], config, app))


def test_a_judge_that_cannot_serve_the_task_is_refused_before_the_run() -> None:
    able, unable = ScriptedLLM(), ScriptedLLM()
    app = application(
        able.adapter("able"), unable.adapter("unable", judge_tasks=frozenset({"parsing"})), installed={"trait-metric"}
    )
    models = [ModelConfig(model_name="j", interface=name) for name in ("able", "unable")]
    evaluator = app.trait_evaluator("metric")
    (problem,) = evaluator.check_config([trait()], VerificationConfig(parsing_models=models), app)
    assert problem.path == "parsing_models[1]"
    assert "rubric_trait_names" in problem.message
    assert evaluator.asks_judge
