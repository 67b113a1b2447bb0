"""`[plugins.claude_agent_sdk]`: the program that is run, and what it is given."""

from __future__ import annotations

from attrs import field, frozen

__all__ = ["ClaudeAgentSdkSettings"]


@frozen(kw_only=True)
class ClaudeAgentSdkSettings:
    """`[plugins.claude_agent_sdk]`: the program that is run, and what it is given."""

    program: str | None = None
    """The program: a path, or a name to look for on PATH. By default the one that comes with the SDK, else `claude` on
    PATH."""
    environment: tuple[str, ...] = field(default=(), converter=tuple)
    """Names of environment variables that the program is given beside those that it always gets, such as
    `["HTTPS_PROXY"]`."""
