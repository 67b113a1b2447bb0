"""What the numbers of a run depend on: whatever of it changes is noticed and named, and nothing else is."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_calls.plugin_code import code_digest, libraries_of, library_digest
from karenina_calls.tools.tool_servers import address_digest
from karenina_runs.folder.fingerprint import _model, differences, digest_of, fingerprint, other_tools

from karenina_core import LLMRubricTrait, ModelConfig, Rubric, VerificationConfig, hookimpl, neutral
from karenina_core.errors import WorkspaceError
from karenina_core.plugin import hookspecs
from karenina_core.values.config import AttemptPolicy, RetryPolicy

Make = Callable[..., Any]


def of(here: Any, config: Any = None, **facts: Any) -> dict[str, Any]:
    """As it is after it was written to a file and read."""
    told: dict[str, Any] = json.loads(json.dumps(fingerprint(here.prepare(config, **facts)), default=str))
    return told


def test_the_same_run_has_the_same_fingerprint_in_another_process_order(world: Make) -> None:
    assert differences(of(world(questions=3)), of(world(questions=3))) == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"question": "What else?"}, "the question 'q1' has another text"),
        ({"raw_answer": "TP53"}, "the question 'q1' has another template"),
        ({"question": "What else?", "raw_answer": "TP53"}, "the question 'q1' has another text and another template"),
    ],
)
def test_what_changed_of_a_question_is_named(world: Make, make_question: Any, change: Any, named: str) -> None:
    before = of(world(questions=[make_question(0), make_question(1)]))
    now = of(world(questions=[make_question(0), evolve(make_question(1), **change)]))
    assert differences(before, now) == [named]


def test_a_changed_trait_is_another_rubric(world: Make) -> None:
    def asking(text: str) -> dict[str, Any]:
        rubric = Rubric(llm_traits=[LLMRubricTrait(name="safe", description=text, kind="boolean")])
        return fingerprint(evolve(world().prepare(), rubrics={"q0": rubric}))

    assert differences(asking("Is it safe?"), asking("Is it harmless?")) == ["the question 'q0' has another rubric"]


def test_questions_that_come_and_go_are_named(world: Make, make_question: Any) -> None:
    before = of(world(questions=[make_question(0), make_question(1)]))
    now = of(world(questions=[make_question(1), make_question(2)]))
    assert differences(before, now) == ["the question 'q0' is gone", "the question 'q2' is new"]


def test_a_template_that_checks_differently_is_another_template(world: Make, make_question: Any) -> None:
    asked = make_question(0)
    template = json.loads(asked.answer_template)
    template["fields"][0]["ground_truth"] = "TP53"
    now = of(world(questions=[evolve(asked, answer_template=json.dumps(template))]))
    assert differences(of(world(questions=[asked])), now) == ["the question 'q0' has another template"]


EXAMPLES = [{"question": "1 + 1?", "answer": "2"}, {"question": "2 + 2?", "answer": "4"}]
A_DAY = date(2026, 1, 1)
"""TOML and YAML have dates, and JSON has none."""


@pytest.mark.parametrize(
    "others",
    [
        *([], EXAMPLES[:1], EXAMPLES[::-1]),
        *([EXAMPLES[0], {**EXAMPLES[1], "answer": answer}] for answer in ("5", A_DAY)),
    ],
)
def test_other_examples_are_named(world: Make, make_question: Any, others: list[Any]) -> None:
    before, now = (of(world(questions=[make_question(0, few_shot_examples=told)])) for told in (EXAMPLES, others))
    assert differences(before, now) == ["the question 'q0' has other examples"]


def in_a_folder(world: Make, make_question: Any, root: Path, **config: Any) -> dict[str, Any]:
    here = world(questions=[make_question(0, workspace_path="work")], workspace_root=root)
    return of(here, here.config(**config))


def more(folder: Path) -> None:
    (folder / "deep" / "new.txt").write_text("new")


def other(folder: Path) -> None:
    (folder / "notes.txt").write_text("lonG")


def fewer(folder: Path) -> None:
    (folder / "notes.txt").unlink()


def moved(folder: Path) -> None:
    (folder / "notes.txt").rename(folder / "deep" / "notes.txt")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "work" / "deep").mkdir(parents=True)
    (tmp_path / "root" / "work" / "notes.txt").write_text("long")
    return tmp_path / "root"


@pytest.mark.parametrize("change", [more, other, fewer, moved])
def test_other_contents_of_a_workspace_are_named(world: Make, make_question: Any, root: Path, change: Any) -> None:
    before = in_a_folder(world, make_question, root)
    change(root / "work")
    assert differences(before, in_a_folder(world, make_question, root)) == ["the question 'q0' has another workspace"]


def test_caches_traces_of_judges_and_times_are_no_contents(world: Make, make_question: Any, root: Path) -> None:
    before = in_a_folder(world, make_question, root)
    for folder in ("__pycache__", ".karenina"):
        (root / "work" / folder).mkdir()
        (root / "work" / folder / "new.txt").write_text("new")
    os.utime(root / "work" / "notes.txt", (1, 1))
    assert differences(before, in_a_folder(world, make_question, root)) == []


def test_a_folder_that_the_run_itself_changes_is_known_by_its_path(world: Make, make_question: Any, root: Path) -> None:
    before = in_a_folder(world, make_question, root, workspace_copy=False)
    other(root / "work")
    assert differences(before, in_a_folder(world, make_question, root, workspace_copy=False)) == []


ADDRESS = "https://user:hunter2@tools.example/mcp?dataset=train"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("python server.py --db snapshot-2024", "python server.py --db snapshot-2026"),
        (ADDRESS, "https://user:hunter2@tools.example/mcp?dataset=test"),
        (ADDRESS, "https://user:hunter3@tools.example/mcp?dataset=train"),
    ],
)
def test_another_address_of_a_tool_server_is_named_and_gives_nothing_away(before: str, now: str) -> None:
    here, there = (
        _model(VerificationConfig(), ModelConfig(model_name="m", mcp_urls_dict={"db": at})) for at in (before, now)
    )
    assert here != there
    assert here == _model(VerificationConfig(), ModelConfig(model_name="m", mcp_urls_dict={"db": before}))
    told = {"models": {"answering": {"m": here}, "parsing": {}}}
    (line,) = differences(told, {"models": {"answering": {"m": there}, "parsing": {}}})
    assert line.startswith("the answering model m: mcp_urls_dict was ")
    assert not [secret for secret in ("hunter", "snapshot", "train", "dataset") if secret in json.dumps([here, line])]


def test_the_digest_of_an_address_belongs_to_its_server() -> None:
    assert address_digest("a", ADDRESS) == address_digest("a", ADDRESS) != address_digest("b", ADDRESS)
    assert len(address_digest("a", ADDRESS)) == 16


@pytest.mark.parametrize("limit", [None, 1.0])
def test_prices_decide_where_work_ends_that_may_cost_so_much(world: Make, limit: float | None) -> None:
    here = world()
    prices = ({"input_cost_per_token": 0.1, "output_cost_per_token": cost} for cost in (0.1, 0.2))
    before, now = (of(here, here.config(**with_model(agent_max_cost_usd=limit, **price))) for price in prices)
    named = "the answering model answering:a: output_cost_per_token was 0.1 and is 0.2"
    assert differences(before, now) == ([named] if limit else [])


def row(*tools: str, digest: str = "1", server: str = "s") -> dict[str, Any]:
    return {"model": "m", "server": server, "tools": list(tools), "digest": digest}


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (row("a", "b"), []),
        (row("a", "c", digest="2"), ["offers other tools (+c, -b)"]),
        (row("a", "b", digest="2"), ["describes its tools differently"]),
        (row("a", "b", server="other"), []),  # whose address is another one, too
    ],
)
def test_other_tools_of_a_server_are_named(now: dict[str, Any], named: list[str]) -> None:
    told = [f"the tool server 's' of the model m {what} than when the run began" for what in named]
    assert list(other_tools([row("a", "b")], [now])) == told


def with_model(**facts: Any) -> dict[str, Any]:
    return {"answering_models": [ModelConfig(model_name="a", interface="answering", **facts)]}


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (
            {"use_full_trace_for_template": True},
            "the setting use_full_trace_for_template was false and is true",
        ),
        (with_model(max_tokens=5), "the answering model answering:a: max_tokens was null and is 5"),
        (
            with_model(extra_kwargs={"seed": 1}),
            'the answering model answering:a: extra_kwargs was {} and is {"seed": 1}',
        ),
        (
            with_model(extra_kwargs={"since": A_DAY}),
            'the answering model answering:a: extra_kwargs was {} and is {"since": "2026-01-01"}',
        ),
        (
            with_model(endpoint_base_url="http://localhost:1/v1"),
            'the answering model answering:a: endpoint_base_url was null and is "http://localhost:1/v1"',
        ),
    ],
)
def test_a_changed_setting_is_named_with_both_values(world: Make, facts: dict[str, Any], named: str) -> None:
    here = world()
    assert differences(of(here), of(here, here.config(**facts))) == [named]


def test_another_model_is_new_and_the_old_one_is_gone(world: Make) -> None:
    here = world()
    other = [ModelConfig(model_name="b", interface="answering")]
    assert differences(of(here), of(here, here.config(answering_models=other))) == [
        "the answering model answering:a is gone",
        "the answering model answering:b is new",
    ]


def test_what_changes_no_number_is_no_difference(world: Make) -> None:
    here = world()
    patient = RetryPolicy(server=AttemptPolicy(9, 1.0, 2.0, 2.0))
    models = [
        ModelConfig(
            model_name="a", interface="answering", requests_per_minute=7, request_timeout=3, retry_policy=patient
        )
    ]
    config = here.config(
        answering_models=models, concurrency=31, retry_policy=patient, budget_tokens=10, request_timeout=3
    )
    assert differences(of(here), of(here, config)) == []


def test_the_code_of_a_plugin_is_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "made_up_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("", "utf-8")
    (package / "inner.py").write_text("x = 1\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    code_digest.cache_clear()
    first = code_digest("made_up_plugin")
    assert first == code_digest("made_up_plugin") != ""
    (package / "inner.py").write_text("x = 2\n", "utf-8")
    code_digest.cache_clear()
    second = code_digest("made_up_plugin")
    code_digest.cache_clear()
    assert first != second
    before = {"code": {"odd": {"distribution": "karenina-odd", "version": "1.0", "digest": first}}}
    now = {"code": {"odd": {"distribution": "karenina-odd", "version": "1.0", "digest": second}}}
    assert differences(before, now) == ["the code of karenina-odd 1.0 (plugin 'odd') has changed"]
    newer = {"code": {"odd": {"distribution": "karenina-odd", "version": "1.1", "digest": second}}}
    assert differences(before, newer) == ["karenina-odd (plugin 'odd') was version 1.0 and is 1.1"]
    assert differences(before, {"code": {}}) == ["the plugin 'odd' is gone"]


def test_other_code_of_the_core_is_named(world: Make) -> None:
    before = of(world())
    code = {**before["code"], "karenina-core": {**before["code"]["karenina-core"], "digest": "another"}}
    told = f"the code of karenina-core {version('karenina-core')} (plugin 'karenina-core') has changed"
    assert differences(before, {**before, "code": code}) == [told]


def test_a_core_that_is_not_installed_has_no_version_and_says_so(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_found(distribution: str) -> str:
        raise PackageNotFoundError(distribution)

    before = of(world())
    monkeypatch.setattr("karenina_runs.folder.fingerprint._version", not_found)
    told = f"was version {version('karenina-core')} and is not installed"
    assert any(line.endswith(told) for line in differences(before, of(world())))


def _installed(folder: Path, name: str, *needs: str, package: str = "", code: str = "") -> None:
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    lines = "".join(f"Requires-Dist: {need}\n" for need in needs)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{lines}", "utf-8")
    if package:
        (folder / f"{package}.py").write_text(code, "utf-8")
        (about / "entry_points.txt").write_text(f"[karenina.names]\nx = {package}:NAMES\n", "utf-8")


def test_the_libraries_that_plugins_share_count_as_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are declared, however far away, and made for karenina; extras and packages for anybody do not."""
    monkeypatch.syspath_prepend(tmp_path)
    _installed(tmp_path, "odd-plugin", "karenina-core>=0.1", "odd-library[x]>=1", "attrs")
    _installed(tmp_path, "odd-library", "karenina-core", "odd-deep (>=1)", 'odd-extra; extra == "x"', "attrs")
    _installed(tmp_path, "odd-deep", "karenina-core~=0.1", "odd-library", package="odd_package", code="A = 1\n")
    _installed(tmp_path, "odd-extra", "karenina-core")
    assert libraries_of(["odd-plugin"]) == ["karenina-core", "odd-deep", "odd-library"]
    assert libraries_of(["no-such-distribution"]) == []
    before = library_digest("odd-deep")
    code_digest.cache_clear()
    (tmp_path / "odd_package.py").write_text("A = 2\n", "utf-8")
    assert before not in ("", library_digest("odd-deep"))


