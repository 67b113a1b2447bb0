"""What help looks like: commands and options under headings, examples, and lines that fit a terminal of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points

import click
import pytest
from click.testing import Result
from karenina_cli.options.sections import SECTIONS
from karenina_cli.root import karenina

Run = Callable[..., Result]


def ours() -> Iterator[tuple[str, click.Command]]:
    """Every command that packages of karenina bring, with those inside of groups."""
    names = {p.name for p in entry_points(group="karenina.commands") if p.dist and p.dist.name.startswith("karenina-")}
    context = click.Context(karenina)
    yield "", karenina
    for name in sorted(names):
        command = karenina.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            inner = click.Context(command, parent=context)
            yield from (
                (f"{name} {n}", c) for n in command.list_commands(inner) if (c := command.get_command(inner, n))
            )


COMMANDS = dict(ours())
CALLED = [name for name, command in COMMANDS.items() if not isinstance(command, click.Group)]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_80_columns_and_names_no_package(name: str, run: Run) -> None:
    text = run(*name.split(), "--help").output
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "(from " not in text


@pytest.mark.parametrize("name", CALLED)
def test_every_command_has_two_examples_or_more(name: str, run: Run) -> None:
    shown = run(*name.split(), "--help").output.partition("\n  Examples:\n")[2]
    assert len(re.findall(rf"karenina {name}\b", shown)) >= 2, shown


def test_the_options_of_verify_are_under_headings(run: Run) -> None:
    text = run("verify", "--help").output
    found = re.findall(r"^(\w[\w ]+):$", text, re.MULTILINE)
    assert found == [title for title in [*SECTIONS, "Others"] if title in found]
    assert {"Models", "Settings", "Limits and costs", "Results", "Gates"} <= set(found)
    others = text.partition("\nOthers:\n")[2].partition("\n\n")[0]
    assert re.findall(r"--[\w-]+", others) == ["--help"]


def test_no_option_is_lost_under_the_headings(run: Run) -> None:
    for name in ("verify", "resume", "extend", "repair", "config"):
        command = COMMANDS[name]
        options = [p for p in command.get_params(click.Context(command)) if not getattr(p, "hidden", False)]
        expected = {flag for option in options for flag in option.opts if flag.startswith("--")}
        shown = run(name, "--help").output
        assert expected <= set(re.findall(r"--[\w-]+", shown)), name


@pytest.mark.parametrize("title", SECTIONS)
def test_no_heading_is_without_any_option(title: str) -> None:
    taken = {flag for command in COMMANDS.values() for p in command.params for flag in p.opts}
    assert taken & set(SECTIONS[title]), title
