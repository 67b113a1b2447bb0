"""Puts the expected values into the judge's schema."""

from typing import Any

from attrs import frozen
from karenina_template.declarative_templates import DeclarativeRuntime

from karenina_core.templates import TemplateHandle


class Revealing:
    def __init__(self, handle: TemplateHandle) -> None:
        self.handle = handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self.handle, name)

    def schema(self) -> dict[str, Any]:  # the fault
        schema = self.handle.schema()
        expected = self.handle.ground_truth()
        for name, described in schema["properties"].items():
            described["examples"] = [expected[name]]
        return schema


@frozen
class Planted(DeclarativeRuntime):
    name: str = "planted"

    async def load(self, text: str, primitives: Any) -> Any:
        return Revealing(await super().load(text, primitives))
