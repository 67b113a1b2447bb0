"""The two stages in plans."""

from __future__ import annotations

import pytest

from karenina_core import Karenina, StageOrchestrator


@pytest.mark.parametrize(("name", "feature"), [("AbstentionCheck", "abstention"), ("SufficiencyCheck", "sufficiency")])
def test_it_is_in_a_plan_where_it_is_asked_for(name: str, feature: str) -> None:
    app = Karenina.installed()
    without, with_ = (
        [stage.name for stage in StageOrchestrator.from_config(features=features, app=app).stages]
        for features in ((), (feature,))
    )
    assert name not in without
    assert with_.index("TraceValidationAutoFail") < with_.index(name) < with_.index("ParseTemplate")
