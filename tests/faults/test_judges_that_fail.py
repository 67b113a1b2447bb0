"""Judges that answer with something else than what they were asked for: an error with its reason, never a verdict."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from karenina_core import VerificationResultSet
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

USELESS: dict[str, Callable[[], Reply]] = {
    "another type": lambda: Reply('{"target": 7}'),
    "another shape": lambda: Reply('{"target": {"name": "BCL2"}}'),
    "unknown keys alone": lambda: Reply('{"aim": "BCL2", "verdict": false}'),
    "the other's schema": lambda: Reply('{"score": 5, "passed": true}'),
    "nothing in it": lambda: Reply("{}"),
    "a list": lambda: Reply('["BCL2"]'),
    "a verdict": lambda: Reply("false"),
    "prose": lambda: Reply("The response names BCL2, which is the right target."),
    "two answers": lambda: Reply('{"target": "BCL2"} or rather {"target": "MCL1"}'),
    "half of it": lambda: Reply('{"target": "BCL'),
    "a refusal in words": lambda: Reply("I'm sorry, but I can't help with that."),
    "a refusal as such": lambda: Reply(
        body=b'{"choices": [{"message": {"role": "assistant", "content": null, "refusal": "I will not."}}]}'
    ),
    "withheld": lambda: Reply(None, finish_reason="content_filter"),
}
READABLE: dict[str, Callable[[], Reply]] = {
    "further keys": lambda: Reply('{"target": "BCL2", "confidence": 0.9}'),
    "in a fence": lambda: Reply('Here it is:\n```json\n{"target": "BCL2"}\n```'),
    "good": lambda: Reply({"target": "BCL2"}),
    "wrong": lambda: Reply({"target": "MCL1"}),
}


def test_an_unreadable_judgment_is_an_error_of_the_judge_and_counted_apart(tmp_path: Path) -> None:
    said = [*USELESS.values(), *READABLE.values()]
    names = [*USELESS, *READABLE]
    here = world.World(tmp_path / "run", questions=len(said))

    def script(request: ServedRequest) -> Any:
        return said[world.number_of(request)]() if world.judged(request) else world.right(request)

    with ScriptedServer(script) as server:
        config = here.config(server.url, retry_policy=world.tried(2))
        here.run(config)
        outcomes = {names[number]: outcome for number, outcome in here.by_question().items()}
        asked = [names[world.number_of(request)] for request in server.requests if world.judged(request)]
        here.check(config, server)
    for name in USELESS:
        wanted = "error(content_filter)" if name == "withheld" else "error(judge)"
        assert outcomes[name] == wanted, name
        assert 1 <= asked.count(name) <= 3, name
    assert {name: outcomes[name] for name in READABLE} == {
        "further keys": "passed",
        "in a fence": "passed",
        "good": "passed",
        "wrong": "failed",
    }
    results = VerificationResultSet.load(here.folder)
    for result in results:
        name = names[int(result.metadata.question_id[1:])]
        assert result.template is not None
        assert (result.template.verify_result is None) == (name in USELESS), name
        if name in USELESS:
            assert len(result.metadata.error or "") > 20, name
            assert result.generation.raw_llm_response, "the answer is there"
    (row,) = results.get_summary()["models"]
    assert row["outcomes"] == {"error": len(USELESS), "passed": 3, "failed": 1}
    assert row["pass_rate"] == row["answered_accuracy"] == 0.75, "errors are in no denominator"
