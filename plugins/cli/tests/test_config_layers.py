"""The configuration of a run: file, environment, `--set`, flags, and who wins."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.records.manual import load_manual_traces
from karenina_runs.config.config_file import (
    Flags,
    Layer,
    configure,
    environment_layer,
    environment_names,
    load_config,
    parse_setting,
    read_layer,
    settings_layer,
)
from karenina_runs.config.config_models import ModelFlags, Supplied

from karenina_core import ModelConfig, VerificationConfig
from karenina_core.errors import ConfigError

TWO_MODELS = """
[run]
answering_models = ["small", "large"]
parsing_models = ["judge"]

[models.small]
model_name = "s"
interface = "openai_endpoint"

[models.large]
model_name = "l"
interface = "openai_endpoint"

[models.judge]
model_name = "j"
temperature = 0
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        path = tmp_path / "settings.toml"
        path.write_text(text, "utf-8")
        return path

    return written


def recorded(path: Path) -> tuple[Supplied, ...]:
    """The flag for a file of recorded answers."""
    return (Supplied("--manual-traces", "manual", "manual_traces", lambda: load_manual_traces(path)),)


def problems_of(call: Callable[[], Any]) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        call()
    return [str(problem) for problem in raised.value.problems]


def run_of(*layers: Mapping[str, Any], flags: Flags | None = None) -> VerificationConfig:
    """The configuration of layers that hold a `[run]` table each."""
    made = [Layer(f"layer {i}", {"run": table}) for i, table in enumerate(layers)]
    return configure(made, flags or Flags(), models=False)


FIELDS: Mapping[str, st.SearchStrategy[Any]] = {
    "replicate_count": st.integers(1, 9),
    "concurrency": st.integers(1, 99),
    "evaluation_mode": st.sampled_from(["template_only", "template_and_rubric", "rubric_only"]),
    "request_timeout": st.floats(1, 100),
    "retry_max_elapsed_seconds": st.floats(1, 100),
    "use_full_trace_for_template": st.booleans(),
    "include_extraction_hints": st.booleans(),
}
layer = st.fixed_dictionaries({}, optional=dict(FIELDS))


@given(layer, layer, layer, layer)
def test_the_last_layer_that_speaks_of_a_field_wins(
    file: dict[str, Any], environment: dict[str, Any], sets: dict[str, Any], flags: dict[str, Any]
) -> None:
    variables = {f"KARENINA_{name.upper()}": str(value) for name, value in environment.items()}
    layers = [
        Layer("file", {"run": file}),
        environment_layer(variables),
        settings_layer(f"run.{name}={json.dumps(value)}" for name, value in sets.items()),
    ]
    config = configure(layers, Flags(run=flags), models=False)
    default = VerificationConfig()
    for name in FIELDS:
        speakers = [table[name] for table in (file, environment, sets, flags) if name in table]
        assert getattr(config, name) == (speakers[-1] if speakers else getattr(default, name))


switch = st.one_of(st.none(), st.booleans())


@given(st.lists(switch, min_size=3, max_size=3), st.booleans(), st.booleans())
def test_the_last_layer_that_speaks_of_a_feature_wins(values: list[bool | None], on: bool, off: bool) -> None:
    layers = [{} if value is None else {"abstention_enabled": value} for value in values]
    flags = Flags(features_on=["abstention"] * on, features_off=["abstention"] * off)
    if on and off:
        assert "contradict" in problems_of(lambda: run_of(*layers, flags=flags))[0]
        return
    switches = [value for value in [*values, on or None, False if off else None] if value is not None]
    assert run_of(*layers, flags=flags).abstention_enabled is (switches[-1] if switches else False)


def test_a_list_of_features_replaces_the_one_below_and_switches_change_it() -> None:
    assert run_of({"features": ["a", "b"]}, {"features": ["c"], "abstention_enabled": True}).features == {
        "c",
        "abstention",
    }
    assert run_of({"features": ["a", "b"]}, flags=Flags(features_off=["a"], features_on=["d"])).features == {"b", "d"}


