"""Writes what it is given, however often."""

import json
from pathlib import Path
from typing import Any

from karenina_core.values.convert import unstructure


class Planted:
    name = "planted"

    def __init__(self, target: str) -> None:
        self.path = Path(target)

    async def open(self, run: Any) -> None:
        self.path.touch()

    async def write(self, result: Any) -> None:  # the fault
        with self.path.open("a", encoding="utf-8", errors="replace") as file:
            print(json.dumps(unstructure(result)), file=file)

    async def close(self, summary: Any) -> None:
        pass
