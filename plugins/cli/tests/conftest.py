"""Small benchmark files, recorded answers, and ways to run the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from karenina_cli.root import karenina

SCRIPT = Path(sys.executable).with_name("karenina")
CAPITAL = {
    "class_name": "Answer",
    "fields": [
        {
            "name": "capital",
            "type": "str",
            "description": "The city that the response names as the capital",
            "ground_truth": "Paris",
            "verify_with": {"type": "ExactMatch"},
        }
    ],
}
PYTHON = """\
class Answer(BaseAnswer):
    capital: str = VerifiedField(description="The capital", ground_truth="Paris", verify_with=ExactMatch())
"""


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory of its own, and nothing in the environment that configures karenina."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("KARENINA_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def draining() -> Callable[[Any], None]:
    """Waits until a process, started or forked, has printed that it only waits for the calls that are under way."""

    def wait(process: Any) -> None:
        if isinstance(process, subprocess.Popen):
            assert process.stderr is not None
            lines = []
            for line in process.stderr:  # the test's own limit is that of the process
                lines.append(line)
                if "interrupt again" in line:
                    return
            raise AssertionError("".join(lines))
        while "interrupt again" not in process.stderr:
            assert process.poll() is None, process.stderr
            time.sleep(0.01)

    return wait


@pytest.fixture
def write_benchmark(tmp_path: Path) -> Callable[..., Path]:
    """`write_benchmark("q0", "q1")` writes a JSON-LD file with these questions. `template` and `finished` go to all."""

    def write(
        *ids: str,
        template: Any = CAPITAL,
        language: str = "karenina-template",
        name: str = "capitals.jsonld",
        rating: Iterable[Mapping[str, Any]] = (),
        unfinished: Iterable[str] = (),
    ) -> Path:
        document = {
            "@context": {"@vocab": "https://schema.org/"},
            "@type": "DataFeed",
            "name": "Capitals",
            "dateCreated": "2025-01-01T00:00:00Z",
            "dateModified": "2025-01-01T00:00:00Z",
            "rating": list(rating),
            "dataFeedElement": [_item(i, template, language, i not in set(unfinished)) for i in ids],
        }
        path = tmp_path / name
        path.write_text(json.dumps(document), "utf-8")
        return path

    return write


def _item(question_id: str, template: Any, language: str, finished: bool) -> dict[str, Any]:
    text = template if isinstance(template, str) else json.dumps(template)
    source = {"@type": "SoftwareSourceCode", "name": "template", "text": text, "programmingLanguage": language}
    return {
        "@type": "DataFeedItem",
        "@id": question_id,
        "dateCreated": "2025-01-01T00:00:00Z",
        "dateModified": "2025-01-01T00:00:00Z",
        "item": {
            "@type": "Question",
            "text": f"What is the capital of France? ({question_id})",
            "acceptedAnswer": {"@type": "Answer", "text": "Paris"},
            "hasPart": source,
            "additionalProperty": [{"@type": "PropertyValue", "name": "finished", "value": finished}],
        },
    }


@pytest.fixture
def write_answers(tmp_path: Path) -> Callable[..., Path]:
    """`write_answers(q0="Paris", q1="Rome")` writes recorded answers, with the city as the judge's field."""

    def write(**cities: str) -> Path:
        answers = {k: {"answer": f"The capital is {city}.", "fields": {"capital": city}} for k, city in cities.items()}
        path = tmp_path / "answers.json"
        path.write_text(json.dumps(answers), "utf-8")
        return path

    return write


@pytest.fixture
def run() -> Callable[..., Result]:
    """`run("verify", path, ...)` in this process."""

    def invoke(*arguments: object) -> Result:
        result = CliRunner().invoke(karenina, [str(argument) for argument in arguments], prog_name="karenina")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def run_script() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_script("verify", path, ...)` runs the console script as users do."""

    def execute(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [str(SCRIPT), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)

    return execute


@pytest.fixture
def served() -> Callable[[str], list[str]]:
    """`served(url)`: the flags for one model behind a server that answers and judges."""

    def flags(url: str) -> list[str]:
        return [
            part
            for role in ("answering", "parsing")
            for part in (
                *(f"--{role}-model", f"the-{role}-model"),
                *(f"--{role}-interface", "openai_endpoint"),
                *(f"--{role}-base-url", url),
            )
        ]

    return flags


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """`install("karenina-odd", {"odd": "odd:command"}, odd="...")` makes an installed distribution of these modules.

    The mapping holds entry points of the group `karenina.commands`, or of `group`.
    """

    def installed(
        distribution: str, entries: Mapping[str, str], group: str = "karenina.commands", **modules: str
    ) -> Path:
        folder = tmp_path / distribution
        info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", "utf-8")
        lines = "\n".join(f"{name} = {value}" for name, value in entries.items())
        (info / "entry_points.txt").write_text(f"[{group}]\n{lines}\n", "utf-8")
        for name, source in modules.items():
            (folder / f"{name}.py").write_text(source, "utf-8")
            names.append(name)
        monkeypatch.syspath_prepend(folder)
        return folder

    names: list[str] = []
    yield installed
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def karenina_script() -> Path:
    """The console script."""
    return SCRIPT
