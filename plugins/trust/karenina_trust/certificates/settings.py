"""Settings: which certificate a run is held against, and what it must come to."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen(kw_only=True)
class CertificateSettings:
    """`[plugins.certificates]`."""

    certificate: str | None = None
    """The certificate against which `karenina verify` and `karenina resume` check a finished run."""
    min_rate: float | None = field(default=None, validator=validators.optional([validators.ge(0), validators.le(1)]))
    """What the lower limit of every certified pass rate must reach. In `karenina compare`, that of the later run, from
    the certificate in its directory."""
    max_drop: float | None = field(default=None, validator=validators.optional([validators.ge(0), validators.le(1)]))
    """By how much the certified rates of the later run may be lower, in `karenina compare`, as a fraction. The lower
    limit of the difference decides."""
