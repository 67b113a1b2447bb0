"""SECURITY.md: what it promises is tested by the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_test_that_is_named_is_there(repository: Path) -> None:
    text = (repository / "SECURITY.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    files = [*repository.glob("tests/**/test_*.py"), *repository.glob("plugins/*/tests/test_*.py")]
    there = {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.MULTILINE)}
    assert len(named) > 20
    assert named - there == set()


def test_as_many_attacks_are_named_as_there_are(repository: Path) -> None:
    namespace: dict[str, object] = {}
    source = repository / "plugins/sandbox/tests/attacks.py"
    exec(compile(source.read_text("utf-8"), str(source), "exec"), namespace)
    attacks = namespace["ATTACKS"]
    assert isinstance(attacks, dict)
    assert f"has {len(attacks)} attempts" in (repository / "SECURITY.md").read_text("utf-8")