def test_code_that_cannot_be_found_has_no_digest() -> None:
    assert code_digest("no_such_package_at_all") == ""


def test_plugins_that_make_numbers_are_in_it_and_those_that_only_look_are_not(world: Make) -> None:
    class Looks:
        @hookimpl
        def karenina_item_finished(self, result: Any) -> None:
            """Does nothing."""

    class Instructs:
        @hookimpl
        def karenina_register_instructions(self, registry: Any) -> None:
            registry.add(lambda task, interface, context: None)

    told = of(world(Looks(), Instructs()))["code"]
    assert [name for name in told if "Instructs" in name or "instructs" in name]
    code = of(world(Looks()))["code"]
    assert {"karenina-core", "verify-template", "declarative-runtime", "answering"} <= set(code)
    assert not [name for name in code if "Looks" in name or "looks" in name]
    assert code["karenina-core"]["digest"]


class ReadsProse:
    """A runtime for templates in prose, and the strategy that fills them."""

    name = "prose"
    languages = frozenset({"prose"})
    executes_code = False
    isolation = "no-code"
    strategy = "prose"

    @hookimpl
    def karenina_register_template_runtimes(self, registry: Any) -> None:
        registry.add(self, name="prose")

    @hookimpl
    def karenina_register_strategies(self, registry: Any) -> None:
        registry.add("no_such_module:Prose", name="prose")


