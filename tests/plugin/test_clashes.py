"""Two plugins that want one name: both are named, one keeps it, and the order of anything decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from karenina_core import Category, Karenina, Key, Stage, StageOrchestrator, hookimpl
from karenina_core.errors import PlanError
from karenina_core.plugin.discovery import PluginInfo

Make = Callable[..., Any]


class One:
    name = "thing"


class Two:
    name = "thing"


class Three:
    name = "thing"


@frozen(eq=False)
class Sinks:
    """A plugin that adds sinks: `(thing, name, replaces)` each."""

    added: tuple[tuple[Any, str | None, str | None], ...]

    @hookimpl
    def karenina_register_sinks(self, registry: Any) -> None:
        for thing, name, replaces in self.added:
            registry.add(thing, name=name, replaces=replaces)


def adding(thing: Any, name: str | None = None, replaces: str | None = None) -> Sinks:
    return Sinks(((thing, name, replaces),))


def states(app: Karenina) -> dict[str, str]:
    return {plugin.name: plugin.state for plugin in app.plugins}


def test_a_clash_names_both_owners_and_says_what_to_do() -> None:
    app = Karenina({"first": adding(One), "second": adding(Two)})
    assert states(app) == {"first": "active", "second": "failed"}
    assert app.sinks.load("thing") is One
    reason = app.plugin("second").reason
    assert "'first'" in reason
    assert "'second'" in reason
    assert "KARENINA_DISABLE=second" in reason
    assert "replaces='thing'" in reason


def test_the_loser_loses_everything() -> None:
    loser = Sinks(((Two, None, None), (Three, "other", None)))
    app = Karenina({"first": adding(One), "second": loser})
    assert list(app.sinks) == ["thing"]


def test_a_name_twice_within_one_plugin_is_its_own_mistake() -> None:
    app = Karenina({"double": Sinks(((One, None, None), (Two, None, None)))})
    assert "registers the sink 'thing' twice" in app.plugin("double").reason
    app = Karenina({"double": Sinks(((One, "a", "x"), (Two, "b", "x")))})
    assert "replaces the sink 'x' twice" in app.plugin("double").reason


def test_replacing_works_in_either_order_of_names() -> None:
    for original, replacement in (("a", "b"), ("b", "a")):
        app = Karenina({original: adding(One), replacement: adding(Two, replaces="thing")})
        assert states(app) == {original: "active", replacement: "active"}
        assert app.sinks.load("thing") is Two
        assert app.sinks["thing"].plugin == replacement


def test_a_replacement_may_have_a_name_of_its_own() -> None:
    app = Karenina({"a": adding(One), "b": adding(Two, name="better", replaces="thing")})
    assert app.sinks.load("better") is Two
    assert app.sinks.load("thing") is Two  # those who ask for the old name get what took its place


def test_replacing_what_is_not_there_adds() -> None:
    """The original may be blocked or not installed."""
    app = Karenina({"b": adding(Two, replaces="thing")})
    assert app.sinks.load("thing") is Two


def test_two_replacers_clash() -> None:
    app = Karenina(
        {"a": adding(One), "b": adding(Two, replaces="thing"), "c": adding(Three, name="new", replaces="thing")}
    )
    assert states(app) == {"a": "active", "b": "active", "c": "failed"}
    assert "'b' and 'c' both replace" in app.plugin("c").reason
    assert list(app.sinks) == ["thing"]
    assert app.sinks.load("thing") is Two


def test_a_replacement_can_be_replaced_whatever_the_plugins_are_called() -> None:
    for b, c in (("b", "c"), ("c", "b")):
        app = Karenina(
            {"a": adding(One), b: adding(Two, name="two", replaces="thing"), c: adding(Three, "three", "two")}
        )
        assert set(states(app).values()) == {"active"}
        assert [app.sinks.load(name) for name in ("thing", "two", "three")] == [Three, Three, Three]


def test_only_plugins_that_really_clash_fail() -> None:
    """`c` shares a name with `b`, which fails for its clash with `a`; then nothing is wrong with `c`."""
    b = Sinks(((Two, "x", None), (Two, "y", None)))
    app = Karenina({"a": adding(One, "x"), "b": b, "c": adding(Three, "y")})
    assert states(app) == {"a": "active", "b": "failed", "c": "active"}
    assert app.sinks.load("y") is Three


def test_recommended_distributions_keep_their_names() -> None:
    infos = [
        PluginInfo(name="zz-built-in", distribution="karenina-results", version="1"),
        PluginInfo(name="aa-stranger", distribution="a-stranger", version="1"),
    ]
    app = Karenina({"zz-built-in": adding(One), "aa-stranger": adding(Two)}, infos=infos)
    assert app.sinks.load("thing") is One
    assert app.plugin("aa-stranger").state == "failed"


def test_a_recommended_distribution_keeps_its_name_also_as_a_replacer() -> None:
    infos = [PluginInfo(name="zz-built-in", distribution="karenina-results")]
    plugins = {"zz-built-in": adding(One, "new", "old"), "aa-stranger": adding(Two, "new")}
    app = Karenina(plugins, infos=infos)
    assert states(app) == {"zz-built-in": "active", "aa-stranger": "failed"}


def test_names_of_different_kinds_do_not_clash(module: Make) -> None:
    both = module(karenina_register_embedders=lambda registry: registry.add(Two))
    app = Karenina({"a": adding(One), "b": both})
    assert set(states(app).values()) == {"active"}


# The law: nothing depends on the order in which plugins are given.

NAMES = st.sampled_from(["x", "y", "z"])
ADDITION = st.tuples(st.sampled_from([One, Two, Three]), NAMES, st.none() | NAMES)
PLUGINS = st.dictionaries(
    st.sampled_from([f"p{i}" for i in range(6)]),
    st.lists(ADDITION, max_size=3).map(lambda added: Sinks(tuple(added))),
    max_size=5,
)


PLAIN = st.lists(st.tuples(st.just(One), NAMES, st.none()), max_size=3).map(lambda added: Sinks(tuple(added)))


def seen(app: Karenina) -> Mapping[str, Any]:
    return {
        "plugins": app.plugins,
        "sinks": {name: (app.sinks.load(name), app.sinks[name].plugin) for name in app.sinks},
        "stages": {name: (app.stages.load(name), app.stages[name].plugin) for name in app.stages},
    }


@given(PLUGINS, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_plugins_changes_nothing(plugins: dict[str, Sinks], random: Any) -> None:
    names = list(plugins)
    random.shuffle(names)
    app = Karenina(plugins)
    assert seen(Karenina({name: plugins[name] for name in names})) == seen(app)


@given(st.dictionaries(st.sampled_from([f"p{i}" for i in range(6)]), PLAIN, max_size=5))
@settings(deadline=None)
def test_nobody_fails_without_a_reason(plugins: dict[str, Sinks]) -> None:
    """Every plugin that fails clashes with one that is active, or with itself."""
    app = Karenina(plugins)
    for plugin in app.plugins:
        if plugin.state == "failed":
            rivals = [other.name for other in app.plugins if f"'{other.name}'" in plugin.reason]
            assert "twice" in plugin.reason or {app.plugin(name).state for name in rivals} == {"active", "failed"}


@frozen(eq=False)
class Stages:
    classes: tuple[type[Stage], ...]

    @hookimpl
    def karenina_register_stages(self, registry: Any) -> None:
        for cls in self.classes:
            registry.add(cls)


def stage_class(name: str, category: Category, reads: list[str], makes: list[str], after: list[str]) -> type[Stage]:
    keys = {key: Key(f"test.{key}") for key in (*reads, *makes)}
    return type(
        name,
        (Stage,),
        {
            "category": category,
            "reads": tuple(keys[key] for key in reads if key not in makes),
            "produces": tuple(keys[key] for key in makes),
            "after": tuple(after),
            "execute": lambda self, context: None,
        },
    )


KEYS = st.lists(st.sampled_from("abcd"), max_size=2, unique=True)
STAGES = st.builds(
    stage_class,
    st.sampled_from(["S1", "S2", "S3", "S4", "S5"]),
    st.sampled_from(list(Category)),
    KEYS,
    KEYS,
    st.lists(st.sampled_from(["S1", "S2", "S3"]), max_size=1),
)


def plan_of(app: Karenina) -> Any:
    try:
        orchestrator = StageOrchestrator.from_config(app=app)
    except PlanError as error:
        return str(error)
    return [stage.name for stage in orchestrator.stages], orchestrator.validate_dependencies()


@given(
    st.dictionaries(st.sampled_from([f"p{i}" for i in range(6)]), st.tuples(STAGES).map(Stages), max_size=5), st.data()
)
@settings(deadline=None)
def test_the_order_of_plugins_changes_no_plan(plugins: dict[str, Stages], data: Any) -> None:
    names = data.draw(st.permutations(list(plugins)))
    shuffled = Karenina({name: plugins[name] for name in names})
    assert plan_of(shuffled) == plan_of(Karenina(plugins))
