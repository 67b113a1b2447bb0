"""Workspaces: one folder per answer, made before and gone after, with the originals as they were."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from karenina_calls.files.folders import Limits, copy_tree, remove_tree
from karenina_judging.services import WORKSPACE_COPY
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.plan.items import Item
from karenina_runs.workspaces.workspace_capture import CaptureRow, capture, safe_name, snapshot
from karenina_runs.workspaces.workspace_sources import source_folder
from karenina_runs.workspaces.workspaces import Workspaces

from karenina_core import (
    AgenticRubricTrait,
    ArtifactKeys,
    Benchmark,
    Category,
    LLMRubricTrait,
    ModelConfig,
    Rubric,
    Stage,
    VerificationConfig,
    arun_single_model_verification,
    hookimpl,
    run_single_model_verification,
)
from karenina_core.errors import ConfigError, PortError, WorkspaceError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]
LAW = settings(database=None, deadline=None, max_examples=40)
LIMITS = Limits(max_bytes=10_000_000, max_files=1000)
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j1", "j2")]
ANSWERERS = [ModelConfig(model_name=name, interface="answering") for name in ("a1", "a2")]


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def files(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace root with the folder `rivers` of the questions."""
    (tmp_path / "root").mkdir()
    write(tmp_path / "root" / "rivers", {"data.csv": "loire", "deep/notes.txt": "long"})
    return tmp_path / "root"


class Working(Stage):
    """Plays an agent that works in the workspace while others do the same."""

    category = Category.GUARD
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

    def __init__(self) -> None:
        self.seen: list[tuple[Path, dict[str, str]]] = []

    async def execute(self, context: Any) -> None:
        place = context.workspace
        if context.cached_answer_data is None:
            (place / "answer.txt").write_text(str(context.task.answering))
        await asyncio.sleep(0.02)
        async with context.service(WORKSPACE_COPY)() as copy:
            self.seen.append((place, files(copy)))
            (copy / "answer.txt").write_text("spoiled by a judge")
            (copy / "data.csv").unlink(missing_ok=True)
        assert not copy.exists()


def playing(stage: Stage) -> Any:
    class Plays:
        @hookimpl
        def karenina_register_stages(self, registry: Any) -> None:
            registry.add(stage)

    return Plays()


def an_item(make_question: Make, **facts: Any) -> Item:
    rubric = facts.pop("rubric", None)
    return Item(make_question(0, **facts), ANSWERERS[0], JUDGES[0], 1, rubric, None)  # type: ignore[arg-type]


# Each answer has its own


