"""Every promise of a stage, and what this one does in a run."""

import pytest

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.errors import ConfigError
from karenina_core.testing import conformance_tests

TEMPLATE = (
    '{"fields": [{"name": "target", "type": "str", "description": "The protein", "ground_truth": "BCL2", '
    '"verify_with": {"type": "ExactMatch"}}]}'
)
ANSWER = "The target of venetoclax is BCL2."
QUESTION = Question(
    id="venetoclax", question="Which target?", answer_template=TEMPLATE, template_language="karenina-template"
)


test_it_keeps_its_promises = conformance_tests("example-guard")


@pytest.mark.parametrize(("most", "outcome"), [(6, "passed"), (5, "auto_failed(LengthGuard)")])
def test_an_answer_that_is_too_long_fails_though_it_is_right(most: int, outcome: str) -> None:
    app = Karenina.installed(settings={"example-guard": {"most_words": most}})
    recorded = {"answer": ANSWER, "fields": {"target": "BCL2"}}
    model = ModelConfig(interface="manual", manual_traces={"venetoclax": recorded})
    benchmark = Benchmark.create("targets").with_questions([QUESTION])
    config = VerificationConfig(answering_models=[model], parsing_models=[model])
    (result,) = benchmark.run_verification(config, app=app)
    assert str(result.outcome) == outcome
    assert result.extensions["guard"] == {"words": 6}
    reasons = [entry.reason for entry in result.ledger]
    assert ("the answer has 6 words, and 5 are allowed" in reasons) is (outcome != "passed")


def test_a_limit_below_one_word_is_refused_before_a_run() -> None:
    with pytest.raises(ConfigError, match=r"plugins\.example-guard: 'most_words' must be > 0"):
        Karenina.installed(settings={"example-guard": {"most_words": 0}})
