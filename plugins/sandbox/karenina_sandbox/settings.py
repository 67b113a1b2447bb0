"""What a configuration can say about the sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen, validators


@frozen(kw_only=True)
class SandboxSettings:
    """`[plugins.sandbox-runtime]`"""

    seconds: float = field(default=3.0, validator=validators.gt(0))
    """CPU time for one call of a template's code, such as `verify`; then it is interrupted, and the error names the
    line. Usual code takes microseconds, and a pattern is stopped after two seconds."""
    hard_seconds: float = field(default=8.0, validator=validators.gt(0))
    """Wall-clock time after which the process of code that cannot be interrupted, or that sleeps, is killed."""
    load_seconds: float = field(default=10.0, validator=validators.gt(0))
    """CPU time for loading a template; its process is killed after three times as long in wall-clock time."""
    memory_mb: int = field(default=512, validator=validators.ge(64))
    """Memory that a template's process may use beyond that of the interpreter and its modules. A process that holds
    more than 64 MB after a call is not kept."""
    workers: int = field(default=0, validator=validators.ge(0))
    """Templates whose code runs at the same time; 0 stands for the number of processors."""
    kept: int = field(default=64, validator=validators.ge(0))
    """Processes that are kept for the next call of their template; each takes 7 MB. A new one starts in 10 ms: a
    template is loaded before the models are called and used afterwards, so keep one for each item in flight."""
    imports: Sequence[str] = ()
    """Installed modules that templates may import in addition to pydantic and computing parts of the standard library.
    They are imported before any template runs."""
