"""Kinds of things that other distributions declare: plugins register in them as they do in those of the core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
from attrs import frozen
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from karenina_testing.checks import BrokenPromise, run_checks

from karenina_core import Karenina, hookimpl
from karenina_core.errors import PluginError, UnknownName
from karenina_core.plugin.kinds import CORE_KINDS, REGISTER
from karenina_core.plugin.registry import Registry
from karenina_core.testing import application, plugin_checks

Make = Callable[..., Any]
HOOK = "karenina_register_rankings"


class RankingRegistry(Registry[Any]):
    """Add rankings: functions of a list of names that put the best one first."""

    kind = "ranking"
    hook = HOOK

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str) and not callable(thing):
            raise PluginError(f"{thing!r} is not a ranking: add a function of a list of names")
        return thing


class OtherRankings(Registry[Any]):
    """Add rankings of another package that had the same idea."""

    kind = "ranking"
    hook = HOOK


def alphabetical(names: list[str]) -> list[str]:
    return sorted(names)


class Ranks:
    """A plugin that adds one ranking, and a sink beside it."""

    def __init__(
        self, thing: Any = alphabetical, name: str | None = None, *, replaces: str | None = None, sink: str = "beside"
    ) -> None:
        self.thing, self.name, self.replaces, self.sink = thing, name, replaces, sink

    @hookimpl
    def karenina_register_rankings(self, registry: Any) -> None:
        registry.add(self.thing, name=self.name, replaces=self.replaces)

    @hookimpl
    def karenina_register_sinks(self, registry: Any) -> None:
        registry.add(dict, name=self.sink)


# In memory


def test_what_a_plugin_registers_is_found_by_the_class_of_its_kind() -> None:
    app = Karenina({"ranks": Ranks()}, kinds=[RankingRegistry])
    registry = app.registry(RankingRegistry)
    assert isinstance(registry, RankingRegistry)
    assert registry.load("alphabetical") is alphabetical
    assert app.plugin("ranks").kinds == ("ranking", "sink")
    with pytest.raises(UnknownName, match=r"no ranking is called 'alphabetica' \(did you mean 'alphabetical'"):
        registry.load("alphabetica")
    with pytest.raises(PluginError, match="complete"):
        registry.add(alphabetical, name="late")


def test_a_kind_in_which_nothing_is_registered_is_empty() -> None:
    assert list(application(RankingRegistry).registry(RankingRegistry)) == []
    assert list(Karenina({}).registry(RankingRegistry)) == []


def test_a_thing_is_made_with_the_settings_of_its_plugin() -> None:
    @frozen
    class Settings:
        reverse: bool = False

    class ByLength:
        def __init__(self, names: list[str], given: Settings) -> None:
            self.found = sorted(names, key=len, reverse=given.reverse)

    class Configured(Ranks):
        @hookimpl
        def karenina_register_settings(self, registry: Any) -> None:
            registry.add(Settings)

    app = Karenina(
        {"ranks": Configured(ByLength, "length")}, settings={"ranks": {"reverse": True}}, kinds=[RankingRegistry]
    )
    assert app.registry(RankingRegistry).make("length", ["a", "ccc", "bb"]).found == ["ccc", "bb", "a"]


def test_a_clash_in_a_kind_of_a_stranger_is_resolved_like_any_other() -> None:
    app = Karenina({"first": Ranks(), "second": Ranks(sink="other")}, kinds=[RankingRegistry])
    assert (app.plugin("first").state, app.plugin("second").state) == ("active", "failed")
    assert "both provide the ranking 'alphabetical'" in app.plugin("second").reason
    assert list(app.sinks) == ["beside"]
    replacing = Ranks(list, "list", replaces="alphabetical", sink="other")
    app = Karenina({"first": Ranks(), "second": replacing}, kinds=[RankingRegistry])
    assert app.registry(RankingRegistry).load("alphabetical") is list


@pytest.mark.parametrize("thing", [3, None, object()])
def test_what_cannot_be_of_a_kind_takes_along_all_that_its_plugin_registered(thing: Any) -> None:
    app = Karenina({"odd": Ranks(thing, "odd", sink="other"), "fine": Ranks()}, kinds=[RankingRegistry])
    assert (app.plugin("odd").state, app.plugin("fine").state) == ("failed", "active")
    assert "is not a ranking" in app.plugin("odd").reason
    assert (list(app.registry(RankingRegistry)), list(app.sinks)) == (["alphabetical"], ["beside"])


def test_a_plugin_of_a_kind_that_nothing_declares_works_otherwise_and_says_so() -> None:
    info = Karenina({"ranks": Ranks()}).plugin("ranks")
    assert (info.state, info.kinds) == ("active", ("sink",))
    assert f"{HOOK} is not called: no installed distribution declares it" in info.reason


def test_a_hook_that_is_marked_optional_is_not_even_noted(module: Make) -> None:
    made = module(karenina_register_sinks=lambda registry: registry.add(dict, name="d"))
    setattr(made, HOOK, hookimpl(optionalhook=True)(lambda registry: None))
    assert Karenina({"ahead": made}).plugin("ahead").reason == ""


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("karenina_register_ranking", HOOK), ("karenina_register_rannkings", HOOK), ("karenina_registers_rankings", HOOK)],
)
def test_a_misspelt_hook_of_a_declared_kind_is_refused(module: Make, misspelt: str, meant: str) -> None:
    app = Karenina({"odd": module(**{misspelt: lambda registry: None})}, kinds=[RankingRegistry])
    assert app.plugin("odd").state == "failed"
    assert f"there is no hook {misspelt!r} (did you mean {meant!r}?)" in app.plugin("odd").reason


NAMES = sorted(kind.hook.removeprefix(REGISTER) for kind in CORE_KINDS)


@given(st.sampled_from(NAMES), st.data())
@settings(deadline=None)
def test_one_wrong_letter_in_a_hook_is_a_misspelling(name: str, data: st.DataObject) -> None:
    """One letter missing, exchanged, or too many, in any place of any hook of the core."""
    place = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from(ascii_lowercase))
    wrong = data.draw(st.sampled_from(["", letter, letter + name[place]])).join((name[:place], name[place + 1 :]))
    assume(wrong not in NAMES)
    plugin = type("Odd", (), {REGISTER + wrong: hookimpl(lambda self, registry: None)})()
    assert Karenina({"odd": plugin}).plugin("odd").state == "failed"


def test_what_is_refused_in_any_hook_is_refused_here(module: Make) -> None:
    async def later(registry: Any) -> None: ...

    def generates(registry: Any) -> Any:
        yield

    def greedy(registry: Any, weather: str) -> None: ...

    for function, said in ((later, "async"), (generates, "generator"), (greedy, "weather")):
        app = Karenina({"odd": module(**{HOOK: function})}, kinds=[RankingRegistry])
        assert app.plugin("odd").state == "failed"
        assert said in app.plugin("odd").reason


def test_what_is_no_kind_cannot_be_given_as_one() -> None:
    class Nameless(Registry[Any]):
        pass

    class Elsewhere(Registry[Any]):
        hook = "add_things"

    for kind in (Nameless, Elsewhere):
        with pytest.raises(PluginError, match="needs a hook: hook = 'karenina_register_things'"):
            Karenina({}, kinds=[kind])
    with pytest.raises(PluginError, match="is not a kind of things"):
        Karenina({}, kinds=[dict])  # type: ignore[list-item]  # what a script may do
    with pytest.raises(PluginError, match=r"RankingRegistry and .*OtherRankings both have the hook"):
        Karenina({}, kinds=[RankingRegistry, OtherRankings])


def test_the_things_of_one_class_are_not_handed_out_as_those_of_another() -> None:
    app = Karenina({"ranks": Ranks()}, kinds=[RankingRegistry])
    with pytest.raises(PluginError, match=rf"{HOOK} registers .*RankingRegistry"):
        app.registry(OtherRankings)


def test_the_checks_of_a_plugin_reach_what_it_registers_in_a_kind_of_a_stranger() -> None:
    class Wrong(Ranks):
        pass

    run_checks(
        [c for c in plugin_checks(Ranks(), kinds=[RankingRegistry]) if c.name in ("loads", "again", "registered")]
    )
    checks = {c.name: c for c in plugin_checks(Ranks("nowhere:at_all", "lost"), kinds=[RankingRegistry])}
    with pytest.raises(BrokenPromise, match="'nowhere' is not installed"):
        checks["registered"].run()
    with pytest.raises(BrokenPromise, match=f"{HOOK} is not called"):
        {c.name: c for c in plugin_checks(Ranks())}["loads"].run()


# Installed

KINDS = '''
from karenina_core.plugin.registry import Registry

class Rankings(Registry):
    """Add rankings."""
    kind = "ranking"
    hook = "karenina_register_rankings"
'''
PLUGIN = """
from karenina_core import hookimpl

