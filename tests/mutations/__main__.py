"""Tries changes of the code, and lists those that no test notices."""

from __future__ import annotations

import argparse
import random
import sys
import tomllib
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from .operators import Mutant
from .running import Room, Trial, tried

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]


def rooms_of(path: Path, root: Path) -> dict[str, Room]:
    found = tomllib.loads(path.read_text("utf-8"))
    return {name: Room(name, root, tuple(facts["source"]), tuple(facts["tests"])) for name, facts in found.items()}


def equivalent_of(path: Path) -> dict[str, str]:
    """The reasons why changes change no behaviour, by id; `path` need not exist."""
    if not path.exists():
        return {}
    return {entry["id"]: entry["reason"] for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]}


def chosen(room: Room, every: list[Mutant], options: Namespace) -> list[Mutant]:
    """Some of the room's changes, or all."""
    if options.only:
        return [mutant for mutant in every if mutant.id in options.only]
    if options.count is None or options.count >= len(every):
        return every
    drawn = random.Random(f"{options.seed} {room.name}").sample(
        every, len(every)
    )  # a larger count has those of a smaller
    return sorted(drawn[: options.count], key=every.index)


def shown(mutant: Mutant, root: Path) -> str:
    """Where it is, and the changed lines."""
    where = f"{mutant.path.relative_to(root)}:{mutant.span[0]} {mutant.function or '(module)'}: {mutant.kind}"
    return "\n".join([f"{mutant.id}  {where}", *(f"    {line}" for line in mutant.diff())])


def attempt(room: Room, mutants: Sequence[Mutant], options: Namespace) -> list[tuple[Mutant, Trial]]:
    trials = []
    for mutant, trial in tried(room, mutants, options.json, options.jobs, options.grace):
        trials.append((mutant, trial))
        if options.verbose:
            print(f"{shown(mutant, room.root)}\n    {trial.seconds:.1f} s: {trial.noticed_by}", flush=True)
    return trials


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--room", metavar="NAME", action="append", help="only this room; may be given several times")
    parser.add_argument("--count", metavar="N", type=int, help="so many changes of each room, drawn by --seed (all)")
    parser.add_argument("--seed", metavar="N", type=int, default=0)
    parser.add_argument("--only", metavar="ID", action="append", help="this change; may be given several times")
    parser.add_argument("--list", action="store_true", help="list the changes and try none")
    parser.add_argument("--json", metavar="FILE", type=Path, help="keep trials there, and do not repeat those it has")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="processes at the same time (2)")
    parser.add_argument(
        "--grace", metavar="S", type=float, default=30.0, help="seconds that a test may take longer (30)"
    )
    parser.add_argument("--verbose", action="store_true", help="tell every trial")
    parser.add_argument("--rooms", metavar="FILE", type=Path, default=HERE / "rooms.toml", help=argparse.SUPPRESS)
    parser.add_argument("--root", metavar="DIR", type=Path, default=REPOSITORY, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rooms = rooms_of(options.rooms, options.root.resolve())
    if unknown := sorted(set(options.room or ()) - set(rooms)):
        parser.error(f"there is no room {', '.join(unknown)}; there are {', '.join(rooms)}")
    reasons = equivalent_of(options.rooms.with_name("equivalent.toml"))
    alive = 0
    for name in options.room or rooms:
        every = rooms[name].mutants()
        mutants = chosen(rooms[name], every, options)
        if options.list:
            print(*(shown(mutant, options.root.resolve()) for mutant in mutants), sep="\n")
            continue
        trials = attempt(rooms[name], [mutant for mutant in mutants if mutant.id not in reasons], options)
        survivors = [mutant for mutant, trial in trials if trial.survived]
        skipped = len(mutants) - len(trials)
        print(
            f"{name}: {len(trials)} of {len(every)} tried, {len(survivors)} survived; {skipped} are known to change "
            f"nothing; {sum(trial.seconds for _, trial in trials) / max(1, len(trials)):.1f} s each",
            flush=True,
        )
        for mutant in survivors:
            print(shown(mutant, options.root.resolve()))
            print(f"    again: python -m tests.mutations --room {name} --only {mutant.id}", flush=True)
        alive += len(survivors)
    return 1 if alive else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:  # the tests of a room fail as they are
        sys.exit(str(error))
