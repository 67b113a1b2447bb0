"""The Acme protocol as a server speaks it, for the conformance checks and for scripted servers of other tests."""

from collections.abc import Mapping
from typing import Any

from karenina_core.testing import Reply, ServedRequest, Spoken, Wire

ROLES = {"director": "system", "person": "user", "engine": "assistant"}
ENDED = {"stop": "done", "length": "cut"}


class AcmeWire(Wire):
    """`POST {url}/generate`, with the key as `X-Acme-Key`."""

    suffix = "/generate"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        shape = body.get("shape")
        return ServedRequest(
            body=body,
            model=body["engine"],
            messages=[{"role": ROLES[line["who"]], "content": line["says"]} for line in body["dialogue"]],
            channel="text" if shape is None else "json_schema",
            schema=shape,
            temperature=body.get("heat"),
            key=headers.get("x-acme-key"),
        )

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        ended = ENDED.get(reply.finish_reason, reply.finish_reason)
        body: dict[str, Any] = {"engine": reply.model, "said": reply.text, "ended": ended}
        if reply.usage is not None:
            body["words"] = {"read": reply.usage.input_tokens, "said": reply.usage.output_tokens}
        return body

    def error(self, reply: Reply) -> tuple[int, Mapping[str, Any]]:
        return reply.status, {"fault": {"code": reply.code, "text": reply.failure}}


OPTIONS = {"acme": {"wire": AcmeWire()}}
