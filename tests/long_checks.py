"""The conformance checks of everything that is installed, with 200 examples each: `python -m tests.long_checks`.

Names of plugins or commands as arguments check only these; `--examples N` draws another number. It prints a line for
each, with its seconds, and what is broken; exit code 1 where something is.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from karenina_testing.authoring.verdicts import Request, verdicts

from karenina_core.entry_points import installed_entry_points
from karenina_core.errors import PluginError

GROUPS = ("karenina.plugins", "karenina.commands")
SECONDS = 300.0
"""For one check; chosen. The slowest, of sinks, take half a minute."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", default=None)
    parser.add_argument("--examples", type=int, default=200)
    given = parser.parse_args()
    os.environ.setdefault("TAVILY_API_KEY", "any")  # the searches go to a server of the checks
    names = given.names or sorted({point.name for group in GROUPS for point in installed_entry_points(group)})
    promises = broken = 0
    for name in names:
        began = time.monotonic()
        try:
            found = verdicts(Request(name=name, examples=given.examples, seconds=SECONDS))
        except PluginError as error:
            print(f"{name}: {error}", flush=True)
            broken += 1
            continue
        wrong = [verdict for verdict in found if not verdict.kept]
        print(f"{name}: {len(found)} promises, {len(wrong)} broken, {time.monotonic() - began:.0f} s", flush=True)
        for verdict in wrong:
            print(f"  {verdict.name}: {verdict.problem}\n    with {verdict.input}\n    at {verdict.line}", flush=True)
        promises, broken = promises + len(found), broken + len(wrong)
    print(f"{len(names)} plugins and commands, {promises} promises, {broken} broken, {given.examples} examples each")
    return 1 if broken or not promises else 0


if __name__ == "__main__":
    sys.exit(main())