def test_every_variable_of_the_environment_sets_its_field() -> None:
    values = {
        "executor": "local",
        "evaluation_mode": "rubric_only",
        "request_timeout": "7.5",
        "deep_judgment_mode": "reasoning_only",
        "deep_judgment_excerpt_retry_attempts": "7",
        "deep_judgment_max_excerpts_per_attribute": "7",
        "deep_judgment_fuzzy_match_threshold": "0.7",
        "embedding_check_threshold": "0.7",
        "canary_threshold": "0.7",
        "rubric_evaluation_strategy": "sequential",
        "workspace_output_mode": "produced",
        "agentic_rubric_strategy": "shared",
        "agentic_judge_context": "trace_only",
        "agentic_parsing_trigger": "dynamic",
        "deep_judgment_rubric_mode": "enable_all",
        "deep_judgment_rubric_fuzzy_match_threshold_default": "0.7",
        "task_ordering": "random",
    }
    for variable, name in environment_names().items():
        default = getattr(VerificationConfig(), name)
        text = values.get(name, str(not default).lower() if isinstance(default, bool) else "3")
        config = configure([environment_layer({variable: text})], Flags(), models=False)
        assert name == "executor" or getattr(config, name) != default


def test_the_last_layer_that_speaks_of_deep_judgment_wins() -> None:
    full, reasoning, off = ({"deep_judgment_mode": mode} for mode in ("full", "reasoning_only", "disabled"))
    assert run_of(full, reasoning).deep_judgment_mode == "reasoning_only"
    assert run_of(reasoning, off).deep_judgment_mode == "disabled"
    assert run_of(off, {"deep_judgment_enabled": True}).deep_judgment_mode == "full"
    assert run_of(reasoning, flags=Flags(features_off=["deep_judgment"])).deep_judgment_mode == "disabled"
    assert run_of(off, flags=Flags(features_on=["deep_judgment"])).deep_judgment_mode == "full"
    errors = problems_of(lambda: run_of({"deep_judgment_mode": "half"}))
    assert len(errors) == 1
    assert errors[0].startswith("run.deep_judgment_mode: must be one of disabled, reasoning_only, full, not 'half'")


def test_a_flag_overrules_the_environment_of_the_embedding_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_CHECK", "1")
    from_environment = environment_layer({"EMBEDDING_CHECK": "1"}).run()
    assert run_of(from_environment).embedding_check_enabled
    assert not run_of(from_environment, flags=Flags(features_off=["embedding_check"])).embedding_check_enabled
    assert not run_of(from_environment, {"embedding_check_enabled": False}).embedding_check_enabled


def test_the_environment_of_the_embedding_check_wins_over_the_file() -> None:
    file = {"embedding_check_threshold": 0.5, "embedding_check_model": "file", "embedding_check_enabled": False}
    from_environment = environment_layer(
        {"EMBEDDING_CHECK": "1", "EMBEDDING_CHECK_THRESHOLD": "0.7", "EMBEDDING_CHECK_MODEL": "environment"}
    ).run()
    config = run_of(file, from_environment)
    assert (config.embedding_check_enabled, config.embedding_check_threshold) == (True, 0.7)
    assert config.embedding_check_model == "environment"


@pytest.mark.parametrize(
    ("variable", "text", "path"),
    [
        ("EMBEDDING_CHECK", "banana", "EMBEDDING_CHECK"),
        ("EMBEDDING_CHECK_THRESHOLD", "2", "run.embedding_check_threshold"),
        ("EMBEDDING_CHECK_THRESHOLD", "x", "run.embedding_check_threshold"),
    ],
)
def test_one_wrong_variable_is_one_problem(
    variable: str, text: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, text)
    errors = problems_of(lambda: load_config(models=False))
    assert len(errors) == 1, errors
    assert errors[0].startswith(path)


