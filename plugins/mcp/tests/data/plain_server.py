"""A server without the SDK that does one thing wrong: `plain_server.py FAULT`."""

import json
import sys
import time

fault = sys.argv[1]
if fault == "dies":
    sys.exit("cannot find the file of settings")
if fault == "silent":
    time.sleep(60)
if fault == "flooding":
    print("\n".join("Loading more settings" for _ in range(500_000)), file=sys.stderr, flush=True)
    sys.exit("out of settings")
if fault == "chatty":
    print("Welcome to the server!", flush=True)
if fault == "babbling":  # never a message, never an end
    try:
        while True:
            print("This is no message!" * 1000, end="")
    except BrokenPipeError:
        sys.exit(1)
calls = 0
for text in sys.stdin:
    message = json.loads(text)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": fault == "announces"}},
            "serverInfo": {"name": "plain", "version": "1"},
        }
    elif message["method"] == "tools/list":
        if fault == "listless":
            time.sleep(60)
        names = ["twin", "twin"] if fault == "twins" else ["tool"]
        answer["result"] = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        if fault == "slowly-endless":
            time.sleep(0.1)
            answer["result"] = {"tools": [], "nextCursor": "more"}
        if fault == "announces":
            properties = {"of_call": {"const": calls}}
            answer["result"]["tools"][0]["inputSchema"] = {"type": "object", "properties": properties}
        if fault == "endless":
            answer["result"] = {"tools": [], "nextCursor": "more"}
    elif message["method"] == "tools/call":
        calls += 1
        if fault == "announces":
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
        texts = "x" * (100 * 1024 * 1024) if fault.startswith("huge") else "fine"
        answer["result"] = {"content": [{"type": "text", "text": "\ud800" if fault == "half" else texts}]}
        if fault == "huge-id-last":
            answer = {"result": answer["result"], "jsonrpc": "2.0", "id": message["id"]}
        if fault == "huge-no-id":
            answer = {"jsonrpc": "2.0", "result": answer["result"], "x": 1, "id": message["id"], "y": 2}
        if fault == "refuses":
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "not today"}}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer, separators=(",", ":")), flush=True)
    if fault == "leaves" and calls:
        sys.exit(3)
