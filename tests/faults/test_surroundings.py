"""The same run in other surroundings: language, time zone, encoding, home, terminal. Results are the same bytes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from karenina_core.testing import ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

SCRIPT = Path(sys.executable).with_name("karenina")
FIELDS = [
    ("city", "str", "İSTANBUL ısı", {"type": "ExactMatch", "normalize": ["lowercase", "strip"]}),
    ("opened", "date", "2024-03-31", {"type": "DateMatch"}),
    ("degrees", "float", 1234.5, {"type": "NumericTolerance", "tolerance": 0.1, "mode": "absolute"}),
]
SAID = {"city": "İstanbul ısı", "opened": "2024-03-31", "degrees": 1234.5}
QUESTIONS = 6
NAMED = """\
import sys
from functools import partial
from karenina_cli import main, verification
verification.prepare = partial(verification.prepare, run_name="the run")
sys.argv[0] = "karenina"
main()
"""
"""The command, with a run whose name is not random."""
PLAIN = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/",
    "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
}
SURROUNDINGS: dict[str, dict[str, str | None]] = {
    "C": {"LC_ALL": "C", "LANG": "C"},
    "C without UTF-8 mode": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "Turkish": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    "German": {"LC_ALL": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"},
    "ASCII streams": {"PYTHONIOENCODING": "ascii", "LC_ALL": "POSIX", "PYTHONUTF8": "0"},
    "far east": {"TZ": "Pacific/Kiritimati"},
    "summer time": {"TZ": "America/New_York"},
    "a strange clock": {"TZ": "XYZ+03:17ABC,M3.5.0,M10.5.0"},
    "no home": {"HOME": None},
    "a home that is not there": {"HOME": "/nonexistent/home", "XDG_DATA_HOME": None},
    "a dumb terminal": {"TERM": "dumb", "COLUMNS": "20", "NO_COLOR": "1"},
    "other hashes": {"PYTHONHASHSEED": "1"},
    "other hashes again": {"PYTHONHASHSEED": "4242"},
    "developer": {"PYTHONDEVMODE": "1"},
    "optimised": {"PYTHONOPTIMIZE": "2"},
}
SHORT = ("a strange clock", "no home", "other hashes", "C without UTF-8 mode")
"""Those that stand for all, at once."""


def write_benchmark(path: Path) -> Path:
    fields = [
        {"name": name, "type": type_, "description": f"What is said: {name}", "ground_truth": truth, "verify_with": how}
        for name, type_, truth, how in FIELDS
    ]
    about = {"dateCreated": "2025-01-01T00:00:00Z", "dateModified": "2025-01-01T00:00:00Z"}
    items = [
        {
            "@type": "DataFeedItem",
            "@id": f"q{number}",
            **about,
            "item": {
                "@type": "Question",
                "text": f"Wie heiß war es in İstanbul? 🧬 (answer {number})",
                "acceptedAnswer": {"@type": "Answer", "text": "ısı"},
                "hasPart": {
                    "@type": "SoftwareSourceCode",
                    "name": "template",
                    "text": json.dumps({"class_name": "Answer", "fields": fields}),
                    "programmingLanguage": "karenina-template",
                },
                "additionalProperty": [{"@type": "PropertyValue", "name": "finished", "value": True}],
            },
        }
        for number in range(QUESTIONS)
    ]
    feed = {"@context": {"@vocab": "https://schema.org/"}, "@type": "DataFeed", "name": "Isı", **about, "rating": []}
    path.write_text(json.dumps({**feed, "dataFeedElement": items}, ensure_ascii=False), "utf-8")
    return path


def said(request: ServedRequest) -> Any:
    number = world.number_of(request)
    if not world.judged(request):
        return f"Es war heiß, ısı \0\u202e {number}."
    return SAID if number % 3 else {**SAID, "degrees": 1.0}


def documents(folder: Path) -> dict[str, Any]:
    """What a run directory says, without times and its own place."""
    without = world.invariants.without
    manifest = json.loads((folder / "manifest.json").read_bytes().decode("utf-8"))
    lines = (folder / "results.jsonl").read_bytes().decode("utf-8").split("\n")
    fingerprint = (folder / "fingerprint.json").read_bytes()
    return {
        "results": [json.dumps(without(json.loads(line)), ensure_ascii=False) for line in lines if line],
        "summary": without(manifest["summary"]),
        "ledger": without(manifest["ledger"]),
        "fingerprint": fingerprint,
    }


def verified(place: Path, benchmark: Path, url: str, surroundings: dict[str, str | None]) -> dict[str, Any]:
    environment = {name: value for name, value in {**PLAIN, **surroundings}.items() if value is not None}
    place.mkdir()
    flags = ["--answering-interface", "openai_endpoint", "--parsing-interface", "openai_endpoint"]
    flags += ["--answering-model", "a", "--parsing-model", "j", "--answering-base-url", url, "--parsing-base-url", url]
    command = [sys.executable, "-c", NAMED, "verify", str(benchmark), *flags, "--out", "run"]
    ran = subprocess.run(
        command, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
    )
    assert ran.returncode in (0, 2), ran.stderr.decode("utf-8", "replace") + ran.stdout.decode("utf-8", "replace")
    assert b"Traceback" not in ran.stderr
    assert not re.search(rb"\x1b\[", ran.stdout + ran.stderr), "no colours where there is no terminal"
    world.invariants.assert_run(place / "run")
    return {**documents(place / "run"), "stdout": re.sub(rb"[\d.]+ ?m?s\b", b"", ran.stdout)}


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path / "ısı.jsonld")


def test_surroundings_are_in_no_result(tmp_path: Path, benchmark: Path, long: bool) -> None:
    with ScriptedServer(said) as server:
        plain = verified(tmp_path / "plain", benchmark, server.url, {})
        outcomes = [json.loads(line)["metadata"]["outcome"] for line in plain["results"]]
        assert outcomes == ["failed", "passed", "passed"] * 2
        together = {name: value for one in SHORT for name, value in SURROUNDINGS[one].items()}
        tried = SURROUNDINGS if long else {" and ".join(SHORT): together, "Turkish": SURROUNDINGS["Turkish"]}
        for number, (name, surroundings) in enumerate(tried.items()):
            found = verified(tmp_path / str(number), benchmark, server.url, surroundings)
            for part, told in plain.items():
                assert part == "stdout" or found[part] == told, f"{name}: {part}"