@pytest.mark.parametrize("text", ["1", "TRUE", "Yes", "on"])
def test_ways_to_say_yes(text: str) -> None:
    assert run_of(environment_layer({"KARENINA_ABSTENTION_ENABLED": text}).run()).abstention_enabled


def test_what_cannot_be_read_from_the_environment_names_its_variable() -> None:
    errors = problems_of(lambda: environment_layer({"KARENINA_ABSTENTION_ENABLED": "jein", "KARENINA_CONCURRENCY": ""}))
    assert errors == ["KARENINA_ABSTENTION_ENABLED: must be one of 1, true, yes, on, 0, false, no, off, not 'jein'"]
    errors = problems_of(
        lambda: configure([environment_layer({"KARENINA_CONCURRENCY": "many"})], Flags(), models=False)
    )
    assert errors == ["run.concurrency: expected a whole number, got 'many' (from the environment)"]


# --set


@pytest.mark.parametrize(
    ("text", "keys", "value"),
    [
        ("run.retry_policy.rate_limited.min_wait=0.1", ("run", "retry_policy", "rate_limited", "min_wait"), 0.1),
        ("models.judge.temperature=0", ("models", "judge", "temperature"), 0),
        ("plugins.x.y=1", ("plugins", "x", "y"), 1),
        ("plugins.x.y=true", ("plugins", "x", "y"), True),
        ('plugins.x.y=["a", 1]', ("plugins", "x", "y"), ["a", 1]),
        ("plugins.x.y={a = 1}", ("plugins", "x", "y"), {"a": 1}),
        ("plugins.x.y=plain text", ("plugins", "x", "y"), "plain text"),
        ('plugins.x.y="1"', ("plugins", "x", "y"), "1"),
        ("plugins.x.y=", ("plugins", "x", "y"), ""),
        ("plugins.x.y=a=b", ("plugins", "x", "y"), "a=b"),
        ("plugins.x.y=1\nz = 2", ("plugins", "x", "y"), "1\nz = 2"),
        ('models."gpt-4.1".max_tokens=9', ("models", "gpt-4.1", "max_tokens"), 9),
    ],
)
def test_settings_are_toml_or_text(text: str, keys: tuple[str, ...], value: Any) -> None:
    assert parse_setting(text) == (keys, value)


@given(st.text())
def test_any_setting_is_read_or_refused(text: str) -> None:
    try:
        keys, _ = parse_setting(text)
    except ConfigError:
        return
    assert keys[0] in ("run", "models", "plugins")


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("rum.concurrency=3", "did you mean 'run'?"),
        ("run=3", "a path begins with run., models.NAME. or plugins.NAME."),
        ("run.a b=3", "is not a path"),
        ("run..x=3", "is not a path"),
        ("run.concurrency", "key.path=value"),
        ("run.a=1\n[models.b]\nc=2", ""),
    ],
)
def test_settings_that_lead_nowhere(text: str, errors: str) -> None:
    if text.startswith("run.a="):
        assert parse_setting(text) == (("run", "a"), "1\n[models.b]\nc=2")
    else:
        assert errors in problems_of(lambda: settings_layer([text]))[0]


def test_a_nested_setting_changes_one_thing_only() -> None:
    config = configure([settings_layer(["run.retry_policy.rate_limited.min_wait=0.1"])], Flags(), models=False)
    assert config.retry_policy.rate_limited.min_wait == 0.1
    assert config.retry_policy.server == VerificationConfig().retry_policy.server


# Mistakes


