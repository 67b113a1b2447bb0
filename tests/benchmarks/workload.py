"""Many small items with models that answer inside this process, so that only karenina's own work is measured."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from karenina_core import AdapterSpec, Benchmark, Karenina, ModelConfig, Question, VerificationConfig, hookimpl
from karenina_core.plugin.discovery import discover, load
from karenina_core.ports import LLMResponse, PortCapabilities, UsageMetadata

__all__ = ["ANSWER", "JUDGED", "REPOSITORY", "TEMPLATE", "InProcess", "Workload", "moons"]

REPOSITORY = Path(__file__).parents[2]

TEMPLATE = json.dumps(
    {
        "fields": [
            {
                "name": "count",
                "type": "int",
                "description": "Number that the response gives",
                "ground_truth": 2,
                "verify_with": {"type": "NumericExact"},
            },
            {
                "name": "names",
                "type": "list_str",
                "description": "Names that the response gives",
                "ground_truth": ["Phobos", "Deimos"],
                "verify_with": {"type": "SetContainment", "mode": "exact"},
            },
        ]
    }
)
ANSWER = "Mars has two moons, Phobos and Deimos. " * 20
JUDGED = json.dumps({"count": 2, "names": ["Phobos", "Deimos"]})


class InProcess:
    """Answers at once: text when it is asked for text, the fields as JSON when it is asked for structure."""

    capabilities = PortCapabilities(supports_structured_output=True, output_channels=("json_schema", "text"))

    async def ainvoke(self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None) -> Any:
        return LLMResponse(content=JUDGED if output else ANSWER, usage=UsageMetadata(200, 20, 220, 0.0))

    async def aclose(self) -> None:
        return None


class Adapter:
    """The plugin that brings the interface `in-process`."""

    def __init__(self, model: InProcess) -> None:
        self.model = model

    @hookimpl
    def karenina_register_adapters(self, registry: Any) -> None:
        registry.register(AdapterSpec(interface="in-process", llm_factory=lambda config: self.model))


def moons(questions: int) -> Benchmark:
    """A benchmark of as many questions, all alike but for a number."""
    return Benchmark.create("moons").with_questions(
        Question(
            question=f"How many moons does Mars have, and what are they called? ({number})",
            raw_answer="Two: Phobos and Deimos",
            answer_template=TEMPLATE,
            template_language="karenina-template",
        )
        for number in range(questions)
    )


class Workload:
    """An application with the installed plugins and the in-process model; call it to verify a number of items."""

    def __init__(self, answers: InProcess | None = None) -> None:
        adapter = Adapter(answers or InProcess())
        self.app = Karenina({**{source.name: load(source) for source in discover()}, "benchmark-model": adapter})
        model = ModelConfig(model_name="any", interface="in-process")
        self.config = VerificationConfig(answering_models=[model], parsing_models=[model], concurrency=8)

    def __call__(self, items: int) -> None:
        self.verify(moons(items), self.config, items)

    def in_directory(self, items: int) -> None:
        """The same, with a run directory."""
        with tempfile.TemporaryDirectory() as folder:
            self.verify(moons(items), self.config, items, Path(folder) / "run")

    def verify(self, benchmark: Benchmark, config: VerificationConfig, items: int, run_dir: Path | None = None) -> None:
        """Verify a benchmark of as many items. All of them pass."""
        results = benchmark.run_verification(config, app=self.app, run_dir=run_dir)
        assert results.get_summary()["outcomes"] == {"passed": items}
