"""The plugin `certificates`: its settings."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl

NAME = "certificates"


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add("karenina_trust.certificates.settings:CertificateSettings", name=NAME)
