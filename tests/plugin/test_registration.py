"""Registration is all or nothing for each plugin, and one plugin's trouble is nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from karenina_calls.services.shared import EmbedderRegistry
from pluggy import PluginManager

from karenina_core import AdapterSpec, Karenina, Stage, hookimpl
from karenina_core.errors import PluginError, UnknownName
from karenina_core.plugin.discovery import KINDS, discover, load

Make = Callable[..., Any]
EVERY_KIND = {kind.hook: kind for kind in map(load, discover(KINDS))}
"""Those of the core and of other distributions, by hook."""


class Sink:
    name = "memory"


def sinks(registry: Any) -> None:
    registry.add(Sink)


@pytest.mark.parametrize("error", [ValueError("halfway"), AssertionError("halfway"), SystemExit(3), RecursionError()])
def test_a_hook_that_raises_halfway_leaves_nothing(module: Make, error: BaseException) -> None:
    def halfway(registry: Any) -> None:
        registry.add(Sink)
        raise error

    started: list[Any] = []
    bad = module(
        karenina_register_sinks=halfway,
        karenina_register_embedders=lambda registry: registry.add(Sink, name="embedder"),
        karenina_run_started=lambda run: started.append(run),
    )
    app = Karenina({"bad": bad, "good": module(karenina_register_sinks=lambda registry: registry.add(Sink, name="ok"))})
    assert (app.plugin("bad").state, app.plugin("good").state) == ("failed", "active")
    assert list(app.sinks) == ["ok"]
    assert list(app.registry(EmbedderRegistry)) == []
    app.observe("karenina_run_started", run={})
    assert started == []
    assert type(error).__name__ in app.plugin("bad").reason
    assert app.plugin("bad").kinds == ()


def test_the_same_for_every_registry(module: Make) -> None:
    """Whatever hook fails, what the other hooks of that plugin registered is gone."""

    def broken(registry: Any) -> None:
        raise ValueError("no")

    for failing in EVERY_KIND:
        hooks = {hook: lambda registry: registry.add("m:T", name="thing") for hook in EVERY_KIND}
        hooks["karenina_register_stages"] = lambda registry: registry.add(
            type("S", (Stage,), {"execute": lambda self, context: None})
        )
        hooks["karenina_register_adapters"] = lambda registry: registry.register(
            AdapterSpec(interface="thing", llm_factory="m:T")
        )
        hooks["karenina_register_settings"] = lambda registry: registry.add(attrs.make_class("Settings", []))
        app = Karenina({"bad": module(**{**hooks, failing: broken})})
        assert app.plugin("bad").state == "failed", failing
        assert {hook: list(app.registry(kind)) for hook, kind in EVERY_KIND.items()} == {h: [] for h in EVERY_KIND}


def test_a_misspelt_hook_is_named_and_the_others_stay(module: Make) -> None:
    bad = module(karenina_register_sink=sinks, karenina_register_embedders=lambda registry: registry.add(Sink))
    app = Karenina({"bad": bad, "good": module(karenina_register_sinks=sinks)})
    assert app.plugin("bad").state == "failed"
    assert "karenina_register_sink'" in app.plugin("bad").reason
    assert "did you mean 'karenina_register_sinks'?" in app.plugin("bad").reason
    assert app.plugin("good").state == "active"
    assert list(app.registry(EmbedderRegistry)) == []


def test_a_hook_of_a_newer_karenina_may_be_marked_optional(module: Make) -> None:
    made = module(karenina_register_sinks=sinks)
    made.karenina_of_the_future = hookimpl(optionalhook=True)(lambda thing: None)
    app = Karenina({"ahead": made})
    assert app.plugin("ahead").state == "active"


def test_async_hooks_are_refused(module: Make) -> None:
    async def never_awaited(registry: Any) -> None:
        registry.add(Sink)

    async def observer(result: Any) -> None: ...

    app = Karenina({"a": module(karenina_register_sinks=never_awaited), "b": module(karenina_item_finished=observer)})
    for name in "ab":
        assert app.plugin(name).state == "failed"
        assert "async" in app.plugin(name).reason
        assert "plain" in app.plugin(name).reason


@pytest.mark.parametrize("marks", [{"wrapper": True}, {"hookwrapper": True}])
@pytest.mark.parametrize(
    "hook", ["karenina_register_sinks", "karenina_item_finished", "karenina_wrap_stage", "karenina_wrap_call"]
)
def test_wrappers_are_refused_where_they_would_not_be_called(module: Make, hook: str, marks: dict[str, bool]) -> None:
    def wrapper() -> Any:
        yield

    made = module()
    setattr(made, hook, hookimpl(**marks)(wrapper))
    app = Karenina({"wrapping": made})
    assert app.plugin("wrapping").state == "failed"
    assert "wrapper" in app.plugin("wrapping").reason


@attrs.define
class Unhashable:
    """`attrs.define` compares by value, so its instances have no hash."""

    made: list[str] = attrs.field(factory=list)
    label: str = "memory"

    @hookimpl
    def karenina_register_sinks(self, registry: Any) -> None:
        registry.add(Sink, name=self.label)

    @hookimpl
    def karenina_run_started(self) -> None:
        self.made.append("started")


def test_objects_without_a_hash_are_plugins_too() -> None:
    plugin = Unhashable()
    with pytest.raises(TypeError):
        hash(plugin)
    app = Karenina({"unhashable": plugin})
    assert app.plugin("unhashable").state == "active"
    assert app.plugin("unhashable").kinds == ("run_started", "sink")
    app.observe("karenina_run_started", run={})
    assert plugin.made == ["started"]


def test_a_plugin_object_without_a_hash_is_rolled_back_too() -> None:
    @attrs.define
    class Bad(Unhashable):
        @hookimpl
        def karenina_register_embedders(self, registry: Any) -> None:
            raise ValueError("no")

    plugin = Bad()
    app = Karenina({"bad": plugin, "good": Unhashable(label="other")})
    assert (app.plugin("bad").state, app.plugin("good").state) == ("failed", "active")
    assert list(app.sinks) == ["other"]
    app.observe("karenina_run_started", run={})
    assert plugin.made == []


class Base:
    def karenina_run_started(self) -> None:
        raise AssertionError("it has no mark")

    @hookimpl
    def karenina_run_finished(self) -> None:
        pass


class Hooked(Base):
    __slots__ = ("karenina_resolve_model",)
    text = "no hook"
    karenina_item_finished = staticmethod(hookimpl(lambda: None))

    def __init__(self) -> None:
        self.karenina_resolve_model = hookimpl(lambda: None)
        self.karenina_run_started = Base().karenina_run_finished

    @classmethod
    @hookimpl
    def karenina_classify_error(cls) -> None:
        pass

    @property
    def computed(self) -> str:
        raise AssertionError("nothing is computed")


def test_whatever_way_a_hook_is_in_an_object_it_is_found_and_nothing_else_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pluggy looks long at each name."""
    looked, look = [], PluginManager.parse_hookimpl_opts

    def noted(manager: PluginManager, plugin: Any, name: str) -> Any:
        looked.append(name)
        return look(manager, plugin, name)

    monkeypatch.setattr(PluginManager, "parse_hookimpl_opts", noted)
    app = Karenina({"object": Hooked()})
    hooks = {"classify_error", "item_finished", "resolve_model", "run_finished", "run_started"}
    assert set(app.plugin("object").kinds) == hooks, app.plugin("object").reason
    assert set(looked) == {f"karenina_{name}" for name in hooks}