def test_two_models_at_work_on_one_question_in_the_same_instant_never_meet(
    world: Make, make_question: Make, root: Path
) -> None:
    agent = Working()
    here = world(playing(agent), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    results = here.run(here.config(answering_models=ANSWERERS, replicate_count=4, concurrency=8))
    assert {r.metadata.outcome for r in results} == {"passed"}
    assert len({place for place, _ in agent.seen}) == 8
    owners = sorted(found["answer.txt"] for _, found in agent.seen)
    assert owners == ["answering:a1"] * 4 + ["answering:a2"] * 4
    assert all(found["data.csv"] == "loire" for _, found in agent.seen)
    assert [p.name for p in root.iterdir()] == ["rivers"]
    assert files(root / "rivers") == {"data.csv": "loire", "deep/notes.txt": "long"}


def test_names_do_not_clash_between_threads(root: Path) -> None:
    async def made() -> list[Path]:
        spaces = Workspaces(root, VerificationConfig())
        return await asyncio.gather(*(spaces.copied(None, "run", "q") for _ in range(60)))

    assert len(set(asyncio.run(made()))) == 60


def test_all_judges_of_an_answer_see_what_its_model_left(world: Make, make_question: Make, root: Path) -> None:
    agent = Working()
    here = world(playing(agent), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    here.run(here.config(parsing_models=JUDGES))
    (one, seen), (two, seen_too) = agent.seen
    assert one == two
    assert seen == seen_too == {"answer.txt": "answering:a", "data.csv": "loire", "deep/notes.txt": "long"}


def test_an_answer_that_is_tried_again_begins_in_a_fresh_workspace(
    world: Make, make_question: Make, root: Path
) -> None:
    class Littering(Stage):
        category = Category.GENERATION
        before = ("GenerateAnswer",)
        found: list[list[str]] = []

        def execute(self, context: Any) -> None:
            self.found.append(sorted(os.listdir(context.workspace)))
            (context.workspace / "litter").write_text("x")

    answerer = ScriptedLLM(PortError("down", kind="server"), "It is BCL2.")
    stage = Littering()
    here = world(
        playing(stage),
        answerer=answerer,
        questions=[make_question(0, workspace_path="rivers")],
        workspace_root=root,
    )
    first, second = here.run(here.config(parsing_models=JUDGES))
    assert (str(first.outcome), str(second.outcome)) == ("error(server)", "passed")
    assert stage.found == [["data.csv", "deep"]] * 2


# Who has one


def agentic(mode: str = "trace_and_workspace") -> Rubric:
    trait = AgenticRubricTrait(name="tidy", kind="boolean", description="Is it tidy?", context_mode=mode)  # type: ignore[arg-type]
    return Rubric(agentic_traits=[trait])


@pytest.mark.parametrize(
    ("facts", "rubric", "config", "has"),
    [
        ({}, None, {}, False),
        ({"workspace_path": "rivers"}, None, {}, True),
        ({}, None, {"features": ["agentic_parsing"]}, True),
        ({}, agentic(), {"evaluation_mode": "rubric_only"}, True),
        ({}, agentic("workspace_only"), {}, True),
        ({}, agentic("trace_only"), {}, False),
        ({}, Rubric(llm_traits=[LLMRubricTrait(name="clear", kind="boolean")]), {}, False),
    ],
)
def test_a_workspace_is_made_where_somebody_looks_at_it(
    make_question: Make, root: Path, facts: Any, rubric: Rubric | None, config: Any, has: bool
) -> None:
    async def opened() -> bool:
        spaces = Workspaces(root, VerificationConfig(**config))
        async with spaces.opened(an_item(make_question, rubric=rubric, **facts)) as workspace:
            return workspace is not None and workspace.path is not None and workspace.path.is_dir()

    assert asyncio.run(opened()) is has


def test_a_model_with_tools_has_one_where_there_is_a_root(make_question: Make, root: Path) -> None:
    model = ModelConfig(model_name="a", interface="answering", mcp_urls_dict={"t": "http://localhost:1"})
    item = evolve(an_item(make_question), answering=model)

    async def opened(folder: Path | None) -> list[str] | None:
        async with Workspaces(folder, VerificationConfig()).opened(item) as workspace:
            return None if workspace is None else os.listdir(workspace.path)

    assert asyncio.run(opened(root)) == []
    assert asyncio.run(opened(None)) is None


# Refused before any call


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("../outside", "must name a folder beneath"),
        ("/etc", "must name a folder beneath"),
        ("rivers/../../outside", "must name a folder beneath"),
        (".", "must name a folder beneath"),
        ("rivers\0", "must name a folder beneath"),
        ("missing", "there is no folder"),
        ("way-out", "leads out of"),
        ("way-out/inner", "leads out of"),
        ("rivers/data.csv", "is not a folder"),
    ],
)
def test_a_folder_that_is_missing_or_leads_out_of_the_root_is_refused(
    world: Make, make_question: Make, root: Path, path: str, says: str
) -> None:
    (root.parent / "outside" / "inner").mkdir(parents=True)
    (root / "way-out").symlink_to(root.parent / "outside")
    here = world(questions=[make_question(0, workspace_path=path)], workspace_root=root)
    with pytest.raises(ConfigError, match=says):
        here.run()
    assert here.answerer.calls == []
    with pytest.raises(WorkspaceError, match=says):
        source_folder(root, path)


