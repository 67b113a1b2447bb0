"""Stages and an adapter that need nothing of karenina but its core: a model that answers with its question, a stage
that asks it, one that looks for the reference in the answer, and one that makes the result."""

from pkgutil import resolve_name

from karenina_core import AdapterSpec, Category, Stage, VerificationContext, hookimpl
from karenina_core.pipeline.artifact_keys import CoreKeys
from karenina_core.pipeline.assemble import bare_result
from karenina_core.ports import LLMResponse, Message, PortCapabilities, UsageMetadata


class EchoPort:
    """An LLMPort."""

    capabilities = PortCapabilities()

    def __init__(self, config):
        self.config = config

    async def ainvoke(self, messages, *, output=None, temperature=None, call=None):
        text = messages[-1].text
        return LLMResponse(content=f"{self.config.model_name}: {text}", usage=UsageMetadata())

    async def aclose(self):
        pass


class Ask(Stage):
    """Obtains the answer."""

    category = Category.GENERATION
    produces = (CoreKeys.RAW_LLM_RESPONSE,)
    result_fields = ("raw_llm_response",)

    async def execute(self, context: VerificationContext) -> None:
        (model,) = context.config.answering_models
        port = resolve_name(context.app.adapters.get_spec(model.interface).llm_factory)(model)
        try:
            reply = await port.ainvoke([Message.user(context.question.question)])
        finally:
            await port.aclose()
        context.set_artifact_and_result(CoreKeys.RAW_LLM_RESPONSE, reply.content)


class Look(Stage):
    """Decides."""

    category = Category.TEMPLATE
    requires = (CoreKeys.RAW_LLM_RESPONSE,)
    produces = (CoreKeys.VERIFY_RESULT,)

    def execute(self, context: VerificationContext) -> None:
        found = context.question.raw_answer in context.get_artifact(CoreKeys.RAW_LLM_RESPONSE)
        context.record(verdict=found, reason="the reference is in the answer" if found else "it is not")


class Finish(Stage):
    """Makes the result."""

    category = Category.FINALIZATION
    produces = (CoreKeys.FINAL_RESULT,)
    final = True

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(CoreKeys.FINAL_RESULT, bare_result(context))


@hookimpl
def karenina_register_stages(registry):
    for stage in (Ask, Look, Finish):
        registry.add(stage)


@hookimpl
def karenina_register_adapters(registry):
    registry.add(
        AdapterSpec(
            interface="echo", description="answers with its question", llm_factory="karenina_stranger_alone:EchoPort"
        )
    )
