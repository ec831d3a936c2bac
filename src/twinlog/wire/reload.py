"""Makes running nodes read their key and trust files again, and knows when they have.

Kafka does so whenever a setting of that very node changes (a cluster-wide one will not do), and it
does not matter which. So a setting of our own that means nothing is set and taken away again: one
that names a file would outlive a bus that is moved. The active controller takes such changes for
every node; a broker takes them for itself only. Called by `ops.renewal`.

A node works through changes one after the other and shows a setting before it reads the files. So
once it shows a second change that was made after it showed the first, it has read all files for
every thread of every listener; a handshake alone would tell of one thread only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from kafka.protocol.admin.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind

SETTING = "twinlog.reload"
_SET, _UNSET = 0, 1


def reload_files(controllers: Cluster, nodes: Mapping[int, Cluster]) -> None:
    """Have these nodes read their files; returns when they have.

    `controllers` are reached on the CONTROLLER listener; each node is reached at its own address.
    """
    left_behind = [node for node, cluster in nodes.items() if _shows(cluster, node)]
    if left_behind:
        _change(controllers, left_behind, _UNSET)
        _wait(nodes, shown=False)
    _change(controllers, list(nodes), _SET)
    _wait(nodes, shown=True)
    _change(controllers, list(nodes), _UNSET)
    _wait(nodes, shown=False)


def _wait(nodes: Mapping[int, Cluster], *, shown: bool) -> None:
    for node, cluster in nodes.items():

        def missing(node: int = node, cluster: Cluster = cluster) -> str:
            return "" if _shows(cluster, node) == shown else "it has not heard of it"

        cluster.wait_until(missing, f"having node {node} read its certificates")


def _shows(cluster: Cluster, node: int) -> bool:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=Kind.BROKER.value, resource_name=str(node), configuration_keys=[SETTING]
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=False, include_documentation=False
    )

    def judge(answer: DescribeConfigsResponse) -> None:
        for result in answer.results:
            what = f"reading the settings of node {node}"
            codes.check(result.error_code, result.error_message, what, cluster.where)

    answer = cluster.ask(request, DescribeConfigsResponse, judge)
    return any(entry.name == SETTING for result in answer.results for entry in result.configs)


def _change(controllers: Cluster, nodes: Sequence[int], operation: int) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    value = str(time.time_ns()) if operation == _SET else None
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