def test_no_root_is_refused_with_a_remedy(world: Make, make_question: Make) -> None:
    here = world(questions=[make_question(0, workspace_path="rivers")])
    with pytest.raises(ConfigError, match=r"there is none, and question q0 works in .*--workspace-root DIR"):
        here.run()
    assert here.answerer.calls == []


def test_a_root_that_is_missing_is_refused(world: Make, make_question: Make, tmp_path: Path) -> None:
    here = world(questions=[make_question(0, workspace_path="a")], workspace_root=tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"there is no folder .*nowhere; make it"):
        here.run()


def test_a_folder_with_a_link_that_leads_out_is_refused(world: Make, make_question: Make, root: Path) -> None:
    (root / "rivers" / "passwords").symlink_to("/etc/passwd")
    here = world(questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    with pytest.raises(ConfigError, match=r"passwords is a link that leads out .*; replace it with its target"):
        here.run()


def test_a_folder_with_a_pipe_is_refused(world: Make, make_question: Make, root: Path) -> None:
    os.mkfifo(root / "rivers" / "pipe")
    here = world(questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    with pytest.raises(ConfigError, match="pipe is neither a file nor a folder nor a link; remove it"):
        here.run()


@pytest.mark.parametrize("limit", ["workspace_max_bytes", "workspace_max_files"])
def test_a_folder_that_holds_more_than_allowed_is_refused(
    world: Make, make_question: Make, root: Path, limit: str
) -> None:
    here = world(questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    with pytest.raises(ConfigError, match=f"take some out, or raise {limit}"):
        here.run(here.config(**{limit: 2}))
    here.run(here.config(**{limit: 1000}))


def test_keeping_workspaces_needs_a_run_directory(world: Make, make_question: Make, root: Path) -> None:
    here = world(questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    with pytest.raises(ConfigError, match=r"workspace_output_mode: .*give run_dir, or set it to none"):
        here.run(here.config(workspace_output_mode="full"))


def test_a_folder_that_vanishes_after_the_check_is_the_items_error(
    world: Make, make_question: Make, root: Path
) -> None:
    here = world(questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    prepared = here.prepare()
    remove_tree(root / "rivers")
    (result,) = asyncio.run(execute(prepared))
    assert str(result.outcome) == "error(stage)"
    assert "there is no folder" in (result.metadata.error or "")
    assert here.answerer.calls == []


# Always taken away, and only the copies


def test_without_cleanup_the_copies_stay(world: Make, make_question: Make, root: Path) -> None:
    agent = Working()
    here = world(playing(agent), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    here.run(here.config(workspace_cleanup=False))
    kept = [p for p in root.iterdir() if p.name != "rivers"]
    assert [p.name.startswith("q0_run_") for p in kept] == [True]
    assert files(kept[0])["answer.txt"] == "answering:a"


def test_without_copies_the_folder_itself_is_used_by_one_answer_at_a_time(
    world: Make, make_question: Make, root: Path
) -> None:
    agent = Working()
    here = world(playing(agent), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    config = here.config(answering_models=ANSWERERS, workspace_copy=False)
    assert any("workspace_copy is off and several answers" in note for note in here.prepare(config).notes)
    here.run(config)
    assert {place for place, _ in agent.seen} == {root / "rivers"}
    assert sorted(found["answer.txt"] for _, found in agent.seen) == ["answering:a1", "answering:a2"]
    assert [p.name for p in root.iterdir()] == ["rivers"]
    assert (root / "rivers" / "data.csv").exists()


def test_a_run_that_is_cancelled_leaves_no_copy(world: Make, make_question: Make, root: Path, tmp_path: Path) -> None:
    class Waiting(Stage):
        category = Category.GUARD
        requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

        async def execute(self, context: Any) -> None:
            async with context.service(WORKSPACE_COPY)() as copy:
                assert copy.is_dir()
                begun.set()
                await asyncio.sleep(60)

    here = world(playing(Waiting()), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)

    async def cancelled() -> None:
        task = asyncio.create_task(execute(here.prepare(), Destination(run_dir=tmp_path / "run")))
        await begun.wait()
        assert len(list(root.iterdir())) == 3
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    begun = asyncio.Event()
    asyncio.run(cancelled())
    assert [p.name for p in root.iterdir()] == ["rivers"]


def test_a_run_that_crashes_leaves_no_copy(world: Make, make_question: Make, root: Path) -> None:
    here = world(questions=[make_question(0, workspace_path="rivers")], workspace_root=root)

    def crash(result: Any) -> None:
        raise RuntimeError("the progress display broke")

    with pytest.raises(RuntimeError, match="broke"):
        asyncio.run(execute(here.prepare(), on_result=crash))
    assert [p.name for p in root.iterdir()] == ["rivers"]


def test_a_final_stage_that_raises_leaves_no_copy(world: Make, make_question: Make, root: Path) -> None:
    class Breaking:
        @hookimpl
        def karenina_wrap_stage(self, stage: Any) -> Any:
            async def around(context: Any, proceed: Any) -> None:
                raise ValueError("no result")

            return around if stage.final else None

    here = world(Breaking(), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    (result,) = here.run()
    assert str(result.outcome) == "error(stage)"
    assert [p.name for p in root.iterdir()] == ["rivers"]


def test_a_copy_that_is_interrupted_is_taken_away(root: Path) -> None:
    for number in range(300):
        (root / "rivers" / f"{number}.txt").write_text("x" * 1000)

    async def interrupted(after: float) -> None:
        spaces = Workspaces(root, VerificationConfig())
        task = asyncio.create_task(spaces.copied(root / "rivers", "run"))
        await asyncio.sleep(after)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        spaces.close()

    for after in (0, 0.001, 0.004):
        asyncio.run(interrupted(after))
        assert [p.name for p in root.iterdir()] == ["rivers"]


def test_deep_and_protected_folders_are_taken_away_and_no_link_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    precious = write(tmp_path / "precious", {"a.txt": "a"})
    folder = tmp_path / "folder"
    folder.mkdir()
    os.chdir(folder)
    for _ in range(1500):  # deeper than a path can be long
        os.mkdir("dir")
        os.chdir("dir")
    os.chdir(tmp_path)
    (folder / "link").symlink_to(precious)
    write(folder / "locked", {"x": "x"})
    (folder / "locked").chmod(0)
    remove_tree(folder)
    assert not folder.exists()
    assert files(precious) == {"a.txt": "a"}
    remove_tree(folder)


# Copies


def test_links_that_stay_inside_stay_links_and_others_are_left_out(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {"a.txt": "a", "deep/b.txt": "b"})
    (source / "inside").symlink_to("deep/b.txt")
    (source / "deep" / "up").symlink_to("../a.txt")
    (source / "absolute").symlink_to(source / "deep")
    (source / "outside").symlink_to("../secret")
    (source / "host").symlink_to("/etc/passwd")
    (source / "nowhere").symlink_to("later.txt")
    (source / "roundabout").symlink_to("../source/a.txt")  # a copy of it would lead to the original
    target = tmp_path / "target"
    target.mkdir()
    done = copy_tree(source, target, LIMITS)
    links = {p.name: os.readlink(p) for p in target.rglob("*") if p.is_symlink()}
    assert links == {"inside": "deep/b.txt", "up": "../a.txt", "absolute": "deep", "nowhere": "later.txt"}
    assert [text.split()[0] for text in done.left_out] == ["host", "outside", "roundabout"]
    assert (target / "absolute" / "b.txt").read_text() == "b"


def test_a_copy_shares_nothing_with_its_source(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {"run.sh": "echo", "b.txt": "b"})
    (source / "run.sh").chmod(0o4755)
    os.link(source / "b.txt", source / "hard.txt")
    (tmp_path / "target").mkdir()
    copy_tree(source, tmp_path / "target", LIMITS)
    (tmp_path / "target" / "b.txt").write_text("changed")
    assert files(source) == {"run.sh": "echo", "b.txt": "b", "hard.txt": "b"}
    assert (tmp_path / "target" / "hard.txt").read_text() == "b"
    assert (tmp_path / "target" / "run.sh").stat().st_mode & 0o7777 == 0o700


def test_what_an_agent_left_is_copied_within_limits(root: Path) -> None:
    async def looked() -> None:
        spaces = Workspaces(root, VerificationConfig(workspace_max_bytes=100))
        place = await spaces.copied(root / "rivers", "run")
        (place / "big").write_text("x" * 1000)
        with pytest.raises(WorkspaceError, match="raise workspace_max_bytes"):
            async with spaces.lent(place).investigation_copy():
                pass
        spaces.close()

    asyncio.run(looked())
    assert [p.name for p in root.iterdir()] == ["rivers"]


@given(st.text(max_size=200))
@example("../../etc")
@example("urn:uuid:1-2")
def test_any_question_id_is_a_plain_folder_name(text: str) -> None:
    name = safe_name(text)
    assert name not in ("", ".", "..")
    assert not {"/", "\0"} & set(name)
    assert len(name.encode()) <= 80


# Keeping what was produced

NAMES = st.sampled_from(["a.txt", "b.txt", "deep/a.txt", "deep/er/c.txt", "empty"])
TREES = st.dictionaries(NAMES, st.sampled_from(["", "one", "two", "uno"]), max_size=5)
ROW = CaptureRow(
    question_id="q/1", result_id="f00", run_name="r", replicate=1, answering="a", parsing="j", capture_mode="produced"
)


@LAW
@given(TREES, TREES)
def test_produced_is_exactly_what_is_new_or_changed(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, str], after: dict[str, str]
) -> None:
    base = tmp_path_factory.mktemp("law")
    place = base / "work"
    place.mkdir()
    write(place, before)
    was = snapshot(place, LIMITS)
    for gone in before.keys() - after.keys():
        (place / gone).unlink()
    write(place, after)
    row = capture(place, base / "kept", ROW, LIMITS, before=was, patterns=())
    expected = {name: text for name, text in after.items() if before.get(name) != text}
    assert row.status == "captured"
    assert row.destination == "q_1__f00"
    assert files(base / "kept" / "q_1__f00") == expected
    assert row.copied_file_count == len(expected)
    assert set((base / "kept").iterdir()) == {base / "kept" / "q_1__f00"}


def test_a_change_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    place = write(tmp_path / "work", {"a": "one", "b": "one"})
    was, facts = snapshot(place, LIMITS), (place / "a").stat()
    (place / "a").write_text("two")
    os.utime(place / "a", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    capture(place, tmp_path / "kept", ROW, LIMITS, before=was, patterns=())
    assert files(tmp_path / "kept" / "q_1__f00") == {"a": "two"}


def test_links_count_by_their_target_and_are_not_followed(tmp_path: Path) -> None:
    place = write(tmp_path / "work", {"a": "1", "b": "2"})
    (place / "same").symlink_to("a")
    (place / "turned").symlink_to("a")
    was = snapshot(place, LIMITS)
    (place / "turned").unlink()
    (place / "turned").symlink_to("b")
    (place / "escape").symlink_to("/etc/passwd")
    row = capture(place, tmp_path / "kept", ROW, LIMITS, before=was, patterns=())
    kept = tmp_path / "kept" / "q_1__f00"
    assert {p.name: os.readlink(p) for p in kept.iterdir()} == {"turned": "b"}
    assert (row.status, row.copy_errors) == (
        "captured_with_errors",
        ("escape is a link that leads out of the workspace",),
    )


def test_environments_caches_and_what_the_user_excludes_are_not_kept(tmp_path: Path) -> None:
    place = write(
        tmp_path / "work",
        {
            **{".venv/bin/python": "", "src/__pycache__/a.pyc": "", "b.pyc": "", "deep/.mypy_cache/x": ""},
            **{"out/a.log": "", "out/tmp/x": "", "tmp/x": "", "main.py": "print()", "venv.txt": "kept"},
        },
    )
    capture(place, tmp_path / "kept", ROW, LIMITS, before=None, patterns=("*.log", "out/tmp/"))
    assert files(tmp_path / "kept" / "q_1__f00") == {"main.py": "print()", "tmp/x": "", "venv.txt": "kept"}


def test_what_cannot_be_kept_is_told_in_the_row(tmp_path: Path) -> None:
    place = write(tmp_path / "work", {"a": "x" * 100})
    small = Limits(max_bytes=10, max_files=10)
    row = capture(place, tmp_path / "kept", ROW, small, before=None, patterns=())
    assert row.status == "skipped"
    assert "workspace_max_bytes" in (row.skip_reason or "")
    assert list((tmp_path / "kept").iterdir()) == []
    assert capture(tmp_path / "gone", tmp_path / "kept", ROW, LIMITS, before=None, patterns=()).status == "skipped"


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        ("produced", {"answer.txt": "answering:a"}),
        ("full", {"answer.txt": "answering:a", "data.csv": "loire", "deep/notes.txt": "long"}),
    ],
)
def test_every_result_of_a_run_has_its_folder_and_its_row(
    world: Make, make_question: Make, root: Path, tmp_path: Path, mode: str, kept: dict[str, str]
) -> None:
    asked = [make_question(0, workspace_path="rivers"), make_question(1)]
    agent = Working()
    agent.should_run = lambda context: context.workspace is not None  # type: ignore[method-assign]
    here = world(playing(agent), questions=asked, workspace_root=root)
    results = here.run(
        here.config(parsing_models=JUDGES, workspace_output_mode=mode), Destination(run_dir=tmp_path / "run")
    )
    folder = tmp_path / "run" / "workspaces"
    rows = {row["result_id"]: row for row in map(json.loads, (folder / "manifest.jsonl").read_text().splitlines())}
    assert set(rows) == {r.metadata.result_id for r in results}
    for row in rows.values():
        if row["question_id"] == "q0":
            assert (row["status"], row["destination"]) == ("captured", f"q0__{row['result_id']}")
            assert files(folder / row["destination"]) == kept
            assert row["copied_file_count"] == len(kept)
        else:
            assert (row["status"], row["skip_reason"]) == ("skipped", "the item needs no workspace")
    assert [p.name for p in root.iterdir()] == ["rivers"]


# Single items and files


def test_a_single_item_has_a_workspace_too(world: Make, make_question: Make, root: Path) -> None:
    agent = Working()
    here = world(playing(agent))
    asked = make_question(0, workspace_path="rivers")
    models = (here.config().answering_models[0], here.config().parsing_models[0])
    run_single_model_verification(asked, *models, workspace_root=root, app=here.app)
    assert agent.seen[0][1]["answer.txt"] == "answering:a"
    assert [p.name for p in root.iterdir()] == ["rivers"]
    with pytest.raises(ConfigError, match="--workspace-root"):
        run_single_model_verification(asked, *models, app=here.app)


def test_an_answer_from_before_brings_its_workspace_along(world: Make, make_question: Make, root: Path) -> None:
    agent = Working()
    here = world(playing(agent))
    left = write(root / "left", {"answer.txt": "from before"})
    models = (here.config().answering_models[0], here.config().parsing_models[0])
    cached = CachedAnswer(raw_llm_response="BCL2", workspace=left)
    asked = make_question(0, workspace_path="rivers")
    run_single_model_verification(asked, *models, workspace_root=root, cached_answer_data=cached, app=here.app)
    assert agent.seen == [(left, {"answer.txt": "from before"})]
    assert files(left) == {"answer.txt": "from before"}


@pytest.mark.parametrize("cached", [None, CachedAnswer(raw_llm_response="BCL2")])
def test_a_single_item_has_no_run_directory_to_keep_a_workspace_in(
    world: Make, make_question: Make, root: Path, cached: CachedAnswer | None
) -> None:
    here = world()
    asked = make_question(0, workspace_path="rivers")
    models = (here.config().answering_models[0], here.config().parsing_models[0])
    config = VerificationConfig(workspace_output_mode="produced")
    with pytest.raises(ConfigError, match=r"workspace_output_mode: .*a single verification has none; set it to none"):
        run_single_model_verification(
            asked, *models, config=config, workspace_root=root, cached_answer_data=cached, app=here.app
        )
    assert (here.answerer.calls, here.judge.calls) == ([], [])


def broken_removals(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on an awaited removal ends before it has done anything, as at a second interrupt."""

    async def removed(self: Workspaces, place: Path) -> None:
        raise RuntimeError("the removal was interrupted")

    monkeypatch.setattr(Workspaces, "removed", removed)


def test_the_copy_of_a_single_item_is_gone_after_a_second_interrupt_too(
    world: Make, make_question: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world()
    models = (here.config().answering_models[0], here.config().parsing_models[0])
    asked = make_question(0, workspace_path="rivers")
    broken_removals(monkeypatch)
    with pytest.raises(RuntimeError, match="the removal was interrupted"):
        asyncio.run(arun_single_model_verification(asked, *models, workspace_root=root, app=here.app))
    assert [p.name for p in root.iterdir()] == ["rivers"]


def test_the_copies_of_a_run_are_gone_after_a_second_interrupt_too(
    world: Make, make_question: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    broken_removals(monkeypatch)
    with pytest.raises(RuntimeError, match="the removal was interrupted"):
        here.run()
    assert [p.name for p in root.iterdir()] == ["rivers"]


def test_without_copies_an_answer_that_is_asked_for_again_does_not_wait_for_itself(
    world: Make, make_question: Make, root: Path
) -> None:
    answerer = ScriptedLLM(PortError("down", kind="server"), "It is BCL2.")
    here = world(
        playing(Working()),
        answerer=answerer,
        questions=[make_question(0, workspace_path="rivers")],
        workspace_root=root,
    )
    config = here.config(parsing_models=JUDGES, workspace_copy=False)
    first, second = asyncio.run(asyncio.wait_for(execute(here.prepare(config)), 20))
    assert (str(first.outcome), str(second.outcome)) == ("error(server)", "passed")


def test_what_an_answer_leaves_and_is_too_much_for_its_judges_says_what_to_raise(
    world: Make, make_question: Make, root: Path, tmp_path: Path
) -> None:
    class Filling(Working):
        async def execute(self, context: Any) -> None:
            for number in range(9):
                (context.workspace / f"{number}.txt").write_text("made")
            async with context.service(WORKSPACE_COPY)():
                raise AssertionError("there was too much to copy")

    here = world(playing(Filling()), questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    config = here.config(workspace_max_files=5, workspace_output_mode="full")
    (result,) = here.run(config, Destination(run_dir=tmp_path / "run"))
    told = "the workspace after the answer has more than 5 files and folders; raise workspace_max_files"
    assert told in (result.metadata.error or "")
    assert "take some out" not in (result.metadata.error or "")
    (row,) = map(json.loads, (tmp_path / "run" / "workspaces" / "manifest.jsonl").read_text().splitlines())
    assert told in json.dumps(row)
    assert "Traceback" not in json.dumps(row) + (result.metadata.error or "")


def test_the_root_is_given_when_a_file_is_loaded_and_never_written(
    tmp_path: Path, root: Path, make_question: Make
) -> None:
    made = Benchmark(name="b", questions=[make_question(0, workspace_path="rivers")], workspace_root=root)
    saved = made.save(tmp_path / "b.jsonld")
    assert str(root) not in saved.read_text()
    assert Benchmark.load(saved).workspace_root is None
    loaded = Benchmark.load(saved, root)
    assert loaded.workspace_root == root
    assert loaded.with_questions([]).workspace_root == root
