"""How commands end: one function for every error that leaves one.

0: every item has an outcome other than error. 3: it ended, but some items ended in an error or have no result yet,
every score of some type of trait failed, results of a repair are still to be made again, or a sink failed. 1: it could
not be run. 2: wrong usage. 4: it could be run, but what was asked for does not hold: a check with `--strict`, a gate of
a run or of `karenina compare`, or the threshold of canaries. 74: the run directory cannot be written. 130: interrupted.
"""

from __future__ import annotations

from karenina_core.errors import ConfigError, ContractError, KareninaError, RunDirectoryError

from .output import note

OK = 0
COULD_NOT_RUN = 1
SOME_FAILED = 3
GATE_FAILED = 4
NO_RUN_DIRECTORY = 74
INTERRUPTED = 130


class Interrupted(Exception):
    """The user interrupted the command; the message says what is done and where it is."""


def ended_by(error: BaseException) -> int:
    """Say on stderr what happened, and return the exit code for it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
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
    import traceback

    note("".join(traceback.format_exception(error)).rstrip())
    note("\nError: this should not have happened. Please report it, with the lines above and what you typed.")
    return COULD_NOT_RUN
