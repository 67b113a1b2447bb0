"""What the numbers of a run depend on, as digests: a run is only resumed where nothing of that has changed."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from karenina_calls.files.folders import Limits
from karenina_calls.plugin_code import LENGTH, code_of, libraries_of, library_digest
from karenina_calls.tools.tool_servers import address_digest, shown_address

from karenina_core.errors import ConfigError
from karenina_core.plugin.markers import is_neutral
from karenina_core.values.config import ModelConfig, VerificationConfig, facts
from karenina_core.values.convert import unstructure
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric

from ..plan.items import Prepared
from ..workspaces.workspace_capture import snapshot
from ..workspaces.workspace_sources import source_folder

PRICES = frozenset({"input_cost_per_token", "output_cost_per_token"})
"""Of models whose work with tools may cost so much and no more, they decide where it ends."""
NEUTRAL_OF_MODELS = frozenset(
    {
        *("request_timeout", "retry_policy", "api_key_env", "endpoint_api_key", "requests_per_minute"),
        *("tokens_per_minute", "manual_traces", *PRICES),
        *("batch", "batch_max_calls", "batch_wait_seconds"),
    }
)
CORE = "karenina-core"
OWN = "karenina-runs"
CHANGING = ("karenina_classify_error", "karenina_wrap_call", "karenina_wrap_stage")
"""Hooks that can change what models are sent, what comes back, or what errors mean; unless they are `neutral`, as those
that trace and record are. Hooks around an item are not among them: they can end it as an error, and change no result
otherwise."""


class Changed(ConfigError):
    """Something that affects the numbers has changed since the run began."""


def fingerprint(prepared: Prepared) -> dict[str, Any]:
    """Plain data: `{"questions": {id: {part: digest}}, "settings": {name: value}, "models": {role: {identity: {name:
    value}}}, "rubrics": {digest: {trait: digest}}, "code": {plugin: {"distribution", "version", "digest"}}, "versions":
    {...}}`.

    Parts of a question are its `text`, `template`, `rubric`, `examples` and `workspace`; `rubrics` has the traits of
    each rubric, so that added traits can be distinguished from changed ones. Values of settings are readable, without
    secrets, so that a difference can be named. Raises WorkspaceError and OSError where a workspace
    cannot be read.
    """
    config, folders, known, used = prepared.config, _workspaces(prepared), facts(), _used(prepared)
    return {
        "questions": {
            question.id: _question(question, prepared.rubrics.get(question.id), folders.get(question.workspace_path))
            for question in prepared.questions
        },
        "settings": {
            "evaluation_mode": prepared.mode,
            **{
                name: value
                for name, value in json.loads(json.dumps(unstructure(config), default=str)).items()
                if name != "evaluation_mode" and not known[name].neutral
            },
        },
        "models": {
            role: {str(model.identity): _model(config, model) for model in models}
            for role, models in (("answering", config.answering_models), ("parsing", config.parsing_models))
        },
        "rubrics": {
            _digest(unstructure(rubric)): {
                trait.name: _digest([trait.type_name, unstructure(trait), trait.name in rubric.dynamic])
                for trait in rubric
            }
            for rubric in prepared.rubrics.values()
            if rubric
        },
        "plugins": {name: unstructure(prepared.app.settings(name)) or {} for name in sorted(used)},
        "code": dict(sorted(_code(prepared, used))),
        "versions": {"python": platform.python_version(), CORE: version_of(CORE)},
    }


def digest_of(file: Path) -> str | None:
    """The SHA-256 of a file; None where it cannot be read."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return None


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What has changed, one line each. Questions that were added or taken away are differences too."""
    found = list(_of_questions(before.get("questions", {}), now.get("questions", {})))
    found += _of_table("the setting", before.get("settings", {}), now.get("settings", {}))
    for role in ("answering", "parsing"):
        old, new = (side.get("models", {}).get(role, {}) for side in (before, now))
        for name in dict.fromkeys((*old, *new)):
            if name in old and name in new:
                found += _of_table(f"the {role} model {name}:", old[name], new[name])
            else:
                found.append(f"the {role} model {name} is {'new' if name in new else 'gone'}")
    old, new = before.get("plugins", {}), now.get("plugins", {})
    for name in dict.fromkeys((*old, *new)):
        found += _of_table(f"the setting plugins.{name}:", old.get(name, {}), new.get(name, {}))
    old, new = before.get("code", {}), now.get("code", {})
    for name in dict.fromkeys((*old, *new)):
        if name not in old or name not in new:
            found.append(f"the plugin {name!r} is {'new' if name in new else 'gone'}")
            continue
        plugin, then, code = f"(plugin {name!r})", old[name], new[name]
        if then["version"] != code["version"]:
            found.append(f"{then['distribution']} {plugin} was version {then['version']} and is {code['version']}")
        elif then["digest"] != code["digest"]:
            found.append(f"the code of {then['distribution']} {then['version']} {plugin} has changed")
    if before.get("answers") != now.get("answers"):
        found.append("the answers that the run was given have changed")
    return [*found, *_of_table("the version of", before.get("versions", {}), now.get("versions", {}))]


def other_tools(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What tool servers offer now and did not offer when the run began, one line for each server and model. Each is a
    row of `tool_servers` in the manifest."""
    known = {(row["model"], row["server"]): row for row in before}
    for row in now:
        old = known.get((row["model"], row["server"]))
        if old is None or old["digest"] == row["digest"]:
            continue
        changed = [*(f"+{name}" for name in row["tools"] if name not in old["tools"])]
        changed += [f"-{name}" for name in old["tools"] if name not in row["tools"]]
        what = f"offers other tools ({', '.join(changed)})" if changed else "describes its tools differently"
        yield f"the tool server {row['server']!r} of the model {row['model']} {what} than when the run began"


