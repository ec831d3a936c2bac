"""Rules for the link and the pipeline that it runs on. Pure."""

from __future__ import annotations

from twinlog.spec.address import address_problem
from twinlog.spec.finding import Finding, Findings
from twinlog.spec.model import Bus

SHORTEST_EPOCH_S = 5.0
LEAST_MEMORY_BYTES = 450 << 20  # Spark refuses to start with less


def of_link(bus: Bus) -> Findings:
    """How the mirror works."""
    link = bus.link
    if link.epoch < SHORTEST_EPOCH_S:
        what = "an epoch under 5 s would be spent on handing over"
        yield Finding(("link", "epoch"), what, "epoch: 60s")
    if link.max_rate is not None and link.max_rate <= 0:
        yield Finding(("link", "max_rate"), "max_rate must be more than 0", "leave it out for no limit")
    if link.metrics is not None and (problem := address_problem(link.metrics)):
        yield Finding(("link", "metrics"), *problem)


def of_pipeline(bus: Bus) -> Findings:
    """What Spark needs to start."""
    if bus.pipeline.memory < LEAST_MEMORY_BYTES:
        yield Finding(("pipeline", "memory"), "Spark's driver needs at least 450 MiB", "memory: 512MiB")
    if bus.pipeline.metrics is not None and (problem := address_problem(bus.pipeline.metrics)):
        yield Finding(("pipeline", "metrics"), *problem)
    for name in bus.pipeline.settings:
        if not name.startswith("spark."):
            what = f"'{name}' is no setting of Spark's: they begin with spark."
            yield Finding(("pipeline", "settings", name), what, f"spark.{name}")
