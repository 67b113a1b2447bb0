"""Presets: what is saved gives the same configuration again, holds no key, and loses to everything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from karenina_runs.config.config_file import Flags, Layer, RunConfig, configure, load_config
from karenina_runs.config.config_models import ModelFlags
from karenina_runs.config.presets import Preset, PresetFolder, preset_config, preset_layer
from karenina_testing.strategies import verification_configs

from karenina_core import Karenina, VerificationConfig
from karenina_core.errors import ConfigError

KEY = "sk-abcdefgh12345678"
JUDGE = {"model_name": "j", "interface": "openai_endpoint", "api_key_env": "JUDGE_KEY"}


@pytest.fixture(scope="module")
def app() -> Karenina:
    return Karenina.installed()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PresetFolder:
    """Where the presets of this user are."""
    monkeypatch.setenv("KARENINA_PRESETS_DIR", str(tmp_path / "presets"))
    return PresetFolder.of_user()


def problems_of(call: Callable[[], Any]) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        call()
    return [str(problem) for problem in raised.value.problems] or [str(raised.value)]


# the first example makes the converters
@settings(max_examples=settings.default.max_examples // 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(config=verification_configs())
def test_a_saved_configuration_is_the_same_again(app: Karenina, config: VerificationConfig) -> None:
    assume("***" not in str(config))
    plain = [  # recorded answers are given again, keys are in the environment
        evolve(model, manual_traces=None) if model.manual_traces else model
        for model in (*config.answering_models, *config.parsing_models)
    ]
    answering = plain[: len(config.answering_models)]
    config = evolve(config, code_policy="sandbox", answering_models=answering, parsing_models=plain[len(answering) :])
    assume(not any(model.interface == "manual" for model in plain))
    saved = json.loads(json.dumps(preset_config(RunConfig(app=app, config=config))))
    assert configure([Layer("the preset", saved)], Flags()) == config


FIELDS: Mapping[str, st.SearchStrategy[Any]] = {
    "replicate_count": st.integers(1, 9),
    "concurrency": st.integers(1, 99),
    "include_extraction_hints": st.booleans(),
}
layer = st.fixed_dictionaries({}, optional=dict(FIELDS))


@settings(deadline=None)  # plugins are loaded
@given(preset=layer, file=layer, variables=layer, sets=layer, flags=layer)
def test_everything_wins_over_a_preset_and_a_preset_over_the_defaults(
    tmp_path_factory: pytest.TempPathFactory,
    preset: dict[str, Any],
    file: dict[str, Any],
    variables: dict[str, Any],
    sets: dict[str, Any],
    flags: dict[str, Any],
) -> None:
    path = tmp_path_factory.mktemp("layers") / "karenina.toml"
    path.write_text("\n".join(["[run]", *(f"{name} = {json.dumps(value)}" for name, value in file.items())]), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(f"KARENINA_{name.upper()}", str(value))
        config = load_config(
            path,
            [f"run.{name}={json.dumps(value)}" for name, value in sets.items()],
            Flags(run=flags),
            models=False,
            preset=Layer("the preset", {"run": preset}),
        ).config
    for name in FIELDS:
        given = [table[name] for table in (preset, file, variables, sets, flags) if name in table]
        assert getattr(config, name) == (given[-1] if given else getattr(VerificationConfig(), name))


def test_nothing_of_the_environment_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_CONCURRENCY", "77")
    monkeypatch.setenv("EMBEDDING_CHECK_MODEL", "another")
    loaded = load_config(None, ["run.replicate_count=2"], base=Layer("the defaults", {}))
    assert preset_config(loaded) == {"run": {"replicate_count": 2}}


def test_tables_that_no_role_names_are_saved_too_and_so_are_lists_of_plugins(tmp_path: Path) -> None:
    file = tmp_path / "k.toml"
    file.write_text('disable = ["gemini"]\n[models.spare]\nmodel_name = "x"\n[plugins.acp]\n', "utf-8")
    saved = preset_config(load_config(file, base=Layer("the defaults", {})))
    assert saved == {"disable": ["gemini"], "models": {"spare": {"model_name": "x"}}, "plugins": {"acp": {}}}
    config = configure([Layer("p", saved)], Flags(answering=ModelFlags(role="answering", models=("spare",))))
    assert config.answering_models[0].name == "x"


@pytest.mark.parametrize(
    ("sets", "path"),
    [
        ([f'models.judge.endpoint_api_key="{KEY}"'], "models.judge.endpoint_api_key"),
        ([f'models.unused={{model_name="u", endpoint_api_key="{KEY}"}}'], "models.unused.endpoint_api_key"),
        (['models.judge.endpoint_base_url="https://me:a-password@host/v1"'], "models.judge.endpoint_base_url"),
        (['models.judge.mcp_urls_dict={s="https://me:a-password@host/mcp"}'], "models.judge.mcp_urls_dict.s"),
        ([f'models.judge.extra_kwargs={{api_key="{KEY}"}}'], "models.judge.extra_kwargs.api_key"),
        ([f'models.judge.extra_kwargs={{headers={{X-Auth="{KEY}"}}}}'], "models.judge.extra_kwargs.headers"),
        (['models.judge.system_prompt="the value of a variable: hunter2-hunter2"'], "models.judge.system_prompt"),
        (['run.prompt_config.parsing="[redacted]"'], "run.prompt_config.parsing"),
        (['models.judge.system_prompt="********"'], "models.judge.system_prompt"),
    ],
)
def test_what_would_hold_a_key_is_refused_to_be_saved_and_to_be_read(
    sets: list[str], path: str, folder: PresetFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THEIR_PASSWORD", "hunter2-hunter2")
    base = {"run": {"parsing_models": ["judge"]}, "models": {"judge": JUDGE}}
    loaded = load_config(None, sets, base=Layer("the defaults", base))
    found = problems_of(lambda: preset_config(loaded))
    assert [problem.partition(": ")[0] for problem in found] == [path]
    assert KEY not in found[0]
    assert "hunter2" not in found[0]
    if path == "models.judge.system_prompt" and "hunter2" in sets[0]:
        return  # whoever reads it need not have that variable
    config = json.loads(json.dumps(loaded.document))
    file = tmp_path / "shared.json"
    file.write_text(json.dumps({"config": config}), "utf-8")
    (problem,) = problems_of(lambda: preset_layer(str(file)))
    assert problem.startswith(f"{path}: ")
    assert problem.endswith(f"(from the preset {file})")
    assert not folder.path.exists()
    assert problems_of(lambda: folder.save(Preset(name="x", config=config)))[0].startswith(f"{path}: ")


def test_names_become_names_of_files(folder: PresetFolder) -> None:
    names = {
        "Fast": "fast",
        "Two  models & a judge!": "two-models-a-judge",
        "../../etc/passwd": "etcpasswd",
        "-x-": "x",
        "質問": "preset",
        "a" * 100: "a" * 96,
    }
    assert {name: folder.file_of(name).name for name in names} == {n: f"{stem}.json" for n, stem in names.items()}
    assert all(folder.file_of(name).parent == folder.path for name in names)


def test_a_name_is_saved_once_and_replaced_on_request(folder: PresetFolder) -> None:
    first = Preset(name="Fast", description="for trying out", config={"run": {"concurrency": 2}})
    path = folder.save(first)
    assert folder.find("fast") == folder.find("Fast") == folder.find(str(path)) == path
    assert Preset.read(path) == first
    assert list(json.loads(path.read_text("utf-8"))) == [
        *("id", "name", "description", "config", "created_at", "updated_at")
    ]
    second = Preset(name="fast", config={"run": {"concurrency": 3}}, created_at="later", updated_at="later")
    assert "already exists" in problems_of(lambda: folder.save(second))[0]
    assert Preset.read(path) == first
    folder.save(second, replace=True)
    assert Preset.read(path) == evolve(second, id=first.id, created_at=first.created_at, description="for trying out")
    assert [file.name for file in folder.path.iterdir()] == ["fast.json"]


@pytest.mark.parametrize("name", ["../x", "nightly.json"])
def test_a_name_under_which_a_file_would_be_looked_for_is_refused(name: str, folder: PresetFolder) -> None:
    with pytest.raises(ConfigError, match="would be taken for a file name"):
        folder.save(Preset(name=name, config={}))
    assert not list(folder.files())


def test_texts_that_are_too_long_are_refused_together(folder: PresetFolder) -> None:
    found = problems_of(lambda: folder.save(Preset(name="n" * 101, description="d" * 501, config={})))
    assert [problem.partition(":")[0] for problem in found] == ["name", "description"]
    assert "needs a name" in problems_of(lambda: folder.save(Preset(name=" ", config={})))[0]


def test_a_name_is_never_looked_for_in_the_working_directory(
    folder: PresetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that came with a benchmark could otherwise send keys to an address of its own."""
    monkeypatch.chdir(tmp_path)
    for place in ("fast.json", "fast", "presets.json"):
        Path(place).write_text('{"config": {}}', "utf-8")
    folder.save(Preset(name="faster", config={}))
    (found,) = problems_of(lambda: folder.find("fast"))
    assert "did you mean 'faster'" in found
    assert "./fast.json" in found
    assert folder.find("./fast.json") == folder.find("fast.json") == Path("fast.json")
    assert "check the path" in problems_of(lambda: folder.find("gone.json"))[0]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"config": []}', '{"config": {"run": 5}}', '{"config": {"runs": {}}}', "\xff", "[" * 99_999],
)
def test_what_is_no_preset_is_an_error_that_names_the_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_bytes(text.encode("latin-1"))
    assert all(str(file) in problem for problem in problems_of(lambda: Preset.read(file)))


@settings(deadline=None)  # plugins are loaded
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["run", "models", "plugins", "disable", "judge", "endpoint_api_key", "x"]), inner
            ),
        ),
        max_leaves=12,
    )
)
def test_any_document_gives_a_configuration_or_the_documented_error(
    tmp_path_factory: pytest.TempPathFactory, config: Any
) -> None:
    file = tmp_path_factory.mktemp("any") / "p.json"
    file.write_text(json.dumps({"config": config}), "utf-8")
    with suppress(ConfigError):
        load_config(preset=preset_layer(str(file)))


def test_without_a_place_for_presets_the_error_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KARENINA_PRESETS_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert PresetFolder.of_user().path == tmp_path / "karenina" / "presets"
    monkeypatch.setattr(Path, "home", _nowhere)
    assert "KARENINA_PRESETS_DIR" in problems_of(PresetFolder.of_user)[0]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (found,) = problems_of(lambda: PresetFolder(tmp_path / "file").save(Preset(name="x", config={})))
    assert "cannot be written" in found


def _nowhere() -> Path:
    raise RuntimeError("no home")
