"""Writing a new package: a plugin of some kind that keeps its promises, for its author to change."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from string import Template

from attrs import frozen

from karenina_core.errors import ConfigError, PluginError, did_you_mean
from karenina_core.plugin.discovery import discover

FILES = Path(__file__).parent / "files"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
AUTHOR = re.compile(r"(?P<name>[^<>]+?)\s*(<(?P<email>[^<>\s]+@[^<>\s]+)>)?")
LONGEST_NAME = 24
"""Characters: with longer ones, lines of the package would be too long."""
LONGEST = 100
"""Characters of a description: it is one line of a docstring."""


@frozen
class Kind:
    """What differs between packages of different kinds."""

    description: str
    """By default."""
    needs: Sequence[str]
    """What it imports beside karenina-core."""
    usage: str
    """Lines for its README: how it is used once it is installed."""
    group: str = "karenina.plugins"
    target: str = ""
    """What of the module the entry point names; nothing for the module itself."""


KINDS: Mapping[str, Kind] = {
    "adapter": Kind(
        "Reaches models behind an HTTP server.",
        ("karenina-calls[http]>=0.1,<0.2",),
        'Models of the interface `$name` are named in a configuration: `interface = "$name"`.',
    ),
    "command": Kind(
        "Counts the questions of a benchmark.",
        ("click>=8.1",),
        "`karenina $name BENCHMARK` counts questions.",
        "karenina.commands",
        ":command",
    ),
    "embedder": Kind(
        "Embeds texts by counting their letters.",
        ("karenina-calls>=0.1,<0.2",),
        'The embedder `$name` is named in a configuration: `embedding_check_embedder = "$name"`.',
    ),
    "loader": Kind(
        "Reads benchmarks from files of JSON lines.",
        (),
        "`karenina benchmark validate FILE.$name` and every other command read files with the suffix `.$name`.",
    ),
    "primitive": Kind(
        "Compares orders of magnitude.",
        ("attrs>=24.2", "karenina-template>=0.1,<0.2"),
        'Templates compare with it where a field says `"verify_with": {"type": "$Class"}`.',
    ),
    "sink": Kind(
        "Writes a row for each result into a table of SQLite.",
        ("karenina-calls>=0.1,<0.2", "karenina-runs>=0.1,<0.2"),
        "`karenina verify ... --sink $name:FILE` writes results there.",
    ),
    "stage": Kind(
        "Fails answers that have too many words.",
        ("attrs>=24.2", "karenina-vocabulary>=0.1,<0.2"),
        "Its stage is in every plan (`karenina plan`); `[plugins.$name]` of a configuration holds its settings.",
    ),
    "trait": Kind(
        "Scores whether an answer is short enough.",
        ("attrs>=24.2", "karenina-vocabulary>=0.1,<0.2"),
        'A rubric holds such traits by their type, `"$name"`.',
    ),
}


def default_description(kind: str) -> str:
    """Raises ConfigError for an unknown kind."""
    return _kind(kind).description


def new_package(
    kind: str, name: str, into: Path, *, description: str | None = None, author: str | None = None
) -> tuple[Path, list[Path]]:
    """Write a package; its folder, and its files. Raises ConfigError and PluginError, and then nothing is written."""
    facts = _facts(_kind(kind), kind, name, description, author)
    texts = dict(_texts(kind, facts))
    folder = into / facts["distribution"]
    if folder.exists():
        raise ConfigError(f"{folder} already exists; choose another name, or another folder with --into")
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with (folder / path).open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return folder, [Path(path) for path in texts]


def _kind(kind: str) -> Kind:
    if kind not in KINDS:
        raise ConfigError(f"there is no kind {kind!r}{did_you_mean(kind, KINDS)}; available: {', '.join(KINDS)}")
    return KINDS[kind]


def _facts(kind: Kind, label: str, name: str, description: str | None, author: str | None) -> dict[str, str]:
    """What templates ask for. Raises ConfigError and PluginError."""
    checked_name(name)
    key = name.replace("-", "_")
    facts = {
        "name": name,
        "key": key,
        "Class": "".join(part.capitalize() for part in name.split("-")),
        "distribution": f"karenina-{name}",
        "module": f"karenina_{key}",
        "description": _description(kind.description if description is None else description),
        "author": _author(author or ""),
    }
    sources = (FILES / label).glob("p*.py.template")
    used = {word for source in sources for word in re.findall(r"[A-Z]\w*", source.read_text("utf-8"))}
    if keyword.iskeyword(facts["Class"]) or facts["Class"] in used:
        raise ConfigError(
            f"a class {facts['Class']} would stand in its own way; choose another name, such as my-{name}"
        )
    has_checks = (FILES / label / "checks.py.template").exists()
    groups = {kind.group: kind.target} | ({"karenina.checks": ".checks:OPTIONS"} if has_checks else {})
    lines = (f'[project.entry-points."{group}"]\n{name} = "{facts["module"]}{what}"' for group, what in groups.items())
    facts["entry_points"] = "\n\n".join(lines)
    facts["dependencies"] = "\n".join(f'    "{line}",' for line in sorted(("karenina-core>=0.1,<0.2", *kind.needs)))
    facts["usage"] = Template(kind.usage).substitute(facts)
    return facts


def checked_name(name: str) -> str:
    """Raises ConfigError for a name that no package can have, and PluginError for one that is taken."""
    plain = "-".join(re.findall(r"[a-z0-9]+", name.lower())).removeprefix("karenina-").lstrip("0123456789-")
    if len(name) > LONGEST_NAME:
        raise ConfigError(f"{name!r} has {len(name)} characters; the name of a plugin may have {LONGEST_NAME}")
    if not NAME.fullmatch(name) or name.startswith("karenina-"):
        hint = f"; write {plain}" if plain else ""
        raise ConfigError(f"{name!r} is no name of a plugin: small letters, digits, and single hyphens between{hint}")
    if owners := [source.distribution for source in discover() if source.name == name]:
        raise PluginError(f"{owners[0]} has a plugin called {name!r}; choose another name")
    module = "karenina_" + name.replace("-", "_")
    if find_spec(module) is not None:
        raise PluginError(f"a package {module} is installed here; choose another name")
    return name


def _description(text: str) -> str:
    """One sentence that fits into a docstring and into TOML. Raises ConfigError."""
    line = " ".join(text.split())
    if not line or len(line) > LONGEST or '"' in line or "\\" in line or not line.isprintable():
        raise ConfigError(f'the description must be one line of at most {LONGEST} characters, without " and \\')
    return line if line[-1] in ".!?" else f"{line}."


def _author(text: str) -> str:
    """Lines of a pyproject.toml. Raises ConfigError."""
    found = AUTHOR.fullmatch(text.strip())
    if not text.strip():
        return ""
    if found is None or '"' in text or "\\" in text or not text.isprintable():
        raise ConfigError("write the author as `Jane Doe <jane@example.org>`, or as a name")
    email = f', email = "{found["email"]}"' if found["email"] else ""
    return f'authors = [{{ name = "{found["name"]}"{email} }}]'


def _texts(kind: str, facts: Mapping[str, str]) -> list[tuple[str, str]]:
    """`(path, content)` of every file."""
    module = facts["module"]
    sources = {
        "pyproject.toml": "package/pyproject.toml",
        "README.md": "package/README.md",
        ".gitignore": "package/gitignore",
        ".github/workflows/ci.yml": "package/ci.yml",
        f"{module}/__init__.py": f"{kind}/plugin.py",
        f"{module}/port.py": f"{kind}/port.py",
        f"{module}/checks.py": f"{kind}/checks.py",
        f"tests/test_{facts['key']}.py": f"{kind}/test.py",
    }
    found = [(path, _filled(FILES / f"{source}.template", facts)) for path, source in sources.items()]
    return [*((path, text) for path, text in found if text), (f"{module}/py.typed", "")]


def _filled(path: Path, facts: Mapping[str, str]) -> str:
    """A template with everything in its place; nothing where there is no such template. Lists of a TOML file and
    imports take one line where they fit into it, as formatters want."""
    if not path.exists():
        return ""
    text = Template(path.read_text("utf-8")).substitute(facts)
    return re.sub(r"\n{4,}", "\n\n\n", re.sub(r"(requires-python.*\n)\n", r"\1", text))


def next_steps(folder: Path, name: str) -> str:
    """What to type after a package was written."""
    return textwrap.dedent(
        f"""\
        Next:
          cd {folder}
          pip install -e '.[dev]'
          karenina plugins check {name}
          pytest"""
    )
