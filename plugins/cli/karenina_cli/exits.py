"""How commands end: one function for every error that leaves one.

0: every item has an outcome other than error. 3: it ended, but some items ended in an error or have no result yet,
every score of some type of trait failed, results of a repair are still to be made again, or a sink failed. 1: it could
not be run. 2: wrong usage. 4: it could be run, but what was asked for does not hold: a check with `--strict`, a gate of
a run or of `karenina compare`, or the threshold of canaries. 74: the run directory cannot be written. 130: interrupted.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from karenina_core.errors import ConfigError, ContractError, KareninaError, RunDirectoryError, one_line, place_of

from .output import note

OK = 0
COULD_NOT_RUN = 1
SOME_FAILED = 3
GATE_FAILED = 4
NO_RUN_DIRECTORY = 74
INTERRUPTED = 130


class Interrupted(Exception):
    """The user interrupted the command; the message says what is done and where it is."""


def ended_by(error: BaseException, *, traceback: bool = False) -> int:
    """Say on stderr what happened, and return the exit code for it. `traceback`: and how it came to that."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if traceback and not isinstance(error, KeyboardInterrupt | Interrupted):
        note(_traceback(error))
    if isinstance(error, KeyboardInterrupt | Interrupted):
        note(str(error) or "interrupted")
        return INTERRUPTED
    if isinstance(error, KareninaError) and not isinstance(error, ContractError):
        problems = error.problems if isinstance(error, ConfigError) else ()
        if len(problems) > 1:
            note("\n".join([f"Error: {len(problems)} problems", *(f"  {problem}" for problem in problems)]))
        else:
            note(f"Error: {str(error) or type(error).__name__}")
        return NO_RUN_DIRECTORY if isinstance(error, RunDirectoryError) else COULD_NOT_RUN
    if owner := _owner(error):
        distribution, module = owner
        where = f"{one_line(error)}{place_of(error, module)}"
        note(
            f"Error: code of {distribution} failed: {where}; report it to its authors, with the traceback (--traceback)"
        )
        return COULD_NOT_RUN
    if not traceback:
        note(_traceback(error))
    note("\nError: this should not have happened. Please report it, with the lines above and what you typed.")
    return COULD_NOT_RUN


def _traceback(error: BaseException) -> str:
    from traceback import format_exception

    from karenina_core.log import redacted

    return redacted("".join(format_exception(error)).rstrip())


def _owner(error: BaseException) -> tuple[str, str] | None:
    """The distribution, not one of ours, whose plugin's code was running last, and the module of that plugin."""
    from karenina_core.entry_points import owner
    from karenina_core.plugin.discovery import Rank

    points = entry_points()
    groups = [group for group in points.groups if group.startswith("karenina.")]
    of_plugins = [point for group in groups for point in points.select(group=group)]
    rank = Rank({name: name for name in map(owner, of_plugins)})
    theirs = {point.module.partition(".")[0]: owner(point) for point in of_plugins if rank(owner(point))[0]}
    trace, found = error.__traceback__, None
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        found = (theirs[package], package) if package in theirs else found
        trace = trace.tb_next
    return found
