"""Text that breaks files, parsers and screens: it is kept, flagged, written into every format, and read back equal."""

from __future__ import annotations

import html
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from karenina_report import report_on
from karenina_results.formats.csv_file import read_rows
from karenina_runs.results.exports import export_results, find_format

from karenina_core import VerificationResult, VerificationResultSet
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

FORMATS = frozenset({"result-formats", "result-views"})
EMOJI = 50_000
ODD: tuple[tuple[str, set[str]], ...] = (
    ("a lone \ud800 surrogate, and the other \udfff half", {"lone_surrogate"}),
    ("a pair the wrong way round: \udc00\ud800.", {"lone_surrogate"}),
    ("nul \0 and \0\0 more", {"nul"}),
    ("\u202egnp.exe\u202c and \u2066isolated\u2069", {"bidi_control"}),
    ("all \ud800 of \0 them \u202e", {"lone_surrogate", "nul", "bidi_control"}),
    ("controls \x01\x08\x0b\x1b[31m\x7f\x85\u2028\u2029\ufeff and no characters \ufffe\uffff\U0010ffff", set()),
    ("zero\u200bwidth\u200d, tags \U000e0041\U000e0042, piled z\u0324\u034e\u0349\u0338\u0334", set()),
    ('=HYPERLINK("http://host")\r\n\tand \'quotes\', "more", </script><!-- {{ 7 }}', set()),
    ("line\rline\nline\r\n\n\n", set()),
    ("", set()),
)
"""What a model says, and what is flagged about it. The empty one stands for many emoji."""


def said(number: int) -> str:
    return ODD[number][0] or "🧬" * EMOJI


def kept(number: int) -> str:
    """What of it can be kept: no file can hold half of a pair."""
    return re.sub("[\ud800-\udfff]", "\ufffd", said(number))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A finished run whose answers are odd, and in which the judge repeats them."""
    made = world.World(tmp_path_factory.mktemp("odd") / "run", questions=len(ODD), installed=FORMATS)

    def script(request: ServedRequest) -> Any:
        if not world.judged(request):
            return said(world.number_of(request))
        number = int(re.search(r"drug (\d+)", request.text)[1])  # type: ignore[index]  # the judge sees the question
        return Reply({world.NAME: said(number)[:1000] or "nothing"})

    with ScriptedServer(script) as server:
        config = made.config(server.url)
        made.run(config)
        made.check(config, server)
    return made


def by_number(results: Any) -> dict[int, VerificationResult]:
    return {int(result.metadata.question_id[1:]): result for result in results}


def test_it_is_kept_and_flagged(here: Any) -> None:
    results = by_number(VerificationResultSet.load(here.folder))
    assert len(results) == len(ODD)
    for number, (_, flags) in enumerate(ODD):
        found = results[number]
        assert found.generation.raw_llm_response == kept(number)
        assert set(found.generation.text_flags) == flags, number
        assert found.template is not None
        assert found.template.parsed_llm_response == {world.NAME: kept(number)[:1000]}
        assert found.outcome.name == "failed"


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_files_of_whole_results_give_it_back(here: Any, tmp_path: Path, suffix: str) -> None:
    app = here.app()
    results = VerificationResultSet.load(here.folder)
    path = tmp_path / f"results{suffix}"
    if suffix == ".jsonl":
        path = here.folder / "results.jsonl"
        again = list(VerificationResultSet.load(path))
    else:
        found = find_format(app, path)
        export_results(results, path, found, here.manifest())
        again = list(found.read(path))  # type: ignore[attr-defined]  # these two read what they wrote
    assert again == list(results)


def test_rows_of_a_csv_file_give_it_back(here: Any, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    export_results(VerificationResultSet.load(here.folder), path, find_format(here.app(), path), here.manifest())
    path.read_bytes().decode("utf-8", "strict")
    rows = {int(row["question_id"][1:]): row for row in read_rows(path)}
    for number in range(len(ODD)):
        cell = rows[number]["raw_llm_response"]
        assert cell.removeprefix("'") == kept(number), number


def test_a_page_shows_it_and_stays_a_page(here: Any, tmp_path: Path) -> None:
    page = report_on(here.folder, tmp_path / "report.html").read_bytes().decode("utf-8", "strict")
    assert "\0" not in page
    assert "<!-- {{ 7" not in page
    shown = html.unescape(page)
    for words in ("surrogate, and the other", "gnp.exe", "isolated", "=HYPERLINK(", "piled z", "🧬" * 100):
        assert words in shown, words
