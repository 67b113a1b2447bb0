"""Checks of a plugin as tests of pytest."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from karenina_core import ArtifactKeys
from karenina_core.testing import conformance_tests, run_stage

SINK = """\
from karenina_core import hookimpl

class Unawaited:
    name = "planted"
    def __init__(self, target): ...
    async def open(self, run): ...
    def write(self, result): ...
    async def close(self, summary): ...

@hookimpl
def karenina_register_sinks(registry):
    registry.add(Unawaited)
"""
Site = Callable[..., Mapping[str, str]]


def pytested(environment: Mapping[str, str], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    without = ("no:cacheprovider", "no:langsmith_plugin")  # the other one takes three seconds of each start
    command = [sys.executable, "-m", "pytest", *(word for name in without for word in ("-p", name)), "-q", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


def test_checks_are_collected_as_tests(site: Site, tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other(): ...\n", "utf-8")
    words = ("--karenina", "planted", "-rA", "-k", "test_other or loads or methods")
    ran = pytested(site("planted", SINK), *words, cwd=tmp_path)
    assert ran.returncode == 1
    assert "PASSED karenina:planted::loads" in ran.stdout
    assert "FAILED karenina:planted::planted.methods" in ran.stdout
    assert "test_other" not in ran.stdout
    in_its_own_words(ran.stdout)


def test_checks_are_collected_beside_tests(site: Site, tmp_path: Path) -> None:
    """Those of `--karenina`, and those of one line in a test file."""
    line = 'from karenina_core.testing import conformance_tests\n\ntest_it = conformance_tests("planted")\n'
    (tmp_path / "test_planted.py").write_text(line, "utf-8")
    (tmp_path / "test_other.py").write_text("def test_other(): ...\n", "utf-8")
    files = ("test_other.py", "test_planted.py")
    words = ("--karenina", "planted", "-rA", "-k", "test_other or loads or (test_it and methods)")
    ran = pytested(site("planted", SINK), *words, *files, cwd=tmp_path)
    assert "PASSED test_other.py::test_other" in ran.stdout
    assert "PASSED karenina:planted::loads" in ran.stdout
    assert "FAILED test_planted.py::test_it[planted.methods]" in ran.stdout
    in_its_own_words(ran.stdout)


def in_its_own_words(shown: str) -> None:
    """A failure."""
    assert (
        "sink planted breaks planted.methods: It has open, write and close as coroutine functions."
        not in shown.split("FAILURES")[0]
    )
    assert "It has open, write and close as coroutine functions." in shown
    assert "karenina_planted.py:7" in shown
    assert not re.search(r"karenina_testing\S*:\d+: ", shown), "no traceback leads into the kit"
    assert "Traceback" not in shown


def test_an_unknown_plugin_is_a_failure(site: Site, tmp_path: Path) -> None:
    ran = pytested(site("planted", SINK), "--karenina", "plantde", cwd=tmp_path)
    assert ran.returncode == 1
    assert "did you mean 'planted'?" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("1 failed in"), "what is not there is not looked at any further"


def test_a_profile_of_hypothesis_says_how_many_examples(site: Site, tmp_path: Path) -> None:
    script = (
        "import hypothesis\nhypothesis.settings.register_profile('few', max_examples=7)\n"
        "hypothesis.settings.load_profile('few')\n"
        "from karenina_testing.examples import examples_of_profile\nprint(examples_of_profile())\n"
    )
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    ran = subprocess.run([sys.executable, "-c", script], env=kept, capture_output=True, text=True, check=True)
    assert ran.stdout == "7\n"


PRIMITIVE = """\
import os
from attrs import frozen
from karenina_core import hookimpl
from karenina_core.templates import VerificationPrimitive

@frozen
class Planted(VerificationPrimitive):
    def check(self, extracted, expected):
        with open(os.environ["SEEN"], "a") as seen:
            print(ascii(extracted), file=seen)
        if isinstance(extracted, str) and len(extracted) > 3:
            raise OSError("too much")
        return extracted == expected

@hookimpl
def karenina_register_primitives(registry):
    registry.add(Planted)
"""


def test_a_failing_example_is_replayed_first_from_the_database_of_hypothesis(site: Site, tmp_path: Path) -> None:
    """The first value of all is none that fails; in the second run it is one."""
    environment = {**site("planted", PRIMITIVE), "SEEN": str(tmp_path / "seen")}
    environment |= {"HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / "kept")}
    (tmp_path / "kept").mkdir()
    shared = Path(os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY", ".hypothesis")).absolute()
    for name in ("constants", "unicode_data"):  # what each process would compute again for seconds
        (shared / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "kept" / name).symlink_to(shared / name)
    words = ("--karenina", "planted", "-k", "Planted.errors", "--hypothesis-profile", "default")  # that of CI has none
    first = []
    for _ in range(2):
        (tmp_path / "seen").unlink(missing_ok=True)
        ran = pytested(environment, *words, cwd=tmp_path)
        assert "check raised OSError: too much" in ran.stdout
        first.append(ast.literal_eval((tmp_path / "seen").read_text("utf-8").splitlines()[0]))
    assert not (isinstance(first[0], str) and len(first[0]) > 3)
    assert isinstance(first[1], str)
    assert len(first[1]) > 3
    assert any((tmp_path / "kept" / "examples").iterdir())


def test_a_run_of_pytest_that_does_not_use_it_imports_nothing() -> None:
    script = (
        "import sys, pytest, importlib\nbefore = set(sys.modules)\n"
        "importlib.import_module('karenina_testing.pytest_plugin')\nprint(*sorted(set(sys.modules) - before))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["karenina_testing", "karenina_testing.pytest_plugin"]


test_conformance_in_one_line = conformance_tests("jsonl", max_examples=5)


def test_a_stage_is_run_on_what_a_test_gives_it() -> None:
    from karenina_generation.trace_validation import TraceValidationAutoFail

    context = run_stage(TraceValidationAutoFail, **{str(ArtifactKeys.RAW_LLM_RESPONSE): "It is Paris."})
    assert context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE) == "It is Paris."


def test_artifacts_that_a_stage_does_not_read_are_refused() -> None:
    from karenina_generation.trace_validation import TraceValidationAutoFail

    with pytest.raises(ValueError, match=r"does not read 'raw_llm_respones' .did you mean 'raw_llm_response'"):
        run_stage(TraceValidationAutoFail, raw_llm_respones="It is Paris.")