@hookimpl
def karenina_register_rankings(registry):
    registry.add(sorted, name="alphabetical")

@hookimpl
def karenina_register_sinks(registry):
    registry.add(dict, name="beside")
"""
LIST = """
import json, sys
from attrs import asdict
from karenina_core import Karenina
app = Karenina.installed()
early = "rankings_home" in sys.modules
print(json.dumps({
    "plugins": {p.name: asdict(p) for p in app.plugins},
    "kinds": [asdict(k) for k in app.kinds if k.name.startswith("karenina_register_rankings")],
    "sinks": list(app.sinks),
    "brought": {r.hook: list(r) for r in app.registries},
    "early": early,
    "inactive": app.inactive(),
}))
"""
Points = Mapping[str, Mapping[str, str]]


def install(path: Path, name: str, modules: Mapping[str, str], points: Points) -> None:
    """A folder that looks like an installed distribution."""
    for module, source in modules.items():
        (path / f"{module}.py").write_text(source, "utf-8")
    info = path / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", "utf-8")
    groups = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in named.items()) for group, named in points.items()]
    (info / "entry_points.txt").write_text("\n\n".join([*groups, ""]), "utf-8")


def home(path: Path, source: str = KINDS, target: str = ":Rankings", number: str = "") -> None:
    """A distribution that declares a kind. `number` is at the end of its names, where there are several."""
    module, points = f"rankings_home{number}", {f"rankings{number}": f"rankings_home{number}{target}"}
    install(path, f"rankings-home{number}", {module: source}, {"karenina.kinds": points})


def guest(path: Path, number: str = "") -> None:
    """One with a plugin that registers in this kind."""
    source = PLUGIN.replace("_rankings", f"_rankings{number}").replace("beside", f"beside{number}")
    module = f"rankings_guest{number}"
    install(path, f"rankings-guest{number}", {module: source}, {"karenina.plugins": {f"a-guest{number}": module}})


def listed(path: Path, **environment: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-c", LIST],
        env={**os.environ, "PYTHONPATH": str(path), "KARENINA_DISABLE": "", "KARENINA_PLUGINS": "", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_one_package_declares_a_kind_and_another_one_registers_in_it(tmp_path: Path) -> None:
    home(tmp_path)
    guest(tmp_path)
    found = listed(tmp_path)
    assert found["brought"][HOOK] == ["alphabetical"]
    assert found["plugins"]["a-guest"]["kinds"] == ["ranking", "sink"]
    (kind,) = found["kinds"]
    assert (kind["distribution"], kind["version"], kind["kinds"]) == ("rankings-home", "1.2", ["ranking"])


def test_a_declaration_is_imported_only_where_something_is_registered(tmp_path: Path) -> None:
    home(tmp_path)
    assert listed(tmp_path)["early"] is False


def test_without_the_package_that_declares_it_the_rest_works(tmp_path: Path) -> None:
    guest(tmp_path)
    found = listed(tmp_path)
    info = found["plugins"]["a-guest"]
    assert (info["state"], info["kinds"], "beside" in found["sinks"]) == ("active", ["sink"], True)
    assert f"{HOOK} is not called: no installed distribution declares it" in info["reason"]


@pytest.mark.parametrize("environment", [{"KARENINA_PLUGINS": "a-guest"}, {"KARENINA_DISABLE": "rankings-home"}])
def test_a_kind_is_there_whatever_plugins_are_blocked(tmp_path: Path, environment: dict[str, str]) -> None:
    home(tmp_path)
    guest(tmp_path)
    assert listed(tmp_path, **environment)["brought"][HOOK] == ["alphabetical"]


BROKEN = {
    "needs the package 'no_such_package', which is not installed": ("import no_such_package\n", ":Rankings"),
    "cannot be imported: RuntimeError: bad luck": ("raise RuntimeError('bad luck')\n", ":Rankings"),
    "Gone": (KINDS, ":Gone"),
    "is not a kind of things": (KINDS, ""),
    "its hook is 'karenina_register_orders'": (KINDS.replace("_rankings", "_orders"), ":Rankings"),
}
"""What is said of a declaration: the module, and what its entry point names in it."""


def test_broken_declarations_are_listed_and_so_is_what_depends_on_them(tmp_path: Path) -> None:
    for number, (source, target) in enumerate(BROKEN.values()):
        home(tmp_path, source, target, str(number))
        guest(tmp_path, str(number))
    found = listed(tmp_path)
    kinds = {kind["distribution"]: kind for kind in found["kinds"]}
    assert len(kinds) == len(found["kinds"]) == len(BROKEN)
    for number, said in enumerate(BROKEN):
        kind = kinds[f"rankings-home{number}"]
        assert kind["state"] == "failed"
        assert said in kind["reason"]
        info = found["plugins"][f"a-guest{number}"]
        assert (info["state"], info["kinds"]) == ("active", ["sink"])
        assert f"karenina_register_rankings{number} is not called: rankings-home{number} declares" in info["reason"]
        assert said in info["reason"]
        assert said in found["inactive"]
    assert {p["state"] for p in found["plugins"].values()} == {"active"}


def test_two_packages_that_declare_one_kind_are_both_named_and_the_first_keeps_it(tmp_path: Path) -> None:
    home(tmp_path)
    guest(tmp_path)
    points = {"karenina.kinds": {"rankings": "another_home:Rankings", "sinks": "another_home:Sinks"}}
    sinks = KINDS.replace("Rankings", "Sinks").replace("_rankings", "_sinks")
    install(tmp_path, "zz-another-home", {"another_home": KINDS + sinks}, points)
    found = listed(tmp_path)
    kept, refused = found["kinds"]
    assert (kept["state"], kept["distribution"]) == ("active", "rankings-home")
    assert (refused["state"], refused["distribution"]) == ("failed", "zz-another-home")
    assert refused["reason"] == "rankings-home declares karenina_register_rankings too; uninstall one of them"
    assert found["brought"][HOOK] == ["alphabetical"]
    assert "beside" in found["sinks"], "the core's own kind is not taken over"


def test_the_checks_of_a_plugin_find_a_declaration_of_its_package_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {
        "karenina.plugins": {"checked-guest": "checked_guest"},
        "karenina.kinds": {"orders": "checked_guest:Nothing"},
    }
    install(tmp_path, "checked-guest", {"checked_guest": PLUGIN.replace("_rankings", "_orders")}, points)
    monkeypatch.syspath_prepend(tmp_path)
    checks = {check.name: check for check in plugin_checks("checked-guest")}
    for name in ("loads", "kinds"):
        with pytest.raises(
            BrokenPromise, match="checked-guest declares karenina_register_orders, which cannot be used"
        ):
            checks[name].run()
