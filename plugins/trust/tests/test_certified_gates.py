"""A gate on a certified rate passes for the judge, prompt, templates, rubric and models that it holds for, and for no
others; certified differences have the error of paired questions; the report shows the certificate."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from karenina_trust.certificates.differences import difference
from karenina_trust.certificates.document import Certified, read_certificate
from karenina_trust.certificates.gates import gates_of
from karenina_trust.estimators import ClassRates, Sample, influence, people_alone, power_tuning, ppi_plus

from karenina_core import VerificationResultSet
from karenina_core.values.result import GenerationPart

ITEMS = 30


@pytest.fixture(scope="module")
def certified(
    planted_run: Callable[..., Any],
    labels_of: Callable[..., Path],
    command: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Any:
    """A run of 30 questions with a certificate of 24 labels."""
    found = planted_run(tmp_path_factory.mktemp("gate"), ITEMS, seed=4)
    labels_of(found, 24, kinds=("verdict",))
    done = command("certify", found.path)
    assert done.exit_code == 0, done.output
    return found


@pytest.fixture
def verified(certified: Any, command: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Verify again beside the certificate; `benchmark` and `answers` in place of those of the certified run."""

    def call(*options: Any, least: float = 0.2, benchmark: Path | None = None, gate: bool = True) -> Any:
        traces = certified.path.parent / "answers.json"
        gates = ("--certificate", certified.path / "certificate.json", "--min-certified-rate", least) if gate else ()
        return command(
            *("verify", benchmark or certified.benchmark, "--interface", "manual", "--manual-traces", traces),
            *("--out", tmp_path / "again", "--quiet", *gates, *options),
        )

    return call


@pytest.mark.parametrize(("least", "code"), [(0.2, 0), (0.9, 4)])
def test_the_same_answers_are_held_against_the_certified_rate(
    verified: Callable[..., Any], certified: Any, least: float, code: int
) -> None:
    done = verified(least=least)
    assert done.exit_code == code, done.output
    row = read_certificate(certified.path / "certificate.json").rows[0]
    message = f"{row.method} of 24 labels: {row.value:.1%} ({row.low:.1%} to {row.high:.1%}); at least {least:.1%}"
    assert message in done.output
    assert row.low < 0.9


