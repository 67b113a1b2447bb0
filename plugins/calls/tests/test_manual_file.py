"""Files of recorded answers: what is read, and that every mistake is named with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.records.manual import load_manual_traces

from karenina_core.errors import ConfigError
from karenina_core.values.config import ManualAnswer, ModelConfig

KEY = st.text(min_size=1).filter(str.strip)
TEXT = st.text() | st.just("")
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(st.text(), VALUE, max_size=3)


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "answers.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as failed:
        load_manual_traces(path)
    return [str(problem) for problem in failed.value.problems]


def test_texts_and_answers_with_fields_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, '{"q1": "Paris", "Capital of Italy?": {"answer": "Rome", "fields": {"city": "Rome"}}}')
    assert load_manual_traces(path) == {
        "q1": ManualAnswer("Paris"),
        "Capital of Italy?": ManualAnswer("Rome", {"city": "Rome"}),
    }
    assert load_manual_traces(str(path)) == load_manual_traces(path)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert load_manual_traces(written(tmp_path, '\ufeff{"q1": "Paris"}'))["q1"].answer == "Paris"


def test_fields_that_are_null_are_none_and_fields_without_content_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": {"answer": "x", "fields": null}, "b": {"answer": "x", "fields": {}}}')
    found = load_manual_traces(path)
    assert found["a"].fields is None
    assert found["b"].fields == {}


@given(answers=st.dictionaries(KEY, TEXT | st.tuples(TEXT, FIELDS), min_size=1, max_size=4))
def test_what_was_written_is_read(answers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    data = {key: {"answer": e[0], "fields": e[1]} if isinstance(e, tuple) else e for key, e in answers.items()}
    path = written(tmp_path_factory.mktemp("answers"), json.dumps(data))
    expected = {key: ManualAnswer(*e) if isinstance(e, tuple) else ManualAnswer(e) for key, e in answers.items()}
    found = load_manual_traces(path)
    assert found == expected
    assert ModelConfig(interface="manual", manual_traces=found).manual_traces == expected


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("7", "write "),
        ("null", "write "),
        ('["x"]', "message 1 cannot be read (expected an object, got 'x'); write it like "),
        ("[]", "there is no message of the model"),
        ('[{"role": "user", "content": "hi"}]', "there is no message of the model"),
        ('[{"role": "bot", "content": "hi"}]', "message 1 cannot be read (its role is one of system, user, "),
        (
            '[{"role": "assistant", "content": 7}]',
            "message 1 cannot be read (its content is a text or a list of blocks)",
        ),
        ('[{"role": "assistant", "content": "x", "text": "y"}]', "message 1 cannot be read (unknown keys text)"),
        ('[{"role": "assistant", "role": "user", "content": "x"}]', "'role' occurs more than once in one message"),
        ('{"answer": [{"role": "user"}]}', "message 1 cannot be read (its content is a text or a list of blocks)"),
        ("{}", "the answer must be a text; write "),
        ('{"answer": 7}', "the answer must be a text; write "),
        ('{"answer": "x", "fields": ["a"]}', "fields must be an object"),
        ('{"answer": "x", "fields": "a"}', "fields must be an object"),
        ('{"answer": "x", "feilds": {}}', "unknown key 'feilds' (did you mean 'fields'?)"),
        ('{"answer": "x", "answer": "y"}', "'answer' occurs more than once"),
        ('{"answer": "x", "fields": {"a": [{"b": 1, "b": 2}]}}', "'b' occurs more than once"),
    ],
)
def test_a_mistake_names_the_file_the_key_and_what_to_write(entry: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, f'{{"fine": "x", "q1": {entry}}}')
    found = problems(path)
    assert len(found) == 1
    assert found[0].startswith(f"{path}: 'q1': {message}")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": null, "b": 1, "c": "x", "c": "y", " ": "x"}')
    found = problems(path)
    assert [line.partition(": ")[2].partition(": ")[0] for line in found] == ["'c'", "'a'", "'b'", "' '"]
    assert "more than once" in found[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "is not UTF-8; save it as UTF-8"),
        (b"", "is not JSON"),
        (b'{"a": "x",}', "is not JSON"),
        (b'{"a": {"answer": "x", "fields": {"n": NaN}}}', "is not JSON: NaN is not a JSON value"),
        (b"[" * 100_000, "is not JSON"),
        (b'["x"]', "must be one JSON object"),
        (b'"x"', "must be one JSON object"),
        (b"{}", "holds no answers"),
    ],
)
def test_a_file_that_is_none_of_recorded_answers_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    found = problems(path)
    assert len(found) == 1
    assert found[0].startswith(f"{path}: {message}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = problems(tmp_path / "nothing.json")
    assert found == [f"{tmp_path / 'nothing.json'}: cannot be read (No such file or directory); check the path"]
    assert problems(tmp_path)[0].startswith(f"{tmp_path}: cannot be read")


def test_a_long_key_is_shortened_in_messages(tmp_path: Path) -> None:
    found = problems(written(tmp_path, json.dumps({"why " * 100: 1})))
    assert len(found[0]) < len(str(tmp_path)) + 200


def test_an_empty_answer_is_one(tmp_path: Path) -> None:
    path = written(tmp_path, '{"a": "", "b": {"answer": " ", "fields": {"x": 1}}}')
    expected = {"a": ManualAnswer(""), "b": ManualAnswer(" ", {"x": 1})}
    assert load_manual_traces(path) == expected
    assert ModelConfig(interface="manual", manual_traces=expected).manual_traces == expected


def test_from_python_too_every_answer_that_is_none_is_named() -> None:
    with pytest.raises(ConfigError) as failed:
        ModelConfig(interface="manual", manual_traces={"a": 1, "b": {"answer": "x", "feilds": {}}, "c": "", "d": {}})
    assert [str(problem).split()[1] for problem in failed.value.problems] == ["'a'", "'b'", "'d'"]
