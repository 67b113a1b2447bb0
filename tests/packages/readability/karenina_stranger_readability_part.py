"""The part of results that says how easily an answer is read."""

from collections.abc import Mapping

from attrs import field, frozen

from karenina_core.values.result_parts import ResultPart


@frozen(kw_only=True)
class ReadabilityPart(ResultPart):
    """How easily the answer is read."""

    sentence_lengths: Mapping[str, int] = field(factory=dict)
    """Words, by sentence."""
    longest_sentence: int = 0
