r"""Mathematical expressions as texts: read by a small grammar, never evaluated as code, and compared by their values.

Read are numbers, names of one letter (with an index: `k_{cat}`, `N0`), Greek names, `+ - * / ^ ! %`, brackets, `|x|`,
the functions of `FUNCTIONS`, and of LaTeX `\frac`, `\sqrt[n]{}`, `\cdot`, `\times`, `\div`, `\left`, `\right`, `\text`,
`\mathrm`, `\operatorname`, `\boxed`, `\log_b` and spaces. Factors need no sign between them. `e`, `i` and `pi` are the
constants, `log` without a base is the natural logarithm. No matrices, sets, integrals or inequalities.

Values are computed by mpmath, with a fixed number of digits, at points that depend on the names alone. So a comparison
takes milliseconds whatever was written; a power or factorial that would be too large to compute is refused.
"""

from __future__ import annotations

import hashlib
import operator
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

LONGEST = 400
"""Characters. Longer ones are no final answers. Chosen, not measured."""
DEEPEST = 30
"""Brackets, functions and powers within one another, far below what Python's own stack takes. Chosen."""
DIGITS = 30  # twice those of a float
SAME = 1e-20
"""The share by which equal values may differ in computations with `DIGITS` digits; the rest is left to cancellation."""
LARGEST = 10**6
"""Of an exponent, or what a factorial is taken of: with larger ones mpmath's time and memory grow. Chosen."""
FUNCTIONS: Mapping[str, str] = {
    **{name: name for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "exp", "ln", "sqrt")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan")},
    **{f"a{name}": f"a{name}" for name in ("sin", "cos", "tan")},
    **{"log": "ln", "lg": "log10", "abs": "fabs"},
}
"""By what mpmath calls them."""
_TAME = ("ln", "log10", "sqrt", "fabs")
"""Those of which a large argument costs nothing."""
_GREEK = {
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta"},
    **{"κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau"},
    **{"φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda"},
    **{"Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega", "ħ": "hbar"},
}
_SIGNS = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "[": "(", "]": ")"})
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_WRITING: tuple[tuple[str, str], ...] = (
    (r"\$|\\\(|\\\)|\\\[|\\\]|\\left|\\right|\\displaystyle|\\boxed|\\[,;:!> ]|\\quad|~", " "),
    (r"\\(?:text|mathrm|mathit|operatorname|rm)\s*\{([^{}]*)\}", r" \1 "),
    (r"\\(?:dfrac|tfrac|cfrac)", r"\\frac"),
    (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
    (r"\\sqrt\s*(\d)", r"\\sqrt{\1}"),
    (r"\\sqrt\s*\[([^\[\]]*)\]", r"\\root{\1}"),
    (r"\\cdot(?![A-Za-z])|\\times(?![A-Za-z])|\*(?!\*)", "*"),
    (r"\\div(?![A-Za-z])", "/"),
    (r"\\%", "%"),
    (r"\*\*", "^"),
    (r"√", r"\\sqrt "),
    (r"([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+)", r"^{\1}"),
    (r"(?<=\d)(?:,|\{,\})(?=\d{3}(?!\d))", ""),
)
"""What is written in several ways, and the one that is read."""
_NAMES = "|".join(sorted((*FUNCTIONS, *set(_GREEK.values())), key=len, reverse=True))
_TOKEN = rf"""(?xa)
       \s*(?: (?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{{1,4}}(?!\d))?)
          | \\?(?P<word>frac|root|(?<=\\)[A-Za-z]+|{_NAMES}|[A-Za-z])(?:\s*_\s*(?P<index>\{{[^{{}}]*\}}|[A-Za-z0-9]+))?
          | (?P<sign>[-+*/^!%(){{}}|=]) )"""
_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
}
_ARGUMENTS = r"^([\s$]*\\?[A-Za-z]+(?:_\w+|_\{[^{}]*\})?)\s*(?:\\left)?\([A-Za-z, ]+(?:\\right)?\)(?=\s*=)"
"""What is left of a function that an equation defines: the `(t)` of `N(t) = ...`."""
_of_thread = threading.local()
Tree = tuple[Any, ...]


@frozen
class Statement:
    """An expression, or an equation of two."""

    left: Tree
    right: Tree | None = None

    def value(self) -> Tree | None:
        """The expression alone, or what an equation says of a name; None for other equations."""
        if self.right is None:
            return self.left
        return self.right if self.left[0] == "name" else self.left if self.right[0] == "name" else None

    def difference(self) -> Tree:
        return self.left if self.right is None else ("-", self.left, self.right)


