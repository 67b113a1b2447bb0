"""A program that an agent starts as a server of tools: it hands every byte on to karenina, at the socket that it is
given, and back. It imports nothing of karenina."""

from __future__ import annotations

import os
import socket
import sys
import threading

CHUNK = 65536  # what a pipe of Linux holds


def main(path: str) -> None:
    """Hand on until either side ends."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)

    def asked() -> None:
        while data := os.read(0, CHUNK):
            line.sendall(data)
        line.shutdown(socket.SHUT_WR)

    threading.Thread(target=asked, daemon=True).start()
    while data := line.recv(CHUNK):
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(sys.argv[1])
