"""What `karenina label` does: draw, ask, write and read sheets, and say how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from karenina_cli.output import Table, note, own_stdout, print_found
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import ConfigError, plural

from .answers import Answer, answers_of
from .asking import ask, open_targets
from .binding import binding_of, stale
from .file import NAME, Label, LabelFile, add_labels, read_labels, replace_plan, write_labels
from .plan import BY_HAND, Plan, draw, population_of
from .sheets import read_sheet, write_sheet
from .templates import Templates

__all__ = ["Labelling", "Wanted"]


@frozen(kw_only=True)
class Wanted:
    """What was asked for."""

    size: int | None
    by: tuple[str, ...]
    seed: int | None
    kinds: tuple[str, ...]
    annotator: str
    benchmark: Path | None


class Labelling:
    """The answers of a run and the file of its labels."""

    def __init__(self, run: Path, labels: Path | None) -> None:
        """Raises BenchmarkError and ConfigError where the run cannot be read."""
        self.run, self.path = run, labels or run / NAME
        self.answers: Sequence[Answer] = answers_of(VerificationResultSet.load(run))
        self.binding = binding_of(run)

    def file(self) -> LabelFile:
        """The file of labels, which has to be one of this run as it is. Raises ConfigError."""
        file = read_labels(self.path)
        if changed := stale(file.binding, self.binding):
            raise ConfigError(f"{self.path} has labels of another run: {changed[0]}; use another file (--labels FILE)")
        if file.plan.population != population_of(self.answers):
            raise ConfigError(
                f"{self.path} was drawn from other answers than the run has now; use another file (--labels FILE)"
            )
        return file

    def drawn(self, wanted: Wanted) -> LabelFile:
        """The file with as many answers as are wanted: drawn now, or more of them by the same plan. Raises
        ConfigError where the file has another plan."""
        if not self.path.exists():
            return self._begun(draw(self.answers, wanted.size or 50, wanted.by, wanted.seed or 0))
        file = self.file()
        plan = file.plan
        if plan.kind == BY_HAND:
            raise ConfigError(f"{self.path} has answers that were chosen by hand; draw in another file (--labels FILE)")
        if (wanted.by and wanted.by != plan.by) or wanted.seed not in (None, plan.seed):
            raise ConfigError(
                f"{self.path} has another plan (--seed {plan.seed}, strata by {', '.join(plan.by) or 'nothing'}): what "
                "is drawn stays drawn; use another file (--labels FILE)"
            )
        if wanted.size is None or wanted.size <= len(plan.items):
            return file
        return replace_plan(self.path, draw(self.answers, wanted.size, plan.by, plan.seed, file.judges))

    def _begun(self, plan: Plan) -> LabelFile:
        from karenina_runs.folder.directory import read_manifest

        file = LabelFile(run_id=str(read_manifest(self.run)["run_id"]), binding=self.binding, plan=plan)
        write_labels(self.path, file)
        return file

    def asked(self, wanted: Wanted) -> int:
        """Ask in the terminal; returns how many answers were labelled."""
        file = self.drawn(wanted)
        templates = Templates(self.run, wanted.benchmark)
        return ask(self.path, file, self.answers, wanted.annotator, wanted.kinds, templates)

    def exported(self, sheet: Path, wanted: Wanted) -> int:
        """Write the sheet; returns how many rows it has."""
        return write_sheet(sheet, self.drawn(wanted), self.answers, wanted.annotator, wanted.kinds)

    def imported(self, sheet: Path, annotator: str) -> list[Label]:
        """Add the labels of a sheet. Where nothing was drawn, the answers in it count as chosen by hand."""
        known = {answer.id: answer for answer in self.answers}
        fresh = not self.path.exists()
        file = None if fresh else self.file()
        by_hand = file is None or file.plan.kind == BY_HAND
        drawn = None if by_hand or file is None else frozenset(one.item for one in file.plan.items)
        labels = read_sheet(sheet, known, drawn, annotator)
        if fresh and labels:
            self._begun(Plan(kind=BY_HAND, strata={}, population=population_of(self.answers)))
            note("Warning: nothing was drawn, so these answers count as chosen by hand: they give no rate of all")
        if labels:
            add_labels(self.path, labels)
        return labels

    def print_status(self, kinds: tuple[str, ...], benchmark: Path | None, *, as_json: bool) -> None:
        """What is labelled, and what more labels would buy."""
        from .status import status_of

        with own_stdout() as out:
            file = self.file()
            found = status_of(file, self.answers, self.run, benchmark) | {"open": self._open(file, kinds)}
            print_found(found, _parts(file, found), out, as_json=as_json)

    def _open(self, file: LabelFile, kinds: tuple[str, ...]) -> dict[str, int]:
        return {name: sum(1 for _ in open_targets(file, self.answers, name, kinds)) for name in file.annotators}


def _parts(file: LabelFile, found: dict[str, Any]) -> list[Any]:
    rows = [(row["annotator"], row["target"], str(row["labels"])) for row in found["labels"]]
    strata = [(row["stratum"], str(row["answers"]), str(row["drawn"]), str(row["labelled"])) for row in found["strata"]]
    gains = [
        (row["target"], row["judge"], str(row["labels"]), f"±{100 * row['half_width']:.1f}",
         ", ".join(f"±{100 * half:.1f} with {size}" for size, half in row["with"].items()) or "all are labelled")
        for row in found["precision"]
    ]  # fmt: skip
    return [
        f"{plural(len(file.plan.items), 'answer')} drawn ({file.plan.kind}, seed {file.plan.seed})",
        *(f"{who} has {plural(count, 'answer')} to go" for who, count in found["open"].items() if count),
        Table(("stratum", "answers", "drawn", "labelled"), strata, "Plan"),
        Table(("annotator", "target", "labels"), rows, "Labels"),
        Table(
            ("target", "judge", "labels", "95 % interval", "with more"),
            gains,
            "Precision with more labels, in percentage points",
        ),
        *found["notes"],
    ]
