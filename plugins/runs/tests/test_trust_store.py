"""Code that the user trusts runs; whatever is changed in it ends that."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from karenina_runs.trust.bundle import Piece, code_of, digest
from karenina_runs.trust.store import TrustStore, trusted_digest

from karenina_core import AgenticRubricTrait, Benchmark, CallableRubricTrait, ModelConfig, Question, Rubric
from karenina_core.errors import ConfigError, TemplateRefused

Make = Callable[..., Any]
CODE = "import os\nfrom json import loads\n\n\nclass Answer(BaseAnswer):\n    pass\n"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's data are."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path / "data" / "karenina" / "trust"


def long(text: str) -> bool:
    return len(text) > 5


def benchmark(template: str = CODE, rubric: Rubric | None = None) -> Any:
    question = Question(id="q", question="q?", raw_answer="a", answer_template=template)
    return Benchmark.create("b", rubric=rubric).with_questions([question])


def trust(found: Any, file: Path = Path("b.jsonld")) -> None:
    TrustStore.of_user().add(code_of(found), file, found.name)


def test_what_is_trusted_may_run_and_nothing_else_may() -> None:
    assert trusted_digest(benchmark(), "sandbox") is None
    trust(benchmark())
    assert trusted_digest(benchmark(), "sandbox") == digest(code_of(benchmark()))
    assert trusted_digest(benchmark(), "refuse") is None
    assert trusted_digest(benchmark(CODE + " "), "sandbox") is None


@given(st.lists(st.tuples(st.sampled_from(["template", "function"]), st.text(), st.text()), min_size=1, max_size=4))
def test_any_edit_changes_the_digest_and_the_order_does_not(rows: list[tuple[Any, str, str]]) -> None:
    pieces = [Piece(*row) for row in rows]
    assert digest(pieces[::-1]) == digest(pieces)
    for number, piece in enumerate(pieces):
        for other in (evolve(piece, text=piece.text + "x"), evolve(piece, owner=piece.owner + "x")):
            assert digest([*pieces[:number], other, *pieces[number + 1 :]]) != digest(pieces)
        assert digest(pieces[:number] + pieces[number + 1 :]) != digest(pieces)


def test_functions_and_models_of_a_file_count_and_those_of_the_program_do_not(tmp_path: Path) -> None:
    model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url="http://127.0.0.1:9/v1")
    traits = Rubric(
        callable_traits=[CallableRubricTrait.from_callable("long", long, kind="boolean")],
        agentic_traits=[AgenticRubricTrait(name="neat", kind="boolean", description="x", model_override=model)],
    )
    own = benchmark(CODE, traits)
    assert [piece.kind for piece in code_of(own)] == ["template"]
    own.save(tmp_path / "b.jsonld")
    pieces = {piece.kind: piece for piece in code_of(Benchmark.load(tmp_path / "b.jsonld"))}
    assert set(pieces) == {"template", "function", "model"}
    assert "http://127.0.0.1:9/v1" in pieces["model"].text
    assert pieces["function"].imports()
    text = (tmp_path / "b.jsonld").read_text("utf-8")
    (tmp_path / "c.jsonld").write_text(text.replace("127.0.0.1:9/", "127.0.0.1:8/"), "utf-8")
    changed = code_of(Benchmark.load(tmp_path / "c.jsonld"))
    assert digest(changed) != digest(list(pieces.values())), "another address is another thing to trust"


def test_what_code_imports_is_read_and_not_run() -> None:
    (piece,) = code_of(benchmark())
    assert piece.imports() == ("json", "os")
    assert Piece("template", "q", "def (").imports() == ("(cannot be parsed)",)
    assert Piece("template", "q", "(" * 100_000).imports() == ("(cannot be parsed)",)
    assert Piece("function", "t", "AAAA").imports() == ("(cannot be read)",)


def test_templates_that_are_data_need_no_trust() -> None:
    question = Question(id="q", question="q?", answer_template='{"fields": []}', template_language="karenina-template")
    assert code_of(Benchmark.create("b").with_questions([question])) == ()


def test_trust_is_taken_back_by_the_code_and_by_the_file(tmp_path: Path) -> None:
    store, file = TrustStore.of_user(), tmp_path / "b.jsonld"
    trust(benchmark(), file)
    trust(benchmark(CODE * 2), file)
    trust(benchmark(CODE * 3), tmp_path / "other.jsonld")
    assert store.remove(file, digest(code_of(benchmark(CODE * 3)))) == 3
    assert store.empty
    assert store.remove(file) == 0


@pytest.mark.skipif(os.name == "nt", reason="permissions of Unix")
def test_a_place_that_others_may_write_to_is_not_believed(data: Path) -> None:
    trust(benchmark())
    assert (data.stat().st_mode & 0o777, next(data.iterdir()).stat().st_mode & 0o777) == (0o700, 0o600)
    data.chmod(0o777)
    assert trusted_digest(benchmark(), "sandbox") is None
    with pytest.raises(ConfigError, match="chmod go-w"):
        trust(benchmark())
    data.chmod(0o700)
    assert trusted_digest(benchmark(), "sandbox") is not None
    next(data.iterdir()).chmod(0o620)
    assert trusted_digest(benchmark(), "sandbox") is None


@pytest.mark.skipif(os.name == "nt", reason="permissions of Unix")
def test_a_link_is_not_believed(data: Path, tmp_path: Path) -> None:
    trust(benchmark())
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")
    assert trusted_digest(benchmark(), "sandbox") is None


def test_files_that_are_no_records_are_passed_over(data: Path) -> None:
    trust(benchmark())
    for name, text in {"a": "", "b": "[" * 100_000, "c": "{}", "d": '{"pieces": [1]}'}.items():
        (data / f"{name}.json").write_text(text)
    assert len(TrustStore.of_user().records()) == 1


PYTHON = (
    "class Answer(BaseAnswer):\n    target: str = Field(description='x')\n    def verify(self):\n        return True\n"
)


def test_a_trusted_benchmark_runs_without_being_asked_about_and_says_so(world: Make, make_question: Make) -> None:
    here = world(questions=[make_question(0, answer_template=PYTHON, template_language="python")])
    with pytest.raises(TemplateRefused):
        here.prepare(here.config())
    trust(here.benchmark)
    assert any("it is trusted (karenina trust" in note for note in here.prepare(here.config()).notes)
    (result,) = here.run(here.config())
    assert (str(result.outcome), result.metadata.template_isolation) == ("passed", "in-process")
    with pytest.raises(TemplateRefused, match="'refuse'"):
        here.prepare(here.config(code_policy="refuse"))
