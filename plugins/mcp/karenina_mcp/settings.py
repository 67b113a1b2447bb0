"""`[plugins.mcp]`: how long servers may take, and what they are given."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen, validators
from karenina_calls.secrets.known_secrets import SECRET_VARIABLES


@frozen(kw_only=True)
class McpSettings:
    """`[plugins.mcp]`: how long servers may take, and what they are given."""

    start_seconds: float = field(default=30.0, validator=validators.gt(0))
    """Seconds to start a program or reach a service and agree on the protocol; as many again for its list of tools.
    """
    call_seconds: float = field(default=60.0, validator=validators.gt(0))
    """Seconds for one call of a tool. A server that takes longer is reconnected."""
    read_seconds: float | None = field(default=None, validator=validators.optional(validators.gt(0)))
    """Seconds for which a service may be silent in the middle of an answer; None: as long as the call may take. The
    stream of server-sent events that stays open between calls is reconnected after so much silence."""
    environment: Mapping[str, tuple[str, ...]] = field(factory=dict, metadata={SECRET_VARIABLES: True})
    """Environment variables that a program is given in addition to PATH, HOME, LANG and TMPDIR: their names, by the
    name of the server, such as `search = ["BRAVE_API_KEY"]`. Their values are secrets of the run: no file of it holds
    them."""
    token_env: Mapping[str, str] = field(factory=dict, metadata={SECRET_VARIABLES: True})
    """The environment variable that holds the bearer token of a service, by the name of the server."""
