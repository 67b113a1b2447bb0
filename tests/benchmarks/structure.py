"""The structure of the source in numbers: `python -m tests.benchmarks.structure`. Guards hold some of them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points
from pathlib import Path

from attrs import field, frozen

__all__ = ["Source", "Structure", "read_structure"]

REPOSITORY = Path(__file__).parents[2]
CORE = "karenina_core"
KIT, CHECKS = "karenina-testing", "checks.py"
KEYWORD_APIS = {
    *("Benchmark.arun_verification", "aextend_run", "arun_single_model_verification", "compare", "compare_models"),
    *("VerificationContext.__init__", "VerificationResultSet.filter", "CallableRubricTrait.from_callable"),
    "trait_checks",
}
"""Functions for users, whose parameters are given by name: there may be many."""


@frozen
class Source:
    """One module that is shipped."""

    module: str
    """Its full name; that of a package for its `__init__.py`."""
    path: Path
    distribution: str
    text: str = field(repr=False)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        return self.module if self.path.name == "__init__.py" else self.module.rpartition(".")[0]


@frozen(slots=False)
class Structure:
    """The modules that are shipped, and the distributions that they belong to."""

    sources: Mapping[str, Source]
    declared: Mapping[str, frozenset[str]]
    """Distribution -> those of this repository that its `pyproject.toml` names as dependencies."""
    core_dependencies: Sequence[str]

    @cached_property
    def imports(self) -> Mapping[str, frozenset[str]]:
        """Module -> modules of this repository that it imports, also inside functions and under TYPE_CHECKING."""
        return {name: frozenset(self._imported(source)) - {name} for name, source in self.sources.items()}

    @cached_property
    def homes(self) -> Mapping[tuple[str, str], str]:
        """`(package, name)` -> module, of every public name: the tables that modules called `names` hold."""
        return {
            (package, name): home
            for source in self.sources.values()
            if source.path.name == "names.py"
            for node in source.tree.body
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "NAMES" and node.value is not None
            for package, names in ast.literal_eval(node.value).items()
            for name, home in names.items()
        }

    def _imported(self, source: Source) -> Iterator[str]:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.sources)
            elif isinstance(node, ast.ImportFrom):
                parts = source.package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
                module = base if node.level else node.module or ""
                for alias in node.names:
                    whole = self.homes.get((module, alias.name), f"{module}.{alias.name}")
                    if whole in self.sources:
                        yield whole
                    elif module in self.sources:
                        yield module

    def circles(self) -> list[list[str]]:
        """Groups of modules that import each other. The lazy table of names in the core's `__init__` is left out."""
        graph = {name: found - {CORE} for name, found in self.imports.items() if name != CORE}
        return [sorted(group) for group in _strongly_connected(graph) if len(group) > 1]

    def undeclared(self) -> list[str]:
        """Imports from distributions that the importing one does not declare, directly.

        What the group `karenina.checks` of entry points names is imported by karenina-testing alone, and may import it.
        """
        return sorted(
            f"{name} imports {other}, and {source.distribution} does not declare {self.sources[other].distribution}"
            for name, source in self.sources.items()
            for other in self.imports[name]
            if self.sources[other].distribution not in self._allowed(source)
        )

    def _allowed(self, source: Source) -> set[str]:
        kit = {KIT} if source.path.name == CHECKS and source.module.count(".") == 1 else set()
        return {source.distribution, *self.declared[source.distribution], *kit}

    def cycle(self) -> list[str]:
        """Distributions that depend on each other in a circle; empty where there is none."""
        try:
            TopologicalSorter(self.declared).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def lines(self, distribution: str | None = None) -> int:
        """Physical lines of source, without tests."""
        chosen = (s for s in self.sources.values() if distribution is None or s.distribution == distribution)
        return sum(len(source.text.splitlines()) for source in chosen)

    def folders(self) -> Mapping[Path, int]:
        """How many modules lie in each folder."""
        return Counter(source.path.parent for source in self.sources.values())

    def named_in_core(self) -> list[str]:
        """Strings of the core that are names of installed stages, adapters, traits and plugins."""
        names = self.names_of_instances()
        return sorted(
            f"{source.module}:{node.lineno}: {node.value!r}"
            for source in self.sources.values()
            if source.distribution == "karenina-core"
            for node in _strings(source.tree)
            if node.value in names
        )

    def names_of_instances(self) -> frozenset[str]:
        """Names of entry points, and of what the application of all installed plugins has registered by them."""
        from karenina_core import Karenina

        app = Karenina.installed()
        found = {point.name for point in entry_points(group="karenina.plugins")}
        found |= {name for registry in (app.stages, app.traits, app.adapters, app.sinks) for name in registry}
        return frozenset(found)

    def parameters(self) -> Mapping[str, int]:
        """How many parameters each function takes, keyword-only ones included, `self` not, by its full name; those of
        `KEYWORD_APIS` are left out."""
        return {
            f"{source.module}.{name}": len([arg for arg in args if arg not in ("self", "cls")])
            for source in self.sources.values()
            for name, args in _signatures(source.tree)
            if name not in KEYWORD_APIS
        }

    def hooks(self) -> int:
        """The hooks that the core specifies, and those that its kinds are registered by."""
        specified = [
            node
            for node in ast.walk(self.sources[f"{CORE}.plugin.hookspecs"].tree)
            if isinstance(node, ast.FunctionDef)
            and any(ast.unparse(mark).startswith("hookspec") for mark in node.decorator_list)
        ]
        kinds = [point for point in entry_points(group="karenina.kinds") if point.value.startswith(f"{CORE}.")]
        return len(specified) + len(kinds)

    def called_once(self) -> float:
        """The share of private functions with exactly one place that names them, of all functions."""
        once = total = 0
        for source in self.sources.values():
            own = [n.name for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            total += len(own)
            private = {name for name in own if name.startswith("_") and not name.startswith("__")}
            used = Counter(n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name))
            used.update(n.attr for n in ast.walk(source.tree) if isinstance(n, ast.Attribute))
            once += sum(used[name] == 1 for name in private)
        return once / total

    def comments(self, distribution: str | None = None) -> float:
        """The share of lines that have a comment."""
        chosen = [s for s in self.sources.values() if distribution is None or s.distribution == distribution]
        marked = sum(bool(re.search(r"(?:^|\s)#\s", line)) for s in chosen for line in s.text.splitlines())
        return marked / sum(len(s.text.splitlines()) for s in chosen)


