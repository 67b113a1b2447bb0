"""A key is its own name, knows its type, and survives pickling; lists of keys print as lists."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any, Literal

import pytest

from karenina_core import ArtifactKeys, Key
from karenina_core.errors import ContractError
from karenina_core.pipeline.artifact_keys import VERDICT_VIEWS, Keys

ALL = {name: key for name in dir(ArtifactKeys) if isinstance(key := getattr(ArtifactKeys, name), Key)}


@pytest.mark.parametrize("key", ALL.values(), ids=list(ALL))
def test_a_key_is_its_string(key: Key[Any]) -> None:
    plain = str(key)
    assert type(plain) is str
    assert key == plain
    assert hash(key) == hash(plain)
    assert {plain: 1}[key] == 1
    assert repr(key) == repr(plain)
    assert json.dumps({key: [key]}) == json.dumps({plain: [plain]})
    assert f"{key}" == plain


@pytest.mark.parametrize("key", ALL.values(), ids=list(ALL))
def test_a_key_survives_pickling_and_copying(key: Key[Any]) -> None:
    for again in (pickle.loads(pickle.dumps(key)), copy.deepcopy(key), copy.copy(key)):
        assert type(again) is Key
        assert (again, again.type) == (key, key.type)


def test_names_are_unique() -> None:
    assert len(set(ALL.values())) == len(ALL)
    assert set(ALL.values()) >= VERDICT_VIEWS


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        (int, [0, 3], ["3", None, 1.5]),
        (str, ["", "x"], [b"x", None, 1]),
        (bool, [True, False], [1, None, "yes"]),
        (list[str], [[], ["a"]], [(), "a", None]),
        (dict[str, Any] | None, [{}, None], [[], "x", 0]),
        (float | None, [0.5, None, 1], ["0.5", [], {}]),
        (Literal["low", "high"], ["low"], [1, None]),
        (object, [None, 1, []], []),
        (Any, [None, 1, []], []),
        (None, [None], [0]),
    ],
)
def test_values_are_checked(type_: Any, good: list[Any], bad: list[Any]) -> None:
    key = Key("sample.key", type_)
    for value in good:
        key.check(value)
    for value in bad:
        with pytest.raises(ContractError, match=r"'sample\.key' must be .*, not "):
            key.check(value)


def test_a_type_that_cannot_be_checked_is_refused_at_once() -> None:
    from typing import TypedDict

    class Row(TypedDict):
        name: str

    with pytest.raises(ContractError, match=r"'sample\.key'.*class"):
        Key("sample.key", Row)


def test_a_key_without_a_type_takes_anything() -> None:
    for value in (None, 1, [], object()):
        Key("sample.key").check(value)


def test_lists_of_keys_print_as_lists_and_cannot_change() -> None:
    keys = Keys((ArtifactKeys.RAW_LLM_RESPONSE, "plain"))
    assert repr(keys) == str(keys) == f"{keys}" == "['raw_llm_response', 'plain']"
    assert repr(Keys()) == "[]"
    assert keys == ("raw_llm_response", "plain")
    with pytest.raises(AttributeError):
        keys.append("x")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        keys.more = 1  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(keys)) == keys
