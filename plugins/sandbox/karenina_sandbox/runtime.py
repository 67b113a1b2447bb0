"""The runtime: Python templates of anyone, each in a locked process of its own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from karenina_core.errors import TemplateRefused

from . import replies
from .handles import SandboxFunction, SandboxHandle
from .lockdown import forecast
from .pool import Pool, Program
from .settings import SandboxSettings


class SandboxRuntime:
    """Executes template code in processes that reach nothing but the host that asks them.

    Made once for an application. The processes start with the first template, and end with the application.
    """

    name = "sandbox"
    languages = frozenset({"python"})
    executes_code = True
    isolation = "sandbox"
    """Of handles: `sandbox-full`, `sandbox-no-userns` or `sandbox-seccomp-only`."""

    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self._pool = Pool(settings or SandboxSettings())
        self.unavailable = forecast()
        """Why it can run nothing here, or nothing."""

    @property
    def pool(self) -> Pool:
        return self._pool

    def close(self) -> None:
        """End its processes. The next template starts others."""
        self._pool.close()

    async def load(self, text: str, primitives: Mapping[str, type]) -> SandboxHandle:
        """Load the template in a process of its own. Raises TemplateError, and TemplateRefused where there can be
        none.
        """
        self._pool.know(primitives, text)
        program = self._program("template", text.encode("utf-8", "surrogatepass"), {"do": "template", "text": text})
        said, level = await self._begun(program)
        return SandboxHandle(
            isolation=f"{self.isolation}-{level}", pool=self._pool, program=program, facts=replies.facts(said)
        )

    async def load_function(self, code: bytes) -> SandboxFunction:
        """Load the code of a callable trait, a pickle or a source, as `load` does."""
        begin = {"do": "function", "code": base64.b64encode(code).decode()}
        program = self._program("function", code, begin)
        _, level = await self._begun(program)
        return SandboxFunction(isolation=f"{self.isolation}-{level}", pool=self._pool, program=program)

    async def _begun(self, program: Program) -> tuple[dict[str, object], str]:
        if self.unavailable:
            raise TemplateRefused(self.unavailable)
        return await self._pool.begin(program)

    @staticmethod
    def _program(kind: str, code: bytes, begin: Mapping[str, object]) -> Program:
        return Program(f"{kind} {hashlib.sha256(code).hexdigest()}", begin, f"the code of the {kind}")
