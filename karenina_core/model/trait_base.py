"""What every trait has."""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import field, frozen

__all__ = ["RubricTrait"]


def _text(trait: Any, attribute: Any, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"trait {trait.name!r}: {attribute.name} must be a text or None, not {value!r}")


@frozen(kw_only=True)
class RubricTrait:
    """What every trait has. A trait type of another package derives a frozen attrs class from it.

    Such a class sets `type_name`, the name of its evaluator; its traits are kept in `Rubric.extra_traits`.
    """

    type_name: ClassVar[str] = ""
    """The name of the evaluator that scores it."""
    list_name: ClassVar[str] = "extra_traits"
    """The list of a rubric that it is kept in."""
    name: str = field()
    description: str | None = field(default=None, validator=_text)
    summary: str | None = field(default=None, validator=_text)
    """A short label of the concept, used to ask whether it is present in an answer at all."""

    @name.validator
    def _check_name(self, _: object, value: str) -> None:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"a trait needs a name, not {value!r}")
        if "." in value:
            raise ValueError(
                f"trait {value!r}: a name may not contain '.', which separates the fields of template kinds"
            )

    @property
    def usable(self) -> bool:
        """Whether an evaluator could score it; a callable trait whose code is missing is not usable."""
        return True

    def ambiguity(self) -> str:
        """Why nobody could score it consistently, and what to do about it; empty where there is no reason.

        A file may hold such a trait. A run that would score it is refused before any call.
        """
        return ""

    def scale(self) -> dict[str, Any]:
        """What its score means, as plain data that is kept beside the score.

        Always `type` and `higher_is_better` (True, False, or None). A class may add `kind`: `boolean` for True or
        False, `score` for a number from `min` to `max`, `literal` for the position of one of the `classes` (a list of
        names). A score that is not on the scale that is stated here is invalid. Without a `kind` any plain data is a
        score; where there are `min` and `max`, it is a number between them.
        """
        return {"type": self.type_name, "higher_is_better": getattr(self, "higher_is_better", None)}
