"""What is a secret, and what is left of texts, data, replies and errors without it."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.secrets.incoming import SECRET_REMOVED, Cleaner, sources_of
from karenina_calls.secrets.redaction import Secrets, redactor
from karenina_calls.services.embedding import Embeddings
from karenina_calls.tools.search import SearchResult

from karenina_core.errors import ParseError, PortError
from karenina_core.ports.values import AgentResult, LLMResponse, ParsePortResult, Tool, ToolOutcome
from karenina_core.secrets import MASK, SHORTEST, is_secret_name, masked, secrets_in
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolUseBlock, UsageMetadata

ODD = 'pa"ss\\wörd-1234567/🔑'
SECRETS = Secrets({ODD: "A_SECRET", "sk-0123456789": "OPENAI_API_KEY"})
NAMES = [
    *("TOKEN", "DB_PASSWORD", "OPENAI_API_KEY", "OPENAI_API_KEY_2", "WATSONX_APIKEY", "AZURE_OPENAI_KEY", "A_SECRET"),
    *("AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "apiKey", "clientSecret", "X-Api-Key"),
    *("db.password", "api_key", "aws_session_token", "MYSQL_PASSWD"),
    *(
        "PASS",
        "DB_PASS",
        "smtpPass",
        "SMTP_PASS_2",
        "DB_PWD",
        "MYSQL_PWD",
        "userPwd",
        "GITHUB_PAT",
        "PAT",
        "KEY_PASSPHRASE",
    ),
]
NO_NAMES = [
    *(
        "MAX_TOKENS",
        "KARENINA_BUDGET_TOKENS",
        "MONKEY",
        "TOKENIZER",
        "TOKEN_LIMIT",
        "PASSWORD_FILE",
        "SECRETARY",
        "PWD",
    ),
    *("OLDPWD", "PWD2", "COMPASS", "BYPASS", "PATH", "SPAT", "PASSES", "PASS_RATE"),
    *("AWS_ACCESS_KEY_ID", "SSH_PUBLIC_KEY", "api_key_env", "keyboard", "", "HOME"),
]
VALUES = [
    "sk-0123456789",
    "hunter22",
    "qWeRtYuI",
    "correct-horse-battery",
    ODD,
    "/Ab3d/xYzW12345678+a",
    "a1b2c3d4",
    "пароль-1",
    "qWeRtYu-ab",
    "correcthorse",
    "/Ab3dxYzW12/etc",
    "1234-5678",
    "2026-11-23-a",
    "2026-13-41",
]
NO_VALUES = [
    *("postgres", "metadata", "template", "Postgres", "POSTGRES", "lm-studio", "not needed", "true", "none", "sk-1"),
    "correcthors",
    *("33333333", "00000000", "50000000", "0.33333333", "-1.5e-10", "1_000_000_000", "12,345,678"),
    *("2026-11-23", "20261123T0645", "2026-11-23T06:45:14Z", "2026-11-23 06:45:14.123+01:00", "2026-11-23_06:45"),
    *("23.11.2026", "11/23/2026", "2026/11/23", "06:45:14", "20261123T064514Z", "2026-11-23T06:45:14 +0100"),
    *("/run/secrets/token", "~/keys/open.txt", "./a/b/c.json", "C:\\Users\\jane\\key.txt", "file:///etc/key.pem"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_last_word_of_a_name_says_that_it_is_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", NO_NAMES)
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_no_documented_variable_of_karenina_is_a_secret() -> None:
    text = (Path(__file__).parents[3] / "docs/reference/configuration.md").read_text("utf-8")
    names = set(re.findall(r"\bKARENINA_[A-Z_]+\b", text))
    assert "KARENINA_BUDGET_TOKENS" in names
    assert not [name for name in names if is_secret_name(name)]


def test_values_decide_as_well_as_names() -> None:
    assert set(secrets_in({f"A{n}_TOKEN": value for n, value in enumerate(VALUES)})) == set(VALUES)
    assert secrets_in({f"A{n}_TOKEN": value for n, value in enumerate(NO_VALUES)}) == {}
    assert secrets_in(dict.fromkeys(NO_NAMES, VALUES[0])) == {}
    assert secrets_in({"B_TOKEN": VALUES[0], "A_TOKEN": VALUES[0]}) == {VALUES[0]: "A_TOKEN"}


def forms(secret: str) -> list[str]:
    """As JSON has it, several times in one another, and as a `repr` and an address do."""
    found = [secret]
    for _ in range(3):
        found += [json.dumps(form, ensure_ascii=ascii_)[1:-1] for form in found for ascii_ in (True, False)]
    return [*dict.fromkeys(found), repr(secret)[1:-1], ascii(secret)[1:-1], quote(secret, safe="")]


@pytest.mark.parametrize("secret", ["пароль-мой", "\"'\"'\"'\"'", "\\" * 9, 'a\\\\"\\\\"\\b12', ODD])
@pytest.mark.parametrize("filling", ["\\", '\\"', "\n", "a\\", "```\n", "п\\"])
def test_to_look_for_a_secret_is_quick_in_any_text(secret: str, filling: str) -> None:
    """Processor time of this process: what others do on the machine is not in it."""
    secrets = Secrets({secret: "A"})

    def took(length: int) -> float:
        text = f"{secret[:-1]}{filling * (length // len(filling))}```"
        begun = time.process_time()
        secrets.text(text)
        return time.process_time() - begun

    assert took(200_000) < 5.0, "a quadratic search would take minutes"


@pytest.mark.parametrize("form", forms(ODD))
def test_a_secret_is_found_however_it_is_escaped(form: str) -> None:
    assert SECRETS.text(f"it is {form}, he said") == f"it is {MASK}, he said"


def texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8"), max_size=20)


@given(
    st.text(st.characters(codec="utf-8"), min_size=SHORTEST, max_size=30).filter(lambda s: s not in f"x {MASK}"),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=8,
    ),
    st.booleans(),
)
def test_json_stays_json_and_only_texts_change(secret: str, data: Any, ascii_: bool) -> None:
    """Law: of any document, whatever the secret is: numbers, names, order and all other texts are as they were."""
    original = {"here": ["x " + secret, data], "n": 0.1}
    line = json.dumps(original, ensure_ascii=ascii_)
    secrets = Secrets({secret: "A"})
    removed: set[str] = set()
    cleaned = json.loads(secrets.text(line, removed))
    assert removed == {"A"}
    assert MASK in cleaned["here"][0]
    assert secret not in cleaned["here"][0]
    assert _bones(cleaned) == _bones(original)
    assert secrets.text(secrets.text(line)) == secrets.text(line), "nothing is left for a second time"


def _bones(value: Any) -> Any:
    if isinstance(value, dict):
        return [_bones(item) for item in value.values()]
    if isinstance(value, list):
        return [_bones(item) for item in value]
    return "text" if isinstance(value, str) else value


def test_numbers_and_names_that_a_program_may_have_stay() -> None:
    """Keys that a user configured may be anything, and are always secrets."""
    secrets = Secrets({"33333333": "endpoint_api_key", "metadata": "endpoint_api_key", "sk-0123456789": "A"})
    line = '{"metadata": 0.33333333, "n": 33333333, "t": "33333333 metadata", "metadata": [1.10], "sk-0123456789": 1}'
    assert secrets.text(line) == (
        f'{{"metadata": 0.33333333, "n": 33333333, "t": "{MASK} {MASK}", "metadata": [1.10], "{MASK}": 1}}'
    )
    assert secrets.text(f"```json\n{line}\n```") == f"```json\n{secrets.text(line)}\n```"
    data = {"metadata": [33333333, "metadata"], "sk-0123456789": 1}
    assert secrets.data(data) == {"metadata": [33333333, MASK], MASK: 1}


@pytest.mark.parametrize(
    "text",
    ['{"metadata": 33333333', '```json\n{"metadata": 33333333}', '{"metadata": 33333333}```', '"metadata"33333333'],
)
def test_what_is_no_json_as_a_whole_is_a_text_in_which_numbers_and_names_are_cleaned_too(text: str) -> None:
    secrets = Secrets({"33333333": "endpoint_api_key", "metadata": "endpoint_api_key"})
    assert secrets.text(text) == text.replace("metadata", MASK).replace("33333333", MASK)


def test_names_that_are_no_texts_stay() -> None:
    assert SECRETS.data({1: ODD, None: 2}) == {1: MASK, None: 2}


def test_a_quick_look_sees_the_part_of_a_secret_that_nothing_escapes() -> None:
    assert SECRETS.may_be_in("an answer", None, "with sk-0123456789 in it")
    assert SECRETS.may_be_in(ODD)
    assert not SECRETS.may_be_in("an answer", None, "")
    assert not Secrets().may_be_in("sk-0123456789")


def test_what_holds_no_secret_is_the_very_same() -> None:
    data = {"a": [1, {"b": "text"}], "c": ("x",)}
    assert SECRETS.data(data) is data
    reply = LLMResponse(content="an answer")
    cleaner = Cleaner(SECRETS)
    assert cleaner.reply(reply) is reply
    assert cleaner.outcome("reply", {}) == {"reply": {}}
    assert not Secrets()
    assert redactor([])("sk-0123456789") == "sk-0123456789"


def test_every_text_of_a_reply_is_cleaned_and_it_is_flagged() -> None:
    response = LLMResponse(
        content=f"It is {ODD}.",
        structured=json.dumps({"key": ODD}),
        thinking=ODD,
        thinking_blocks=(ThinkingBlock(ODD, "signature"),),
        tool_calls=(ToolUseBlock("1", "look", {"at": [ODD, 5]}),),
        raw=(Message("assistant", (TextBlock(ODD),)),),
        usage=UsageMetadata(1, 2, 3),
        flags=("nul",),
    )
    every: set[str] = set()
    cleaner = Cleaner(SECRETS, every)
    found = cleaner.reply(response)
    assert "1234567" not in f"{found} {found.raw}"
    assert json.loads(found.structured or "") == {"key": MASK}
    assert found.tool_calls[0].input == {"at": [MASK, 5]}
    assert found.flags == ("nul", SECRET_REMOVED, f"{SECRET_REMOVED}:A_SECRET")
    assert sources_of(found.flags) == every == {"A_SECRET"}
    assert cleaner.outcome("reply", {"x": 1}) == {"reply": {"x": 1}, "removed": ["A_SECRET"]}
    assert Cleaner(SECRETS).reply(found) == found


def test_other_replies_are_cleaned_too() -> None:
    cleaner = Cleaner(SECRETS)
    assert cleaner.reply(ParsePortResult(data={"a": {"b": ODD}}, raw=ODD)) == ParsePortResult(
        data={"a": {"b": MASK}}, raw=MASK
    )
    assert cleaner.reply((SearchResult(content=ODD, url=f"https://x/{ODD}"),)) == (
        SearchResult(content=MASK, url=f"https://x/{MASK}"),
    )
    agent = cleaner.reply(AgentResult(final_response="x", trace_messages=(Message.tool_result("1", ODD, False),)))
    assert "1234567" not in str(agent)
    assert agent.flags[0] == SECRET_REMOVED
    vectors = Embeddings(vectors=((0.5,),), model="m")
    assert cleaner.reply(vectors) is vectors


def test_errors_and_tools_are_cleaned() -> None:
    cleaner = Cleaner(SECRETS)

    async def fails() -> None:
        error = ParseError(f"no {ODD}", raw_response=json.dumps({"x": ODD}))
        error.evidence = {"agent_result": AgentResult(final_response=ODD)}
        raise error

    async def look(arguments: Any) -> ToolOutcome:
        if arguments:
            raise OSError(f"cannot read {ODD}")
        return ToolOutcome(ODD)

    async def work() -> None:
        with pytest.raises(PortError) as caught:
            await cleaner.around(fails)
        error = caught.value
        assert "1234567" not in f"{error} {error.raw} {error.evidence}"
        assert isinstance(error, ParseError)
        assert json.loads(error.raw_response) == {"x": MASK}
        (tool,) = cleaner.tools([Tool(name="look", run=look)])
        assert tool.run is not None
        assert (await tool.run({})).content == MASK
        assert MASK in (await tool.run({"a": 1})).content

    asyncio.run(work())


def test_what_was_kept_before_it_was_a_secret_is_cleaned_when_it_is_served() -> None:
    every: set[str] = set()
    cleaner = Cleaner(SECRETS, every)
    assert cleaner.kept({"reply": {"content": ODD}, "removed": ["OLD"]})["reply"] == {"content": MASK}
    assert every == {"OLD", "A_SECRET"}


@pytest.mark.parametrize("written", [str, repr, json.dumps])
@given(value=st.text(st.characters(exclude_characters="[]", codec="utf-8"), min_size=SHORTEST))
def test_what_is_masked_is_in_no_text_as_python_or_json_write_it(written: Callable[[str], str], value: str) -> None:
    assert masked(f"<{written(value)}>", [value]).strip("<>'\"") == MASK
    assert masked("nothing", [value, ""]) == ("nothing" if value != "nothing" else MASK)


@given(
    value=st.text(min_size=SHORTEST).filter(lambda value: value not in MASK), more=st.text("0123456789-", min_size=1)
)
def test_what_begins_like_another_secret_is_masked_as_a_whole(value: str, more: str) -> None:
    for secrets in ([value, value + more], [value + more, value]):
        assert masked(value + more, secrets) == MASK