def test_implementations_may_take_fewer_arguments(module: Make) -> None:
    seen: list[Any] = []
    app = Karenina(
        {
            "none": module(karenina_run_finished=lambda: seen.append("none")),
            "one": module(karenina_run_finished=lambda status: seen.append(status)),
            "two": module(karenina_run_finished=lambda summary, status: seen.append((summary, status))),
        }
    )
    app.observe("karenina_run_finished", summary="s", status="failed")
    assert seen == ["none", "failed", ("s", "failed")]


def test_an_argument_that_the_hook_does_not_have_is_refused(module: Make) -> None:
    app = Karenina({"greedy": module(karenina_run_started=lambda run, weather: None)})
    assert app.plugin("greedy").state == "failed"
    assert "weather" in app.plugin("greedy").reason


@pytest.mark.parametrize("kind", EVERY_KIND.values(), ids=EVERY_KIND)
def test_registries_are_frozen_afterwards(kind: Any) -> None:
    registry = Karenina({}).registry(kind)
    assert isinstance(registry, kind)
    with pytest.raises(PluginError, match="complete"):
        registry.add(type("Late", (), {"name": "late"}), name="late")


def test_import_strings_are_resolved_at_the_first_use(module: Make) -> None:
    def register(registry: Any) -> None:
        registry.add("there_is_no_such_module:Sink", name="gone", hint="Install it with: pip install sinks")
        registry.add("json:dumps", name="dumps")

    app = Karenina({"lazy": module(karenina_register_sinks=register)})
    assert app.plugin("lazy").state == "active"
    assert app.sinks.load("dumps")([1]) == "[1]"
    with pytest.raises(
        PluginError, match=r"'gone' of plugin 'lazy'.*'there_is_no_such_module' is not installed"
    ) as caught:
        app.sinks.load("gone")
    assert "pip install sinks" in str(caught.value)


