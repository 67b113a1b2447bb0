"""`karenina preset` and `karenina verify --preset`: a configuration is saved once and used by its name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core.testing import ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
KEY = "sk-abcdefgh12345678"


@pytest.fixture(autouse=True)
def presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of presets of this user."""
    folder = tmp_path / "of-the-user"
    monkeypatch.setenv("KARENINA_PRESETS_DIR", str(folder))
    return folder


def script(request: Any) -> Any:
    return {"capital": "Paris"} if request.schema else "Paris."


def test_what_was_typed_once_is_used_by_name(
    run: Run, forking: Any, served: Any, write_benchmark: Files, presets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_benchmark("q0")
    monkeypatch.setenv("THE_KEY", KEY)
    with ScriptedServer(script) as server:
        flags = [*served(server.url), "--answering-api-key-env", "THE_KEY", "--replicates", "2", "--with", "abstention"]
        saved = run("preset", "save", "My Two", "--description", "both roles", *flags)
        assert saved.exit_code == 0, saved.stderr
        assert "karenina verify BENCHMARK --preset 'My Two'" in saved.stdout
        assert server.count == 0
        environment = {**os.environ, "KARENINA_CONCURRENCY": "1"}
        words = ("verify", path, "--preset", "my-two", "--out", "named", "--json")
        ran = forking.start(*words, environment=environment)
        assert ran.wait() == 0, ran.stderr
        assert {call.headers["authorization"] for call in server.requests if not call.schema} == {f"Bearer {KEY}"}
        file = presets / "my-two.json"
        assert run("verify", path, "--preset", file, "--replicates", "1", "--out", "file").exit_code == 0
    assert sum(json.loads(ran.stdout)["outcomes"].values()) == 2
    named, of_file = (
        json.loads(Path(name, "manifest.json").read_text("utf-8"))["config"] for name in ("named", "file")
    )
    assert (named["replicate_count"], named["concurrency"], named["features"]) == (2, 1, ["abstention"])
    assert of_file["replicate_count"] == 1
    assert KEY not in file.read_text("utf-8")


def test_list_show_and_delete(run: Run, presets: Path) -> None:
    assert "There are none in" in run("preset", "list").stdout
    run("preset", "save", "one", "--answering-model", "openai/gpt-4.1", "--answering-api-key-env", "MY_KEY")
    run("preset", "save", "two", "--concurrency", "3", "--description", "slow")
    (presets / "broken.json").write_text("{", "utf-8")
    found = run("preset", "list")
    assert [line.split() for line in found.stdout.splitlines()[1:3]] == [["one", "openai/gpt-4.1"], ["two", "slow"]]
    assert "broken.json is not a preset" in found.stderr
    assert [row["name"] for row in json.loads(run("preset", "list", "--json").stdout)["presets"]] == ["one", "two"]
    shown = run("preset", "show", "one").stdout
    for line in ('models."openai/gpt-4.1".model_name "openai/gpt-4.1"', "MY_KEY not set"):
        assert line in " ".join(shown.split())
    assert json.loads(run("preset", "show", "two", "--json").stdout)["config"] == {"run": {"concurrency": 3}}
    refused = run("preset", "delete", "two")
    assert (refused.exit_code, "add --yes" in refused.stderr) == (1, True)
    assert run("preset", "delete", "two", "--yes").exit_code == 0
    assert "did you mean" not in run("preset", "show", "two").stderr
    assert run("preset", "delete", presets / "one.json", "--yes").exit_code == 1
    assert sorted(file.name for file in presets.iterdir()) == ["broken.json", "one.json"]


def test_a_preset_is_changed_through_itself(run: Run) -> None:
    run("preset", "save", "p", "--concurrency", "3", "--with", "abstention", "--description", "kept")
    assert run("preset", "save", "p", "--replicates", "2").exit_code == 1
    assert run("preset", "save", "p", "--preset", "p", "--replicates", "2", "--replace").exit_code == 0
    found = json.loads(run("preset", "show", "p", "--json").stdout)
    assert found["config"] == {"run": {"concurrency": 3, "features": ["abstention"], "replicate_count": 2}}
    assert found["description"] == "kept"


def test_nothing_is_saved_that_is_wrong_secret_or_the_default(run: Run, presets: Path) -> None:
    for options, message in (
        (["--set", "run.concurrency=0"], "run.concurrency"),
        (["--parsing-model", "x", "--set", f'models.x.endpoint_api_key="{KEY}"'], "name the variable that holds it"),
        (["--set", "run.code_policy=trusted"], "may not say 'trusted'"),
        (["--replicates", "1"], "do not differ from the defaults"),
    ):
        result = run("preset", "save", "p", *options)
        assert result.exit_code == 1
        assert message in result.stderr
        assert KEY not in result.output
    assert not presets.exists()


def test_a_preset_that_cannot_be_used_ends_a_run_before_a_model_is_asked(
    run: Run, served: Any, write_benchmark: Files, presets: Path
) -> None:
    presets.mkdir()
    config = {"run": {"parsing_models": ["x"]}, "models": {"x": {"model_name": "x", "endpoint_api_key": KEY}}}
    (presets / "leaky.json").write_text(json.dumps({"config": config}), "utf-8")
    (presets / "odd.json").write_text('{"config": {"run": {"concurency": 2}}}', "utf-8")
    path = write_benchmark("q0")
    with ScriptedServer(script) as server:
        for name, message in (
            ("leaky", "models.x.endpoint_api_key: a preset holds no key"),
            ("odd", f"did you mean 'concurrency'?) (from the preset {presets / 'odd.json'})"),
            ("od", "did you mean 'odd'"),
        ):
            result = run("verify", path, *served(server.url), "--preset", name)
            assert result.exit_code == 1
            assert message in result.stderr
        assert server.count == 0
    assert not Path("karenina-runs").exists()


def test_an_export_does_not_take_the_place_of_the_preset(run: Run, write_benchmark: Files, presets: Path) -> None:
    run("preset", "save", "p", "--answering-model", "x", "--parsing-model", "y", "--answering-base-url", "http://h/v1")
    before = (presets / "p.json").read_bytes()
    result = run("verify", write_benchmark("q0"), "--preset", "p", "--export", presets / "p.json")
    assert (result.exit_code, "choose another file" in result.stderr) == (1, True)
    assert (presets / "p.json").read_bytes() == before


def test_plan_takes_a_preset_too(run: Run) -> None:
    run("preset", "save", "p", "--with", "abstention")
    assert json.loads(run("plan", "--preset", "p", "--json").stdout)["features"] == ["abstention"]
    assert json.loads(run("plan", "--preset", "p", "--without", "abstention", "--json").stdout)["features"] == []
