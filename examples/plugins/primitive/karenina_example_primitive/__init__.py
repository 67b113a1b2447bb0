"""A primitive for templates: two DNA sequences are the same, also where one is written from the other strand."""

from typing import Any

from attrs import field, frozen, validators

from karenina_core import hookimpl
from karenina_core.templates import VerificationPrimitive

KARENINA_API = 1
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@frozen
class DnaMatch(VerificationPrimitive):
    """Equal sequences of A, C, G and T; spaces, hyphens, `5'`, `3'` and the case of letters do not count.

    `either_strand`: the reverse complement is the same sequence, too.
    """

    either_strand: bool = field(default=True, validator=validators.instance_of(bool))

    def check(self, extracted: Any, expected: Any) -> bool:
        found, wanted = sequence(extracted), sequence(expected)
        return found == wanted or (self.either_strand and found[::-1].translate(COMPLEMENT) == wanted)

    def check_ground_truth(self, expected: Any) -> None:
        sequence(expected)


def sequence(text: Any) -> str:
    """The bases alone, in capitals. Raises TypeError and ValueError for what is no sequence of DNA."""
    if not isinstance(text, str):
        raise TypeError(f"a sequence of DNA is a text, not {text!r}")
    bases = "".join(text.upper().replace("5'", "").replace("3'", "").replace("-", "").split())
    if not bases or set(bases) - set("ACGT"):
        raise ValueError(f"a sequence of DNA has the letters A, C, G and T and no others: {text[:60]!r}")
    return bases


@hookimpl
def karenina_register_primitives(registry: Any) -> None:
    registry.add(DnaMatch, name="DnaMatch")
