"""Writes the generated parts of the reference: tables that say what the code says.

python docs/generate.py           rewrites them
python docs/generate.py --check   exits with 1 where one of them is out of date

A generated part stands between `<!-- generated: NAME -->` and `<!-- /generated -->`, where NAME is a function of this
file that is listed in PARTS. Only karenina's own distributions are described, whatever else is installed.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import attrs
import click
from attrs import NOTHING

from karenina_core import ArtifactKeys, Karenina, StageOrchestrator, errors
from karenina_core.model import config, outcome, result
from karenina_core.pipeline import stage as stage_module
from karenina_core.pipeline.stage import PlanRequest, Stage
from karenina_core.plugin import hookspecs
from karenina_core.run.config_layers import ENVIRONMENT
from karenina_core.templates.normalize import NORMALIZERS

DOCS = Path(__file__).resolve().parent
REPOSITORY = DOCS.parent
MARKED = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)


def main() -> int:
    stale = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        fresh = MARKED.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]().strip()}\n\n{found[3]}", text)
        if fresh != text:
            stale.append(page.relative_to(REPOSITORY).as_posix())
            if "--check" not in sys.argv:
                page.write_text(fresh, "utf-8")
    if "--check" in sys.argv and stale:
        print(f"out of date: {', '.join(stale)}; run python docs/generate.py", file=sys.stderr)
        return 1
    print(f"rewritten: {', '.join(stale)}" if stale else "up to date")
    return 0


# Reading the code


def our_distributions() -> frozenset[str]:
    projects = [REPOSITORY / "pyproject.toml", *REPOSITORY.glob("plugins/*/pyproject.toml")]
    return frozenset(tomllib.loads(path.read_text("utf-8"))["project"]["name"] for path in projects)


def application() -> Karenina:
    ours = our_distributions()
    return Karenina.installed(
        only=[p.name for p in entry_points(group="karenina.plugins") if p.dist is not None and p.dist.name in ours]
    )


def prose(text: str | None) -> str:
    """A docstring as one paragraph, fit for a cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def first_paragraph(thing: Any) -> str:
    return prose((inspect.getdoc(thing) or "").split("\n\n")[0])


def code(value: Any) -> str:
    text = str(value).replace("|", "\\|")
    return f"`{text}`" if text else ""


