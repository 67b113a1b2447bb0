"""Writes a record in two pieces and lets others in between; shows secrets; forgets what it wrote in an earlier run."""

import asyncio
import json
from pathlib import Path
from typing import Any

from karenina_core.values.convert import unstructure


class Planted:
    name = "planted"

    def __init__(self, target: str) -> None:
        self.path = Path(target)
        self.text = ""

    async def open(self, run: Any) -> None:
        self.path.write_text("", "utf-8")

    async def write(self, result: Any) -> None:  # the fault
        line = json.dumps(unstructure(result))
        self.text += line[: len(line) // 2]
        await asyncio.sleep(0)
        self.text += f"{line[len(line) // 2 :]}\n"

    async def close(self, summary: Any) -> None:
        if not summary:
            raise ValueError("a run without a summary")
        self.path.write_text(self.text, "utf-8")