def test_an_import_string_needs_a_name(module: Make) -> None:
    app = Karenina({"nameless": module(karenina_register_sinks=lambda registry: registry.add("json:dumps"))})
    assert "needs a name" in app.plugin("nameless").reason


def test_a_name_that_only_instances_have_must_be_given() -> None:
    @attrs.frozen
    class Named:
        name: str = "memory"

    class Plugin:
        def __init__(self, **given: str) -> None:
            self.given = given

        @hookimpl
        def karenina_register_sinks(self, registry: Any) -> None:
            registry.add(Named, **self.given)

    app = Karenina({"without": Plugin(), "with": Plugin(name="memory")})
    assert "needs a name" in app.plugin("without").reason
    assert list(app.sinks) == ["memory"]


def test_what_is_installed_but_broken_is_told_from_what_is_missing(
    module: Make, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "karenina_sample_pack"
    package.mkdir()
    (package / "__init__.py").write_text("", "utf-8")
    (package / "broken.py").write_text("import json\nraise RuntimeError('bad luck')\n", "utf-8")
    (package / "exits.py").write_text("raise SystemExit(2)\n", "utf-8")
    (package / "needs.py").write_text("import karenina_missing_dependency\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    def register(registry: Any) -> None:
        for name in ("broken", "exits", "needs", "absent"):
            registry.add(f"karenina_sample_pack.{name}:Thing", name=name)
        registry.add("json:no_such_name", name="attribute")

    app = Karenina({"mixed": module(karenina_register_sinks=register)})
    said = {}
    for name in app.sinks:
        with pytest.raises(PluginError) as caught:
            app.sinks.load(name)
        said[name] = str(caught.value)
    assert "installed but broken: RuntimeError: bad luck" in said["broken"]
    assert "installed but broken: SystemExit" in said["exits"]
    assert "'karenina_missing_dependency' is not installed" in said["needs"]
    assert "installed but broken" in said["absent"]
    assert "installed but broken" in said["attribute"]


def test_an_unknown_name_lists_what_there_is(module: Make) -> None:
    app = Karenina({"good": module(karenina_register_sinks=sinks)})
    with pytest.raises(UnknownName, match=r"no sink is called 'memry' \(did you mean 'memory'\?\); available: memory"):
        app.sinks.load("memry")


def test_what_is_no_stage_cannot_be_registered_as_one(module: Make) -> None:
    class Half:
        name = "Half"
        requires = produces = ()

        def should_run(self, context: Any) -> bool:
            return True

        def execute(self, context: Any) -> None: ...

    app = Karenina({"duck": module(karenina_register_stages=lambda registry: registry.add(Half))})
    assert app.plugin("duck").state == "failed"
    assert "karenina_core.Stage" in app.plugin("duck").reason


def test_stages_go_by_their_own_name(module: Make) -> None:
    """A second name would let two stages of one name into a plan."""

    class Mine(Stage):
        name = "ParseTemplate"

        def execute(self, context: object) -> None:
            """Does nothing."""

    app = Karenina({"alias": module(karenina_register_stages=lambda registry: registry.add(Mine, name="Other"))})
    assert app.plugin("alias").state == "failed"
    assert "'ParseTemplate'" in app.plugin("alias").reason


def test_plugin_kinds_and_order() -> None:
    app = Karenina({"b": Unhashable(), "a": Unhashable(label="x")})
    assert [plugin.name for plugin in app.plugins] == ["a", "b"]
    assert app.plugins[0].distribution == "in memory"
