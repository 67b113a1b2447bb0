"""What `karenina extend` does."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_runs.amend.extension import Extending, Wanted, extending, rebuilt_with
from karenina_runs.benchmark import Benchmark
from karenina_runs.config.config_file import Flags
from karenina_runs.folder.directory import default_directory, read_manifest
from karenina_runs.folder.fingerprint import Changed
from karenina_runs.resume import source_of

from karenina_core.errors import ConfigError, TemplateRefused, plural
from karenina_core.log import configure

from .options.flags import later_config, model_flags, trust_line
from .options.selection import select_questions
from .output import note, own_stdout
from .progress import Progress
from .running import carried_out
from .verification import ended, print_results

FIELDS = {
    "replicates": "replicate_count",
    "concurrency": "concurrency",
    "budget_usd": "budget_usd",
    "budget_tokens": "budget_tokens",
}


def extend(folder: Path, options: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Extend the run and print the outcome. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        configure()
        found = _checked(folder, options, trust_line(arguments))
        counts, items = found.found, len(found.prepared)
        counted = [f"{counts.rows} from {folder}", f"{items - counts.rows} more"]
        if counts.again:
            counted.append(f"{counts.again} of them {'is' if counts.again == 1 else 'are'} tried again")
        if found.traits:
            counted.append(f"{counts.scored} get {plural(len(found.traits), 'more trait')}")
        for line in found.missing:
            note(f"Warning: {line}")
        if not options["quiet"]:
            note(f"{items} items ({'; '.join(counted)}), into {found.directory}")
        progress = Progress(items, quiet=options["quiet"], done=counts.done, errors=counts.errors)
        results = carried_out(found.carry_out, progress, found.directory)
        warnings = found.prepared.benchmark.warnings
        print_results(results, found.directory, warnings, out, as_json=options["as_json"], extends=folder)
    return ended(results, items, found.directory)


def _checked(folder: Path, options: Mapping[str, Any], trusting: str) -> Extending:
    """Raises ConfigError and TemplateRefused with what to type instead."""
    flags = Flags(
        run={field: options[name] for name, field in FIELDS.items() if options[name] is not None},
        answering=model_flags("answering", options),
        parsing=model_flags("parsing", options),
        trust=options["trust"],
        trust_line=trusting,
    )

    def chosen(ids: Sequence[str]) -> Sequence[str]:
        text = options["questions"]
        if text is None:
            return ()
        return ids if text == "all" and "all" not in ids else select_questions(text, ids)

    manifest = read_manifest(folder)
    made = later_config(manifest, options, flags, rebuilt_with)
    given, source = options["benchmark"], options["benchmark"] or source_of(manifest)
    benchmark = None if given is None else Benchmark.load(given, manifest.get("workspace_root"), app=made.app)
    wanted = Wanted(
        run_dir=options["out"] or default_directory(folder.name if source is None else source.stem),
        benchmark=benchmark,
        source=given,
        questions=chosen,
        ask_missing=options["ask_missing"],
        sinks=options["sinks"],
    )
    try:
        return extending(folder, lambda manifest: made, wanted)
    except Changed as error:
        changed = "\n".join(f"  {problem}" for problem in error.problems)
        command = shlex.join(["karenina", "verify", str(source or "BENCHMARK"), "--reuse", str(folder), "..."])
        raise ConfigError(
            f"{folder} cannot be extended, for its results depend on what has changed:\n{changed}\n"
            f"Undo that, or begin a new run that asks only what is not known yet: {command}"
        ) from None
    except TemplateRefused as error:
        raise TemplateRefused(f"{error}\nIf you trust the author of the benchmark, type:\n{trusting}") from error
