"""What plugins may use changes together with a fragment of the changelog, never in passing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guards import surface as guard


def test_what_plugins_may_use_is_what_was_written_down() -> None:
    written, now = set(guard.WRITTEN.read_text("utf-8").splitlines()), set(guard.surface())
    changes = [*(f"- {line}" for line in sorted(written - now)), *(f"+ {line}" for line in sorted(now - written))]
    assert not changes, (
        f"what plugins may use has changed: {'; '.join(changes)}. docs/explanation/compatibility.md says what may "
        f"change when, and whether PLUGIN_API is one more now. Name it in a fragment of changelog.d, then "
        f"type: {guard.COMMAND}"
    )


def test_a_change_is_written_down_only_with_a_fragment_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "surface.txt"
    monkeypatch.setattr(guard, "WRITTEN", written)
    monkeypatch.setattr(guard, "CHANGELOG", tmp_path)
    monkeypatch.setattr(guard, "surface", lambda: ["karenina_core.New", "karenina_load_benchmark(path, app)"])
    before = "karenina_core.Old\nkarenina_load_benchmark(path)\n"
    written.write_text(before, "utf-8")
    (tmp_path / "names.changed.md").write_text("`karenina_core.New` takes the place of `Old`; New is better.", "utf-8")
    assert guard.main() == 1
    assert "names karenina_load_benchmark(path), karenina_load_benchmark(path, app) in" in capsys.readouterr().err
    assert written.read_text("utf-8") == before
    (tmp_path / "hook.changed.md").write_text("`karenina_load_benchmark(path, app)` is given the application.", "utf-8")
    assert guard.main() == 0
    assert written.read_text("utf-8") == "karenina_core.New\nkarenina_load_benchmark(path, app)\n"


def test_names_and_hooks_are_both_written_down() -> None:
    lines = guard.surface()
    assert {"karenina_core.Stage", "karenina_core.testing.check_stage", "karenina_register_stages(registry)"} <= set(
        lines
    )
    assert "karenina_run_finished(summary, status, app)" in lines
    assert len(lines) == len(set(lines)) > 100
