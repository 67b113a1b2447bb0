"""Results as one HTML file that needs nothing beside it.

The page is made with jinja2, its plots with matplotlib; both are imported by the first report. Everything that models
and files say is text on the page, whatever it looks like: it is escaped, what a browser would obey or hide is written
out, and the page's own policy forbids every request and every script but its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karenina_runs.files.run_files import MANIFEST, RESULTS

from karenina_core.errors import RunDirectoryError

if TYPE_CHECKING:
    from karenina_compare.question_groups import Cluster
    from karenina_runs.results.results import VerificationResultSet
    from karenina_runs.results.stored import StoredResults

__all__ = ["report_on", "write_report"]

NAME = "report.html"


def report_on(path: Path, output: Path | None = None, *, cluster: Cluster | None = None) -> Path:
    """Write the report of a run directory or a file of results; returns where it is.

    Raises BenchmarkError where the results cannot be read, and what `write_report` raises.
    """
    from karenina_runs.execute.watchdogs import fewer_collections
    from karenina_runs.results.results import VerificationResultSet
    from karenina_runs.results.stored import stored_results

    stored = stored_results(path)
    file = output or stored.directory / NAME
    with fewer_collections():
        return _written(VerificationResultSet.about(stored), file, stored.manifest, cluster, stored)


def write_report(
    results: VerificationResultSet,
    file: Path,
    *,
    manifest: Mapping[str, Any] | None = None,
    cluster: Cluster | None = None,
) -> Path:
    """Write the page and return its path.

    `manifest` is that of the run whose results these are: it gives versions and configuration. `cluster` says which
    questions belong together, as for `headline_numbers`. Raises RunDirectoryError where the file cannot be written.
    """
    return _written(results, file, manifest or {}, cluster)


def _written(
    results: VerificationResultSet,
    file: Path,
    manifest: Mapping[str, Any],
    cluster: Cluster | None,
    stored: StoredResults | None = None,
) -> Path:
    if file.name in (RESULTS, MANIFEST):
        raise RunDirectoryError(f"the report would replace {file}, which belongs to the run; choose another (-o FILE)")
    from .page import chunks, written

    return written(file, chunks(results, manifest, cluster, stored))
