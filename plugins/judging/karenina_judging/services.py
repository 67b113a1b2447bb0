"""What a run offers to its stages beside the two models: see `VerificationContext.service`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from attrs import frozen
from karenina_vocabulary.handle import TemplateHandle

from karenina_core.pipeline.artifact_keys import Key
from karenina_core.ports.model_client import ModelClient
from karenina_core.values.model_config import ModelConfig
from karenina_core.values.question import TemplateSource


@frozen
class Similarities:
    """One number from 0 to 1 with four decimals for each pair of texts, and the model that was really used."""

    scores: tuple[float, ...]
    model: str


OTHER_MODEL: Key[Callable[[ModelConfig], Awaitable[ModelClient]]] = Key("other models", Callable)
"""Another model, such as the one that a trait names; its calls are the item's. It is open for the whole run.

Raises KareninaError where it cannot be opened, or is a benchmark file's and may not be asked.
"""
LOAD_TEMPLATE: Key[Callable[[TemplateSource], Awaitable[TemplateHandle]]] = Key("template runtimes", Callable)
"""The handle of a template, made by the runtime that the run's policy allows. Raises TemplateError."""
SIMILARITIES: Key[Callable[[Sequence[tuple[str, str]]], Awaitable[Similarities]]] = Key("an embedder", Callable)
"""How similar the texts of each pair are, by the configured embedder, in one call. Raises PortError or PluginError."""
WORKSPACE_COPY: Key[Callable[[], AbstractAsyncContextManager[Path | None]]] = Key("workspaces", Callable)
"""A copy of the workspace for one investigation: `async with` gives its path and takes it away at the end.

None where there is no workspace. Raises WorkspaceError where it cannot be copied.
"""
KEEP_FILE: Key[Callable[[str, str], bool]] = Key("kept files", Callable)
"""Have a text kept with the result, as a file. The path lies beneath `.karenina/`, with `/` and without `..`.

A run with a directory writes it there, beneath `workspaces/<question>__<result>/`. Returns whether that, or a file that
the stage itself has written to this path of the workspace, is there after the run. Raises ContractError for another
path.
"""
