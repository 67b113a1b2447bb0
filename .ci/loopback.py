"""Run a command with loopback as its only network: `unshare --net python loopback.py COMMAND...`.

Brings the interface `lo` of a fresh network namespace up without iproute2, makes sure that nothing else can be
reached, and becomes the command, which has no more rights than its user has elsewhere.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP, IFF_RUNNING = 0x1, 0x40
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
OUTSIDE = ("192.0.2.1", 443)
"""An address that is reserved for documentation (RFC 5737)."""


def bring_up(interface: str) -> None:
    """Set the flags of an interface (see netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name = interface.encode()
        answer = fcntl.ioctl(control, SIOCGIFFLAGS, struct.pack("16sh14x", name, 0))
        flags = struct.unpack("16sh14x", answer)[1] | IFF_UP | IFF_RUNNING
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", name, flags))


def drop_capabilities() -> None:
    """What `unshare --keep-caps` kept so that `lo` could be brought up: with it, files are open that should not be."""
    ctypes.CDLL(None).prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def outside_is_unreachable() -> bool:
    """Whether there is no route at all; a mere time-out would not prove that."""
    try:
        socket.create_connection(OUTSIDE, 5).close()
    except OSError as error:
        return error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH)
    return False


def main() -> None:
    if not outside_is_unreachable():
        raise SystemExit("this process has a network: run it in a namespace of its own (unshare --net)")
    bring_up("lo")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
        pass
    drop_capabilities()
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
