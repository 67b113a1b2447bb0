"""A skipped test is a test that did not run: under CI every skip must be listed in skips.txt, with its reason."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib.util
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.strategies import text

CORE, PLUGINS = (Path(__file__).parents[1] / name for name in ("karenina_core", "plugins"))
ALLOWED = Path(__file__).parent / "skips.txt"
EXAMPLES = 30
"""What hypothesis draws without `--long` for a test that names no number of its own: a third of what it draws by
itself. Chosen for the time of the suite."""
FEW = 15
"""What is drawn with `--hypothesis-profile karenina-few`: .ci/run looks with it at other versions of what is needed."""
for name, examples in (("karenina-short", EXAMPLES), ("karenina-few", FEW)):
    settings.register_profile(name, settings(), max_examples=examples, deadline=None)  # no machine is always quiet
FIRST = (
    *("tests/packaging/", "tests/docs/", "tests/faults/", "plugins/testing/tests/test_p"),
    *("plugins/report/tests/test_report_browser.py", "plugins/runs/tests/test_gateway"),
    *("plugins/embedding/", "plugins/sandbox/", "plugins/testing/", "plugins/cli/", "tests/guards/", "tests/e2e/"),
)
"""Files whose tests take the longest, most seconds a file first."""
UNLISTED = "karenina_unlisted_skips"


def allowed_skips(text: str) -> dict[str, str]:
    """`{test id: reason}` from lines `id: reason`. Raises ValueError for a line without a reason."""
    listed = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        test, separator, reason = line.partition(": ")
        if not separator or not reason.strip():
            raise ValueError(f"skips.txt, line {number}: write `test id: reason`")
        listed[test.strip()] = reason.strip()
    return listed


def is_allowed(test: str, listed: dict[str, str]) -> bool:
    """Whether the list names the test itself, or the file, class or parametrized function that it belongs to."""
    return any(test == prefix or test.startswith((f"{prefix}::", f"{prefix}[")) for prefix in listed)


class SkipGuard:
    """Fails a session under CI that skipped a test which is not listed.

    Registered as a plugin of its own: the hooks of a conftest.py see only the tests of their own folder, not those of
    the plugins.
    """

    def __init__(self, listed: dict[str, str]) -> None:
        self.listed = listed
        self.unlisted: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._see(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._see(report)

    def _see(self, report: Any) -> None:
        if report.skipped and not hasattr(report, "wasxfail") and not is_allowed(report.nodeid, self.listed):
            self.unlisted[report.nodeid] = str(report.longrepr[-1] if report.longrepr else "")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist has ended: only it has seen what was skipped while tests were collected."""
        self.unlisted |= getattr(node, "workeroutput", {}).get(UNLISTED, {})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output[UNLISTED] = self.unlisted
        if self.unlisted and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.unlisted:
            terminalreporter.section("skipped without being listed in tests/skips.txt", red=True)
            for test, reason in sorted(self.unlisted.items()):
                terminalreporter.line(f"{test}: {reason}")


