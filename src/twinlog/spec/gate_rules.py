"""Rules for the gate and for certificates. Pure."""

from __future__ import annotations

from twinlog.spec.address import address_problem, host_problem
from twinlog.spec.effective import SESSION, broker_session_s
from twinlog.spec.finding import Finding, Findings, warning
from twinlog.spec.model import Bus, Promote
from twinlog.spec.units import format_duration


def of_gate(bus: Bus) -> Findings:
    """The one address, and when it moves."""
    gate = bus.gate
    for field in ("address", "tls_address", "page", "witness"):
        written = getattr(gate, field)
        if written is not None and (problem := address_problem(written)):
            yield Finding(("gate", field), *problem)
    if gate.dns is not None:
        if problem := address_problem(gate.dns.listen):
            yield Finding(("gate", "dns", "listen"), *problem)
        if problem := host_problem(gate.dns.name):
            yield Finding(("gate", "dns", "name"), *problem)
    if gate.failover_after <= 0:
        what = "failover_after must be more than 0: a pause is not a loss"
        yield Finding(("gate", "failover_after"), what, "failover_after: 10s")
    if gate.promote is Promote.AUTOMATIC and gate.witness is None:
        what = "automatic promotion needs a third vote, or a cut between the sites would make two active"
        yield Finding(("gate", "promote"), what, "witness: host:port, where `twinlog witness` runs")
    if gate.promote is Promote.AUTOMATIC:
        yield from _of_agents(bus)
        yield from _of_patience(bus)


def _of_patience(bus: Bus) -> Findings:
    """A site is given up only after it had the time to do without one of its brokers."""
    for name, site in bus.sites.items():
        session_s = broker_session_s(bus, name)
        if site.exists_already or len(site.broker_specs) == 1 or bus.gate.failover_after > session_s:
            continue
        what = f"one broker of site {name} that dies holds up writes for {format_duration(session_s)}"
        hint = f"a longer failover_after, or a shorter {SESSION}"
        yield warning(("gate", "failover_after"), f"{what}, and would look like the loss of the site", hint)


def _of_agents(bus: Bus) -> Findings:
    """Automatic promotion ends brokers that have no lease, which only an agent of ours can do."""
    for name, site in bus.sites.items():
        if site.agent is not None and (problem := address_problem(site.agent)):
            yield Finding(("sites", name, "agent"), *problem)
        if site.exists_already:
            what = f"nobody beside the brokers of site {name} could end them when their lease is over"
            yield Finding(("gate", "promote"), what, "promote: ask")
        elif site.remote and site.agent is None:
            what = f"site {name} runs elsewhere: where is the agent beside its brokers asked?"
            yield Finding(("sites", name), what, "agent: host:port, where `twinlog traffic agent` runs")


def of_certificates(bus: Bus) -> Findings:
    """Renewal comes before the end, and the authority outlives what it signs."""
    certificates = bus.certificates
    for field in ("validity", "ca_validity"):
        if getattr(certificates, field) <= 0:
            yield Finding(("certificates", field), f"{field} must be more than 0", f"{field}: 365d")
    if certificates.renew_before >= certificates.validity > 0:
        given = "renew_before" if "renew_before" in certificates.given else "validity"
        validity = format_duration(certificates.validity)
        before = format_duration(certificates.renew_before)
        what = f"certificates of {validity} would be renewed {before} before their end: always"
        yield Finding(("certificates", given), what, "renew_before must be shorter than validity")
    if certificates.ca_validity < certificates.validity:
        given = "ca_validity" if "ca_validity" in certificates.given else "validity"
        what = "the authority would end before the certificates that it signs"
        yield Finding(("certificates", given), what, "ca_validity must be at least validity")
    for index, name in enumerate(certificates.names):
        if problem := host_problem(name.removeprefix("*.")):
            yield Finding(("certificates", "names", index), *problem)