def read_statement(text: str) -> Statement:
    """Raises ValueError for what is no expression or equation."""
    if len(text) > LONGEST:
        raise ValueError(f"a text of {len(text)} characters is not an expression")
    reader = _Reader(list(_tokens(re.sub(_ARGUMENTS, r"\1", text))), text)
    left = reader.sum()
    right = reader.sum() if reader.taken("=") else None
    if reader.next is not None:
        raise reader.problem()
    return Statement(left, right)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """`(kind, text)`; an index is a part of its name, and of a logarithm its base."""
    written = text.strip().rstrip(".")
    for found, replacement in _WRITING[:6]:  # while brackets are still told apart
        written = re.sub(found, replacement, written)
    written = written.translate(_SIGNS)
    for found, replacement in _WRITING[6:]:
        written = re.sub(found, replacement, written)
    written = written.translate(_SUPERSCRIPTS)
    for letter, name in _GREEK.items():
        written = written.replace(letter, f" {name} ")
    position, token = 0, re.compile(_TOKEN)
    while written[position:].strip():
        match = token.match(written, position)
        if match is None:
            raise ValueError(f"{text!r} is not an expression that can be read: {written[position:].strip()[:20]!r}")
        position = match.end()
        kind = match.lastgroup or ""
        if match["word"]:
            index = re.sub(r"[{}\s]", "", match["index"] or "")
            # N0 is a name; e2 and i2 are rather a constant and a number.
            digits = re.compile(r"\d+(?!\.?\d)").match(written, position)
            if digits and not index and len(match["word"]) == 1 and match["word"] not in "ei":
                index, position = digits[0], digits.end()
            yield "word", match["word"] + (f"_{index}" if index else "")
        else:
            yield kind, match[kind]


class _Reader:
    """A descent through the tokens; every method reads what it is named after."""

    def __init__(self, tokens: list[tuple[str, str]], text: str) -> None:
        self._tokens, self._text, self._position, self._depth = tokens, text, 0, 0

    @property
    def next(self) -> tuple[str, str] | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def taken(self, sign: str) -> bool:
        if self.next != ("sign", sign):
            return False
        self._position += 1
        return True

    def problem(self) -> ValueError:
        where = f"at {self.next[1]!r}" if self.next else "at its end"
        return ValueError(f"{self._text!r} is not an expression that can be read, {where}")

    def sum(self) -> Tree:
        found = self.product()
        while self.next in (("sign", "+"), ("sign", "-")):
            sign = self._take()
            found = (sign, found, self.product())
        return found

    def product(self) -> Tree:
        found = self.signed()
        while True:
            if self.next in (("sign", "*"), ("sign", "/")):
                sign = self._take()
                found = (sign, found, self.signed())
            elif self._begins():
                found = ("*", found, self.power())
            else:
                return found

    def signed(self) -> Tree:
        negative = False
        while self.next in (("sign", "+"), ("sign", "-")):
            negative ^= self._take() == "-"
        return ("neg", self.power()) if negative else self.power()

    def power(self) -> Tree:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ValueError(f"{self._text!r} is nested too deeply")
        found = self.atom()
        while self.next in (("sign", "!"), ("sign", "%")):
            found = (self._take(), found)
        found = ("^", found, self.exponent()) if self.taken("^") else found
        self._depth -= 1
        return found

    def exponent(self) -> Tree:
        return self._within("}") if self.taken("{") else self.signed()

    def atom(self) -> Tree:
        if self.next is None:
            raise self.problem()
        kind, text = self.next
        if kind == "number":
            self._take()
            return ("number", text)
        if kind == "word":
            self._take()
            return self._word(text)
        for opening, closing in (("(", ")"), ("{", "}"), ("|", "|")):
            if self.taken(opening):
                inner = self._within(closing)
                return ("call", "fabs", inner) if opening == "|" else inner
        raise self.problem()

    def _word(self, text: str) -> Tree:
        name, _, index = text.partition("_")
        if name == "frac":
            return ("/", self.atom(), self.atom())
        if name == "root":
            degree = self.atom()
            return ("^", self.atom(), ("/", ("number", "1"), degree))
        if name in FUNCTIONS and not (index and name != "log"):
            return self._call(name, index)
        if text in ("e", "pi", "i"):
            return ("constant", text)
        return ("name", text)

    def _call(self, name: str, base: str) -> Tree:
        function = FUNCTIONS[name]
        exponent = self.exponent() if self.taken("^") else None
        if exponent == ("neg", ("number", "1")) and f"a{function}" in FUNCTIONS.values():
            function, exponent = f"a{function}", None
        if self.next in (("sign", "("), ("sign", "{"), ("sign", "|")):
            argument = self.atom()
        else:
            argument = self.signed()
            while self.next is not None and (self.next[0] == "number" or self._is_name(self.next)):
                argument = ("*", argument, self.power())
        found: Tree = ("call", function, argument)
        if base:
            found = ("/", found, ("call", "ln", read_statement(base).left))
        return found if exponent is None else ("^", found, exponent)

    def _within(self, closing: str) -> Tree:
        found = self.sum()
        if not self.taken(closing):
            raise self.problem()
        return found

    def _take(self) -> str:
        self._position += 1
        return self._tokens[self._position - 1][1]

    def _begins(self) -> bool:
        """Whether a factor may begin here. A bar may not: it may also end something."""
        return self.next is not None and (self.next[0] != "sign" or self.next[1] in "({")

    @staticmethod
    def _is_name(token: tuple[str, str]) -> bool:
        return token[0] == "word" and token[1].partition("_")[0] not in (*FUNCTIONS, "frac", "root")


