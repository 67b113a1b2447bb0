"""Keeps the last reply on the handle, lets junk through, opens the schema, and has no idea of a missing value."""

from typing import Any

from attrs import define, frozen

from karenina_core.templates import FieldVerdict, RegexVerdict, TemplateField


@define
class Handle:
    spec: dict[str, Any]
    data: Any = None
    isolation: str = "no-code"
    nulls: frozenset[str] = frozenset()

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {field["name"]: {} for field in self.spec["fields"]}}

    def fields(self) -> tuple[TemplateField, ...]:
        return tuple(TemplateField(f["name"], f["type"], f["description"], True) for f in self.spec["fields"])

    def trace_fields(self) -> tuple[TemplateField, ...]:
        return ()

    def ground_truth(self) -> dict[str, Any]:
        return {field["name"]: field["ground_truth"] for field in self.spec["fields"]}

    async def build(self, data: Any) -> Any:  # the fault
        self.data = data
        return self

    def values(self) -> Any:
        return self.data

    def accepting(self, fields: Any) -> Any:
        return self

    async def verify(self, trace: str, *, said: str | None = None, similarities: Any = None) -> FieldVerdict:
        found = {name: self.data[name] == expected for name, expected in self.ground_truth().items()}
        return FieldVerdict(all(found.values()), found)

    async def granular(self) -> None:
        return None

    async def regex(self, trace: str) -> RegexVerdict:
        return RegexVerdict(False, True)


@frozen
class Planted:
    name: str = "planted"
    languages: frozenset[str] = frozenset({"own"})
    executes_code: bool = False
    isolation: str = "no-code"

    async def load(self, text: str, primitives: Any) -> Handle:
        return Handle(__import__("json").loads(text))
