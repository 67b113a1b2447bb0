"""A value that can be imported from karenina_core, and what an adapter of this package would add to prompts."""

from attrs import frozen

from karenina_core import hookimpl
from karenina_core.prompts import AdapterInstruction


@frozen
class UnitSettings:
    """Settings of the plugin."""

    unit: str = "kg"


@frozen
class Unit:
    """A unit of measurement."""

    name: str


class UnitInstruction:
    """Says to judges behind an interface which unit to answer in."""

    def __init__(self, settings: UnitSettings) -> None:
        self.unit = Unit(settings.unit)

    def __call__(self, task, interface, context):
        if task == "parsing" and interface == "openai_endpoint":
            return AdapterInstruction(system_addition=f"Masses are in {self.unit.name}.")
        return None


class Karenina:
    """It has the name of another thing."""


Benchmark = errors = Karenina


@hookimpl
def karenina_register_settings(registry):
    registry.add(UnitSettings)


@hookimpl
def karenina_register_instructions(registry):
    registry.add(UnitInstruction)