def test_a_runtime_and_its_strategy_count_where_a_template_is_in_its_language(world: Make, make_question: Any) -> None:
    ours, theirs = make_question(0), make_question(1, answer_template="It says so.", template_language="prose")
    assert differences(of(world(questions=[ours])), of(world(ReadsProse(), questions=[ours]))) == []
    before, now = (of(world(*there, questions=[ours, theirs])) for there in ((), (ReadsProse(),)))
    (name,) = set(now["code"]) - set(before["code"])
    assert differences(before, now) == [f"the plugin '{name}' is new"]


WRAPPING = ["karenina_wrap_call", "karenina_wrap_stage"]


def wrapping(hook: str, mark: Callable[[Any], Any] = lambda function: function) -> Any:
    def stands_in_front() -> None:
        """Leaves everything as it is."""

    return type("Stands", (), {hook: staticmethod(hookimpl(mark(stands_in_front)))})()


@pytest.mark.parametrize("hook", WRAPPING)
def test_what_stands_in_front_of_models_and_stages_is_in_it(world: Make, hook: str) -> None:
    without, there = of(world()), of(world(wrapping(hook)))
    (name,) = set(there["code"]) - set(without["code"])
    assert differences(without, there) == [f"the plugin '{name}' is new"]
    assert differences(there, without) == [f"the plugin '{name}' is gone"]


