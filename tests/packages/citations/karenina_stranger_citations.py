"""A trait type from another package: does an answer cite its sources?"""

import re
from typing import ClassVar, Literal

from attrs import frozen

from karenina_core import RubricTrait, TraitCase, TraitEvaluator, TraitScore, hookimpl

DOI = re.compile(r'\b10\.\d{4,9}/[^\s"<>]*[^\s"<>.,;:)\]]')
NUMBER = re.compile(r"\[(\d+)\]")
REFERENCE = re.compile(r"^\[(\d+)\] +\S", re.MULTILINE)


@frozen(kw_only=True)
class CitationTrait(RubricTrait):
    """Whether an answer has enough different citations."""

    type_name: ClassVar[str] = "citation"
    style: Literal["doi", "numbered"] = "doi"
    minimum: int = 1
    higher_is_better: bool | None = True

    def __attrs_post_init__(self) -> None:
        if self.minimum < 1:
            raise ValueError(f"trait {self.name!r}: minimum must be at least 1, not {self.minimum}")


class CitationEvaluator(TraitEvaluator[CitationTrait]):
    name = "citation"
    trait_class = CitationTrait
    file_type = "CitationTrait"

    async def score(self, trait: CitationTrait, case: TraitCase) -> TraitScore:
        found = citations(case.given.text, trait.style)
        return TraitScore(value=len(found) >= trait.minimum, details={"found": len(found), "examples": found[:3]})


def citations(text: str, style: str) -> list[str]:
    """The different citations of a text. A number counts where the text lists what it refers to."""
    if style == "doi":
        return list(dict.fromkeys(DOI.findall(text)))
    listed = set(REFERENCE.findall(text))
    if not listed:
        raise ValueError("the answer has no list of references, so its numbers refer to nothing")
    return list(dict.fromkeys(number for number in NUMBER.findall(REFERENCE.sub("", text)) if number in listed))


@hookimpl
def karenina_register_traits(registry) -> None:
    registry.add(CitationEvaluator)
