"""Answer templates: what to extract from an answer, and how code decides whether it is right.

Importing this package costs next to nothing; every name is loaded on first use.
"""

from __future__ import annotations

from karenina_core.names import exports

__getattr__, __dir__ = exports(__name__)
