"""Entry point `primitives`: the verification primitives that come with karenina."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl

from . import names

NAMES = {
    name: module
    for name, module in names.NAMES["karenina_core.templates"].items()
    if module.startswith("karenina_template.language.primitives.")
    and not module.endswith(".base")
    and name != "TracePrimitive"
}


@hookimpl
def karenina_register_primitives(registry: Any) -> None:
    for name, module in NAMES.items():
        registry.add(f"{module}:{name}", name=name)