@pytest.mark.parametrize("hook", WRAPPING)
def test_what_only_traces_or_records_may_come_and_go(world: Make, hook: str) -> None:
    assert differences(of(world()), of(world(wrapping(hook, neutral)))) == []


def test_what_surrounds_items_cannot_change_their_results(world: Make) -> None:
    assert differences(of(world()), of(world(wrapping("karenina_wrap_item")))) == []


def test_no_hook_that_wraps_is_forgotten() -> None:
    hooks = {name for name in vars(hookspecs) if name.startswith("karenina_wrap_")}
    assert hooks == {*WRAPPING, "karenina_wrap_item"}


# Differences of plain data

CODE = {"distribution": "d", "version": "1", "digest": "x"}


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        ({}, {}, []),
        ({"answers": "1"}, {"answers": "1"}, []),
        ({"answers": "1"}, {"answers": "2"}, ["the answers that the run was given have changed"]),
        ({}, {"answers": "2"}, ["the answers that the run was given have changed"]),
        ({"versions": {"a": "1"}}, {"versions": {"a": "2"}}, ['the version of a was "1" and is "2"']),
        ({"versions": {"a": "1"}}, {}, ['the version of a was "1" and is null']),
        ({}, {"versions": {"a": "1"}}, ['the version of a was null and is "1"']),
        ({"settings": {"a": 1}}, {}, ["the setting a was 1 and is null"]),
        ({}, {"settings": {"a": 1}}, ["the setting a was null and is 1"]),
        ({"plugins": {"p": {"a": 1}}}, {"plugins": {"p": {"a": 2}}}, ["the setting plugins.p: a was 1 and is 2"]),
        ({"plugins": {"p": {"a": 1}}}, {}, ["the setting plugins.p: a was 1 and is null"]),
        ({}, {"plugins": {"p": {"a": 1}}}, ["the setting plugins.p: a was null and is 1"]),
        ({"code": {"p": CODE}}, {}, ["the plugin 'p' is gone"]),
        ({}, {"code": {"p": CODE}}, ["the plugin 'p' is new"]),
        ({"models": {"parsing": {"m": {}}}}, {}, ["the parsing model m is gone"]),
        ({}, {"models": {"parsing": {"m": {}}}}, ["the parsing model m is new"]),
        ({"questions": {"q": {}}}, {}, ["the question 'q' is gone"]),
        ({}, {"questions": {"q": {}}}, ["the question 'q' is new"]),
        (
            {"questions": {"q": {"a": "1"}}},
            {"questions": {"q": {"b": "1"}}},
            ["the question 'q' has another a and another b"],
        ),
    ],
)
def test_each_part_is_compared(before: dict[str, Any], now: dict[str, Any], named: list[str]) -> None:
    assert differences(before, now) == named


