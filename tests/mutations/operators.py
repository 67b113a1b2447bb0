"""What is changed in a source file, one thing at a time: comparisons, arithmetic, conditions, numbers, arguments.

Annotations, decorators, docstrings, texts and what is raised are left alone: a change there is rarely one of behaviour.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator
from copy import copy
from pathlib import Path

from attrs import frozen

__all__ = ["Mutant", "mutants_of"]

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
    **{ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Break: ast.Continue, ast.Continue: ast.Break},
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
IN_ANY_ORDER = {"min", "max", "isinstance", "issubclass", "math.gcd", "suppress", "contextlib.suppress"}
"""With two arguments changed over they do the same, or nothing that runs."""
SHAPES = {"init", "repr", "eq", "order", "frozen", "slots", "kw_only", "ensure_ascii", "stacklevel", "strict"} | {
    "usedforsecurity"
}
"""Arguments that say how a class is made or a text is written, or that no result depends on."""
LEFT_ALONE = {"annotation", "returns", "decorator_list", "type_params", "exc", "cause", "msg"}


@frozen
class Mutant:
    """One change of one file."""

    id: str
    """The same as long as the function has the same change in it, wherever it is in its file."""
    room: str
    path: Path
    function: str
    """Its qualified name; empty: code that runs when the module is imported."""
    first_line: int
    """Of the outermost function with its decorators, as its code object has it; 0: none."""
    span: tuple[int, int, int, int]
    """Line and column (in bytes) of its first character, and of the one after its last."""
    kind: str
    before: str
    after: str
    place: tuple[int, int]
    """Which node of the tree is changed, and in which of its ways."""

    def diff(self) -> list[str]:
        """The changed lines: what they were, and what they are (but for parentheses)."""
        first, column, last, end_column = self.span
        lines = self.path.read_bytes().split(b"\n")
        was = lines[first - 1 : last]
        changed = (was[0][:column] + self.after.encode("utf-8") + was[-1][end_column:]).split(b"\n")
        before, after = ([line.decode("utf-8") for line in each] for each in (was, changed))
        return [line for line in list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:] if line[0] in "+-"]

    def tree(self) -> ast.Module:
        """The file with the change in it."""
        tree = ast.parse(self.path.read_text("utf-8"))
        nodes = list(ast.walk(tree))
        node, way = self.place
        _, old, new = list(_changes(nodes[node]))[way]
        _Swap(old, new).visit(tree)
        return ast.fix_missing_locations(tree)


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else super().generic_visit(node)


def mutants_of(room: str, path: Path, root: Path) -> list[Mutant]:
    """Every change that is known for a file, in the order of its lines."""
    tree = ast.parse(path.read_text("utf-8"))
    owners = dict(_owned(tree, "", 0))
    seen: Counter[str] = Counter()
    found = []
    for number, node in enumerate(ast.walk(tree)):
        if node not in owners:
            continue
        name, first = owners[node]
        for way, (kind, old, new) in enumerate(_changes(node)):
            before, after = ast.unparse(old), ast.unparse(new)
            what = "\n".join((path.relative_to(root).as_posix(), name, kind, before, after))
            seen[what] += 1
            digest = hashlib.sha256(f"{what}\n{seen[what]}".encode()).hexdigest()[:8]
            span = tuple(getattr(old, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
            facts = (f"{room}-{digest}", room, path, name, first, span, kind, before, after, (number, way))
            found.append(Mutant(*facts))
    return sorted(found, key=lambda mutant: (mutant.span, mutant.place))


def _owned(node: ast.AST, name: str, first: int) -> Iterator[tuple[ast.AST, tuple[str, int]]]:
    """Every node that may be changed, with the function that it is in."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or field in LEFT_ALONE or _is_left_alone(child):
                continue
            named, begins = name, first
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                named = f"{name}.{child.name}".removeprefix(".")
                if not isinstance(child, ast.ClassDef) and not first:
                    begins = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            yield child, (named if begins else "", begins)
            yield from _owned(child, named, begins)


def _is_left_alone(node: ast.AST) -> bool:
    typing_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.keyword) and node.arg in SHAPES:
        return True
    names = [ast.unparse(target) for target in getattr(node, "targets", ())]
    return (
        typing_only or "__all__" in names or isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom)
    )


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """`(kind, old node, new node)`."""
    match node:
        case ast.Compare(ops=[*ops]):
            for place, operator in enumerate(ops):
                yield "comparison", node, _with(node, ops=[*ops[:place], OTHER[type(operator)](), *ops[place + 1 :]])
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OTHER:
            yield "arithmetic", node, _with(node, op=OTHER[type(op)]())
        case ast.BoolOp(op=op):
            yield "and, or", node, _with(node, op=OTHER[type(op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "sign", node, operand
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not _is_turned(test):
            yield "condition", test, ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool(value)):
            yield "constant", node, ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", node, ast.Constant(value + 1)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in ("None", "False"):
            yield "return", node, ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise():
            yield "deleted", node, ast.Pass()
        case ast.Break() | ast.Continue():
            yield "loop", node, OTHER[type(node)]()
        case ast.Dict(keys=keys, values=values):
            for place, key in enumerate(keys):
                if isinstance(key, ast.Constant):
                    rest = {
                        "keys": [*keys[:place], *keys[place + 1 :]],
                        "values": [*values[:place], *values[place + 1 :]],
                    }
                    yield f"without {key.value!r}", node, _with(node, **rest)
        case ast.Call():
            yield from _calls(node)
    if isinstance(node, ast.AugAssign):
        yield "deleted", node, ast.Pass()


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    if isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield "other call", node, _with(node, func=ast.Name(NAMES[node.func.id], ast.Load()))
    match node.args:
        case [first, second, *rest] if not any(isinstance(each, ast.Starred) for each in (first, second)):
            if ast.unparse(node.func) not in IN_ANY_ORDER and ast.unparse(first) != ast.unparse(second):
                yield "swapped", node, _with(node, args=[second, first, *rest])
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None and keyword.arg not in SHAPES:
            rest_of = [*node.keywords[:place], *node.keywords[place + 1 :]]
            yield f"without {keyword.arg}", node, _with(node, keywords=rest_of)


def _is_turned(test: ast.expr) -> bool:
    """Whether another change turns the condition round already."""
    signs = ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(test.ops[0], signs)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _with(node: ast.AST, **changed: object) -> ast.AST:
    other = copy(node)
    for name, value in changed.items():
        setattr(other, name, value)
    return other
