"""Templates for tests of the sandbox, and a look at its processes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from karenina_template.primitives import NAMES

from karenina_core import templates as primitives

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
MIXED = """
from karenina.schemas.entities import BaseAnswer
from pydantic import Field

class Answer(BaseAnswer):
    drug: str = VerifiedField("The drug that the response names", "Venetoclax", ExactMatch())
    doses: list[int] = Field(description="The doses in mg")
    seen: bool = VerifiedField("Whether it is named", True, TraceContains("Venetoclax"))

    def ground_truth(self):
        self.correct = {"doses": [100, 400]}
        self.regex = {"mg": {"pattern": r"[0-9]+ mg", "expected": 2, "match_type": "count"}}

    def verify(self) -> bool:
        self.asked = getattr(self, "asked", 0) + 1
        return sorted(self.doses) == self.correct["doses"] and self.seen

    def verify_granular(self) -> float:
        return len(set(self.doses) & set(self.correct["doses"])) / 2
"""
TRACE = "Take Venetoclax, 100 mg and then 400 mg."
RIGHT = {"drug": "Venetoclax", "doses": [400, 100]}


def source(body: str, begin: str = "") -> str:
    return (
        f'{begin}\nclass Answer(BaseAnswer):\n    said: str = Field(description="what is said")\n\n'
        f"    def verify(self):\n        {body}\n"
    )


async def judged(runtime: Any, text: str, data: Any = None, trace: str = TRACE) -> Any:
    filled = await (await runtime.load(text, PRIMITIVES)).build({"said": "x"} if data is None else data)
    return await filled.verify(trace)


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(number) for number in found]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def memory(pid: int) -> int:
    """Of a process, in kB; 0 of one that is ending."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    return 0
