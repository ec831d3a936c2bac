"""Which requests a broker knows, in which versions.

For `twinlog broker api-versions`: after an upgrade, or before a client is blamed. What we do not know by
name ourselves has its number.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka.protocol.api_key import ApiKey
from kafka.protocol.metadata.api_versions import ApiVersionsRequest, ApiVersionsResponse

from twinlog import __version__
from twinlog.wire import codes
from twinlog.wire.cluster import Cluster

_NAMES = {key.value: key.name for key in ApiKey}


@dataclass(frozen=True)
class ApiVersion:
    """One request as one broker knows it."""

    broker: int
    request: str
    key: int
    lowest: int
    highest: int


def describe(cluster: Cluster, broker_id: int) -> tuple[ApiVersion, ...]:
    """All requests that a broker knows, in the order of their keys."""

    def judge(answer: ApiVersionsResponse) -> None:
        what = f"asking broker {broker_id} what it can do"
        codes.check(answer.error_code, None, what, cluster.where)

    request = ApiVersionsRequest(client_software_name="twinlog", client_software_version=__version__)
    answer = cluster.ask(request, ApiVersionsResponse, judge, broker_id=broker_id)
    return tuple(
        ApiVersion(
            broker_id,
            _NAMES.get(entry.api_key, f"request {entry.api_key}"),
            entry.api_key,
            entry.min_version,
            entry.max_version,
        )
        for entry in sorted(answer.api_keys, key=lambda entry: entry.api_key)
    )
