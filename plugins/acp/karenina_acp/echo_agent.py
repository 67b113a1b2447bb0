"""An agent that repeats its prompt: for the conformance checks, and to try karenina without a model.

`python -m karenina_acp.echo_agent` speaks the Agent Client Protocol on stdin and stdout.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SESSION = "echo"


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    """Answer until stdin ends."""
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            say(id=number, result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
        elif method == "session/new":
            say(id=number, result={"sessionId": SESSION})
        elif method == "session/prompt":
            for block in message["params"]["prompt"]:
                update = {"sessionUpdate": "agent_message_chunk", "content": block}
                say(method="session/update", params={"sessionId": SESSION, "update": update})
            say(id=number, result={"stopReason": "end_turn"})
        elif number is not None and method is not None:
            say(id=number, error={"code": -32601, "message": f"there is no method {method}"})


if __name__ == "__main__":
    main()