CHANGES = {
    "prompt": (["--set", "run.prompt_config.parsing=Read with care."], {}, "the setting prompt_config"),
    "judge": (["--parsing-model", "another", "--parsing-interface", "manual"], {}, "the parsing model"),
    "template": ([], {"note": " at last"}, "another template"),
    "rubric": ([], {"pattern": "milligrams|mg"}, "another rubric"),
    "model": (["--answering-model", "another", "--answering-interface", "manual"], {}, "the answering model"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_makes_every_gate_on_its_certificate_fail(
    verified: Callable[..., Any],
    certified: Any,
    make_benchmark: Callable[..., Path],
    command: Callable[..., Any],
    tmp_path: Path,
    what: str,
) -> None:
    options, about, reason = CHANGES[what]
    benchmark = make_benchmark(tmp_path / "changed.jsonld", ITEMS, **about) if about else None
    refused = verified(*options, benchmark=benchmark, least=0.0)
    assert refused.exit_code == 1, refused.output
    assert "does not hold for this run" in refused.output
    assert reason in refused.output
    assert not (tmp_path / "again").exists()  # before a model was asked
    done = verified(*options, benchmark=benchmark, gate=False)
    assert done.exit_code == 0, done.output
    held, results = (
        read_certificate(certified.path / "certificate.json"),
        VerificationResultSet.load(tmp_path / "again"),
    )
    (gate,) = gates_of(held, results, 0.0)
    assert not gate.passed
    assert "does not hold for this run" in gate.message
    assert reason in gate.message
    for name in ("certificate.json", "labels.json"):
        shutil.copy(certified.path / name, tmp_path / "again" / name)
    labels = command("certify", tmp_path / "again")
    assert labels.exit_code == 1
    assert "made with another judge, prompt, template or rubric" in labels.output
    named = {"judge": ["--judges", "manual=another"], "model": ["--models", "manual=another"]}.get(what, [])
    gate = ("--set", "plugins.certificates.max_drop=1")
    compared = command("compare", certified.path, tmp_path / "again", "--unchanged", *named, *gate)
    assert compared.exit_code == 4, compared.output
    assert "certificate.json does not hold: " in compared.output


@pytest.mark.parametrize(("change", "code"), [("unused", 0), ("used", 1)])
def test_only_code_that_judged_makes_a_certificate_stale(
    verified: Callable[..., Any], certified: Any, tmp_path: Path, change: str, code: int
) -> None:
    """The plain judge of this very package is installed, and judged nothing."""
    document = json.loads((certified.path / "certificate.json").read_text("utf-8"))
    known = document["binding"]["code"]
    assert "verify-template" in known
    assert not [name for name, about in known.items() if "karenina-trust" in (name, about["distribution"])]
    if change == "used":
        known["verify-template"]["digest"] = "another"
    other = tmp_path / "certificate.json"
    other.write_text(json.dumps(document), "utf-8")
    done = verified("--certificate", other)
    assert done.exit_code == code, done.output
    assert ("(plugin 'verify-template') has changed" in done.output) == (change == "used")


def test_results_without_a_fingerprint_have_no_certificate(
    certified: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(certified.path, run)
    (run / "fingerprint.json").unlink()
    why = f"{run} has no fingerprint.json, which says what its judge, prompt, templates and rubric were"
    done = command("certify", run)
    assert done.exit_code == 1
    assert why in " ".join(done.output.split())
    (gate,) = gates_of(read_certificate(run / "certificate.json"), VerificationResultSet.load(run), 0.0)
    assert not gate.passed
    assert why in gate.message
    compared = command("compare", certified.path, run, "--set", "plugins.certificates.min_rate=0.1")
    assert compared.exit_code == 4
    assert why in " ".join(compared.output.split())


def test_other_answers_of_the_same_model_are_corrected_by_what_labels_found(certified: Any) -> None:
    results, held = VerificationResultSet.load(certified.path), read_certificate(certified.path / "certificate.json")
    others = VerificationResultSet(
        [evolve(r, generation=GenerationPart(raw_llm_response=f"new {place}")) for place, r in enumerate(results)],
        run_dir=certified.path,
    )
    good = evolve(held, rows=(evolve(held.rows[0], classes=ClassRates(0.9, 60, 0.9, 60)),))
    (gate,) = gates_of(good, others, 0.05)
    assert gate.passed
    assert "other answers, corrected by sensitivity and specificity of 24 labels" in gate.message
    for classes, why in (
        (ClassRates(0.5, 60, 0.5, 60), "the judge says little"),
        (None, "labels say nothing of"),
    ):
        (gate,) = gates_of(evolve(held, rows=(evolve(held.rows[0], classes=classes),)), others, 0.0)
        assert not gate.passed
        assert f"cannot be decided for other answers than those certified: {why}" in gate.message
    (gate,) = gates_of(evolve(held, rows=()), results, 0.0)
    assert (gate.passed, "certifies no pass rate of it" in gate.message) == (False, True)
    (gate,) = gates_of(held, VerificationResultSet(list(results)), 0.0)
    assert (gate.passed, "the run has no directory" in gate.message) == (False, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--certificate", "none.json"], "has no effect alone; add --min-certified-rate"),
        (["--min-certified-rate", "0.5"], "needs a certificate; add --certificate FILE"),
        (["--min-certified-rate", "0.5", "--certificate", "none.json"], "there is no certificate none.json"),
    ],
)
def test_a_gate_without_its_certificate_is_refused_before_anything_is_asked(
    certified: Any, command: Callable[..., Any], tmp_path: Path, options: list[str], message: str
) -> None:
    done = command("verify", certified.benchmark, "--interface", "manual", "--manual-traces",
                   certified.path.parent / "answers.json", "--out", tmp_path / "run", *options)  # fmt: skip
    assert done.exit_code == 1
    assert message in done.output
    assert not (tmp_path / "run").exists()


def test_compare_says_the_certified_difference_and_holds_gates_against_it(
    certified: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(certified.path, other)
    document = json.loads((other / "certificate.json").read_text("utf-8"))
    best = document["rows"][0]["estimates"][document["rows"][0]["recommended"]]
    best["value"] -= 0.1
    (other / "certificate.json").write_text(json.dumps(document), "utf-8")
    gate = ("--set", "plugins.certificates.max_drop=0.05", "--set", "plugins.certificates.min_rate=0.1")
    done = command("compare", certified.path, other, *gate, "--json")
    found = json.loads(done.output[done.output.index("{") : done.output.rindex("}") + 1])
    (row,) = found["certified"]
    assert row["difference"] == pytest.approx(-0.1)
    assert done.exit_code == 4
    assert {gate["name"]: gate["passed"] for gate in found["gates"]} == {
        "certified rate": True,
        "certified drop": False,
    }
    shown = command("compare", certified.path, other)
    assert shown.exit_code == 0
    assert "Certified: what people would say" in shown.output
    assert "-0.100" in shown.output
    for form in ("markdown", "junit", "github"):
        written = command("compare", certified.path, other, "--format", form).output
        assert "what people would say" in written, form
        assert "-0.100" in written, form
    (other / "certificate.json").unlink()
    assert "Certified" not in command("compare", certified.path, other).output
    failed = command("compare", certified.path, other, *gate)
    assert failed.exit_code == 4
    assert "there is no certificate" in failed.output


def certified_row(sample: Sample, names: list[str]) -> Certified:
    found, power = ppi_plus(sample), power_tuning(sample)
    assert found.value is not None
    assert found.interval is not None
    shares = dict(zip(names, influence(sample, power).tolist(), strict=True))
    return Certified(
        target="verdict",
        judge="j",
        model="m",
        method="ppi++",
        value=found.value,
        low=found.interval.low,
        high=found.interval.high,
        level=0.95,
        labels=found.n,
        questions=found.n,
        standard_error=found.standard_error,
        df=found.df,
        classes=None,
        influence=shares,
    )


def test_differences_of_runs_on_the_same_questions_are_paired_and_cover_the_truth() -> None:
    """Both runs find the same questions hard, and the same answers are labelled."""
    rng, names, hits, widths = np.random.default_rng(8), [f"q{n}" for n in range(300)], 0, []
    often = 200
    for _ in range(often):
        hard, rows = rng.random(300), []
        for rate in (0.7, 0.6):
            truth = hard < rate
            said = np.where(rng.random(300) < 0.9, truth, ~truth)
            labels: list[float | None] = [*truth[:100].astype(float), *[None] * 200]
            rows.append(certified_row(Sample.of(said, labels), names))
        found = difference(*rows)
        assert found is not None
        hits += found.interval.low <= -0.1 <= found.interval.high
        alone = math.hypot(*(row.standard_error or 0.0 for row in rows))
        widths.append((found.interval.high - found.interval.low) / (2 * 1.984 * alone))
    assert hits / often == pytest.approx(0.95, abs=0.035)
    assert np.mean(widths) < 0.85  # independent runs would have 1


def test_errors_that_labels_never_showed_are_part_of_a_difference() -> None:
    chance = Random(2)
    truth = [float(chance.random() < 0.9) for _ in range(200)]
    row = certified_row(Sample.of(truth, [*truth[:60], *[None] * 140]), [f"q{n}" for n in range(200)])
    found = difference(row, evolve(row, influence={f"p{n}": 0.0 for n in range(3)}))
    assert found is not None
    assert found.interval.high - found.interval.low > row.high - row.low
    assert difference(row, evolve(row, standard_error=None)) is None


def test_people_alone_have_the_influence_of_their_labels() -> None:
    chance = Random(6)
    values = [float(chance.random() < 0.6) for _ in range(60)]
    sample = Sample.of([1 - value for value in values], [*values[:40], *[None] * 20], [n // 2 for n in range(60)])
    error = people_alone(sample).standard_error
    assert error is not None
    assert float(np.square(influence(sample, 0.0)).sum()) == pytest.approx(error**2)


def test_the_report_shows_the_certificate_and_says_where_it_does_not_hold(
    certified: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(certified.path, run)
    done = command("report", run)
    page = (run / "report.html").read_text("utf-8")
    assert done.exit_code == 0
    row = read_certificate(run / "certificate.json").rows[0]
    assert f"{row.value:.3f} ({row.low:.3f} to {row.high:.3f})" in page
    assert "no longer holds" not in page
    lines = (run / "results.jsonl").read_text("utf-8").splitlines(keepends=True)
    (run / "results.jsonl").write_text("".join(lines[1:]), "utf-8")
    command("report", run)
    said = (run / "report.html").read_text("utf-8")
    assert "This certificate no longer holds: it is for other results than those in" in said
    fingerprint = json.loads((run / "fingerprint.json").read_text("utf-8"))
    fingerprint["settings"]["features"] = ["abstention"]
    (run / "fingerprint.json").write_text(json.dumps(fingerprint), "utf-8")
    command("report", run)
    assert "This certificate no longer holds: the setting features" in (run / "report.html").read_text("utf-8")
    (run / "certificate.json").write_text("{}", "utf-8")
    command("report", run)
    assert "is not a certificate" in (run / "report.html").read_text("utf-8")
    (run / "certificate.json").unlink()
    command("report", run)
    assert "Certified" not in (run / "report.html").read_text("utf-8")