def test_every_mistake_is_told_at_once_with_its_place(write: Callable[[str], Path]) -> None:
    path = write(
        'tools = 1\ndisable = "x"\n'
        '[run]\nconcurency = 3\nreplicate_count = 0\nabstention_enabled = "yes"\nanswering_models = ["smal"]\n'
        '[models.small]\nmodel_name = "s"\ntemprature = 1\n'
        '[models.judge]\nmodel_name = "j"\nmax_tokens = "9"\n'
    )
    errors = "\n".join(problems_of(lambda: load_config(path, ["run.request_timeout=-1"])))
    for expected in (
        "tools: unknown setting",
        "disable: expected a list of plugin names, got 'x'",
        "run.concurency: unknown setting (did you mean 'concurrency'?)",
        "run.replicate_count: ",
        f"run.abstention_enabled: expected true or false, got 'yes' (from {path})",
        "run.answering_models[0]: there is no table [models.smal] (did you mean 'small'?)",
        "models.small.temprature: unknown setting (did you mean 'temperature'?)",
        "models.judge.max_tokens: ",
        "(from --set)",
    ):
        assert expected in errors, errors


def test_a_mistake_names_the_source_of_its_field(write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_WORKSPACE_MAX_FILES", "-1")
    path = write(
        '[run]\nanswering_models = ["small", "nobody"]\nparsing_models = ["judge"]\nexecutor = 3\n'
        '[models.small]\nmodel_name = "s"\nagent_max_turns = 1.5\nmax_retries = 1\n'
        '[models.judge]\nmodel_name = "j"\n[models."a.b"]\nmodel_name = "x"\ntemperature = "hot"\n'
        '[models.nameless]\nmax_tokens = 5\n[plugins.mcp]\nstart_seconds = "x"\n'
    )
    sets = ["models.small.max_retries=-1", "run.concurrency=true", "models.spare = 3"]
    flags = Flags(parsing=ModelFlags(role="parsing", base_url=cast(str, 5)))
    errors = "\n".join(problems_of(lambda: load_config(path, sets, flags)))
    for where, source in {
        "run.executor": str(path),
        "run.concurrency": "--set",
        "run.workspace_max_files": "the environment",
        "run.answering_models[1]": str(path),
        "models.small.agent_max_turns": str(path),
        "models.small.max_retries": "--set",
        "models.judge.endpoint_base_url": "the command line",
        "models.a.b.temperature": str(path),
        "models.nameless.model_name": str(path),
        "models.spare": "--set",
        "plugins.mcp.start_seconds": str(path),
    }.items():
        assert re.search(rf"^{re.escape(where)}: .*\(from {re.escape(source)}\)$", errors, re.MULTILINE), errors


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("run = 3", "expected a table [run]"),
        ('plugins = ["a"]', "the list of plugins to load is called only"),
        ("models.a = 3", "expected a table [models.a]"),
        ("run.features = 'abstention'", "expected a list of names"),
        ("run.answering_models = 'small'", "expected a list of names of [models.NAME] tables"),
        ("[run", "is not a TOML file"),
        ("[plugins.no_such_plugin]\nx = 1", "no installed package has this plugin"),
    ],
)
def test_a_file_of_the_wrong_shape(text: str, errors: str, write: Callable[[str], Path]) -> None:
    path = write(text)
    assert errors in "\n".join(problems_of(lambda: load_config(path)))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "there is no configuration file" in problems_of(lambda: load_config(tmp_path / "no.toml"))[0]
    assert "cannot be read" in problems_of(lambda: load_config(tmp_path))[0]
    (tmp_path / "latin.toml").write_bytes(b'x = "\xe9"')
    assert "is not a TOML file" in problems_of(lambda: read_layer(tmp_path / "latin.toml"))[0]


def test_a_file_that_nobody_named_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "karenina.toml").write_text("[run]\nconcurrency = 77\n", "utf-8")
    assert load_config().config.concurrency == VerificationConfig().concurrency


# Who may trust code


@pytest.mark.parametrize("where", ["file", "--set"])
def test_only_the_command_line_can_say_trusted(where: str, write: Callable[[str], Path]) -> None:
    path = write('[run]\ncode_policy = "trusted"\n') if where == "file" else None
    sets = [] if path else ["run.code_policy=trusted"]
    (errors,) = problems_of(lambda: load_config(path, sets, Flags(trust_line="karenina verify --trust x")))
    assert errors.startswith("run.code_policy: ")
    assert errors.endswith("type: karenina verify --trust x")
    assert load_config(path, sets, Flags(trust=True)).config.code_policy == "trusted"


