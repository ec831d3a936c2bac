"""Makes running nodes read their key and trust files again.

Kafka does so whenever a setting of that very node changes (a cluster-wide one will not do), and it
does not matter which. So a setting of our own that means nothing is set and taken away again: one
that names a file would outlive a bus that is moved. The active controller takes such changes for
every node; a broker takes them for itself only. Called by `ops.renewal`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from kafka.protocol.admin import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind

SETTING = "twinlog.reload"
_SET, _UNSET = 0, 1


def ask(controllers: Cluster, nodes: Sequence[int]) -> None:
    """Have these nodes read their files again; `controllers` are reached on the CONTROLLER listener."""
    # The same value again would be no change.
    _change(controllers, nodes, _SET, str(time.time_ns()))


def tidy(controllers: Cluster, nodes: Sequence[int]) -> None:
    """Take the setting away again, which makes the nodes read once more."""
    _change(controllers, nodes, _UNSET, None)


def _change(controllers: Cluster, nodes: Sequence[int], operation: int, value: str | None) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name=SETTING, config_operation=operation, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(resource_type=Kind.BROKER.value, resource_name=str(node), configs=[change])
            for node in nodes
        ],
        validate_only=False,
    )

    def judge(answer: IncrementalAlterConfigsResponse) -> None:
        for result in answer.responses:
            what = f"asking node {result.resource_name} to read its certificates"
            # A controller that does not lead says so; the next attempt goes to another one.
            codes.check_change(result.error_code, result.error_message, what, controllers.where)

    controllers.ask(request, IncrementalAlterConfigsResponse, judge, repeatable=True)
