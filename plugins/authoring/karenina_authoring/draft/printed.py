"""What `karenina benchmark draft` does and prints."""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from karenina_cli.exits import GATE_FAILED, OK, SOME_FAILED, Interrupted
from karenina_cli.options.flags import configured, select_questions
from karenina_cli.output import Part, Table, inline, note, own_stdout, print_found
from karenina_cli.progress import Progress
from karenina_cli.running import attended
from karenina_runs.benchmark import Benchmark
from karenina_runs.execute.control import RunControl
from karenina_runs.journal.reader import journal_of

from karenina_core.errors import BenchmarkError, plural
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.question import Question

from ..review.printed import sheet_for_review
from .drafting import Draft, wanted
from .estimate import Unasked, estimate
from .session import Drafts, Session, checked

STATES: Mapping[str, str] = {"proven": "proven", "not_proven": "not proven", "not_drafted": "not drafted"}


def run(path: Path, options: Mapping[str, Any]) -> int:
    """Draft, and print what came of it. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        loaded = configured({**options, "features_on": (), "features_off": ()})
        app, output = loaded.app, options["output"]
        benchmark = Benchmark.load(path, app=app)
        _check_files(app, benchmark, output, options["sheet"])
        ids = [question.id for question in benchmark]
        chosen = ids if options["questions"] is None else select_questions(options["questions"], ids)
        questions = [question for question in map(benchmark.question, chosen) if wanted(question)]
        folder = options["journal"] or output.with_name(f"{output.name}.drafts")
        config = checked(app, loaded.config, questions) if questions else loaded.config
        if options["estimate"]:
            return _print_estimate(app, config, questions, folder, out, as_json=options["as_json"])
        drafts = Drafts(found=(), ledger={})
        if questions:
            if not options["quiet"]:
                model = config.parsing_models[0].identity
                note(f"{plural(len(questions), 'question')} to draft with {model}; replies are kept in {folder}")
            drafts = _carried_out(app, config, questions, folder, options)
        drafted = benchmark.with_questions(draft.question for draft in drafts.found)
        drafted.save(output, app=app)
        sheet = None if any(draft.state == "not_drafted" for draft in drafts.found) else options["sheet"]
        if sheet is not None:
            sheet_for_review(drafted, sheet, app)
        parts = _parts(benchmark, drafts, output, sheet)
        print_found(_document(drafts, output, sheet), parts, out, as_json=options["as_json"])
    return _code(drafts)


def _code(drafts: Drafts) -> int:
    states = {draft.state for draft in drafts.found}
    for line in drafts.notes:
        note(f"Note: {line}")
    if "not_drafted" in states:
        note("To draft the rest, run the same command again: no paid call is repeated.")
    return GATE_FAILED if "not_proven" in states else SOME_FAILED if "not_drafted" in states else OK


def _check_files(app: Karenina, benchmark: Benchmark, output: Path, sheet: Path | None) -> None:
    """Raises BenchmarkError where what is paid for could not be written."""
    if sheet is not None and sheet.exists():
        raise BenchmarkError(f"{sheet} already exists, perhaps with decisions; choose another name, or remove it")
    for file in (output, sheet):
        if file is None:
            continue
        if not file.absolute().parent.is_dir():
            raise BenchmarkError(f"{file} cannot be written: there is no folder {file.parent}; make it")
        if app.first("karenina_save_benchmark", benchmark=benchmark, path=file, app=app) is None:
            raise BenchmarkError(f"no installed writer knows the suffix of {file.name}; use .jsonld")


def _print_estimate(
    app: Karenina,
    config: VerificationConfig,
    questions: Sequence[Question],
    folder: Path,
    out: IO[str],
    *,
    as_json: bool,
) -> int:
    unasked = Unasked()

    async def counted() -> Drafts:
        kept = folder if journal_of(folder).is_file() else None
        async with Session.opened(app, config, kept, lanes=unasked) as session:
            return await session.drafts(questions, lambda draft: None, RunControl())

    drafts = asyncio.run(counted()) if questions else Drafts(found=(), ledger={})
    found = estimate(drafts.found, unasked, config.parsing_models[0]) if questions else None
    document = {"questions": 0} if found is None else found.document()
    print_found(document, [NOTHING] if found is None else found.lines, out, as_json=as_json)
    return OK


NOTHING = "Nothing to draft: every question has a template, or no reference answer."


def _carried_out(
    app: Karenina,
    config: VerificationConfig,
    questions: Sequence[Question],
    folder: Path,
    options: Mapping[str, Any],
) -> Drafts:
    """Raises Interrupted where work is left."""
    progress = Progress(len(questions), quiet=options["quiet"])

    async def work(control: RunControl) -> Drafts:
        async with Session.opened(app, config, folder, typed=options["typed"]) as session:
            return await session.drafts(questions, progress.advance, control)

    try:
        with progress, asyncio.Runner() as runner:
            return runner.run(attended(work, progress, folder, RunControl(), "the same again"))
    except (KeyboardInterrupt, asyncio.CancelledError):
        done = f"interrupted: {progress.done} of {plural(progress.total, 'question')} are done, kept in {folder}"
        raise Interrupted(f"{done}\nTo continue, run the same command again: no paid call is repeated.") from None


def _document(drafts: Drafts, output: Path, sheet: Path | None) -> dict[str, Any]:
    states = Counter(draft.state for draft in drafts.found)
    return {
        "file": str(output),
        "sheet": None if sheet is None else str(sheet),
        "questions": [draft.document() for draft in drafts.found],
        "counts": {state: states[state] for state in STATES},  # type: ignore[index]  # its keys are the states
        "paid": drafts.spent,
        "notes": list(drafts.notes),
    }


def _parts(benchmark: Benchmark, drafts: Drafts, output: Path, sheet: Path | None) -> list[Part]:
    states = Counter[str](draft.state for draft in drafts.found)
    listed = [f"{states[state]} {words}" for state, words in STATES.items() if states[state]]
    if not drafts.found:
        return [NOTHING, f"{output}: {plural(len(benchmark), 'question')}"]
    why = [(draft.question.id, inline(reason, 300)) for draft in drafts.found for reason in draft.reasons]
    review = f"karenina benchmark review {shlex.quote(str(output))}"
    nxt = f"A person has to accept a draft before it is run: {review} --sheet review.xlsx"
    if sheet is not None:
        nxt = f'Write accept, edit or reject into "review decision" of {sheet}, and type: {review} --apply '
        nxt += shlex.quote(str(sheet))
    return [
        Table(("question", "state", "fields", "wrong values rejected", "other forms accepted"),
              [_row(draft) for draft in drafts.found], "Drafts"),
        Table(("question", "why"), why, "To check"),
        f"{plural(len(drafts.found), 'question')}, {', '.join(listed)}",
        _paid(drafts),
        f"{output}: {plural(len(benchmark), 'question')}",
        *([nxt] if len(drafts.found) > states["not_drafted"] else []),
    ]  # fmt: skip


def _row(draft: Draft) -> tuple[str, ...]:
    state = f"{STATES[draft.state]}{', repaired' if draft.repaired else ''}"
    tallies = ["", ""]
    if draft.proof is not None:
        figures = (draft.proof.mutants, draft.proof.variants)
        tallies = [f"{tally.right} of {tally.made}" if tally.made else "" for tally in figures]
    return (draft.question.id, state, ", ".join(draft.fields), *tallies)


def _paid(drafts: Drafts) -> str:
    paid = drafts.spent or {}
    cost = "unknown cost" if paid["cost_usd"] is None else f"{paid['cost_usd']:.4f} US dollars"
    return f"Total cost with this journal: {plural(paid['calls'], 'call')}, {paid['tokens']['total']} tokens, {cost}"