def read_structure(repository: Path = REPOSITORY) -> Structure:
    """Read what lies in a checkout."""
    sources: dict[str, Source] = {}
    declared: dict[str, frozenset[str]] = {}
    core = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    for project in [repository / "pyproject.toml", *sorted(repository.glob("plugins/*/pyproject.toml"))]:
        about = tomllib.loads(project.read_text("utf-8"))["project"]
        name = about["name"]
        optional = about.get("optional-dependencies", {}) if name != core["name"] else {}
        lines = [*about["dependencies"], *(line for extra in optional.values() for line in extra)]
        needs = {re.split(r"[ ;<>=!~\[]", line, maxsplit=1)[0] for line in lines}
        declared[name] = frozenset(need for need in needs if need.startswith("karenina-"))
        package = CORE if name == core["name"] else name.replace("-", "_")
        for path in sorted((project.parent / package).rglob("*.py")):
            parts = path.relative_to(project.parent).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            sources[module] = Source(module, path, name, path.read_text("utf-8"))
    return Structure(sources, declared, core["dependencies"])


def _signatures(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, list[str]]]:
    """`(name, parameters)` of functions; that of a method is `Class.method`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            yield f"{inside}{node.name}", [parameter.arg for parameter in named]
            yield from _signatures(node)
        else:
            yield from _signatures(node, f"{node.name}." if isinstance(node, ast.ClassDef) else inside)


def _strings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Those that are no docstrings."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node


def _strongly_connected(graph: Mapping[str, frozenset[str]]) -> list[set[str]]:
    """Kosaraju's algorithm, without recursion."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        stack = [(start, iter(graph[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            name, rest = stack[-1]
            following = next((other for other in rest if other in graph and other not in seen), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(graph[following])))
    backwards: dict[str, set[str]] = defaultdict(set)
    for name, others in graph.items():
        for other in others:
            backwards[other].add(name)
    groups, placed = [], set()
    for start in reversed(order):
        group, waiting = set(), [start]
        while waiting:
            name = waiting.pop()
            if name not in placed and name in graph:
                placed.add(name)
                group.add(name)
                waiting += backwards[name]
        if group:
            groups.append(group)
    return groups


def rows(found: Structure) -> Iterator[tuple[str, str, str]]:
    """What is measured, what it is, and its limit."""
    core = "karenina-core"
    folders = found.folders()
    of_core = {folder: count for folder, count in folders.items() if CORE in folder.relative_to(REPOSITORY).parts[:1]}
    yield "lines of source in the core", str(found.lines(core)), "7,000"
    yield "lines of source in all", str(found.lines()), "72,000"
    yield "dependencies of the core", str(len(found.core_dependencies)), "5"
    yield "names of instances in the core", str(len(found.named_in_core())), "0"
    yield "circles of files", str(len(found.circles())), "0"
    yield "imports that are not declared", str(len(found.undeclared())), "0"
    yield "distributions in a circle", str(len(found.cycle())), "0"
    yield "distributions", str(len(found.declared)), "33"
    yield "files in one folder of the core", str(max(of_core.values())), "15"
    yield "files in one folder", str(max(folders.values())), "20"
    yield "private functions with one caller", f"{found.called_once():.1%}", "15 %"
    yield "lines with a comment", f"{found.comments():.1%}", ""
    yield "parameters of a function", str(max(found.parameters().values())), "8"
    yield "hooks of the core", str(found.hooks()), "20"


def main() -> None:
    found = read_structure()
    for name, value, limit in rows(found):
        print(f"{name:36}{value:>10}{f'of {limit}' if limit else '':>12}")
    for group in (*found.circles(), found.undeclared(), found.named_in_core()):
        print(*(["", *group] if group else []), sep="\n  ")


if __name__ == "__main__":
    main()
