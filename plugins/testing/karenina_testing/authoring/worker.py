"""Running the checks of a plugin in a process of its own, for one that may hang, crash or print.

It reads one request as JSON from its input, and writes a line of JSON for everything that happens to its output. What
the plugin prints goes to stderr. A check that takes too long ends the process, with a traceback on stderr.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

from karenina_core.errors import KareninaError, one_line

from ..checks import Check, Fault, attempt
from ..examples import seeded
from ..plugins import plugin_checks
from ..watch.source_lines import line_of_error
from .verdicts import PREPARING

Tell = Callable[..., None]


def main() -> None:
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)

        def tell(**message: Any) -> None:
            out.write(json.dumps(message) + "\n")
            out.flush()

        work(json.load(sys.stdin), tell)


def work(request: dict[str, Any], tell: Tell) -> None:
    """List the checks, and run those that are wanted and not done."""
    seconds = request["seconds"]
    with seeded(request["seed"]):
        faulthandler.dump_traceback_later(seconds + PREPARING, exit=True)
        try:
            checks = plugin_checks(request["name"], max_examples=request["examples"])
        except (KareninaError, ValueError) as error:
            tell(failed=str(error))
            return
        finally:
            faulthandler.cancel_dump_traceback_later()
        wanted = [check for check in checks if request["text"] in check.name]
        tell(listed=[{"name": c.name, "subject": c.subject, "promise": c.promise} for c in wanted])
        _run([check for check in wanted if check.name not in request["done"]], seconds, tell)


def _run(checks: Collection[Check], seconds: float, tell: Tell) -> None:
    for check in checks:
        tell(begun=check.name)
        faulthandler.dump_traceback_later(seconds + PREPARING, exit=True)
        attempt(check.prepare)  # what goes wrong there goes wrong in the check, too
        began = time.monotonic()
        faulthandler.dump_traceback_later(seconds, exit=True)
        fault = fault_of(check)
        faulthandler.cancel_dump_traceback_later()
        tell(ended=check.name, seconds=round(time.monotonic() - began, 2), **_as_data(fault))


def fault_of(check: Check) -> Fault | None:
    """What is wrong, also where examining it went wrong."""
    try:
        fault = check.find_fault()
    except (Exception, SystemExit) as error:  # a plugin's own code
        return Fault(
            f"checking it raised {one_line(error)}", line_of_error(error, None), "correct it, or what it calls"
        )
    if check.expected_failure is None:
        return fault
    reason = f"it is kept, which was not expected ({check.expected_failure})"
    return None if fault else Fault(reason, remedy=f"remove {check.name!r} from expected_failures")


def _as_data(fault: Fault | None) -> dict[str, Any]:
    if fault is None:
        return {"kept": True}
    found = {"problem": fault.problem, "input": fault.given, "line": fault.line, "change": fault.remedy}
    return {"kept": False, **found}


if __name__ == "__main__":
    main()