class UnusedApplications:
    """Ends the threads of applications that tests have left, which else wait for the garbage collection."""

    MOST_THREADS = 50  # each has three file descriptors; 1,024 is a common limit
    OBJECTS = (7_000, 10, 10)
    """New objects between two collections, ten times what Python has: what hypothesis keeps is looked at ten times less
    often. Measured with Python's own, 3,255 tests of plugins: 22 of 285 CPU seconds, 15 of them in 59 full ones."""

    def __init__(self) -> None:
        self.kept = threading.active_count()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        """The tests themselves (thousands of them) are no garbage: without them a garbage collection takes a tenth,
        and to look for it while they are collected is a sixth of that."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.collect()
            gc.freeze()
            gc.set_threshold(*self.OBJECTS)
            gc.enable()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self) -> None:
        """Threads that a collection leaves, those of applications that modules of tests keep, ask for no other one."""
        running = threading.active_count()
        self.kept = min(self.kept, running)
        if running > self.kept + self.MOST_THREADS:
            gc.collect()
            self.kept = threading.active_count()


class SameFolder:
    """Fails a test that leaves another working folder to those after it, which read files by relative paths."""

    def __init__(self) -> None:
        self.folder = os.getcwd()

    @pytest.hookimpl(trylast=True)  # after monkeypatch and other fixtures are undone
    def pytest_runtest_teardown(self) -> None:
        if (folder := os.getcwd()) != self.folder:
            os.chdir(self.folder)
            pytest.fail(f"the test left the working folder {folder}; change it by monkeypatch.chdir", pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # it is there, where tests and plugins are both named
        parser.addoption("--long", action="store_true", help="Tests with a short and a full form run in the full one.")


@pytest.fixture(scope="session")
def long(pytestconfig: pytest.Config) -> bool:
    """Whether the full forms of tests are wanted (`--long`)."""
    return bool(pytestconfig.getoption("--long", default=False))


def slowest_first(names: Sequence[str]) -> dict[str, tuple[int, int, str]]:
    """Sort keys of the files of test ids: the slow ones stand first, then those with the most tests, so that at the end
    no worker is left alone with much to do."""
    sizes = Counter(name.partition("::")[0] for name in names)
    ranks = {file: [n for n, begins in enumerate(FIRST) if file.startswith(begins)] for file in sizes}
    return {file: (min(ranks[file], default=len(FIRST)), -size, file) for file, size in sizes.items()}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        keys = slowest_first([item.nodeid for item in items])
        items.sort(key=lambda item: keys[item.nodeid.partition("::")[0]])
    without_limit(config, items)


def without_limit(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The full forms have no time limit."""
    if config.getoption("--long"):
        for item in items:
            item.add_marker(pytest.mark.timeout(0))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Asked only for the tests of its folder: that of plugins has it, too."""
    if item.config.getoption("--long"):
        faulthandler.cancel_dump_traceback_later()


def _of_faults(name: str) -> Any:
    """A module in the folder of faults."""
    return _module(Path(__file__).with_name("faults") / f"{name}.py")


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{file.stem}", file)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


@pytest.fixture(scope="session")
def forking(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Starts processes of the command line that need not import anything: one for all tests, also those of plugins."""
    if (started := pytestconfig.pluginmanager.get_plugin("karenina-forking")) is None:
        started = _forking(tmp_path_factory.mktemp("warm"), pytestconfig)
        pytestconfig.pluginmanager.register(started, "karenina-forking")
    return started


def _forking(folder: Path, pytestconfig: pytest.Config) -> Any:
    from karenina_core.testing import ScriptedServer

    world = _of_faults("run_world")
    with ScriptedServer(world.said) as server:
        benchmark = world.write_benchmark(folder / "one.jsonld", 1)
        config = world.write_config(folder / "config.toml", server.url, 1)
        run = str(folder / "run")
        words = [["verify", str(benchmark), "--config", str(config), "--out", run], ["resume", run], ["doctor", run]]
        started = _of_faults("forking").Forking(*words).__enter__()
        pytestconfig.add_cleanup(started.__exit__)
        assert started.start("--version").wait() == 0, "the commands before have been carried out"
    return started


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    text().validate()  # what hypothesis has to know of Unicode takes seconds once, which every worker would spend
    with contextlib.suppress(ImportError):  # an older hypothesis does not read the constants of the code
        from hypothesis.internal.constants_ast import constants_from_module

        for path in chain(CORE.rglob("*.py"), PLUGINS.glob("*/karenina_*/**/*.py")):
            (module := ModuleType(str(path))).__file__ = str(path)
            constants_from_module(module)
    if not sys.dont_write_bytecode:
        rewriting = _module(Path(__file__).with_name("rewriting.py"))
        rewriting.rewrite(rewriting.test_files(config), config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Two workers a core for `-n auto`: measured, one alone waits for processes and servers 45 % of its time."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else 2 * (os.cpu_count() or 1)


def draw_few(config: pytest.Config) -> None:
    if not config.getoption("--long") and not config.getoption("--hypothesis-profile", default=None):
        settings.load_profile("karenina-short")


def pytest_configure(config: pytest.Config) -> None:
    # What hypothesis keeps for later takes a process two seconds, and tests start many in folders of their own.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(config.rootpath / ".hypothesis"))
    draw_few(config)
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # files are handed out as they are sorted, see `slowest_first`
    config.pluginmanager.register(UnusedApplications(), "karenina-unused-applications")
    config.pluginmanager.register(SameFolder(), "karenina-same-folder")
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        config.pluginmanager.register(SkipGuard(allowed_skips(ALLOWED.read_text("utf-8"))), "karenina-skip-guard")
