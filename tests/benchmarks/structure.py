"""The structure of the source in numbers: `python -m tests.benchmarks.structure`. Those with a limit are guarded."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from attrs import field, frozen

__all__ = ["Row", "Source", "Structure", "named", "read_structure", "rows"]

REPOSITORY = Path(__file__).parents[2]
CORE = "karenina_core"
KIT, CHECKS = "karenina-testing", "checks.py"
KEYWORD_APIS = {
    *("Benchmark.arun_verification", "aextend_run", "arun_single_model_verification", "compare", "compare_models"),
    *("VerificationContext.__init__", "VerificationResultSet.filter", "CallableRubricTrait.from_callable"),
    "trait_checks",
}
"""Functions for users, whose parameters are given by name: there may be many."""
KINDS = {"stage", "adapter", "trait evaluator", "embedder", "search tool", "tool server client", "judgment strategy"}
NAMED_IN_CORE: Mapping[tuple[str, str], str] = {
    ("errors", "template"): "a kind of error: the code that an author wrote",
    ("ports.middleware", "llm"): "a kind of call: of an LLMPort",
    ("values.question", "karenina-template"): "the published name of the language of templates that are data",
    ("values.model_config", "litellm"): "the published default of the interface of a ModelConfig",
}
"""`(module of the core, name)`: why it may be there."""


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

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def strings(self) -> Sequence[tuple[int, str]]:
        """`(line, text)`. One that is a statement is prose: of a module, a class, a function or a field."""
        prose = {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        texts = (node for node in self.nodes if isinstance(node, ast.Constant) and id(node) not in prose)
        return [(node.lineno, node.value) for node in texts if isinstance(node.value, str)]

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
    repository: Path = REPOSITORY

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
        for node in source.nodes:
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
        """Imports from distributions that the importing one does not declare, directly; by a string (`module:name`, or
        what `import_module` takes) too.

        What the group `karenina.checks` of entry points names is imported by karenina-testing alone, and may import it.
        """
        return sorted(
            f"{name} imports {other}, and {source.distribution} does not declare {self.sources[other].distribution}"
            for name, source in self.sources.items()
            for other in self.imports[name] | self._by_string(source)
            if self.sources[other].distribution not in self._allowed(source)
        )

    def _allowed(self, source: Source) -> set[str]:
        kit = {KIT} if source.path.name == CHECKS and source.module.count(".") == 1 else set()
        return {source.distribution, *self.declared[source.distribution], *kit}

    def _by_string(self, source: Source) -> frozenset[str]:
        found = {text.partition(":")[0] for _, text in source.strings if "." in text}
        return frozenset(found & self.sources.keys())

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
        """Names of what is installed in strings of the core, but for `NAMED_IN_CORE`; which of these is not there."""
        names = self.names_of_instances()
        found = {
            (source.module.removeprefix(f"{CORE}."), name): line
            for source in self.sources.values()
            if source.distribution == "karenina-core"
            for line, text in source.strings
            for name in named(text, names)
        }
        unused = [f"{module}: {name!r} is named no longer" for module, name in NAMED_IN_CORE.keys() - found.keys()]
        wrong = {key: line for key, line in found.items() if key not in NAMED_IN_CORE}
        return sorted(unused + [f"{module}:{line}: {name!r}" for (module, name), line in wrong.items()])

    def names_of_instances(self) -> frozenset[str]:
        """Names of everything that is installed beside the core: so a new one is looked for without being listed."""
        from karenina_core import Karenina
        from karenina_core.values.result_parts import declared_parts

        app = Karenina.installed()
        found = {name for registry in app.registries if registry.kind in KINDS for name in registry}
        found |= {feature for entry in app.stages.values() for feature in entry.load().features}
        for plugin in app.plugins:
            if plugin.distribution != "karenina-core":
                found |= {plugin.name, plugin.distribution}
        return frozenset(found | {part.info.name for part in declared_parts()})

    @cached_property
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
            for node in self.sources[f"{CORE}.plugin.hookspecs"].nodes
            if isinstance(node, ast.FunctionDef)
            and any(ast.unparse(mark).startswith("hookspec") for mark in node.decorator_list)
        ]
        kinds = [point for point in entry_points(group="karenina.kinds") if point.value.startswith(f"{CORE}.")]
        return len(specified) + len(kinds)

    def called_once(self) -> float:
        """The share of private functions with exactly one place that names them, of all functions."""
        once = total = 0
        for source in self.sources.values():
            own = [n.name for n in source.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            total += len(own)
            private = {name for name in own if name.startswith("_") and not name.startswith("__")}
            used = Counter(n.id for n in source.nodes if isinstance(n, ast.Name))
            used.update(n.attr for n in source.nodes if isinstance(n, ast.Attribute))
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
    return Structure(sources, declared, core["dependencies"], repository)


def named(text: str, names: Collection[str]) -> list[str]:
    """The names in a string of the code: it is one, or, where that is no word of English, a word of it is one."""
    odd = {name for name in names if "-" in name or "_" in name or name != name.lower()}
    return sorted({text} & set(names) | set(re.findall(r"[A-Za-z][\w-]*", text)) & odd)


def _signatures(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, list[str]]]:
    """`(name, parameters)` of functions; that of a method is `Class.method`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            yield f"{inside}{node.name}", [parameter.arg for parameter in named]
            yield from _signatures(node)
        elif not isinstance(node, ast.expr):  # nothing is defined within one
            yield from _signatures(node, f"{node.name}." if isinstance(node, ast.ClassDef) else inside)


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


@frozen
class Row:
    """What is measured, what it is, and its limit."""

    name: str
    value: float
    limit: float | None = None
    """None: it is watched."""
    where: str = ""

    def __str__(self) -> str:
        value = f"{self.value:.1%}" if isinstance(self.value, float) else str(self.value)
        return (
            f"{self.name:36}{value:>10}{'' if self.limit is None else f'of {self.limit:g}':>12}  {self.where}".rstrip()
        )


def rows(found: Structure) -> Iterator[Row]:
    folders = {folder.relative_to(found.repository): count for folder, count in found.folders().items()}
    of_core = {folder: count for folder, count in folders.items() if folder.parts[0] == CORE}
    parameters = found.parameters
    yield Row("lines of source in the core", found.lines("karenina-core"), 7000)
    yield Row("lines of source in all", found.lines())
    yield Row("dependencies of the core", len(found.core_dependencies), 5)
    yield Row("names of instances in the core", len(found.named_in_core()), 0)
    yield Row("circles of files", len(found.circles()), 0)
    yield Row("imports that are not declared", len(found.undeclared()), 0)
    yield Row("distributions in a circle", len(found.cycle()), 0)
    yield Row("distributions", len(found.declared), 33)
    yield Row("files in one folder of the core", max(of_core.values()), 15, _largest(of_core))
    # its `__init__.py` included; the most of pluggy, httpx, structlog, tox, llm and attrs is 21
    yield Row("files in one folder", max(folders.values()), 20, _largest(folders))
    yield Row("private functions with one caller", found.called_once())
    yield Row("lines with a comment", found.comments())
    yield Row("parameters of a function", max(parameters.values()), 8, _largest(parameters))
    yield Row("hooks of the core", found.hooks(), 20)


def _largest(counts: Mapping[Any, int]) -> str:
    return str(max(counts, key=counts.__getitem__))


def main() -> None:
    found = read_structure()
    print(*rows(found), sep="\n")
    for group in (*found.circles(), found.undeclared(), found.named_in_core()):
        print(*(["", *group] if group else []), sep="\n  ")


if __name__ == "__main__":
    main()
