"""What the conformance checks are given: a file that the loader reads."""

from __future__ import annotations

FILE = b"question,answer,expected\r\nWhich enzyme splits lactose?,Lactase,lactase\r\n"
OPTIONS = {"load_benchmark": {"files": {"enzymes.csv": FILE}}}
