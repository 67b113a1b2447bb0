"""The page itself: templates, policy, and the file."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from karenina_cli.summary import percent, shown_cost
from karenina_compare.measures import Item
from karenina_compare.question_groups import Cluster
from karenina_results.columns.shared import failure_of
from karenina_runs.files.atomic_files import replacing
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.workspaces.workspace_capture import captures
from markupsafe import Markup

from karenina_core import VerificationResult, __version__
from karenina_core.errors import RunDirectoryError

from .calls import folding
from .items import Sibling, anchors, item_view
from .markup import badge, begin, finalized, long, table
from .outcomes import KINDS, failure
from .overview import overview_of
from .pairs import Pair
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
    results: VerificationResultSet,
    manifest: Mapping[str, Any],
    cluster: Cluster | None = None,
    whole: Iterable[VerificationResult] | None = None,
) -> Iterator[str]:
    """The page, piece by piece: an item is made when its turn comes. `whole` are the same results with their texts,
    where `results` are without."""
    begin()
    environment = _environment()
    roles = "".join(f".fill-{role}{{fill:var(--{role})}}.stroke-{role}{{stroke:var(--{role})}}" for role in ROLES)
    style, script = f"{_source(environment, 'style.css')}\n{roles}", _source(environment, "report.js")
    names = anchors(results)
    paged = len(results) > MOST
    overview, index = _overview(results, names, manifest, cluster)
    benchmark = manifest.get("benchmark")
    name = benchmark.get("name") if isinstance(benchmark, Mapping) else None
    runs = dict.fromkeys(result.metadata.run_name for result in results if result.metadata.run_name)
    shared = {"several_judges": len({pair.parsing for pair in overview["pairs"]}) > 1}
    views = _items(results if whole is None else whole, results, names, overview["pairs"])
    stream = environment.get_template("page.html").stream(
        policy=POLICY.format(script=_digest(script), style=_digest(style)),
        style=Markup(style),
        script=Markup(script),
        index=Markup(index),
        results=results,
        overview=overview,
        title=str(name or next(iter(runs), None) or "Results"),
        run=overview["run"],
        sections=sections_of(results.run_dir),
        items=() if paged else views,
        blocks=_blocks(environment, views, shared) if paged else None,
        most=MOST,
        **shared,
        kinds=KINDS,
        version=__version__,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
    stream.enable_buffering(BUFFER)
    yield from stream


def _overview(
    results: VerificationResultSet, names: Sequence[str], manifest: Mapping[str, Any], cluster: Cluster | None
) -> tuple[dict[str, Any], str]:
    """The overview, and what the script knows of every item, as JSON. Traits are read once for both."""
    items = [Item.of(result) for result in results]
    overview = overview_of(results, items, names, manifest, cluster)
    places = {(pair.answering, pair.parsing): pair.index for pair in overview["pairs"]}
    reasons = {(row.outcome.name, row.group, row.reason): place for place, row in enumerate(overview["failures"])}
    known: dict[str, int] = {}
    rows = []
    for item, result in zip(items, results, strict=True):
        about = result.metadata
        traits = [[known.setdefault(trait.name, len(known)), trait.state, _word(trait)] for trait in item.traits]
        place = places[about.answering_model, about.parsing_model]
        reason = reasons.get((about.outcome, failure_of(result)[1] or "", failure(result)), -1)
        rows.append(_packed({"o": about.outcome, "p": place, "f": reason, "t": traits}))
    more = f',"size":{PAGE},"anchors":{_packed(names)}' if len(results) > MOST else ""
    text = f'{{"traits":{_packed([shown(name) for name in known])},"items":[{",".join(rows)}]{more}}}'
    return overview, text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_packed = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


def written(file: Path, pieces: Iterable[str]) -> Path:
    """Write a file as a whole or not at all. Raises RunDirectoryError."""
    try:
        with replacing(file) as page:
            page.writelines(piece.encode("utf-8") for piece in pieces)
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
    environment.globals |= {"badge": badge, "long": long, "table": table}
    environment.filters |= {
        "percent": percent,
        "number": number,
        "tokens": tokens,
        "dollars": shown_cost,
        "seconds": seconds,
        "cut": cut,
    }
    return environment


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0].strip()


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _blocks(environment: Environment, views: Iterable[SimpleNamespace], shared: Mapping[str, Any]) -> Iterator[str]:
    """The items, so many at a time: `[[summary, details], ...]` as JSON, in HTML; deflated, in base64."""
    summary, details = environment.get_template("summary.html"), environment.get_template("item.html")
    views = iter(views)
    while some := list(islice(views, PAGE)):
        rows = [[template.render(item=item, **shared) for template in (summary, details)] for item in some]
        packer = zlib.compressobj(PACKED, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = packer.compress(json.dumps(rows, separators=(",", ":")).encode("ascii")) + packer.flush()
        yield base64.b64encode(packed).decode("ascii")


def _items(
    whole: Iterable[VerificationResult], results: VerificationResultSet, names: Sequence[str], pairs: Sequence[Pair]
) -> Iterator[SimpleNamespace]:
    kept, calls = captures(results.run_dir), folding(results.run_dir)
    labels = {(pair.answering, pair.parsing): pair.label for pair in pairs}
    answers: dict[str, list[Sibling]] = {}
    for result, name in zip(results, names, strict=True):
        about = result.metadata
        label = labels[about.answering_model, about.parsing_model]
        label = label if about.replicate == 1 else f"{label}, replicate {about.replicate}"
        answers.setdefault(about.question_id, []).append(Sibling(name, KINDS[about.outcome], label))
    for result, name in zip(whole, names, strict=True):
        others = [other for other in answers[result.metadata.question_id] if other.anchor != name]
        yield item_view(result, name, others, kept.get(result.metadata.result_id), calls(result))


def _word(trait: Any) -> str:
    """A score that items can be chosen by: those of traits with few different ones."""
    if isinstance(trait.value, bool):
        return "true" if trait.value else "false"
    if trait.kind == "literal" and trait.value is not None:
        return shown(trait.label or str(trait.value))
    return str(trait.value) if trait.kind == "score" and isinstance(trait.value, int) else ""
