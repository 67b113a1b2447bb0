"""How the rest of karenina reaches a template: three protocols and the values that pass through them.

A runtime turns the text of a template into a handle. A handle is shared by every item of a run and keeps no state
of any item; what it builds from one judge's reply is a filled template and belongs to that item alone. Where code
runs, or whether there is any, is the runtime's matter.
"""

from __future__ import annotations

import re
import re._constants as constants  # type: ignore[import-not-found]  # typeshed leaves both out
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

LONGEST_PATTERN = 100_000
"""Characters of a regular expression of a template or a trait. Chosen: one of so many takes a second to compile."""
OF_A_SET = 5000
"""What a set of characters costs to compile beside its ranges, in characters of a range. Measured: 0.2 ms and 40 ns."""
MOST_WORK = 20_000_000
"""Characters in the ranges of all sets of a pattern, each as often as it is there. Chosen: a second."""


@frozen
class TemplateField:
    """One fact that the judge extracts, or that code reads off the trace."""

    name: str
    type: str
    """The declared type as a template author writes it: `int`, `list[str]`, `Literal['a', 'b']`."""
    description: str
    verified: bool
    """Whether a primitive compares it with a ground truth; other fields only serve the template's own code."""
    hint: str | None = None
    """Advice for the judge that is not part of the schema."""
    weight: float = 1.0
    semantic: bool = False
    """Whether it is decided by how similar the extracted text is to the expected one, which an embedder measures."""
    primitive: Mapping[str, Any] | None = None
    """How a verified field is compared, as plain data: `{"type": "ExactMatch", ...}`; None where only code says it."""


@frozen
class FieldVerdict:
    """The result of comparing the extracted fields with the ground truth."""

    result: bool
    field_results: Mapping[str, bool | None] = field(factory=dict)
    """Per verified field, also those that the strategy leaves out: True, False, or None where the judge found nothing
    to extract.
    """
    field_scores: Mapping[str, float | None] = field(factory=dict)
    """Per verified field: a number from 0 to 1, or None as above."""
    composition_strategy: str | None = None
    """The root of the author's strategy: `all_of`, `any_of`, `at_least_n(2)`, `field_check`; None without one."""
    remarks: tuple[str, ...] = ()
    """What a reader should know about fields that count as wrong, such as that a text could not be read as a date."""
    stable: bool = True
    """False where the template's own code gave another verdict when it was run once more on the same values."""


@frozen
class RegexVerdict:
    """What the template's patterns found in the raw trace."""

    performed: bool
    """False where the template has no patterns."""
    success: bool
    """Whether every check passed; True where there is none."""
    results: Mapping[str, bool] = field(factory=dict)
    details: Mapping[str, Any] = field(factory=dict)
    """Per check: pattern, expected, match_type, matches_found, match_count; one of success_reason, failure_reason,
    error.
    """
    extractions: Mapping[str, Any] = field(factory=dict)
    """Per check: the list of what matched."""
    stable: bool = True
    """False where the template had other patterns, or another success, on the same values and the same trace."""


@runtime_checkable
class FilledTemplate(Protocol):
    """A template filled with one item's extracted values."""

    @property
    def nulls(self) -> frozenset[str]:
        """Verified fields for which the judge found nothing."""

    def values(self) -> Mapping[str, Any]:
        """The extracted fields as JSON data; without `id`, `correct` and `regex`."""

    def accepting(self, fields: Collection[str]) -> FilledTemplate:
        """A copy in which these fields count as right: the template's code finds the expected value in them.

        `values()` and `nulls` still return what was extracted; results, scores and the strategy follow. Raises
        TemplateError for a field without an expected value: one that does not exist, whose primitive needs none, or
        that is decided on the trace.
        """

    async def verify(
        self, trace: str, *, said: str | None = None, similarities: Mapping[str, float] | None = None
    ) -> FieldVerdict:
        """Decide whether the fields are right.

        `trace` is the raw trace; `said` is what the answering model itself wrote in it, without tool output and
        generated headers (the trace where it is not given). Checks on the trace read one of them. `similarities` says
        per semantic field how similar the extracted text is to the expected one, from 0 to 1.

        Raises TemplateError where the template's code fails or does not answer True or False, or where a semantic
        field has a value and no similarity: that is no verdict.
        """

    async def granular(self) -> float | None:
        """The template's partial credit, or None where it defines none. Ask after `verify`.

        Raises TemplateError where the template's code fails. The verdict does not depend on it, so a caller reports
        this as a warning and leaves the number out.
        """

    async def regex(self, trace: str) -> RegexVerdict:
        """Run the template's patterns over the raw trace. Raises TemplateError as `verify` does."""


