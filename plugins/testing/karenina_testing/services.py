"""Does an embedder give vectors that can be compared, and does a search tool give results that can be read?"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karenina_calls.services.embedder_settings import EMBEDDING_MODEL
from karenina_calls.services.embedding import Embeddings
from karenina_calls.tools.search import as_search_tool, read_results

from karenina_core.errors import PluginError, PortError, SearchError, one_line
from karenina_core.values.message import UsageMetadata

from .checks import Check, Fault, Promises, Raised, attempt, expecting, promise_checks, run_checks, shown
from .instances import CONSTRUCTION, LONGEST_CALL, STATE, Made, arguments_of, call_promises, problem_now
from .watch.loops import in_loop, within

LONG = "osteonecrosis of the jaw " * 400
MIXED = "Gicht \u2013 痛风 \U0001f468\u200d⚕️ e\u0301"
TEXTS = ("", "a", LONG, MIXED)
"""Every embedder has vectors for them."""
REFUSABLE = (" ", "\n", "a\ud800b", "a\0b", "{braces}", LONG * 4)
"""An embedder may refuse them, if it says so as it should."""
PLAIN = ("gout", "a fever of 40 degrees", "the jaw")
WORK = tuple(f"a fever of {degrees} degrees " * 3 for degrees in range(36, 42))
SAME = 0.05
"""How far two vectors of one text may be apart, as a share of their length: servers do not compute exactly."""
QUERY = "What is the target of venetoclax?"
ODD_QUERIES = ("", " \n", "a", "venetoclax " * 2_000, MIXED, "a\ud800b", "a\0b", '"{x}" -y')


def embedder_checks(
    embedder: Any,
    *,
    model: str | None = None,
    settings: Any = None,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """One check for every promise of an embedder.

    `embedder` is a class, which is made with `model`, and with `settings` where it takes a second argument, or an
    instance. Texts are embedded only where `model` is given and `problem()` is None for it: to load a model or to ask
    a server takes a request. A class is made again for every check; give an instance where it takes long to load.
    """
    arguments = arguments_of(embedder, settings, EMBEDDING_MODEL if model is None else model)
    made = Made("embedder", embedder, arguments, "aembed", (PortError, PluginError))
    promises: dict[str, Any] = {"protocol": ("It has problem and the coroutine function aembed.", _embedder_protocol)}
    promises |= CONSTRUCTION if isinstance(embedder, type) else {}
    promises |= STATE
    promises |= EMBEDDINGS if model is not None and problem_now(made) is None else {}
    checks = promise_checks(made.name, made, promises, made.fault_of)
    return expecting(checks, expected_failures, (*CONSTRUCTION, *EMBEDDINGS))


def check_embedder(embedder: Any, **options: Any) -> None:
    """Run all checks of an embedder; `options` are those of `embedder_checks`. Raises an ExceptionGroup of what
    fails."""
    run_checks(embedder_checks(embedder, **options))


async def _embed(embedder: Any, texts: Sequence[str]) -> Embeddings:
    found: Embeddings = await within(embedder.aembed(list(texts)), LONGEST_CALL)
    return found


async def _work(embedder: Any) -> Embeddings:
    found: Embeddings = await embedder.aembed(list(WORK))
    return found


def _embedder_protocol(made: Made) -> Iterator[Fault]:
    embedder = made.fresh()
    if not callable(getattr(embedder, "problem", None)):
        yield made.fault("it has no method problem", "add it; see karenina_core.ports.EmbedderPort")
    if not inspect.iscoroutinefunction(getattr(embedder, "aembed", None)):
        yield made.fault("it has no `async def aembed`", "see karenina_core.ports.EmbedderPort")


EMBEDDINGS: Promises[Made] = Promises()


@EMBEDDINGS.add("vectors", "It gives one finite vector for each text, all of the same length.")
def _vectors(made: Made) -> Iterator[Fault]:
    if problem := _what_is_wrong(in_loop(_embed(made.fresh(), TEXTS)), TEXTS):
        yield made.fault(problem, "return Embeddings with one tuple of floats for each text")


def _what_is_wrong(found: object, texts: Sequence[str]) -> str | None:
    """About the vectors of these texts."""
    if not isinstance(found, Embeddings):
        return f"aembed returned {type(found).__name__}"
    vectors: Any = found.vectors
    if not isinstance(vectors, tuple | list) or len(vectors) != len(texts):
        many = f"{len(vectors)} vectors" if isinstance(vectors, tuple | list) else type(vectors).__name__
        return f"for {len(texts)} texts it gave {many}"
    for text, vector in zip(texts, vectors, strict=True):
        if not isinstance(vector, tuple | list) or not vector:
            return f"the vector of {shown(text)} is {type(vector).__name__}{'' if vector else ' without numbers'}"
        if odd := [number for number in vector if not isinstance(number, int | float) or not math.isfinite(number)]:
            return f"the vector of {shown(text)} holds {odd[0]!r} ({type(odd[0]).__name__})"
        if len(vector) != len(vectors[0]):
            return f"the vectors have {len(vectors[0])} and {len(vector)} numbers"
    return None


@EMBEDDINGS.add("order", "The vectors are in the order of the texts.")
def _order(made: Made) -> Iterator[Fault]:
    async def run() -> tuple[Embeddings, Embeddings]:
        embedder = made.fresh()
        return await _embed(embedder, PLAIN), await _embed(embedder, PLAIN[::-1])

    forwards, backwards = in_loop(run())
    if problem := _differs(PLAIN, forwards, backwards.vectors[::-1]):
        yield made.fault(f"with the texts in another order {problem}", "give the vectors in the order of the texts")


@EMBEDDINGS.add("equal_texts", "Equal texts have equal vectors.")
def _equal_texts(made: Made) -> Iterator[Fault]:
    async def run() -> str | None:
        embedder = made.fresh()
        for text in PLAIN:
            found, again = [await _embed(embedder, (text, text)) for _ in range(2)]
            for vectors in (found.vectors[::-1], again.vectors):
                if problem := _differs((text, text), found, vectors):
                    return problem
        return None

    if problem := in_loop(run()):
        yield made.fault(f"asked for a text twice, {problem}", "compute the vector from the text alone")


def _differs(texts: Sequence[str], found: Embeddings, others: Sequence[Sequence[float]]) -> str | None:
    """Whether these vectors are not those that were found, for one of the texts at least."""
    if problem := _what_is_wrong(found, texts):
        return problem
    if len(others) != len(texts):
        return f"it gave {len(others)} vectors for {len(texts)} texts"
    for text, vector, other in zip(texts, found.vectors, others, strict=True):
        longest = max(math.hypot(*vector), math.hypot(*other))
        if len(vector) != len(other) or math.dist(vector, other) > SAME * longest:
            return f"the vector of {shown(text)} was another one"
    return None


@EMBEDDINGS.add("no_texts", "No texts have no vectors.")
def _no_texts(made: Made) -> Iterator[Fault]:
    if problem := _what_is_wrong(in_loop(_embed(made.fresh(), ())), ()):
        yield made.fault(problem, "return Embeddings(vectors=(), ...) for no texts")


@EMBEDDINGS.add("model", "It names the model that was really used.")
def _model(made: Made) -> Iterator[Fault]:
    found = in_loop(_embed(made.fresh(), PLAIN))
    model: object = found.model
    usage: object = found.usage
    if not isinstance(model, str) or not model.strip():
        yield made.fault(f"the model of the Embeddings is {model!r}", "name the model that was really used")
    if not isinstance(usage, UsageMetadata):
        yield made.fault(f"the usage of the Embeddings is {usage!r}", "give a UsageMetadata, or nothing")


@EMBEDDINGS.add("odd_text", "Odd text has a vector, or is refused with PortError or PluginError.")
def _odd_text(made: Made) -> Iterator[Fault]:
    """Any other error than the two is reported by the runner."""
    embedder = made.fresh()
    for text in REFUSABLE:
        try:
            found = in_loop(_embed(embedder, (text,)))
        except (PortError, PluginError):
            continue
        if problem := _what_is_wrong(found, (text,)):
            yield made.fault(problem, "give a vector, or raise PortError with kind 'invalid_request'")


@EMBEDDINGS.add("at_once", "Calls at the same time get their own vectors.")
def _at_once(made: Made) -> Iterator[Fault]:
    calls = [PLAIN[number:] + PLAIN[:number] for number in range(len(PLAIN))]

    async def run() -> tuple[list[Embeddings], list[Embeddings]]:
        embedder = made.fresh()
        alone = [await _embed(embedder, texts) for texts in calls]
        return alone, await asyncio.gather(*(_embed(embedder, texts) for texts in calls))

    for texts, alone, together in zip(calls, *in_loop(run()), strict=True):
        if problem := _what_is_wrong(together, texts) or _differs(texts, alone, together.vectors):
            remedy = "keep nothing of a call on the embedder; what loads once is loaded under a lock"
            yield made.fault(f"called several times at once, {problem}", remedy)


EMBEDDINGS |= call_promises(_work, "call", "loads and works")


def search_tool_checks(
    tool: Any,
    *,
    settings: Any = None,
    search: bool = False,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """One check for every promise of a search tool.

    `tool` is a class, which is made with `settings` where it takes an argument, an instance, or anything else that
    `as_search_tool` takes. Queries are made only with `search=True`, and only where `problem()` is None: they may go
    out to the world, and cost money.
    """
    made = Made("search tool", tool, arguments_of(tool, settings), "asearch", (SearchError,))
    promises: dict[str, Any] = {"protocol": ("It can be asked a query.", _search_protocol)}
    promises |= CONSTRUCTION if isinstance(tool, type) else {}
    promises |= STATE if hasattr(tool, "problem") else {}
    promises |= SEARCHES if search and problem_now(made) is None else {}
    checks = promise_checks(made.name, made, promises, made.fault_of)
    return expecting(checks, expected_failures, (*CONSTRUCTION, *STATE, *SEARCHES))


def check_search_tool(tool: Any, **options: Any) -> None:
    """Run all checks of a search tool; `options` are those of `search_tool_checks`. Raises an ExceptionGroup of what
    fails."""
    run_checks(search_tool_checks(tool, **options))


async def _search(tool: Any, query: str = QUERY) -> Any:
    """Its own coroutine. A tool with `asearch` must raise SearchError itself; for others, karenina does."""
    return await (tool if hasattr(tool, "asearch") else as_search_tool(tool, LONGEST_CALL)).asearch(query)


def _search_protocol(made: Made) -> Iterator[Fault]:
    tool = made.fresh()
    try:
        as_search_tool(tool)
    except TypeError as error:
        yield made.fault(one_line(error), "see karenina_core.ports.SearchTool")
    if hasattr(tool, "asearch") and not inspect.iscoroutinefunction(tool.asearch):
        yield made.fault("it has no `async def asearch`", "see karenina_core.ports.SearchTool")
    if hasattr(tool, "asearch") and not callable(getattr(tool, "problem", None)):
        yield made.fault("it has no method problem", "add it; see karenina_core.ports.SearchTool")


def _unreadable(made: Made, tool: Any, query: str) -> Iterator[Fault]:
    found = in_loop(within(_search(tool, query), LONGEST_CALL))
    try:
        read_results(found)
    except SearchError as error:
        yield made.fault(str(error), "return SearchResult values, or mappings with content")


SEARCHES: Promises[Made] = Promises()


@SEARCHES.add("results", "What it returns can be read as results.")
def _results(made: Made) -> Iterator[Fault]:
    return _unreadable(made, made.fresh(), QUERY)


@SEARCHES.add("odd_query", "Odd queries have results, or are refused with SearchError.")
def _odd_query(made: Made) -> Iterator[Fault]:
    tool = made.fresh()
    for query in ODD_QUERIES:
        outcome = attempt(lambda query: list(_unreadable(made, tool, query)), query)
        if not isinstance(outcome, Raised):
            yield from outcome
        elif not isinstance(outcome.error, SearchError):
            by = f"for the query {shown(query)} it"
            yield Fault.raised(outcome.error, "raise SearchError", by=by, line=made.line())


SEARCHES |= call_promises(_search, "search", "searches")
