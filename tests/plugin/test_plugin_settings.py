"""Settings of plugins: one frozen class each, strict tables, handed to the stages that take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from karenina_core import Karenina, Stage, StageOrchestrator
from karenina_core.errors import ConfigError
from karenina_core.plugin.discovery import PluginInfo

Make = Callable[..., Any]


@attrs.frozen
class Limits:
    most: int = 3
    words: tuple[str, ...] = ()


class Taking(Stage):
    def __init__(self, settings: Limits) -> None:
        self.settings = settings

    def execute(self, context: object) -> None:
        """Does nothing."""


class Plain(Stage):
    def execute(self, context: object) -> None:
        """Does nothing."""


@pytest.fixture
def limited(module: Make) -> Any:
    def stages(registry: Any) -> None:
        registry.add(Taking)
        registry.add(Plain)

    return module(karenina_register_stages=stages, karenina_register_settings=lambda registry: registry.add(Limits))


def test_a_table_becomes_the_settings_and_reaches_the_stages_that_take_them(limited: Any) -> None:
    app = Karenina({"limited": limited}, settings={"limited": {"most": 5, "words": ["a", "b"]}})
    assert app.settings("limited") == Limits(5, ("a", "b"))
    stages = {stage.name: stage for stage in StageOrchestrator.from_config(app=app).stages}
    assert stages["Taking"].settings == Limits(5, ("a", "b"))  # type: ignore[attr-defined]
    assert stages["Plain"].settings == ()


def test_without_a_table_the_defaults_hold(limited: Any) -> None:
    app = Karenina({"limited": limited, "other": limited.__class__("other")})
    assert app.settings("limited") == Limits()
    assert app.settings("other") is None
    assert app.plugin("limited").kinds == ("stage",)


def test_all_problems_are_told_at_once_with_their_paths(limited: Any, module: Make) -> None:
    tables = {
        "limited": {"most": "5", "word": []},
        "limitde": {},
        "plain": {"x": 1},
    }
    with pytest.raises(ConfigError) as caught:
        Karenina({"limited": limited, "plain": module(karenina_register_sinks=lambda registry: None)}, settings=tables)
    told = {problem.path: problem.message for problem in caught.value.problems}
    assert told["plugins.limited.most"].startswith("expected a whole number")
    assert told["plugins.limited.word"] == "unknown setting (did you mean 'words'?)"
    assert "(did you mean 'limited'?); install the one that has it" in told["plugins.limitde"]
    assert "has no settings" in told["plugins.plain"]
    assert len(caught.value.problems) == 4


def test_the_table_of_a_plugin_that_is_blocked_is_left_alone_and_that_of_one_that_failed_ends_the_run(
    module: Make,
) -> None:
    def broken(registry: Any) -> None:
        raise ValueError("no")

    infos = [PluginInfo(name="blocked", state="blocked", reason="by configuration")]
    plugins = {"failed": module(karenina_register_settings=broken)}
    app = Karenina(plugins, infos=infos, settings={"blocked": {"x": 1}})
    assert (app.plugin("blocked").state, app.plugin("failed").state) == ("blocked", "failed")
    with pytest.raises(ConfigError, match=r"^plugins\.failed: the plugin failed: ValueError: no"):
        Karenina(plugins, infos=infos, settings={"blocked": {"x": 1}, "failed": {"y": 2}})


@pytest.mark.parametrize("settings", ["there_is_no_such_module:Settings", "json:dumps", dict])
def test_settings_that_cannot_be_used_are_their_plugins_own_trouble(module: Make, settings: Any, limited: Any) -> None:
    bad = module(
        karenina_register_settings=lambda registry: registry.add(settings),
        karenina_register_sinks=lambda registry: registry.add(dict, name="sink"),
    )
    app = Karenina({"bad": bad, "limited": limited})
    assert (app.plugin("bad").state, app.plugin("limited").state) == ("failed", "active")
    assert list(app.sinks) == []


def test_a_plugin_has_one_settings_class(module: Make) -> None:
    def two(registry: Any) -> None:
        registry.add(Limits)
        registry.add(attrs.make_class("More", []))

    app = Karenina({"two": module(karenina_register_settings=two)})
    assert "twice" in app.plugin("two").reason


def test_a_stage_that_cannot_be_made_names_its_plugin(module: Make) -> None:
    class Needs(Stage):
        def __init__(self, settings: Any) -> None:
            super().__init__()

        def execute(self, context: object) -> None:
            """Does nothing."""

    app = Karenina({"incomplete": module(karenina_register_stages=lambda registry: registry.add(Needs))})
    with pytest.raises(Exception, match="stage 'Needs' of plugin 'incomplete' cannot be made"):
        StageOrchestrator.from_config(app=app)
