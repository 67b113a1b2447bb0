"""What `karenina export` does."""

from __future__ import annotations

from pathlib import Path

from karenina_cli.output import note
from karenina_runs.results.exports import export_results, find_format, ready_format, usual_suffix, with_columns
from karenina_runs.results.stored import stored_results

from karenina_core import Karenina


def export(
    source: Path,
    name: str | None,
    output: Path | None,
    app: Karenina | None = None,
    *,
    columns: str | None = None,
) -> Path:
    """Write the results of a run directory or a file to another file, and return its name.

    `name` is that of a format, or the suffix of `output` says which one; `columns` are `short` or `full`. Raises
    KareninaError.
    """
    app = app or Karenina.default()
    if output is None:
        place = source.resolve()
        stem = place.name if place.is_dir() else place.stem  # `gpt-4.1` is the whole name of a folder
        output = Path(f"{stem}{usual_suffix(find_format(app, Path(), name))}")
    stored = stored_results(source, app)
    found = with_columns(ready_format(app, output, name, kept=[stored.file]), columns)
    for warning in stored.notes:
        note(f"Warning: {warning}")
    export_results(stored, output, found, stored.manifest)
    return output