def codes(values: Iterable[Any]) -> str:
    return ", ".join(code(value) for value in values) or "none"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def declared(cls: type) -> Iterator[tuple[str, str, str]]:
    """`(name, annotation, docstring)` of every annotated attribute in the body of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        said = ""
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            said = str(following.value.value)
        yield node.target.id, ast.unparse(node.annotation), prose(said)


ALIASES = {
    name: " | ".join(repr(choice) for choice in get_args(value))
    for module in (config, outcome)
    for name, value in vars(module).items()
    if get_origin(value) is Literal
}
"""Names of choices, and the choices that they stand for."""


def spelled_out(annotation: str) -> str:
    return re.sub(r"\w+", lambda word: ALIASES.get(word[0], word[0]), annotation)


def default_of(attribute: Any) -> str:
    value = attribute.default
    if value is NOTHING:
        return "required"
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]  # a function to type checkers, a class at run time
        made = {} if value.takes_self else value.factory()
        if isinstance(made, str | float) and made:
            return code(repr(made))
        return "" if value.takes_self else ("empty" if not made else "its defaults")
    return "not set" if value is None else code(repr(value))


def fields_table(cls: type) -> str:
    """The public fields of an attrs class: name, type, default and what they mean."""
    defaults = {a.name: default_of(a) for a in attrs.fields(cls)}
    rows = [
        (code(name), code(spelled_out(annotation)), defaults[name], said)
        for name, annotation, said in declared(cls)
        if name in defaults and not name.startswith("_")
    ]
    return table(("field", "type", "default", "meaning"), rows)


# The parts


def hooks() -> str:
    """Every hook under the comment that it stands below in hookspecs.py."""
    source = inspect.getsource(hookspecs)
    lines = source.splitlines()
    headings = {number: line[2:] for number, line in enumerate(lines, 1) if line.startswith("# ")}
    sections: dict[str, list[str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            heading = headings[max(number for number in headings if number < node.lineno)]
            sections.setdefault(heading, []).append(_hook(node))
    return "\n\n".join(f"## {_heading(title)}\n\n" + "\n\n".join(entries) for title, entries in sections.items())


def _heading(title: str) -> str:
    name, _, when = title.rstrip(".").partition(": ")
    return f"{name}\n\n{when[:1].upper()}{when[1:]}."


def _hook(node: ast.FunctionDef) -> str:
    first = (
        "\n\nThe first answer that is not `None` counts."
        if "firstresult" in ast.unparse(node.decorator_list[0])
        else ""
    )
    said = textwrap.dedent(ast.get_docstring(node) or "")
    signature = f"{node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns or ast.Constant(None))}"
    return f"### `{node.name}`\n\n```python\n{signature}\n```\n\n{said}{first}"


def stages() -> str:
    app = application()
    made = {name: _made(app.stages[name].load()) for name in app.stages}
    order = _order(app, made.values())
    rows = [
        (code(s.name), code(app.stages[name].plugin), s.category.name.lower(), _left_out(s))
        for name, s in sorted(made.items(), key=lambda item: order(item[1]))
    ]
    parts = [table(("stage", "plugin", "category", "reason when it is left out"), rows)]
    for name, stage in sorted(made.items(), key=lambda item: order(item[1])):
        parts.append(
            f"## {stage.name}\n\n{first_paragraph(type(stage))}\n\n" + _declarations(stage, app.stages[name].plugin)
        )
    return "\n\n".join(parts)


def _made(thing: Any) -> Stage:
    made: Stage = thing() if isinstance(thing, type) else thing
    return made


def _order(app: Karenina, made: Iterable[Stage]) -> Callable[[Stage], tuple[int, int, str]]:
    """By category, then as the plan with every feature has them."""
    features = frozenset(feature for stage in made for feature in stage.features)
    planned = StageOrchestrator.for_request(PlanRequest(features=features), app=app).stages
    place = {stage.name: number for number, stage in enumerate(planned)}
    return lambda stage: (stage.category, place.get(stage.name, len(place)), stage.name)


def _left_out(stage: Stage) -> str:
    return prose(stage.included_when.why_not) or "always in"


def _declarations(stage: Stage, plugin: str) -> str:
    lines = [
        ("plugin", code(plugin)),
        ("requires", codes(stage.requires)),
        ("reads", codes(stage.reads)),
        ("produces", codes(stage.produces)),
        ("result fields", codes(stage.result_fields)),
        *((("revises", codes(stage.revises)),) if stage.revises else ()),
        *((("extends", codes(stage.extends)),) if stage.extends else ()),
    ]
    return "\n".join(f"- {name}: {text}" for name, text in lines)


def categories() -> str:
    rows = [(code(category.name), str(int(category))) for category in stage_module.Category]
    return table(("category", "order"), rows)


def artifacts() -> str:
    made = [_made(entry.load()) for entry in application().stages.values()]
    rows = []
    for name, annotation, said in declared(ArtifactKeys):
        key = getattr(ArtifactKeys, name)
        makers = codes(sorted(s.name for s in made if key in s.produces))
        readers = codes(sorted(s.name for s in made if key in (*s.requires, *s.reads)))
        kind = re.sub(r"^Key\[(.*)\]$", r"\1", annotation)
        rows.append((code(f"ArtifactKeys.{name}"), code(key), code(kind), makers, readers, said))
    return table(("key", "artifact", "type", "produced by", "read by", "meaning"), rows)


def results() -> str:
    parts = {"metadata": result.MetadataPart, **result.PARTS}
    sections = [f"## `result.{name}`\n\n{first_paragraph(cls)}\n\n{fields_table(cls)}" for name, cls in parts.items()]
    sections.append(f"## The root\n\n{fields_table(result.VerificationResult)}")
    for name, cls in (("ledger", result.LedgerEntry), ("trail", result.TrailEntry)):
        sections.append(f"## Entries of `result.{name}`\n\n{first_paragraph(cls)}\n\n{fields_table(cls)}")
    return "\n\n".join(sections)


def configuration() -> str:
    titles: Mapping[str, type] = {
        "run": config.VerificationConfig,
        "models": config.ModelConfig,
        "retry_policy": config.RetryPolicy,
        "attempts": config.AttemptPolicy,
        "prompt_config": config.PromptConfig,
        "few_shot_config": config.FewShotConfig,
        "few_shot question_configs": config.FewShotQuestion,
    }
    return "\n\n".join(
        f"### `{cls.__name__}` ({title})\n\n{inspect.getdoc(cls)}\n\n{fields_table(cls)}"
        for title, cls in titles.items()
    )


def plugin_settings() -> str:
    app = application()
    sections = [
        f"### `[plugins.{name}]`\n\n{first_paragraph(entry.load())}\n\n{fields_table(entry.load())}"
        for name, entry in app.settings_classes.items()
    ]
    return "\n\n".join(sections) or "None of the plugins that come with karenina has settings."


def features() -> str:
    app = application()
    owners: dict[str, list[str]] = {}
    for name in app.stages:
        stage = _made(app.stages[name].load())
        for feature in stage.features:
            owners.setdefault(feature, []).append(stage.name)
    rows = [(code(feature), codes(sorted(owners[feature]))) for feature in sorted(owners)]
    return table(("feature", "stages that know it"), rows) if rows else "No stage that comes with karenina has any yet."


def plugins() -> str:
    rows = [
        (code(p.name), ", ".join(p.kinds), code(p.distribution)) for p in application().plugins if p.state == "active"
    ]
    return table(("entry point", "brings", "distribution"), rows)


def adapters() -> str:
    app = application()
    rows = []
    for name in app.adapters.get_interfaces():
        spec = app.adapters.get_spec(name)
        served = f"served by {code(spec.routes_to)}" if spec.routes_to else prose(spec.description)
        rows.append((code(name), code(app.adapters[name].plugin), served))
    return table(("interface", "plugin", "what it is"), rows)


def primitives() -> str:
    rows = []
    for name, entry in application().primitives.items():
        cls = entry.load()
        parameters = [
            f"{parameter.name}" + ("" if parameter.default is parameter.empty else f" = {_json(parameter.default)}")
            for parameter in inspect.signature(cls).parameters.values()
        ]
        truth = "compared" if getattr(cls, "uses_ground_truth", True) else "not used"
        rows.append((code(name), codes(parameters), truth, first_paragraph(cls)))
    return table(("type", "parameters", "ground truth", "what passes"), rows)


def _json(value: Any) -> str:
    return re.sub("'", '"', repr(list(value) if isinstance(value, tuple) else value)).replace("None", "null")


def normalizers() -> str:
    return codes([*NORMALIZERS, '{"type": "SynonymMap", "mapping": {...}}'])


def environment() -> str:
    return table(("variable", "field"), [(code(name), code(f"run.{field}")) for name, field in ENVIRONMENT.items()])


def error_tree() -> str:
    tree = (inspect.getdoc(errors) or "").partition("\n\n")[2]
    return f"```text\n{tree}\n```"


def error_kinds() -> str:
    rows = [(code(kind), "yes" if kind in errors.RETRYABLE else "no") for kind in get_args(errors.ErrorKind)]
    return table(("kind", "tried again by default"), rows)


def outcomes() -> str:
    return ", ".join(code(name) for name in get_args(outcome.OutcomeName))


def commands() -> str:
    ours = our_distributions()
    points = [p for p in entry_points(group="karenina.commands") if p.dist is not None and p.dist.name in ours]
    return "\n\n".join(_command(f"karenina {p.name}", p.load()) for p in sorted(points, key=lambda p: p.name))


def _command(path: str, command: click.Command) -> str:
    words = " ".join(command.collect_usage_pieces(click.Context(command)))
    said = inspect.cleandoc(command.help or "").replace("\b\n", "")
    text = f"## `{path}`\n\n```text\n{path} {words}\n```\n\n{said}"
    options = [
        parameter for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    if options:
        rows = [(_option(option), prose(option.help)) for option in options]
        text += "\n\n" + table(("option", "effect"), rows)
    if isinstance(command, click.Group):
        inner = [_command(f"{path} {name}", command.commands[name]) for name in sorted(command.commands)]
        text = "\n\n".join([text, *inner])
    return text


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return names
    metavar = option.metavar or option.type.name.upper()
    if isinstance(option.type, click.Choice) and option.metavar is None:
        metavar = "|".join(map(str, option.type.choices))
    return f"{names} {code(metavar)}"


PARTS: Mapping[str, Callable[[], str]] = {
    part.__name__.replace("_", "-"): part
    for part in (
        hooks,
        stages,
        categories,
        artifacts,
        results,
        configuration,
        plugin_settings,
        features,
        plugins,
        adapters,
        primitives,
        normalizers,
        environment,
        error_tree,
        error_kinds,
        outcomes,
        commands,
    )
}


if __name__ == "__main__":
    sys.exit(main())
