"""Does a command of `karenina` say what it does, and end as the others end?"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from importlib.metadata import EntryPoint
from typing import Any

import click
from attrs import frozen
from click.testing import CliRunner, Result
from karenina_cli.root import ARGUMENTS, GROUP

from karenina_core.entry_points import installed_entry_points, owner
from karenina_core.errors import KareninaError, one_line

from .checks import Check, Fault, Promises, Raised, attempt, expecting, promise_checks
from .watch.audit import heavy_imports
from .watch.source_lines import file_of, line_of_error, line_of_function

NONSENSE = "--no-such-option-of-any-command"
ABSENT = "no-such-file.jsonld"


@frozen
class Command:
    """A command as it is installed, or as it is given."""

    name: str
    thing: Any
    module: str
    distribution: str
    arguments: Sequence[str] | None

    @property
    def line(self) -> str:
        callback = getattr(self.thing, "callback", None)
        return line_of_function(callback) if callback else ""

    def run(self, *words: str) -> Result:
        """As `karenina` runs it, in an empty folder. What it raises is in the result."""
        root = click.Context(click.Group("karenina"), info_name="karenina")
        root.meta[ARGUMENTS] = (self.name, *words)
        with tempfile.TemporaryDirectory(prefix="karenina-command-") as folder, chdir(folder):
            return CliRunner().invoke(self.thing, words, prog_name=self.name, parent=root)

    def fault(self, problem: str, remedy: str = "") -> Fault:
        return Fault(problem, self.line, remedy)


def installed_commands(name: str) -> list[EntryPoint]:
    """The entry points of commands of this name."""
    return [point for point in installed_entry_points(GROUP) if point.name == name]


def command_checks(
    command: Any,
    *,
    name: str = "",
    arguments: Sequence[str] | None = None,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """One check for every promise of a command.

    `command` is an entry point of the group `karenina.commands`, or a click command and its `name`. It is run in an
    empty folder, with `arguments` that cannot work there; by default with the name of a file that is not there for each
    argument that it requires, and not at all where it requires none. Raises what importing it raises.
    """
    if hasattr(command, "load"):  # an entry point, whichever class it is of: some environments have two
        about = Command(command.name, command.load(), command.module, owner(command), arguments)
    else:
        module = getattr(getattr(command, "callback", None), "__module__", "")
        about = Command(name or str(getattr(command, "name", "")), command, module, "", arguments)
    return expecting(promise_checks(f"command {about.name}", about, PROMISES, Fault.raised), expected_failures)


PROMISES: Promises[Command] = Promises()


@PROMISES.add("command", "It is a click command.")
def _is_command(command: Command) -> Iterator[Fault]:
    if not isinstance(command.thing, click.Command):
        yield Fault(f"it is {command.thing!r}", "", "name a function that is decorated with @click.command(...)")


@PROMISES.add("help", "It says what it does: in one line in the list of commands, and in full with --help.")
def _help(command: Command) -> Iterator[Fault]:
    for name, part in _parts(command.name, command.thing):
        if not part.get_short_help_str(200).strip():
            yield command.fault(f"{name} has no help", "give its function a docstring, and the decorator a short_help")
        for parameter in part.params:
            if isinstance(parameter, click.Option) and not parameter.help and not parameter.hidden:
                yield command.fault(f"{name} {parameter.opts[0]} has no help", 'write help="..." in its option')


def _parts(name: str, command: Any) -> Iterator[tuple[str, click.Command]]:
    """A command, and those of a group."""
    if isinstance(command, click.Command):
        yield name, command
    for part, inner in getattr(command, "commands", {}).items():
        yield from _parts(f"{name} {part}", inner)


@PROMISES.add("light_import", "Its module imports nothing heavy: `karenina --help` and every command wait for it.")
def _light(command: Command) -> Iterator[Fault]:
    if command.module:
        for what, line in heavy_imports(importlib.import_module(command.module)).items():
            yield Fault(f"importing its module {what}", line, "import it inside the function of the command")


@PROMISES.add("help_option", "--help ends with 0.")
def _help_option(command: Command) -> Iterator[Fault]:
    for name, part in _parts(command.name, command.thing):
        result = CliRunner().invoke(part, ["--help"], prog_name=f"karenina {name}")
        if result.exit_code != 0:
            yield _ended(command, result, f"{name} --help", "leave --help to click")


@PROMISES.add("wrong_option", "An unknown option ends with 2.")
def _wrong_option(command: Command) -> Iterator[Fault]:
    for name, part in _parts(command.name, command.thing):
        if getattr(part, "ignore_unknown_options", False):
            continue
        result = CliRunner().invoke(part, [NONSENSE], prog_name=f"karenina {name}")
        if result.exit_code != 2:
            yield _ended(command, result, f"{name} {NONSENSE}", "let click refuse options that there are not")


@PROMISES.add("own_name", "No other package has a command of its name.")
def _own_name(command: Command) -> Iterator[Fault]:
    others = {owner(point) for point in installed_commands(command.name)} - {command.distribution}
    if others:
        problem = f"{' and '.join(sorted(others))} has a command {command.name!r}, too"
        yield command.fault(problem, "choose another name for the entry point")


@PROMISES.add("errors", "What cannot be done is said in a sentence, and ends with another code than 0.")
def _errors(command: Command) -> Iterator[Fault]:
    """`karenina` prints a KareninaError as a sentence and exits with 1; any other error is a traceback."""
    words = command.arguments
    if words is None:
        required = [p for p in getattr(command.thing, "params", ()) if isinstance(p, click.Argument) and p.required]
        words = [ABSENT] * len(required)
    if not words:
        return
    result = attempt(command.run, *words)
    if isinstance(result, Raised):
        yield Fault.raised(result.error, line=command.line)
        return
    typed = f"karenina {command.name} {' '.join(words)}"
    error = result.exception
    if error is not None and not isinstance(error, KareninaError | SystemExit):
        line = line_of_error(error, file_of(command.thing.callback)) or command.line
        yield Fault(f"`{typed}` raised {one_line(error)}", line, "raise a KareninaError that says what to do", error)
    elif result.exit_code == 0:
        yield command.fault(f"`{typed}` ended with 0", "raise a KareninaError, or ctx.exit(1)")
    elif "Traceback (most recent call last)" in result.output:
        yield command.fault(f"`{typed}` printed a traceback", "let KareninaError through: karenina prints its sentence")


def _ended(command: Command, result: Result, typed: str, remedy: str) -> Fault:
    problem = f"`karenina {typed}` ended with {result.exit_code}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return Fault.raised(result.exception, remedy, by=f"`karenina {typed}`", line=command.line)
    return command.fault(problem, remedy)
