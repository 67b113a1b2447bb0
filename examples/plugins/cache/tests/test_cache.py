"""A whole plugin's promises, and that the same thing is asked once."""

from pathlib import Path

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.testing import Reply, ScriptedServer, conformance_tests

TEMPLATE = (
    '{"fields": [{"name": "target", "type": "str", "description": "The protein", "ground_truth": "BCL2", '
    '"verify_with": {"type": "ExactMatch"}}]}'
)
QUESTION = Question(
    id="venetoclax", question="Which target?", answer_template=TEMPLATE, template_language="karenina-template"
)


test_it_keeps_its_promises = conformance_tests("example-cache")


def verify(url: str, folder: Path | None, *, replicates: int = 1) -> list[str]:
    app = Karenina.installed(settings={"example-cache": {"folder": str(folder) if folder else None}})
    model = ModelConfig(model_name="any", interface="openai_endpoint", endpoint_base_url=url)
    config = VerificationConfig(answering_models=[model], parsing_models=[model], replicate_count=replicates)
    benchmark = Benchmark.create("targets").with_questions([QUESTION])
    return [str(result.outcome) for result in benchmark.run_verification(config, app=app)]


def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    with ScriptedServer(lambda request: "BCL2" if request.channel == "text" else {"target": "BCL2"}) as server:
        assert verify(server.url, tmp_path / "cache") == ["passed"]
        assert server.count == 2  # an answer, and a judgment of it
        assert verify(server.url, tmp_path / "cache") == ["passed"]
        assert server.count == 2
        assert verify(server.url, None) == ["passed"]
        assert server.count == 4
    assert {path.suffix for path in (tmp_path / "cache").iterdir()} == {".json"}


def test_every_replicate_is_an_answer_of_its_own(tmp_path: Path) -> None:
    with ScriptedServer(lambda request: "BCL2" if request.channel == "text" else {"target": "BCL2"}) as server:
        verify(server.url, tmp_path / "cache", replicates=3)
        answers = [request for request in server.requests if request.channel == "text"]
    assert len(answers) == 3


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    with ScriptedServer(Reply.error(400)) as server:
        assert verify(server.url, tmp_path / "cache") == ["error(invalid_request)"]
    assert not (tmp_path / "cache").exists()