def test_the_environment_has_no_say_about_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_CODE_POLICY", "trusted")
    assert load_config().config.code_policy == "sandbox"


def test_a_file_may_refuse_code_and_set_may_take_trust_back(write: Callable[[str], Path]) -> None:
    path = write('[run]\ncode_policy = "trusted"\n')
    assert load_config(path, ["run.code_policy=refuse"]).config.code_policy == "refuse"


# Models


def models_of(*layers: Mapping[str, Any], **roles: ModelFlags) -> VerificationConfig:
    made = [Layer(f"layer {i}", table) for i, table in enumerate(layers)]
    return configure(made, Flags(**roles), {"anthropic/c": "claude_tool"}.get)  # type: ignore[arg-type]


def names(models: tuple[ModelConfig, ...]) -> list[str]:
    return [str(model.identity) for model in models]


def test_models_are_listed_by_the_names_of_their_tables(write: Callable[[str], Path]) -> None:
    config = load_config(write(TWO_MODELS), ["models.judge.temperature=0.5"]).config
    assert names(config.answering_models) == ["openai_endpoint:s (small)", "openai_endpoint:l (large)"]
    assert names(config.parsing_models) == ["litellm:j (judge)"]
    assert config.parsing_models[0].temperature == 0.5


def test_a_named_model_replaces_the_list_of_the_file(write: Callable[[str], Path]) -> None:
    flags = Flags(answering=ModelFlags(role="answering", models=["gpt", "large"], interface="openai_endpoint"))
    config = load_config(write(TWO_MODELS), (), flags).config
    assert names(config.answering_models) == ["openai_endpoint:gpt", "openai_endpoint:l (large)"]
    assert names(config.parsing_models) == ["litellm:j (judge)"]


def test_a_field_of_a_named_model_needs_no_table_with_its_name() -> None:
    flags = Flags(answering=ModelFlags(role="answering", models=["openai/gpt-4.1"]))
    config = load_config(None, ['models."openai/gpt-4.1".temperature=0.5'], flags).config
    (model,) = config.answering_models
    assert (model.model_name, model.interface, model.temperature) == ("openai/gpt-4.1", "litellm", 0.5)
    mistaken = ["models.gtp.temperature=0.5"]
    assert problems_of(lambda: load_config(None, mistaken, flags)) == [
        "models.gtp.model_name: a model needs a name (from --set)"
    ]


def test_recorded_answers_that_are_named_keep_their_name(write: Callable[[str], Path], tmp_path: Path) -> None:
    traces = tmp_path / "traces.json"
    traces.write_text('{"q0": "Paris"}', "utf-8")
    flags = Flags(answering=ModelFlags(role="answering", models=["recorded"]), supplied=recorded(traces))
    config = load_config(write('[models.recorded]\ninterface = "manual"\n'), (), flags).config
    assert config.answering_models[0].model_name == "manual"


def test_other_flags_apply_to_every_model_of_their_role(write: Callable[[str], Path]) -> None:
    flags = Flags(
        answering=ModelFlags(role="answering", interface="x", provider="p", base_url="http://u", api_key_env="KEY")
    )
    config = load_config(write(TWO_MODELS), (), flags).config
    for model in config.answering_models:
        assert (model.interface, model.model_provider, model.endpoint_base_url) == ("x", "p", "http://u")
        assert model.api_key_env == "KEY"
    assert config.parsing_models[0].endpoint_base_url is None


def test_the_flag_for_a_key_wins_over_the_key_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "from the environment")
    table = {
        "run": {"answering_models": ["a"]},
        "models": {"a": {"model_name": "m", "endpoint_api_key": "from the file"}},
    }
    assert models_of(table).answering_models[0].api_key() == "from the file"
    config = models_of(table, answering=ModelFlags(role="answering", api_key_env="OTHER_KEY"))
    assert config.answering_models[0].api_key() == "from the environment"


