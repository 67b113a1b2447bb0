"""An adapter's own functions are given the settings of its plugin, where they take them."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen
from karenina_calls.models.model_ports import make_port
from karenina_calls.models.models import check_models
from karenina_testing.fakes import ScriptedLLM

from karenina_core import Karenina, ModelConfig, VerificationConfig, hookimpl
from karenina_core.errors import ConfigError
from karenina_core.plugin.adapters import AdapterSpec

CONFIG = ModelConfig(model_name="m", interface="local")


@frozen(kw_only=True)
class Settings:
    program: str = "default"


class Port(ScriptedLLM):
    def __init__(self, config: ModelConfig, settings: Settings | None = None) -> None:
        super().__init__(lambda call: "yes")
        self.settings = settings


def unavailable(settings: Settings | None = None) -> str | None:
    return f"no {settings.program}" if settings is not None and settings.program == "missing" else None


def problems(config: ModelConfig, settings: Settings | None = None) -> list[str]:
    return [f"model_name: {settings.program} does not know it"] if settings and settings.program == "odd" else []


class Plugin:
    def __init__(self, **spec: Any) -> None:
        self.spec = {"llm_factory": Port, "availability_checker": unavailable, "config_checker": problems, **spec}

    @hookimpl
    def karenina_register_adapters(self, registry: Any) -> None:
        registry.register(AdapterSpec(interface="local", **self.spec))

    @hookimpl
    def karenina_register_settings(self, registry: Any) -> None:
        registry.add(Settings)


def app(program: str, **spec: Any) -> Karenina:
    return Karenina({"mine": Plugin(**spec)}, settings={"mine": {"program": program}})


def made(application: Karenina) -> Any:
    spec = application.adapters.get_spec("local")
    assert spec.llm_factory is not None
    return make_port(application.adapters, spec.llm_factory, CONFIG, spec)


def test_a_port_is_made_with_the_settings_of_its_plugin() -> None:
    assert made(app("here")).settings == Settings(program="here")
    assert made(Karenina({"mine": Plugin()})).settings == Settings()


def test_a_factory_that_takes_a_configuration_alone_is_given_no_more() -> None:
    assert made(app("here", llm_factory=lambda config: Port(config))).settings is None


def test_the_check_of_availability_knows_the_settings() -> None:
    assert app("here").adapters.check_availability("local").available
    assert app("missing").adapters.check_availability("local").reason == "no missing"
    assert app("missing", availability_checker=lambda: None).adapters.check_availability("local").available


def test_the_check_of_a_configuration_knows_the_settings() -> None:
    config = VerificationConfig(answering_models=[CONFIG], parsing_models=[CONFIG])
    assert check_models(app("here"), config)
    with pytest.raises(ConfigError, match="odd does not know it"):
        check_models(app("odd"), config)
