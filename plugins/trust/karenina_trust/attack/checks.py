"""What the conformance checks are given: how a template is written in the language of the runtime."""

from __future__ import annotations

import json

OPTIONS = {"holistic": {"sources": json.dumps}}
