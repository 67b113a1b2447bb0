"""The plugin registers every primitive that karenina has, and no base class."""

from __future__ import annotations

import inspect

from karenina_template.primitives import NAMES
from karenina_vocabulary.kinds import PrimitiveRegistry

from karenina_core import Karenina, templates
from karenina_core.templates import VerificationPrimitive


def test_what_is_exported_is_what_is_registered() -> None:
    public = [getattr(templates, name) for name in dir(templates)]
    primitives = [cls for cls in public if inspect.isclass(cls) and issubclass(cls, VerificationPrimitive)]
    concrete = {cls.__name__ for cls in primitives if not inspect.isabstract(cls)}
    assert sorted(NAMES) == sorted(concrete)
    assert len(NAMES) == 26
    assert set(NAMES) <= set(Karenina.installed().registry(PrimitiveRegistry))
