"""The plugin registers every primitive that karenina has, and no base class."""

from __future__ import annotations

import inspect

from karenina_template.primitives import NAMES

from karenina_core import Karenina
from karenina_core.pipeline.kinds import PrimitiveRegistry
from karenina_core.templates import VerificationPrimitive, primitives


def test_what_is_exported_is_what_is_registered() -> None:
    classes = [getattr(primitives, name) for name in primitives.__all__]
    concrete = {cls.__name__ for cls in classes if not inspect.isabstract(cls)}
    assert all(issubclass(cls, VerificationPrimitive) for cls in classes)
    assert sorted(NAMES) == sorted(concrete)
    assert len(NAMES) == 23
    assert set(NAMES) <= set(Karenina.installed().registry(PrimitiveRegistry))
