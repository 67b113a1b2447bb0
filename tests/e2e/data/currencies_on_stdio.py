"""A tool server over stdio: currencies of countries. Its process id goes into the file given.

It speaks the protocol by itself: one that is written with the SDK takes more than a second to start.
"""

import json
import os
import sys
from pathlib import Path

CURRENCY = {
    "name": "currency",
    "description": "The currency of a country.",
    "inputSchema": {
        "type": "object",
        "properties": {"country": {"type": "string"}},
        "required": ["country"],
    },
}
START = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": False}},
    "serverInfo": {"name": "currencies", "version": "1"},
}


def currency(country):
    listed = country == "France"
    text = "EUR" if listed else f"{country} is not listed"
    return {"content": [{"type": "text", "text": text}], "isError": not listed}


with Path(sys.argv[1]).open("a") as file:
    file.write(f"{os.getpid()}\n")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = START
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": [CURRENCY]}
    elif message["method"] == "tools/call" and message["params"]["name"] == "currency":
        answer["result"] = currency(message["params"]["arguments"]["country"])
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
