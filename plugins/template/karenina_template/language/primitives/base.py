"""What every verification primitive has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar


class VerificationPrimitive(ABC):
    """Base of every primitive. Subclass it as a frozen attrs class and register the class to add your own."""

    __slots__ = ()

    uses_ground_truth: ClassVar[bool] = True
    """False where `check` ignores the expected value, which then is a placeholder."""

    matches_ground_truth: ClassVar[bool] = True
    """False where the ground truth itself need not pass: it is a list of alternatives, a pair of bounds or something to
    differ from. Then no ground truth is refused for not matching itself."""

    may_take_long: ClassVar[bool] = False
    """True where a check may take long for some texts, as a search may: it runs in a thread of its own in a run."""

    @abstractmethod
    def check(self, extracted: Any, expected: Any) -> bool:
        """Whether the extracted value is right. Raises TypeError or ValueError where they cannot be compared."""

    def score(self, extracted: Any, expected: Any) -> float:
        """Partial credit from 0 to 1."""
        return 1.0 if self.check(extracted, expected) else 0.0

    def remark(self, extracted: Any, expected: Any) -> str | None:
        """What a reader of the result should know about a value that `check` has compared, as one sentence.

        None where the verdict says everything. Raises like `check`.
        """
        return None

    def check_ground_truth(self, expected: Any) -> None:
        """Raise TypeError or ValueError where no extracted value could ever be compared with this ground truth."""
        return  # any value will do, unless a primitive knows better
