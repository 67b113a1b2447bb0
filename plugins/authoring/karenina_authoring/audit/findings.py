"""What an audit finds: reasons to look at an item, and the items in the order in which to look at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from attrs import field, frozen

Severity = Literal["fault", "suspect", "note"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@frozen(kw_only=True)
class Finding:
    """One reason to look at an item. It quotes expected values: it is for authors, and never part of a prompt."""

    question_id: str
    check: str
    """Which check found it, such as `duplicate`."""
    severity: Severity
    """`fault`: wrong as it is written. `suspect`: probably wrong. `note`: worth knowing, perhaps meant so."""
    message: str
    others: tuple[str, ...] = ()
    """Ids of other questions that it is about."""

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


def _worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda one: (SEVERITIES.index(one.severity), one.check, one.message)))


@frozen
class AuditedItem:
    """An item with at least one finding, the worst one first."""

    question_id: str
    findings: Sequence[Finding] = field(converter=_worst_first)

    @property
    def severity(self) -> Severity:
        return self.findings[0].severity


def ranked(findings: Iterable[Finding]) -> tuple[AuditedItem, ...]:
    """The items with findings: by their worst one, then by how many checks agree, then as they come."""
    grouped: dict[str, list[Finding]] = {}
    for finding in dict.fromkeys(findings):
        grouped.setdefault(finding.question_id, []).append(finding)

    def weight(item: AuditedItem) -> list[int]:
        checks = {(one.severity, one.check) for one in item.findings}
        return [-sum(severity == name for severity, _ in checks) for name in SEVERITIES]

    items = [AuditedItem(name, found) for name, found in grouped.items()]
    return tuple(sorted(items, key=lambda item: (SEVERITIES.index(item.severity), weight(item))))
