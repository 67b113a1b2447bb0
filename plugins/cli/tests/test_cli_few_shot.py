"""Few-shot examples on the command line: in the prompt, in what is kept, and never with the question's own answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

from karenina_core.testing import ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
SPAIN = '{question = "And of Spain?", answer = "Madrid"}'
FRANCE = '{question = "What city is France governed from?", answer = "From Paris, of course"}'


def script(request: Any) -> Any:
    return {"capital": "Paris"} if request.schema else "Paris."


def config(*examples: str, more: str = "") -> Path:
    path = Path("shots.toml")
    path.write_text(f"[run.few_shot_config]\nglobal_examples = [{', '.join(examples)}]\n{more}", "utf-8")
    return path


def test_examples_are_in_the_prompt_the_manifest_and_what_show_prints(
    run: Run, served: Any, write_benchmark: Files
) -> None:
    path = write_benchmark("q0")
    with ScriptedServer(script) as server:
        flags = [*served(server.url), "--config", config(SPAIN, FRANCE)]
        ran = run("verify", path, *flags, "--out", "out")
        assert ran.exit_code == 0, ran.stderr
        asked = next(request.text for request in server.requests if not request.schema)
    assert "Question: And of Spain?\nAnswer: Madrid\n\nQuestion: What is the capital of France? (q0)\nAnswer:" in asked
    assert "governed" not in asked
    assert "hold a question's own answer are left out, for 1 question: q0" in ran.output
    shown = run("show", "out", "q0").stdout
    assert "examples in the prompt 1" in " ".join(shown.split())
    assert "Answer: Madrid" in shown
    assert "1 few-shot example left out: the question's own answer is in it" in " ".join(shown.split())
    kept = json.loads(Path("out/manifest.json").read_text("utf-8"))["config"]["few_shot_config"]
    assert [example["answer"] for example in kept["global_examples"]] == ["Madrid", "From Paris, of course"]


def test_other_examples_are_other_calls(run: Run, served: Any, write_benchmark: Files) -> None:
    path = write_benchmark("q0")
    with ScriptedServer(script) as server:
        flags = served(server.url)
        run("verify", path, *flags, "--config", config(SPAIN), "--out", "first")
        assert server.count == 2
        run("verify", path, *flags, "--config", config(SPAIN), "--reuse", "first", "--out", "same")
        assert server.count == 2
        run("verify", path, *flags, "--reuse", "first", "--out", "without")
        assert [request.schema is None for request in server.requests[2:]] == [True]  # the same answer, judged before
    refused = run("resume", "first", "--set", "run.few_shot_config.source=disabled")
    assert refused.exit_code == 1
    assert "the setting few_shot_config" in refused.stderr


def test_mistakes_in_examples_end_a_run_before_a_model_is_asked(run: Run, served: Any, write_benchmark: Files) -> None:
    path = write_benchmark("q0", "q1")
    picks = 'question_configs.q1 = {mode = "custom", selected_examples = [2]}\n'
    with ScriptedServer(script) as server:
        for examples, more, message in (
            ([SPAIN], picks, "question q1 has no example 2; it has 0 of them"),
            (['{question = "Half?"}'], "", "not so are global_examples[0]"),
            ([SPAIN], "pool_k = 0\n", "'pool_k' must be >= 1"),
        ):
            file = config(*examples, more=more)
            for command in (["verify", path, *served(server.url)], ["plan", path]):
                result = run(*command, "--config", file)
                assert result.exit_code == 1
                assert message in result.stderr
        assert server.count == 0
