"""Models beside those of a run: any stage can ask its context for one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from karenina_calls.models import overrides as overrides_module
from karenina_calls.models.models import open_models
from karenina_calls.models.overrides import check_overrides, model_pool, overrides
from karenina_calls.ports.client import ModelClient
from karenina_judging.services import OTHER_MODEL

from karenina_core import AgenticRubricTrait, ModelConfig, Question, Rubric, Stage, VerificationConfig
from karenina_core.errors import ConfigError, ContractError, PluginError, PortError
from karenina_core.pipeline.context import VerificationContext
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.testing import ScriptedLLM, StageInput, application
from karenina_core.values.message import Message

EXPERT = ModelConfig(model_name="expert", interface="scripted")
CONFIG = VerificationConfig()


class Slow(ScriptedLLM):
    """Takes a moment to open, and may fail the first times."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(lambda call: "Yes.")
        self.failures = failures

    async def aopen(self) -> None:
        await asyncio.sleep(0.01)
        self.opened += 1
        if self.opened <= self.failures:
            raise OSError("no route")


def test_items_that_ask_at_the_same_time_share_one_connection() -> None:
    llm = Slow()

    async def work() -> int:
        async with model_pool(application(llm), CONFIG, []) as pool:
            models = await asyncio.gather(*(pool.model(EXPERT) for _ in range(8)))
            assert llm.closed == 0
            return len(set(map(id, models)))

    assert asyncio.run(work()) == 1
    assert llm.opened == 1
    assert llm.closed >= 1


def test_a_model_that_cannot_be_opened_is_tried_once_for_all_who_ask() -> None:
    llm = Slow(failures=1)

    async def work() -> list[bool]:
        async with model_pool(application(llm), CONFIG, []) as pool:
            found = await asyncio.gather(*(pool.model(EXPERT) for _ in range(4)), return_exceptions=True)
            with pytest.raises(PluginError, match="no route"):
                await pool.model(EXPERT)
            return [isinstance(one, PluginError) for one in found]

    assert asyncio.run(work()) == [True] * 4
    assert llm.opened == 1


def test_a_model_that_could_not_be_opened_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Slow(failures=1)
    monkeypatch.setattr(overrides_module, "PAUSE", 0.02)
    monkeypatch.setattr(overrides_module, "PAUSE_FOR_EACH", 0.0)

    async def work() -> None:
        async with model_pool(application(llm), CONFIG, []) as pool:
            with pytest.raises(PluginError):
                await pool.model(EXPERT)
            await asyncio.sleep(0.03)
            assert await pool.model(EXPERT) is await pool.model(EXPERT)

    asyncio.run(work())
    assert llm.opened == 2


class Hanging(ScriptedLLM):
    async def aopen(self) -> None:
        self.opened += 1
        await asyncio.Event().wait()


def test_a_model_that_hangs_while_it_is_opened_costs_its_time_once_and_nobody_else_waits() -> None:
    llm, other = Hanging("unused"), ScriptedLLM(lambda call: "Yes.")
    hanging = AdapterSpec(interface="hanging", llm_factory=lambda model: llm)
    stuck = ModelConfig(model_name="stuck", interface="hanging", request_timeout=0.1)

    async def work() -> None:
        async with model_pool(application(other, hanging), CONFIG, []) as pool:
            waiting = [asyncio.create_task(pool.model(stuck)) for _ in range(20)]
            await asyncio.sleep(0)
            async with asyncio.timeout(0.09):  # while the other one hangs
                assert (await pool.model(EXPERT)).config.model_name == "expert"
            async with asyncio.timeout(1):
                found = await asyncio.gather(*waiting, return_exceptions=True)
            assert {(type(one), one.kind) for one in found if isinstance(one, PortError)} == {(PortError, "timeout")}
            assert len(found) == 20
            assert "request_timeout" in str(found[0])

    asyncio.run(work())
    assert llm.opened == 1


def test_whoever_is_cancelled_while_a_model_is_opened_takes_it_from_nobody() -> None:
    llm = Slow()

    async def work() -> None:
        async with model_pool(application(llm), CONFIG, []) as pool:
            first, second = (asyncio.create_task(pool.model(EXPERT)) for _ in range(2))
            await asyncio.sleep(0.001)
            first.cancel()
            assert (await second).config.model_name == "expert"

    asyncio.run(work())


def test_a_judge_of_the_run_is_lent_and_others_have_the_settings_of_the_run() -> None:
    llm = ScriptedLLM(lambda call: "Yes.")

    async def work() -> None:
        app, judge = application(llm), ModelConfig(model_name="judge", interface="scripted")
        config = VerificationConfig(request_timeout=7.5)
        async with open_models(app, config, [judge]) as judges, model_pool(app, config, judges.values()) as pool:
            assert await pool.model(judge) is judges[judge.identity]
            other = await pool.model(EXPERT)
            assert other.config.request_timeout == 7.5
            own = ModelConfig(model_name="expert", interface="scripted", request_timeout=1)
            assert (await pool.model(own)).config.request_timeout == 1

    asyncio.run(work())
    assert llm.opened == 3


def test_a_context_without_a_pool_says_so() -> None:
    with pytest.raises(ContractError, match="without other models"):
        asyncio.run(VerificationContext(question=Question(question="?")).service(OTHER_MODEL)(EXPERT))


def test_stages_under_test_have_other_models_too() -> None:
    class Asking(Stage):
        async def execute(self, context: VerificationContext) -> None:
            client: ModelClient = await context.service(OTHER_MODEL)(EXPERT)
            await client.invoke("generation", [Message.user("?")])
            assert client.config == EXPERT

    context = StageInput(question=Question(id="q", question="?")).context()
    asyncio.run(Asking().execute(context))
    assert [call.task for call in context.calls] == ["generation"]
    assert "expert" in context.calls[0].model


def trait(name: str, model: Any) -> AgenticRubricTrait:
    return AgenticRubricTrait(name=name, kind="boolean", description="d", model_override=model)


def test_the_models_of_traits_are_found_and_checked_all_at_once() -> None:
    keyless = ModelConfig(model_name="a", interface="scripted", api_key_env="KARENINA_TEST_NO_SUCH_KEY")
    unknown = ModelConfig(model_name="b", interface="scriptd")
    rubrics = [Rubric.from_traits([trait("one", keyless), trait("two", unknown)]), None]
    rubrics += [Rubric.from_traits([trait("one", keyless), trait("three", EXPERT), trait("four", None)])]
    assert [name for name, _ in overrides(rubrics)] == ["one", "two", "one", "three"]
    with pytest.raises(ConfigError) as refused:
        check_overrides(application(ScriptedLLM("unused")), rubrics)
    first, second = map(str, refused.value.problems)
    assert "trait 'one'" in first
    assert "KARENINA_TEST_NO_SUCH_KEY" in first
    assert "trait 'two'" in second
    assert "scripted" in second
    check_overrides(application(ScriptedLLM("unused")), [Rubric.from_traits([trait("three", EXPERT)])])
