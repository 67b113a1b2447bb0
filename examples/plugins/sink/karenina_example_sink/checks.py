"""What the conformance checks are given: how to read back what was written."""

from . import result_ids

OPTIONS = {"tables": {"read_back": result_ids}}
