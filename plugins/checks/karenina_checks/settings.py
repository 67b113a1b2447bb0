"""Settings of a run for the checks of an answer."""

from __future__ import annotations

from attrs import frozen

from karenina_core.values.sections import Section, switch


@frozen(kw_only=True, slots=False)
class CheckSettings(Section):
    """Which checks look at an answer before it is parsed: switches only."""

    _abstention_enabled: bool | None = switch("abstention")
    _sufficiency_enabled: bool | None = switch("sufficiency")

    @property
    def abstention_enabled(self) -> bool:
        return "abstention" in self.features

    @property
    def sufficiency_enabled(self) -> bool:
        return "sufficiency" in self.features