def _workspaces(prepared: Prepared) -> dict[str | None, str]:
    """A digest of what is in each of the questions' folders. Of those that agents work in themselves there is none:
    the run itself changes them."""
    root, config = prepared.workspace_root, prepared.config
    if root is None or not config.workspace_copy:
        return {}
    limits = Limits(max_bytes=config.workspace_max_bytes, max_files=config.workspace_max_files)
    paths = {question.workspace_path for question in prepared.questions if question.workspace_path}
    folders = ((path, source_folder(root, path)) for path in paths)
    return {path: _digest(sorted(snapshot(folder, limits).items())) for path, folder in folders if folder is not None}


def _question(question: Question, rubric: Rubric | None, workspace: str | None) -> dict[str, str]:
    parts: dict[str, Any] = {
        "text": question.question,
        "template": [question.template_language, question.answer_template, question.raw_answer],
        "rubric": None if rubric is None else unstructure(rubric),
        "examples": unstructure(list(question.few_shot_examples)),
        "workspace": question.workspace_path and [question.workspace_path, workspace],
    }
    return {name: _digest(value) for name, value in parts.items() if value not in (None, [])}


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:LENGTH]


def _model(config: VerificationConfig, model: ModelConfig) -> dict[str, Any]:
    data = json.loads(json.dumps(unstructure(config.for_model(model)), default=str))
    servers = model.mcp_urls_dict.items()
    data["mcp_urls_dict"] = {name: f"{shown_address(at)} [{address_digest(name, at)}]" for name, at in servers}
    if model.manual_traces is not None:
        data["recorded_answers"] = _digest({key: repr(answer) for key, answer in model.manual_traces.items()})
    neutral = NEUTRAL_OF_MODELS if model.agent_max_cost_usd is None else NEUTRAL_OF_MODELS - PRICES
    return {name: value for name, value in data.items() if name not in neutral}


def _code(prepared: Prepared, used: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The plugins whose code makes numbers, and the libraries that they import."""
    owners = {OWN}
    for name in used:
        if (code := code_of(prepared.app, name)) is not None:
            owners.add(code["distribution"])
            yield name, code
    for library in {OWN, *libraries_of(owners)}:
        yield library, {"distribution": library, "version": version_of(library), "digest": library_digest(library)}


def _used(prepared: Prepared) -> set[str]:
    """The plugins of the stages, adapters, runtimes, strategies and traits in use, and those with hooks around them."""
    app = prepared.app
    used = {app.stages[stage.name].plugin for plan in prepared.plans.values() for stage in plan.stages}
    used |= {app.adapters[resolution.interface].plugin for resolution in prepared.resolutions.values()}
    idle = prepared.templates.idle({question.template_language for question in prepared.questions})
    every = (registry for registry in app.registries if registry.affects_every_run)
    used |= {e.plugin for registry in every for name, e in registry.items() if (type(registry), name) not in idle}
    changing = (impl for hook in CHANGING for impl in getattr(app.hooks, hook).get_hookimpls())
    return used | {impl.plugin_name for impl in changing if not is_neutral(impl.function)}


_version = cache(version)
"""To parse the metadata takes a millisecond. That something is not installed is not kept: it may be soon."""


def version_of(distribution: str) -> str:
    """The version of a distribution, or that it is not installed."""
    try:
        return _version(distribution)
    except PackageNotFoundError:
        return "not installed"


def _of_questions(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in before:
        if name not in now:
            yield f"the question {name!r} is gone"
    for name, parts in now.items():
        if name not in before:
            yield f"the question {name!r} is new"
        elif changed := [part for part in {**before[name], **parts} if before[name].get(part) != parts.get(part)]:
            parts_of_one = [f"another {part}" for part in changed if part != "examples"]
            several = ["other examples"] if "examples" in changed else []
            yield f"the question {name!r} has {' and '.join((*parts_of_one, *several))}"


def _of_table(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old != new:
            yield f"{what} {name} was {_shown(old)} and is {_shown(new)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
