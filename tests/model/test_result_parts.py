"""Parts of results that distributions declare, found by the metadata of what is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_vocabulary.evaluation_parts import TemplatePart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.errors import ConfigError, PluginError
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.result import MetadataPart
from karenina_core.values.result_parts import declared_parts, read_parts, result_parts

ME = ModelIdentity("scripted", "m")
METADATA = MetadataPart(question_id="q", template_id="t", result_id="r", question_text="Why?", answering=ME, parsing=ME)
RESULT: Any = VerificationResult
"""Type checkers know only the parts of karenina itself."""
CODE = """
from attrs import frozen
from karenina_core.values.result_parts import ResultPart

@frozen(kw_only=True)
class Weather(ResultPart):
    sunshine: int = 0

@frozen(kw_only=True)
class Climate(ResultPart):
    sunshine: float = 0.5

class Plain:
    pass
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install(owner, name="module:Class")`: a distribution with these parts; all are gone after the test."""
    (tmp_path / "elsewhere_parts.py").write_text(CODE, "utf-8")
    (tmp_path / "elsewhere_broken.py").write_text("raise RuntimeError('no licence')", "utf-8")

    def installed(owner: str, **parts: str) -> None:
        folder = tmp_path / f"{owner.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {owner}\nVersion: 1.0\n", "utf-8")
        lines = ["[karenina.result_parts]", *(f"{name} = {value}" for name, value in parts.items()), ""]
        (folder / "entry_points.txt").write_text("\n".join(lines), "utf-8")

    with monkeypatch.context() as context:
        context.syspath_prepend(tmp_path)
        yield installed
    read_parts()


def test_a_part_of_another_distribution_is_like_those_of_karenina(install: Install) -> None:
    install("elsewhere", weather="elsewhere_parts:Weather")
    read_parts()
    weather: Any = result_parts()["weather"]
    result = RESULT(metadata=METADATA, weather=weather(sunshine=3))
    assert list(result.parts)[-1] == "weather"
    assert result.weather.sunshine == 3
    assert result.added == {"weather": {"sunshine": 3}}
    data = unstructure(result)
    assert data["weather"] == {"sunshine": 3}
    assert structure(data, VerificationResult) == result
    assert evolve(result, weather=None).weather is None
    with pytest.raises(ConfigError, match=r"weather\.sunshine: expected a whole number"):
        structure({**data, "weather": {"sunshine": "much"}}, VerificationResult)


def test_two_of_one_name_are_refused_with_their_owners(install: Install) -> None:
    install("elsewhere", weather="elsewhere_parts:Weather")
    install("nowhere", weather="elsewhere_parts:Climate")
    with pytest.raises(PluginError, match="elsewhere and nowhere both declare the result part 'weather'"):
        read_parts()


def test_a_field_has_one_part(install: Install) -> None:
    install("elsewhere", weather="elsewhere_parts:Weather")
    install("nowhere", climate="elsewhere_parts:Climate")
    with pytest.raises(PluginError, match=r"nowhere \(part 'climate'\) and elsewhere .* the result field 'sunshine'"):
        read_parts()


@pytest.mark.parametrize("name", ["metadata", "generation", "trail", "parts", "outcome", "added"])
def test_a_name_that_every_result_has_is_refused(install: Install, name: str) -> None:
    install("elsewhere", **{name: "elsewhere_parts:Weather"})
    with pytest.raises(PluginError, match=f"elsewhere declares the result part '{name}', which every result has"):
        read_parts()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("elsewhere_broken:Weather", "cannot be imported: RuntimeError: no licence"),
        ("elsewhere_parts:Plain", "is not an attrs class derived from ResultPart"),
        ("elsewhere_parts:Snow", "cannot be imported"),
    ],
)
def test_what_cannot_be_used_is_listed_and_its_data_kept(install: Install, value: str, reason: str) -> None:
    install("elsewhere", weather=value)
    read_parts()
    (listed,) = (part for part in declared_parts() if part.info.name == "weather")
    assert reason in listed.info.reason
    data: dict[str, Any] = {**unstructure(VerificationResult(metadata=METADATA)), "weather": {"rain": [1, {"a": None}]}}
    result: Any = structure(data, VerificationResult)
    assert result.weather == {"rain": [1, {"a": None}]}
    assert unstructure(result) == data


def test_what_no_installed_distribution_declares_is_kept_as_it_is() -> None:
    data = {**unstructure(VerificationResult(metadata=METADATA, template=TemplatePart())), "tides": {"high": 2}}
    result = structure(data, VerificationResult)
    assert unstructure(evolve(result, used_full_trace=True)) == {**data, "used_full_trace": True}
    assert result.added == {"tides": {"high": 2}}
    with pytest.raises(ConfigError, match="unknown setting"):
        structure({**data, "tides": 2}, VerificationResult)


def test_a_misspelt_part_is_refused_where_results_are_made() -> None:
    with pytest.raises(TypeError, match=r"no part 'tempalte' \(did you mean 'template'\?\)"):
        RESULT(metadata=METADATA, tempalte=TemplatePart())
    with pytest.raises(AttributeError, match="'tempalte'"):
        RESULT(metadata=METADATA).tempalte  # noqa: B018
