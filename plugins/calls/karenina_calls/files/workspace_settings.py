"""Settings of a run for the folders that agents work in."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from karenina_core.values.fields import texts
from karenina_core.values.sections import Section, flag, setting, whole, word

WorkspaceOutputMode = Literal["none", "full", "produced"]


@frozen(kw_only=True, slots=False)
class WorkspaceSettings(Section):
    """Workspaces: where they are, how large they may be and what is kept of them."""

    workspace_copy: bool = flag(True)
    """Whether agents work in a copy of the question's folder; if not, they work in the folder itself, and may change
    it."""
    workspace_cleanup: bool = flag(True, neutral=True)
    """Whether copies are removed when the last judge is done. The folders themselves are never removed."""
    workspace_output_mode: WorkspaceOutputMode = word("none", WorkspaceOutputMode, neutral=True)
    """What is kept of workspaces in the run directory: nothing, everything (`full`), or the files that are new or were
    changed (`produced`).
    """
    workspace_output_exclude_patterns: tuple[str, ...] = setting((), converter=texts, environment=False, neutral=True)
    """Also not kept, like virtual environments, caches and traces of judges (`.karenina`): folders as `name/`, files as
    globs such as `*.log`.
    """
    workspace_max_bytes: int = whole(1024**3, least=1)
    """Bytes that a workspace may hold, to be copied or kept."""
    workspace_max_files: int = whole(50_000, least=1)
    """Files and folders that a workspace may hold, to be copied or kept."""
