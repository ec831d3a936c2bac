"""Rules for the gate and for certificates. Pure."""

from __future__ import annotations

from twinlog.spec.address import address_problem, host_problem
from twinlog.spec.finding import Finding, Findings, warning
from twinlog.spec.model import Bus, Promote
from twinlog.spec.units import format_duration


def of_gate(bus: Bus) -> Findings:
    """The one address, and when it moves."""
    gate = bus.gate
    if problem := address_problem(gate.address):
        yield Finding(("gate", "address"), *problem)
    if gate.failover_after <= 0:
        what = "failover_after must be more than 0: a pause is not a loss"
        yield Finding(("gate", "failover_after"), what, "failover_after: 10s")
    if gate.promote is Promote.AUTOMATIC:
        what = "automatic promotion needs a witness, which Twinlog does not have yet; it will ask"
        yield warning(("gate", "promote"), what, "promote: ask")


def of_certificates(bus: Bus) -> Findings:
    """Renewal comes before the end, and the authority outlives what it signs."""
    certificates = bus.certificates
    for field in ("validity", "ca_validity"):
        if getattr(certificates, field) <= 0:
            yield Finding(("certificates", field), f"{field} must be more than 0", f"{field}: 365d")
    if certificates.renew_before >= certificates.validity > 0:
        given = "renew_before" if "renew_before" in certificates.model_fields_set else "validity"
        validity = format_duration(certificates.validity)
        before = format_duration(certificates.renew_before)
        what = f"certificates of {validity} would be renewed {before} before their end: always"
        yield Finding(("certificates", given), what, "renew_before must be shorter than validity")
    if certificates.ca_validity < certificates.validity:
        given = "ca_validity" if "ca_validity" in certificates.model_fields_set else "validity"
        what = "the authority would end before the certificates that it signs"
        yield Finding(("certificates", given), what, "ca_validity must be at least validity")
    for index, name in enumerate(certificates.names):
        if problem := host_problem(name.removeprefix("*.")):
            yield Finding(("certificates", "names", index), *problem)
