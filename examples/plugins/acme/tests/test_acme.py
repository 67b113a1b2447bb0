"""Every promise of an adapter, with a server that speaks its protocol: failures, limits, cancellation, hidden keys."""

import pytest
from karenina_example_acme import check_config

from karenina_core import ModelConfig
from karenina_core.testing import conformance_tests

test_it_keeps_its_promises = conformance_tests("acme")


@pytest.mark.parametrize("url", [None, "acme.example"])
def test_a_model_without_an_address_is_refused_before_a_run(url: str | None) -> None:
    model = ModelConfig(model_name="anvil-2", interface="acme", endpoint_base_url=url)
    assert [problem.partition(":")[0] for problem in check_config(model)] == ["endpoint_base_url"]
