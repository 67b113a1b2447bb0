"""The rubric of every question of a run, and what can be wrong with it before a model is called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core.errors import ConfigError, Problem, did_you_mean
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import EvaluationMode, VerificationConfig
from karenina_core.values.question import Question
from karenina_core.values.rubric import DynamicRubric, Provenance, Rubric, RubricTrait

SOURCES: tuple[Provenance, ...] = ("global", "question_specific")


def own_rubrics(holder: BenchmarkData | Question) -> tuple[Rubric | None, DynamicRubric | None]:
    """The static and the dynamic rubric that a benchmark or a question itself has."""
    if isinstance(holder, Question):
        return holder.question_rubric, holder.question_dynamic_rubric
    return holder.rubric, holder.dynamic_rubric


def all_rubrics(benchmark: BenchmarkData) -> list[Rubric | None]:
    """The rubrics of a benchmark and of its questions, static and dynamic."""
    own: list[Rubric | None] = list(own_rubrics(benchmark))
    return own + [rubric for question in benchmark.questions for rubric in own_rubrics(question)]


def rubric_of(
    benchmark: BenchmarkData, question: Question, mode: EvaluationMode, names: Sequence[str] | None = None
) -> Rubric | None:
    """The traits for one question, of these names where some are given, each marked with where it came from.

    None where there are none. Those that nothing can score are there too, to be reported. Raises ConfigError where two
    traits have one name, the dynamic ones included.
    """
    if mode == "template_only":
        return None
    static, dynamic = zip(own_rubrics(benchmark), own_rubrics(question), strict=True)
    marked = [
        *(rubric.labelled(source) for rubric, source in zip(static, SOURCES, strict=True) if rubric is not None),
        *(rubric.labelled("dynamic") for rubric in dynamic if rubric is not None),
    ]
    try:
        merged = Rubric.merged(marked)
    except ValueError as error:
        raise ConfigError([Problem(f"question {question.id}", str(error))]) from None
    chosen = merged if names is None else merged.only(names)
    return chosen if len(chosen) else None


def rubrics_of(
    benchmark: BenchmarkData, questions: Sequence[Question], mode: EvaluationMode, names: Sequence[str] | None
) -> dict[str, Rubric | None]:
    """The rubric of every question, by id. Raises ConfigError with all that clashes, each clash once."""
    rubrics: dict[str, Rubric | None] = {}
    clashes: dict[str, list[str]] = {}
    for question in questions:
        try:
            rubrics[question.id] = rubric_of(benchmark, question, mode, names)
        except ConfigError as error:
            for problem in error.problems:
                clashes.setdefault(problem.message, []).append(problem.path)
    if clashes:
        more = {what: f" and {len(where) - 1} more" if len(where) > 1 else "" for what, where in clashes.items()}
        raise ConfigError([Problem(f"{where[0]}{more[what]}", what) for what, where in clashes.items()])
    return rubrics


def notes_on_rubrics(
    config: VerificationConfig,
    mode: EvaluationMode,
    benchmark: BenchmarkData,
    questions: Sequence[Question],
    rubrics: Iterable[Rubric | None],
) -> list[str]:
    """Names without an effect, and traits that were asked for and that nothing can score."""
    names = config.rubric_trait_names
    notes = []
    if names is not None and mode == "template_only":
        notes.append("rubric_trait_names has no effect: no rubric is evaluated")
    elif names is not None and not any(rubric is not None for rubric in rubrics):
        notes.append("no question of this run has a trait that rubric_trait_names names, so no rubric is evaluated")
    if config.evaluation_mode == "template_only":
        return notes
    holders: list[BenchmarkData | Question] = [benchmark, *questions]
    traits = [trait for holder in holders for rubric in own_rubrics(holder) for trait in rubric or ()]
    if found := dict.fromkeys(t.name for t in traits if not t.usable and (names is None or t.name in names)):
        what = "these traits cannot be scored, because they lack what their evaluator needs, such as their code"
        notes.append(f"{what}: {', '.join(found)}")
    return notes


def check_types(
    config: VerificationConfig, benchmark: BenchmarkData, question_ids: Collection[str] | None = None
) -> None:
    """Refuse a run whose rubrics would lack a trait because no installed package has its type.

    Only the given questions count, all by default. Raises ConfigError with every such trait.
    """
    names = config.rubric_trait_names
    if config.evaluation_mode == "template_only":
        return
    missing = [
        trait
        for trait in benchmark.missing_traits
        if (names is None or trait.name in names)
        and (trait.question_id is None or question_ids is None or trait.question_id in question_ids)
    ]
    if missing:
        rest = "To run without it, name the traits to score in rubric_trait_names, or choose the mode template_only"
        raise ConfigError(
            Problem("", f"{trait.reason.rstrip('.')}. {rest} (--mode template_only)") for trait in missing
        )


def check_names(
    config: VerificationConfig, rubrics: Iterable[Rubric | None], questions: Iterable[str], *, all_known: bool = True
) -> None:
    """Refuse names of traits and questions in the configuration that the benchmark does not have.

    `rubrics` are all of the benchmark's, `questions` its ids; where not `all_known`, what the configuration says about
    other questions is left alone. Raises ConfigError with every problem.
    """
    custom = config.deep_judgment_rubric_config if config.deep_judgment_rubric_mode == "custom" else None
    if config.rubric_trait_names is None and custom is None:
        return
    traits: dict[str, list[RubricTrait]] = {}
    for trait in (trait for rubric in rubrics for trait in rubric or ()):
        traits.setdefault(trait.name, []).append(trait)
    problems = [
        Problem("rubric_trait_names", f"no trait is called {name!r}{did_you_mean(name, traits)}")
        for name in config.rubric_trait_names or ()
        if name not in traits
    ]
    ids, where = set(questions), "deep_judgment_rubric_config"
    of_questions = {} if custom is None else custom.question_specific
    if not all_known:
        of_questions = {name: entries for name, entries in of_questions.items() if name in ids}
    problems += [
        Problem(f"{where}.question_specific", f"there is no question {name!r}{did_you_mean(name, ids)}")
        for name in of_questions
        if name not in ids
    ]
    places = {f"{where}.question_specific.{name}": entries for name, entries in of_questions.items()}
    if custom is not None:
        places = {f"{where}.global": custom.global_traits, **places}
    for place, entries in places.items():
        for name, entry in entries.items():
            if name not in traits:
                problems.append(Problem(place, f"no trait is called {name!r}{did_you_mean(name, traits)}"))
            elif entry.enabled and not any(
                isinstance(trait, LLMRubricTrait) and trait.kind in ("boolean", "score") for trait in traits[name]
            ):
                what = (
                    f"{name!r} is not a boolean or score trait of the judge, and deep judgment is only for those; "
                    "remove it"
                )
                problems.append(Problem(place, what))
    if problems:
        raise ConfigError(problems)