def same_value(found: Statement, wanted: Statement, tolerance: float) -> bool:
    """Whether two statements have the same value wherever both have one.

    Of one equation and one expression, the side of the equation counts that is no name. Two equations are the same
    where the differences of their sides are, up to a constant factor. Raises ValueError where there is nothing to
    compare.
    """
    both = found.right is not None and wanted.right is not None
    scaled = both and found.left != wanted.left
    one = found.difference() if scaled else found.value()
    other = wanted.difference() if scaled else wanted.value()
    if one is None or other is None:
        if not both:
            raise ValueError("an equation cannot be compared with an expression")
        one, other, scaled = found.difference(), wanted.difference(), True
    pairs = _values(one, other)
    if scaled:
        factor = next((a / b for a, b in pairs if b), 0)
        pairs = [(a, b * factor) for a, b in pairs]
    share = max(tolerance, SAME)
    return all(abs(a - b) <= share * abs(b) if b else abs(a) <= SAME for a, b in pairs)


def numbers() -> Any:
    """This thread's context of mpmath, with `DIGITS` digits: some functions change them while they compute, and to make
    one takes longer than a comparison. Raises ValueError where mpmath is not installed."""
    if (context := getattr(_of_thread, "context", None)) is not None:
        return context
    try:
        import mpmath  # type: ignore[import-untyped]  # it ships no types
    except ImportError:
        raise ValueError("expressions need mpmath; type: pip install 'karenina-template[math]'") from None
    context = mpmath.mp.clone()
    context.dps = DIGITS
    _of_thread.context = context
    return context


def _values(one: Tree, other: Tree) -> list[tuple[Any, Any]]:
    """Their values at the same points, the first where all names are positive; others only where both are real."""
    context = numbers()
    names = sorted({*_named(one), *_named(other)})
    pairs = []
    for number in range(7 if names else 1):
        at = {name: context.mpf(_point(name, number)) for name in names}
        # The fourth point and those after it have names below zero, each another choice of them.
        signed = {
            name: -at[name] if number > 3 and (position + number) % 3 else at[name]
            for position, name in enumerate(names)
        }
        values = [_value(tree, signed, context) for tree in (one, other)]
        if number <= 3:
            if None in values:
                raise ValueError("it has no value that can be computed")
            pairs.append((values[0], values[1]))
        elif None not in values and not any(context.im(value) for value in values):
            pairs.append((values[0], values[1]))
    return pairs


def _named(tree: Tree) -> Iterator[str]:
    if tree[0] == "name":
        yield tree[1]
    for part in tree[1:]:
        if isinstance(part, tuple):
            yield from _named(part)


def _point(name: str, number: int) -> str:
    """Between 0.25 and 2.25, the same in every process."""
    digest = hashlib.sha256(f"{name} {number}".encode()).digest()
    return f"{0.25 + int.from_bytes(digest[:6]) / 2**47:.15f}"


def _value(tree: Tree, at: Mapping[str, Any], context: Any) -> Any:
    """None where there is none, as for 1/0. Raises ValueError where it would be too large to compute."""
    try:
        found = _computed(tree, at, context)
    except ArithmeticError:
        return None
    return found if context.isfinite(found) else None


def _computed(tree: Tree, at: Mapping[str, Any], context: Any) -> Any:
    kind = tree[0]
    if kind == "number":
        return context.mpf(tree[1])
    if kind == "name":
        return at[tree[1]]
    if kind == "constant":
        return {"e": context.e, "pi": context.pi, "i": context.j}[tree[1]] * 1
    values = [_computed(part, at, context) for part in tree[1:] if isinstance(part, tuple)]
    if kind == "call":
        return _applied(tree[1], values[0], context)
    if kind == "neg":
        return -values[0]
    if kind == "%":
        return values[0] / 100
    if kind == "!":
        return context.factorial(_small(values[0]))
    one, other = values
    if kind == "^":
        return context.power(one, _small(other))
    return _OPERATIONS[kind](one, other)


def _applied(function: str, value: Any, context: Any) -> Any:
    return getattr(context, function)(value if function in _TAME else _small(value))


def _small(value: Any) -> Any:
    if abs(value) > LARGEST:
        raise ValueError("a number in it is too large to compute with")
    return value
