"""The two plugins and their stages against the promises that every plugin and every stage makes."""

from __future__ import annotations

import pytest

from karenina_core import Karenina, StageOrchestrator
from karenina_core.testing import plugin_checks, run_checks


@pytest.mark.parametrize("name", ["abstention-check", "sufficiency-check"])
def test_the_plugin_and_its_stage_keep_their_promises(name: str) -> None:
    run_checks(plugin_checks(name))


@pytest.mark.parametrize(("name", "feature"), [("AbstentionCheck", "abstention"), ("SufficiencyCheck", "sufficiency")])
def test_it_is_in_a_plan_where_it_is_asked_for(name: str, feature: str) -> None:
    app = Karenina.installed()
    without, with_ = (
        [stage.name for stage in StageOrchestrator.from_config(features=features, app=app).stages]
        for features in ((), (feature,))
    )
    assert name not in without
    assert with_.index("TraceValidationAutoFail") < with_.index(name) < with_.index("ParseTemplate")