def test_a_flag_without_a_model_is_refused() -> None:
    errors = problems_of(lambda: models_of(parsing=ModelFlags(role="parsing", base_url="http://u")))
    assert errors == ["--parsing-base-url: there is no model to apply it to; name one with --parsing-model"]


@pytest.mark.parametrize(
    ("name", "flag", "interface"),
    [
        ("anthropic/c", None, "claude_tool"),
        ("anthropic/c", "openai_endpoint", "openai_endpoint"),
        ("nobody/knows", None, "litellm"),
        ("c", None, "litellm"),
    ],
)
def test_plugins_resolve_provider_and_name(name: str, flag: str | None, interface: str) -> None:
    config = models_of(answering=ModelFlags(role="answering", models=[name], interface=flag))
    assert config.answering_models[0].interface == interface
    assert config.answering_models[0].model_name == name


def test_two_models_that_cannot_be_told_apart_are_refused() -> None:
    errors = problems_of(lambda: models_of(answering=ModelFlags(role="answering", models=["m", "m"])))
    assert errors[0].startswith("run.answering_models[1]: litellm:m is used twice")


def test_tables_that_are_not_used_are_checked_too() -> None:
    table = {"models": {"spare": {"model_name": "s", "interfac": "x"}, "recorded": {"interface": "manual"}}}
    assert problems_of(lambda: models_of(table)) == [
        "models.spare.interfac: unknown setting (did you mean 'interface'?) (from layer 0)"
    ]


# Recorded answers


def test_a_recorded_answer_needs_no_other_judge(tmp_path: Path, write_answers: Callable[..., Path]) -> None:
    flags = Flags(
        answering=ModelFlags(role="answering", interface="manual"), supplied=recorded(write_answers(q0="Paris"))
    )
    config = load_config(None, (), flags).config
    for models in (config.answering_models, config.parsing_models):
        assert names(models) == ["manual:manual"]
        assert (models[0].manual_traces or {})["q0"].fields == {"capital": "Paris"}


def test_recorded_answers_may_be_judged_by_a_model(write_answers: Callable[..., Path]) -> None:
    flags = Flags(
        answering=ModelFlags(role="answering", interface="manual"),
        parsing=ModelFlags(role="parsing", models=["j"]),
        supplied=recorded(write_answers(q0="Paris")),
    )
    assert names(load_config(None, (), flags).config.parsing_models) == ["litellm:j"]


def test_the_manual_interface_needs_recorded_answers_and_they_need_it(write_answers: Callable[..., Path]) -> None:
    manual = Flags(answering=ModelFlags(role="answering", interface="manual"))
    assert "--manual-traces FILE" in problems_of(lambda: load_config(None, (), manual))[0]
    other = Flags(answering=ModelFlags(role="answering", models=["m"]), supplied=recorded(write_answers(q0="Paris")))
    assert "--answering-interface manual" in problems_of(lambda: load_config(None, (), other))[0]


def test_recorded_answers_that_cannot_be_read_are_one_problem(tmp_path: Path) -> None:
    flags = Flags(answering=ModelFlags(role="answering", interface="manual"), supplied=recorded(tmp_path / "no.json"))
    assert len(problems_of(lambda: load_config(None, (), flags))) == 1


# Plugins


def test_plugins_are_blocked_by_the_file_and_by_the_environment(
    write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARENINA_DISABLE", "jsonld")
    states = {p.name: p.state for p in load_config(write('disable = ["jsonl"]')).app.plugins}
    assert (states["jsonl"], states["jsonld"], states["local-executor"]) == ("blocked", "blocked", "active")


def test_the_environment_s_list_of_plugins_replaces_the_file_s(
    write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write('only = ["jsonl"]')
    assert {p.name for p in load_config(path).app.plugins if p.state == "active"} == {"jsonl"}
    monkeypatch.setenv("KARENINA_PLUGINS", "jsonld")
    assert {p.name for p in load_config(path).app.plugins if p.state == "active"} == {"jsonld"}
