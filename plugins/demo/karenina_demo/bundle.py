"""What the demo is made of: a benchmark, recorded calls, and the configuration that they were recorded with."""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import requires
from pathlib import Path

from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.items import Prepared
from karenina_runs.plan.prepare import prepare
from karenina_runs.plan.templates import TemplateLoader

from karenina_core import Karenina, ModelConfig, VerificationConfig
from karenina_core.errors import PluginError, TemplateRefused
from karenina_core.plugin.discovery import discover
from karenina_core.values.config import CodePolicy
from karenina_core.values.question import TemplateSource

DATA = Path(__file__).with_name("data")
BENCHMARK = DATA / "demo.jsonld"
CALLS = DATA / "demo-calls.jsonl"
DIGEST = "2c86de654ff8f006f74680edbe33873a1f2d2a4c5e0e21cec931cf5c42fede6c"
"""SHA-256 of the benchmark. Where there is no sandbox its Python templates run in this process, so no other file's
may."""
ANSWERING = ("atlas-large", "birch-small")
JUDGE = "cedar-judge"
FEATURES = ("abstention", "sufficiency", "embedding_check")
ADDRESS = "https://models.invalid/v1"
"""Where the recorded models seem to be: a name that is reserved for having no address (RFC 2606)."""
FAILING = frozenset({("rasburicase-g6pd", "birch-small")})
"""Question and answering model of the calls that were recorded as failures of the provider."""
RUN_NAME = "demo"


def application(**replay: str) -> Karenina:
    """The plugins that the demo needs and no others, with the settings of the replay plugin.

    A plugin of another package could ask the models something that was not recorded. Raises PluginError where the
    replay plugin is missing, because then real models would be asked.
    """
    needed = {re.split(r"[ ;<>=!~\[]", line, maxsplit=1)[0] for line in requires("karenina-demo") or ()}
    app = Karenina.installed(
        only=[source.name for source in discover() if source.distribution in needed], settings={"replay": replay}
    )
    if app.settings("replay") is None:
        raise PluginError(f"the demo needs the plugin replay; allow it, or install karenina-replay.{app.inactive()}")
    return app


def prepared(app: Karenina, address: str = ADDRESS) -> Prepared:
    """The demo's run after every check, with the models at `address`.

    Raises TemplateRefused where the benchmark is not the one that this package came with.
    """
    digest = hashlib.sha256(BENCHMARK.read_bytes()).hexdigest()
    if digest != DIGEST:
        raise TemplateRefused(
            f"{BENCHMARK} has been changed (SHA-256 {digest}), so its Python templates are not run; install "
            "karenina-demo again, or run the file with karenina verify, which asks whose code you trust"
        )

    def model(name: str) -> ModelConfig:
        return ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url=address)

    config = VerificationConfig(  # nothing in the environment changes it
        answering_models=map(model, ANSWERING),
        parsing_models=[model(JUDGE)],
        code_policy=_policy(app),
        features=FEATURES,
        deep_judgment_rubric_mode="use_checkpoint",
        embedding_check_embedder="minilm",
        embedding_check_model="all-MiniLM-L6-v2",
        embedding_check_threshold=0.85,
    )
    return prepare(Benchmark.load(BENCHMARK, app=app), config, app=app, run_name=RUN_NAME)


def _policy(app: Karenina) -> CodePolicy:
    """The sandbox, as for any file, where this machine has one."""
    try:
        TemplateLoader(app, "sandbox").runtime_for(TemplateSource("", language="python"))
    except TemplateRefused:
        return "trusted"
    return "sandbox"
