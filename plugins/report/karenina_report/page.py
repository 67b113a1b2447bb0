"""The page itself: templates, policy, and the file."""

from __future__ import annotations

import base64
import hashlib
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from karenina_cli.summary import percent, shown_cost
from karenina_compare.question_groups import Cluster
from karenina_runs.files.atomic_files import replacing
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.results.stored import StoredResults
from karenina_runs.workspaces.workspace_capture import captures
from karenina_vocabulary.rubric_part import read_traits
from markupsafe import Markup

from karenina_core import VerificationResult, __version__
from karenina_core.errors import RunDirectoryError

from .calls import ItemCalls, folding
from .counts import Counts, packed
from .items import item_view
from .listing import Listing
from .markup import badge, begin, finalized, long, plain, table, trait_row, written_out
from .outcomes import KINDS
from .overview import FailureRow, overview_of
from .plots import ROLES
from .sections import sections_of
from .texts import cut, number, seconds, shown, tokens

POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
MOST = 500
"""Items that are on the page as they are; of more, each block is unpacked when it is looked at. A browser needs half a
second for as many."""
PAGE = 100
"""Items of a block, and of a page of the list."""
PACKED = 6
"""How hard zlib tries: blocks are a fifth larger with 1, and take three times as long with 9 for a twentieth less."""
BUFFER = 64
"""Pieces of the template that are written at a time."""


def chunks(
    about: VerificationResultSet,
    manifest: Mapping[str, Any],
    cluster: Cluster | None = None,
    stored: StoredResults | None = None,
) -> Iterator[str]:
    """The page, piece by piece, of results that are stored, or in the set. They are read twice: who answered what, and
    then one after the other; each is made and counted when its turn comes, and lies in a file until the overview, which
    comes first, is there."""
    begin()
    environment = _environment()
    roles = "".join(f".fill-{role}{{fill:var(--{role})}}.stroke-{role}{{stroke:var(--{role})}}" for role in ROLES)
    style, script = f"{_source(environment, 'style.css')}\n{roles}", _source(environment, "report.js")
    listing = Listing.of(stored.metadata() if stored else (result.metadata for result in about))
    counts = Counts(listing, cluster, about.planned)
    paged = len(listing) > MOST
    with _Kept() as kept:
        made = _items(stored or about, counts, captures(about.run_dir), folding(about.run_dir))
        kept.keep(_blocks(made) if paged else map(_listed, made))
        overview = overview_of(about, counts, manifest)
        benchmark = manifest.get("benchmark")
        name = benchmark.get("name") if isinstance(benchmark, Mapping) else None
        stream = environment.get_template("page.html").stream(
            policy=POLICY.format(script=_digest(script), style=_digest(style)),
            style=Markup(style),
            script=Markup(script),
            index=map(Markup, _index(counts, overview["failures"], paged=paged)),
            results=about,
            total=len(listing),
            overview=overview,
            title=str(name or counts.run_name or "Results"),
            run=overview["run"],
            sections=sections_of(about.run_dir),
            items=() if paged else map(Markup, kept),
            blocks=kept if paged else None,
            most=MOST,
            kinds=KINDS,
            version=__version__,
            made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        )
        stream.enable_buffering(BUFFER)
        yield from stream


def _index(counts: Counts, failures: Sequence[FailureRow], *, paged: bool) -> Iterator[str]:
    """What the script knows of every item, as JSON in HTML."""
    reasons = {(row.outcome.name, row.group, row.reason): place for place, row in enumerate(failures)}
    pieces = chain(
        (f'{{"traits":{packed([shown(name) for name in counts.traits])},"items":[',),
        _joined(counts.index(reasons)),
        (f'],"size":{PAGE},"anchors":[' if paged else "]",),
        _joined(map(packed, counts.listing.anchors)) if paged else (),
        ("]}" if paged else "}",),
    )
    for piece in pieces:
        yield piece.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _joined(pieces: Iterable[str]) -> Iterator[str]:
    """With commas between them, some at a time."""
    pieces, comma = iter(pieces), ""
    while some := list(islice(pieces, PAGE)):
        yield comma + ",".join(some)
        comma = ","


def written(file: Path, pieces: Iterable[str]) -> Path:
    """Write a file as a whole or not at all. Raises RunDirectoryError."""
    try:
        with replacing(file) as page:
            page.writelines(piece.encode("utf-8") for piece in pieces)
    except RunDirectoryError:
        raise
    except OSError as error:
        raise RunDirectoryError(
            f"the report {file} cannot be written: {error.strerror}; choose another place (-o FILE)"
        ) from error
    return file


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalized,  # everything that a template prints passes through here
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"badge": badge, "long": long, "table": table, "trait_row": trait_row}
    environment.filters |= {
        "percent": percent,
        "number": number,
        "tokens": tokens,
        "dollars": shown_cost,
        "seconds": seconds,
        "cut": cut,
    }
    return environment


@cache
def _of_items() -> Environment:
    """The same for items, whose texts are escaped once: where they are printed."""
    return _environment().overlay(autoescape=False, finalize=written_out)


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0].strip()


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@contextmanager
def _room() -> Iterator[None]:
    """Raises RunDirectoryError that says where room is missing."""
    try:
        yield
    except OSError as error:
        raise RunDirectoryError(
            f"a report keeps its items in a temporary file, which cannot be written: {error.strerror}; make room in "
            "the folder for temporary files, or let the variable TMPDIR name another one"
        ) from error


class _Kept:
    """Pieces of the page in a file without a name, until their turn comes."""

    def __enter__(self) -> _Kept:
        self._sizes = array("l")
        with _room():
            self._file = TemporaryFile()
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def keep(self, pieces: Iterable[str]) -> None:
        for piece in pieces:
            with _room():
                self._sizes.append(self._file.write(piece.encode("utf-8")))

    def __iter__(self) -> Iterator[str]:
        self._file.seek(0)
        for size in self._sizes:
            yield self._file.read(size).decode("utf-8")


def _listed(item: tuple[str, str, str]) -> str:
    """An item as it is on the page where there are few."""
    anchor, summary, details = item
    return (
        f'  <details class="item" id="{plain(anchor)}">\n    <summary>\n{summary}    </summary>\n'
        f"    <noscript>{details}</noscript>\n  </details>\n"
    )


def _blocks(items: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """The items, so many at a time: `[[summary, details], ...]` as JSON, in HTML; deflated, in base64."""
    items = iter(items)
    while some := [rest for _, *rest in islice(items, PAGE)]:
        packer = zlib.compressobj(PACKED, zlib.DEFLATED, -zlib.MAX_WBITS)
        block = packer.compress(packed(some).encode("ascii")) + packer.flush()
        yield base64.b64encode(block).decode("ascii")


def _items(
    results: Iterable[VerificationResult],
    counts: Counts,
    kept: Mapping[str, Mapping[str, Any]],
    calls: Callable[[VerificationResult], ItemCalls],
) -> Iterator[tuple[str, str, str]]:
    """Anchor, summary and details of every item, which are HTML; it is counted meanwhile."""
    listing = counts.listing
    summary, details = map(_of_items().get_template, ("summary.html", "item.html"))
    for place, result in enumerate(listing.of_these(results)):
        traits = read_traits(result.rubric)
        counts.add(result, traits)
        about = result.metadata
        siblings = listing.siblings(about.question_id, place)
        anchor, files = listing.anchors[place], kept.get(about.result_id)
        view = item_view(result, anchor, siblings, files, calls(result), traits)
        shared = {"item": view, "several_judges": listing.several_judges}
        yield anchor, summary.render(shared), details.render(shared)
