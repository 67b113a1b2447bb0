"""How rubrics are evaluated: the per-trait settings of deep judgment, and which of them apply to a trait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from attrs import field, fields_dict, frozen, validators

from karenina_core.errors import Problem, did_you_mean
from karenina_core.values.fields import number, optional, true_or_false, whole_number
from karenina_core.values.sections import Section, flag, fraction, setting, whole, word

from .traits import LLMRubricTrait

DeepJudgmentRubricMode = Literal["disabled", "enable_all", "use_checkpoint", "custom"]


def search_tool(_: object, attribute: Any, value: Any) -> None:
    """The name of a search tool, a function, or an object with one of the methods that search."""
    if not (isinstance(value, str) and value.strip()) and not callable(value):
        methods = ("ainvoke", "arun", "asearch", "invoke", "run")
        if isinstance(value, str) or not any(callable(getattr(value, name, None)) for name in methods):
            raise ValueError(f"{attribute.name} must be the name of a search tool, a function or a tool object")


def tool_name(tool: Any) -> str:
    """A tool that is a function or an object is written as where it comes from, for people to read."""
    return tool if isinstance(tool, str) else f"{tool.__module__}.{getattr(tool, '__qualname__', type(tool).__name__)}"


@frozen(kw_only=True)
class TraitDeepJudgment:
    """Deep judgment of one trait, as a user configures it. None means: the default of the run."""

    enabled: bool = field(default=True, validator=true_or_false)
    excerpt_enabled: bool = field(default=True, validator=true_or_false)
    """Whether quotations are looked for; without, the judge reasons from the text itself."""
    max_excerpts: int | None = field(default=None, validator=optional(whole_number, validators.ge(1)))
    fuzzy_match_threshold: float | None = field(
        default=None, validator=optional(number, validators.ge(0), validators.le(1))
    )
    excerpt_retry_attempts: int | None = field(default=None, validator=optional(whole_number, validators.ge(0)))
    search_enabled: bool = field(default=False, validator=true_or_false)
    """Whether the quotations are searched for, by `deep_judgment_rubric_search_tool`."""

    def __attrs_post_init__(self) -> None:
        if self.search_enabled and not self.excerpt_enabled:
            raise ValueError("search_enabled needs excerpt_enabled: quotations are what is searched for")


Entries = Mapping[str, TraitDeepJudgment]


def _table(value: Any, where: str, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: expected a table of {what}, got {value!r}")
    if others := [name for name in value if not isinstance(name, str)]:
        raise ValueError(f"{where}: names are texts, not {others[0]!r}; write it in quotes")
    return value


def _check_known(value: Mapping[str, Any], known: Mapping[str, Any], where: str = "") -> None:
    if unknown := [str(key) for key in value if key not in known]:
        raise ValueError(f"{where}unknown setting {unknown[0]!r}{did_you_mean(unknown[0], known)}")


def _entries(value: Any, where: str = "global") -> dict[str, TraitDeepJudgment]:
    found: dict[str, TraitDeepJudgment] = {}
    for trait, given in _table(value, where, "traits").items():
        name, entry = f"{where}.{trait}", given
        if not isinstance(given, TraitDeepJudgment):
            _check_known(_table(given, name, "settings"), fields_dict(TraitDeepJudgment), f"{name}: ")
            try:
                entry = TraitDeepJudgment(**given)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        found[trait] = entry
    return found


def _by_question(value: Any) -> dict[str, Entries]:
    where = "question_specific"
    return {name: _entries(traits, f"{where}.{name}") for name, traits in _table(value, where, "questions").items()}


@frozen(kw_only=True)
class DeepJudgmentRubricConfig:
    """Which traits are judged deeply in the mode `custom`. The entry of a question replaces the global one."""

    global_traits: Entries = field(factory=dict, converter=_entries)
    """By name of the trait. In files and plain data it is called `global`."""
    question_specific: Mapping[str, Entries] = field(factory=dict, converter=_by_question)
    """By question id, then by name of the trait."""

    @classmethod
    def of(cls, value: Any) -> DeepJudgmentRubricConfig | None:
        """From plain data `{"global": {...}, "question_specific": {...}}`. Raises ValueError."""
        if value is None or isinstance(value, DeepJudgmentRubricConfig):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a table with global and question_specific, got {value!r}")
        known = {"global": "global_traits", "question_specific": "question_specific"}
        _check_known(value, known)
        return cls(**{known[key]: entries for key, entries in value.items()})

    from_plain = of

    def to_plain(self) -> dict[str, Any]:
        return {"global": self.global_traits, "question_specific": self.question_specific}


@frozen(kw_only=True, slots=False)
class DeepJudgmentRubricSettings(Section):
    """Deep judgment of traits."""

    deep_judgment_rubric_mode: DeepJudgmentRubricMode = word("use_checkpoint", DeepJudgmentRubricMode)
    """Which boolean and score traits are judged from quotations and reasoning: those whose own `deep_judgment_enabled`
    says so (`use_checkpoint`), none, all (`enable_all`), or those of `deep_judgment_rubric_config` (`custom`).
    """
    deep_judgment_rubric_standard_scores: bool = flag(False, environment=False)
    """Whether the judge also scores these traits in the standard way, in the calls that a run without deep judgment
    makes; the scores are kept for comparison, in `standard_rubric_scores`.
    """
    deep_judgment_rubric_global_excerpts: bool = flag(True)
    """With `enable_all`: whether quotations are looked for, or the judge reasons from the text itself."""
    deep_judgment_rubric_config: DeepJudgmentRubricConfig | None = setting(
        None, converter=DeepJudgmentRubricConfig.of, environment=False
    )
    """For mode `custom`, settings by trait: `{"global": {trait: {...}}, "question_specific": {id: {trait: {}}}}`."""
    deep_judgment_rubric_max_excerpts_default: int = whole(7, least=1)
    deep_judgment_rubric_fuzzy_match_threshold_default: float = fraction(0.80)
    deep_judgment_rubric_excerpt_retry_attempts_default: int = whole(2, least=0)
    deep_judgment_rubric_search_tool: Any = setting("tavily", search_tool, write=tool_name)
    """The search tool of traits whose own settings switch search on."""

    def check_settings(self) -> Iterable[Problem]:
        if self.deep_judgment_rubric_mode == "custom" and self.deep_judgment_rubric_config is None:
            what = "custom needs deep_judgment_rubric_config, which says which traits are judged deeply"
            yield Problem("deep_judgment_rubric_mode", what)


@frozen(kw_only=True)
class TraitEvidenceRules:
    """How one trait is judged deeply; every value is decided."""

    excerpts: bool = True
    max_excerpts: int = 7
    threshold: float = 0.80
    retries: int = 2
    search: bool = False


def evidence_rules(
    config: DeepJudgmentRubricSettings, trait: LLMRubricTrait, question_id: str
) -> TraitEvidenceRules | None:
    """How a trait is judged deeply for a question; None where it is judged as usual.

    Literal traits and template kinds never are: deep judgment scores booleans and numbers.
    """
    mode = config.deep_judgment_rubric_mode
    if mode == "disabled" or trait.kind not in ("boolean", "score"):
        return None
    if mode == "enable_all":
        entry: TraitDeepJudgment | None = TraitDeepJudgment(excerpt_enabled=config.deep_judgment_rubric_global_excerpts)
    elif mode == "use_checkpoint":
        entry = TraitDeepJudgment(
            enabled=trait.deep_judgment_enabled,
            excerpt_enabled=trait.deep_judgment_excerpt_enabled,
            max_excerpts=trait.deep_judgment_max_excerpts,
            fuzzy_match_threshold=trait.deep_judgment_fuzzy_match_threshold,
            excerpt_retry_attempts=trait.deep_judgment_excerpt_retry_attempts,
            # It is searched only where quotations are looked for.
            search_enabled=trait.deep_judgment_search_enabled and trait.deep_judgment_excerpt_enabled,
        )
    else:
        custom = config.deep_judgment_rubric_config or DeepJudgmentRubricConfig()
        entry = custom.question_specific.get(question_id, {}).get(trait.name) or custom.global_traits.get(trait.name)
    if entry is None or not entry.enabled:
        return None
    usual = (
        config.deep_judgment_rubric_max_excerpts_default,
        config.deep_judgment_rubric_fuzzy_match_threshold_default,
        config.deep_judgment_rubric_excerpt_retry_attempts_default,
    )
    own = (entry.max_excerpts, entry.fuzzy_match_threshold, entry.excerpt_retry_attempts)
    most, threshold, retries = (default if value is None else value for value, default in zip(own, usual, strict=True))
    return TraitEvidenceRules(
        excerpts=entry.excerpt_enabled,
        max_excerpts=int(most),
        threshold=threshold,
        retries=int(retries),
        search=entry.search_enabled,
    )