@pytest.mark.parametrize(
    ("value", "shown"),
    [("é" * 78, f'"{"é" * 78}"'), ("é" * 79, f'"{"é" * 76}...'), ("é" * 500, f'"{"é" * 76}...')],
)
def test_a_long_value_is_cut(value: str, shown: str) -> None:
    assert differences({}, {"settings": {"a": value}}) == [f"the setting a was null and is {shown}"]


def test_every_server_of_every_model_is_looked_at() -> None:
    before = [row("a", server=name) for name in ("one", "two", "three")]
    now = [row("a", server="new"), row("a", server="one"), *(row("b", server=s, digest="2") for s in ("two", "three"))]
    assert [line.partition(" of the model")[0] for line in other_tools(before, now)] == [
        "the tool server 'two'",
        "the tool server 'three'",
    ]


# What is in it


def test_other_recorded_answers_are_another_model(world: Make) -> None:
    def recorded(answers: dict[str, Any] | None) -> dict[str, Any]:
        return _model(VerificationConfig(), ModelConfig(model_name="m", interface="manual", manual_traces=answers))

    here, there = recorded({"a": "1", "b": "2"}), recorded({"a": "1", "b": "3"})
    assert here == recorded({"b": "2", "a": "1"}), "their order means nothing"
    assert {name for name in here if here[name] != there[name]} == {"recorded_answers"}
    assert "recorded_answers" not in _model(VerificationConfig(), ModelConfig(model_name="m"))


@pytest.mark.parametrize("limit", ["workspace_max_bytes", "workspace_max_files"])
def test_a_workspace_that_has_grown_too_large_to_copy_has_no_fingerprint(
    world: Make, make_question: Any, root: Path, limit: str
) -> None:
    (root / "work" / "deep" / "more.txt").write_text("more")
    prepared = world(questions=[make_question(0, workspace_path="work")], workspace_root=root).prepare()
    with pytest.raises(WorkspaceError, match=limit):
        fingerprint(evolve(prepared, config=evolve(prepared.config, **{limit: 1})))


def test_a_rubric_tells_its_traits_and_which_are_dynamic(world: Make) -> None:
    def traits(**provenance: Any) -> dict[str, str]:
        llm_traits = [LLMRubricTrait(name=name, description="?", kind="boolean") for name in "ab"]
        rubrics = {"q0": Rubric(llm_traits=llm_traits, provenance=provenance), "q1": None}
        (found,) = fingerprint(evolve(world().prepare(), rubrics=rubrics))["rubrics"].values()
        return dict(found)

    plain, changed = traits(), traits(b="dynamic")
    assert set(plain) == {"a", "b"}
    assert {name for name in plain if plain[name] != changed[name]} == {"b"}


def test_the_mode_is_the_one_that_is_used(world: Make) -> None:
    prepared = world().prepare()
    found = fingerprint(prepared)
    assert found["settings"]["evaluation_mode"] == prepared.mode
    assert [name for name in ("plugins", "code") if list(found[name]) != sorted(found[name])] == []
    assert found["versions"] == {"python": platform.python_version(), "karenina-core": version("karenina-core")}


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"karenina")
    assert digest_of(tmp_path / "file") == hashlib.sha256(b"karenina").hexdigest()
    assert digest_of(tmp_path / "none") is None
