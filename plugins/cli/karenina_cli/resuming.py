"""What `karenina resume` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from karenina_runs.config.config_file import Flags, RunConfig
from karenina_runs.files.run_lock import owner_of
from karenina_runs.folder.directory import read_manifest
from karenina_runs.folder.fingerprint import Changed
from karenina_runs.folder.status import fork_command, standing
from karenina_runs.resume import Resumption, Wanted, resumption

from karenina_core.errors import ConfigError, TemplateRefused
from karenina_core.log import configure

from .options.flags import later_config, trust_line
from .output import note, own_stdout
from .progress import Progress
from .running import carried_out
from .verification import ended, print_results

Configured = Callable[[Mapping[str, Any]], RunConfig]


def resume(folder: Path, options: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Continue the run and print the outcome. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        configure()
        wanted = Wanted(
            source=options["benchmark"],
            fork=options["fork"],
            retry_failed=options["retry_failed"],
            sinks=options["sinks"] or None,
        )
        found = checked(
            folder, options, trust_line(arguments), lambda configured: resumption(folder, configured, wanted)
        )
        for line in found.missing:
            note(f"Warning: {line}")
        if not options["quiet"] and owner_of(found.directory) is None:  # else it is refused in a moment
            line = f"{found.done} of {found.items} items are done; continuing in {found.directory}"
            if found.completed:
                line = f"the run in {found.directory} is finished: all {found.items} items have a result"
            elif found.destination.forked_from is not None:
                line = f"{found.items} items, into {found.directory}"
            note(line)
        progress = Progress(found.items, quiet=options["quiet"], done=found.done, errors=found.errors)
        with _refused(folder):
            results = carried_out(found.carry_out, progress, found.directory)
        warnings, extended = found.prepared.benchmark.warnings, read_manifest(found.directory).get("extends")
        extends = None if extended is None else Path(extended["run_dir"])
        print_results(results, found.directory, warnings, out, as_json=options["as_json"], extends=extends)
    return ended(results, found.items, found.directory, repaired=found.destination.continuation.replaces)


def checked(
    folder: Path, options: Mapping[str, Any], trusting: str, make: Callable[[Configured], Resumption]
) -> Resumption:
    """What `make` gives for the configuration of the run with what the options say instead. `trusting` is what to type
    to run Python templates in this process.

    Raises ConfigError and TemplateRefused with what to type instead.
    """
    run = {name: options[name] for name in ("concurrency", "budget_usd", "budget_tokens") if options[name] is not None}
    flags = Flags(run=run, trust=options["trust"], trust_line=trusting)
    try:
        with _refused(folder):
            return make(lambda manifest: later_config(manifest, options, flags))
    except TemplateRefused as error:
        raise TemplateRefused(f"{error}\nIf you trust the author of the benchmark, type:\n{trusting}") from error


@contextmanager
def _refused(folder: Path) -> Iterator[None]:
    """Where something has changed, the error says what to type instead."""
    try:
        yield
    except Changed as error:
        command = fork_command(standing(folder), folder)
        changed = "\n".join(f"  {problem}" for problem in error.problems)
        raise ConfigError(
            f"{folder} cannot be resumed, for its numbers depend on what has changed:\n{changed}\n"
            f"Undo that, or begin a new run that asks only what is not known yet: {command}"
        ) from None
