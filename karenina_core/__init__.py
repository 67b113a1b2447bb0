"""karenina: executable evaluations of language models, built from plugins.

Every name here is imported at its first use, so that `from karenina_core import hookimpl` costs pluggy only.
"""

from __future__ import annotations

from .names import exports

__getattr__, __dir__ = exports(__name__)
__version__ = "0.1.0"
