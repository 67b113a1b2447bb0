"""Evaluates the names that it is given, though it says that it executes nothing."""

import json
from typing import Any

from attrs import frozen
from karenina_template.declarative_templates import DeclarativeRuntime

from karenina_core.errors import TemplateError
from karenina_core.templates import TemplateHandle


@frozen
class Planted(DeclarativeRuntime):
    name: str = "planted"

    async def load(self, text: str, primitives: Any) -> TemplateHandle:
        try:
            for field in json.loads(text)["fields"]:
                eval(field["type"], {"list_str": list, "literal": str})  # the fault
        except (ValueError, TypeError, KeyError, NameError, SyntaxError) as error:
            raise TemplateError(str(error)) from None
        return await super().load(text, primitives)