@runtime_checkable
class TemplateHandle(Protocol):
    """A loaded template, ready to be filled any number of times, also at the same time."""

    @property
    def isolation(self) -> str:
        """How far the template's code is kept from this process: `no-code`, `in-process`, ..."""

    def schema(self) -> dict[str, Any]:
        """JSON Schema of what the judge has to fill in. It never holds ground truth, and belongs to the caller."""

    def fields(self) -> tuple[TemplateField, ...]:
        """What the judge extracts; empty where nothing is to be extracted and no judge is needed."""

    def trace_fields(self) -> tuple[TemplateField, ...]:
        """What code decides on the text of the trace. The judge is not asked and the schema does not name them."""

    def ground_truth(self) -> Mapping[str, Any]:
        """The expected values per field as JSON data, as far as the template states them."""

    async def build(self, data: Mapping[str, Any] | None) -> FilledTemplate:
        """Fill the template. Unknown keys are dropped; a verified field that is missing or null counts as not
        found.

        Raises FillError where the data does not fit, naming every problem in words that a judge can act on, and
        TemplateError where the template's own code fails.
        """


@runtime_checkable
class TemplateRuntime(Protocol):
    """Loads templates of some languages.

    One that cannot work on every machine has an attribute `unavailable`: why it cannot here, or an empty text.
    """

    @property
    def name(self) -> str: ...

    @property
    def languages(self) -> frozenset[str]:
        """Values of a template's language that it understands: `python`, `karenina-template`."""

    @property
    def executes_code(self) -> bool:
        """Whether loading or using a template runs code that came with the benchmark."""

    @property
    def isolation(self) -> str: ...

    async def load(self, text: str, primitives: Mapping[str, type]) -> TemplateHandle:
        """Load a template. `primitives` are the verification primitives that it may use, by name.

        Raises TemplateError with the reason and, for code, the line.
        """


class TraitFunction(Protocol):
    """The function of a callable trait, loaded apart from this process."""

    @property
    def isolation(self) -> str: ...

    async def call(self, text: str) -> Any:
        """What the function returns for a text, where that is None, a text, a number or a truth value; else something
        that says in `type` and `shown` what it was.

        Raises TemplateError with what the function raised, and where it took too long.
        """


@runtime_checkable
class FunctionRuntime(Protocol):
    """A template runtime that also keeps the functions of callable traits apart from this process."""

    @property
    def unavailable(self) -> str:
        """Why it cannot do so on this machine; empty where it can."""

    async def load_function(self, code: bytes) -> TraitFunction:
        """Load the code of a trait, a pickle or a source. Raises TemplateError."""


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern of `re`. Raises re.error for what is none, and ValueError for one that takes too long to compile:
    `re` goes through every character of a range where letters of either case are the same.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"a pattern of {len(pattern):,} characters; {LONGEST_PATTERN:,} are the most")
    try:
        if "[" in pattern and _work(parser.parse(pattern, flags)) > MOST_WORK:
            raise ValueError(f"{pattern!r:.200} has too many or too large sets of characters; write fewer `[...]`")
        return re.compile(pattern, flags)
    except RecursionError:
        raise ValueError(f"{pattern!r:.200} is nested too deeply") from None


def _work(tree: Any) -> int:
    found = 0
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple) and node and node[0] is constants.IN:
            ranges = (part[1] for part in node[1] if part[0] is constants.RANGE)
            found += OF_A_SET + sum(high - low + 1 for low, high in ranges)
        elif isinstance(node, tuple | list | parser.SubPattern):
            waiting += node
    return found
