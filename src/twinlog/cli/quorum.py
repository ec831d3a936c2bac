"""`twinlog quorum`: the controllers, who leads them, and how far each copy of the metadata is."""

from __future__ import annotations

import time

from twinlog.cli import frame
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.reach import reached, site_options
from twinlog.cli.sizes import seconds


@frame.command(example="twinlog quorum -o json")
@site_options
def command(ctx: frame.Context, site: str | None, user: str | None, timeout: float) -> None:
    """Show the quorum of a site: leader, epoch, voters and observers, and the features in force."""
    from twinlog.wire import quorum

    with reached(ctx, site, user, timeout) as reach:
        found = quorum.describe(reach.cluster)
        features = quorum.features(reach.cluster)
        cluster_id = reach.cluster.cluster_id
    now_ms = time.time_ns() // 1_000_000
    rows = [
        {
            "node": replica.id,
            "role": "leader" if replica.id == found.leader_id else role,
            "lag_records": replica.lag_records,
            "end_offset": replica.end_offset,
            "last_fetch_s": None
            if replica.last_fetch_ms is None
            else max(0, now_ms - replica.last_fetch_ms) / 1000,
            "directory": str(replica.directory),
            "addresses": [str(address) for address in found.addresses.get(replica.id, ())],
        }
        for role, replicas in (("voter", found.voters), ("observer", found.observers))
        for replica in replicas
    ]
    value = {
        "cluster_id": cluster_id,
        "leader": found.leader_id if found.leader_id >= 0 else None,
        "epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "features": dict(sorted(features.levels.items())),
    }
    columns = [Column(key) for key in value if key != "features"]
    columns.append(
        Column("features", show=lambda levels: ", ".join(f"{name} {level}" for name, level in levels.items()))
    )
    ctx.emit(
        Record(columns, value, "quorum"),
        Table(
            [
                Column("node", right=True),
                Column("role"),
                Column("lag_records", "behind", right=True),
                Column("end_offset", right=True),
                Column("last_fetch_s", "last fetch", right=True, show=seconds),
                Column("addresses"),
            ],
            rows,
            "replicas",
        ),
    )
