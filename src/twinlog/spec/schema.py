"""The JSON schema of the file, for editors that complete and check while one types.

Printed by `twinlog schema`. Made from the models, so that it cannot fall behind them; the
descriptions stand here because only people who edit the file read them. An editor knows types and
names; the rules between fields are those of `check`.
"""

from __future__ import annotations

from typing import Any

from twinlog.spec import typed
from twinlog.spec.model import (
    Broker,
    Bus,
    Certificates,
    Dns,
    Gate,
    Link,
    Password,
    Pipeline,
    Quota,
    Site,
    Topic,
    User,
)
from twinlog.spec.parts import Part
from twinlog.spec.streams import Encoding, Function, Job, Output, Sink, Source, Window

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_HOST = "Address that the brokers listen on, without a port."
_ADVERTISE = "Name or address that clients reach the brokers by, if it is not the one they listen on."
_DATA = "Directory for records, or several of them. By default all is under one directory of the bus."
_CPUS = "Processors that a broker may use, as in 1.5."
_REMOTE = "It runs on another machine, from what `twinlog bundle` wrote; not started or stopped here."
_KAFKA = "Broker settings by Kafka's own names, as in message.max.bytes: 15MiB."

DESCRIPTIONS: dict[type[Part], dict[str, str]] = {
    Bus: {
        "bus": "Name of the bus: lower-case letters, digits and dashes.",
        "sites": "One or two Kafka clusters, by name.",
        "active": "The site that clients use at first; the first one unless said otherwise.",
        "topics": "Topics by name. They exist on every site.",
        "users": "Clients by name. Each may do what is written here and nothing else.",
        "gate": "The one address that clients know.",
        "link": "The mirror from the active to the standby.",
        "pipeline": "Where Spark runs, which does the mirroring.",
        "streams": "Jobs on the bus's records, by name.",
        "certificates": "How long certificates last.",
        "kafka": f"{_KAFKA} They are for every site that Twinlog runs.",
        "kafka_version": "The Kafka that Twinlog runs; `twinlog apply` changes it node by node.",
    },
    Site: {
        "brokers": "How many brokers, or a list with what each has for itself.",
        "controllers": "How many controllers keep the metadata: 1, 3, 5 or 7. Production wants three.",
        "listen": _HOST,
        "advertise": _ADVERTISE,
        "port": "First port. A broker takes three, the next starts four later. Chosen once if left out.",
        "data": _DATA,
        "racks": "Racks (or zones) that the brokers are spread over, in turn.",
        "memory": "Heap of each broker.",
        "controller_memory": "Heap of each controller.",
        "cpus": _CPUS,
        "jvm": "Further options for the JVM of every broker and controller.",
        "remote": f"For all nodes of the site: {_REMOTE}",
        "agent": "Where the agent beside its brokers is asked, for automatic promotion: host:port.",
        "kafka": f"{_KAFKA} They win over those of the bus.",
        "kafka_version": "The Kafka of this site, if it is not the one of the bus.",
        "bootstrap": "For a cluster that exists already: its addresses, host:port.",
        "client": "For a cluster that exists already: a client properties file of an administrator.",
    },
    Broker: {
        "listen": _HOST,
        "advertise": _ADVERTISE,
        "port": "First of the three ports of this broker.",
        "data": _DATA,
        "rack": "Rack (or zone) that this broker stands in.",
        "memory": "Heap of this broker.",
        "cpus": _CPUS,
        "remote": _REMOTE,
        "kafka": f"{_KAFKA} They win over those of the site.",
    },
    Topic: {
        "partitions": "How many partitions.",
        "replication": "Copies of each partition on a site; 3 where there are as many brokers.",
        "min_insync": "Copies that must have a record before acks=all is answered; one less than all.",
        "mirror": "Whether the standby gets every record at the same offset.",
        "cleanup": "What happens to old records: delete them, compact by key, or both.",
        "retention": "How long records are kept, as in 7d, or forever.",
        "retention_bytes": "How much of each partition is kept.",
        "max_message": "Largest batch of records that the topic takes.",
        "config": "Topic settings by Kafka's own names, as in segment.bytes: 100MB.",
    },
    User: {
        "auth": "A password (scram) or a client certificate (mtls).",
        "produce": "Topics that the user may write: names, or prefixes with an asterisk.",
        "consume": "Topics that the user may read: names, or prefixes with an asterisk.",
        "groups": "Consumer groups that the user may use: names, or prefixes with an asterisk.",
        "create": "Topics that the user may make itself: names, or prefixes with an asterisk.",
        "transactions": "Transactional ids that the user may use: names, or prefixes with an asterisk.",
        "quota": "Limits, for each broker.",
        "password": "Where the password is kept. One is made if this is left out.",
    },
    Quota: {
        "produce": "Writing at most so fast, as in 5MB/s.",
        "consume": "Reading at most so fast, as in 5MB/s.",
        "request": "Share of the broker's request threads, in per cent of one thread.",
    },
    Password: {
        "file": "A file whose first line is the password.",
        "env": "An environment variable that holds the password.",
    },
    Dns: {
        "listen": "Where it is asked, over UDP and TCP: host:port.",
        "name": "The name that stands for the active site's brokers.",
        "ttl": "How long an answer may be kept.",
    },
    Gate: {
        "address": "Where clients bootstrap: host:port.",
        "tls_address": "The same for users with certificates; by default one port above `address`.",
        "dns": "Answer DNS for one name: the active site's brokers.",
        "page": "Where the health page is served: host:port.",
        "witness": "Where the third vote is asked, for automatic promotion: host:port of `twinlog witness`.",
        "failover_after": "How long the active site must be gone before the standby may take over.",
        "promote": "Who decides then: ask a person, or automatic (needs a witness).",
    },
    Link: {
        "identity": "Whose name mirrored batches bear: keep (their producers') or link (the mirror's own).",
        "include": "Topics to mirror that the file does not declare: names, or a beginning and an asterisk.",
        "exclude": "Topics not to mirror, of those that `include` means.",
        "groups": "Consumer groups whose offsets go along.",
        "max_rate": "The most that the mirror copies, as in 50MB/s.",
        "tasks": "How many tasks share the partitions.",
        "epoch": "How long a task holds its partitions before the next one takes over.",
        "metrics": "Where to serve a page for Prometheus: host:port. By default nowhere.",
    },
    Pipeline: {
        "master": "Where Spark runs: local, local[4], spark://host:7077, yarn, k8s://…",
        "memory": "Memory of Spark's driver.",
        "settings": "Spark's own settings, spark.….",
        "checkpoints": "Where jobs keep their checkpoints: any path that Hadoop knows, as in hdfs://host/streams.",
        "metrics": "Where the jobs serve a page for Prometheus: host:port. By default nowhere.",
    },
    Job: {
        "kind": "stream: record by record. table: latest values by key. lake: all records. aggregate, join.",
        "read": "Topics, or tables of other jobs, by the names that they have in the SQL.",
        "sql": "What comes of the records: one SELECT, in Spark's SQL.",
        "function": "In place of SQL, for a stream: a function in Python that makes rows of a row.",
        "window": "For an aggregate: the time that rows are grouped by, as the column `period`.",
        "emit": "For an aggregate: write a row each time it changes, or once when it is final.",
        "write": "The topic that the results go to.",
        "path": "For a lake: where its Delta table is, a directory or any path that Spark knows.",
        "dead_letters": "The topic for records that cannot be understood, with the reason.",
        "guarantee": "How often a result is in the output after a failure.",
        "every": "How often a batch begins.",
        "most_records": "The most records of one batch.",
        "tasks": "How many tasks share the state; it stays what it was at the first run.",
    },
    Source: {
        "topic": "A topic of the file.",
        "table": "A table that another job keeps.",
        "everywhere": "A global table: every task gets all of it.",
        "key": "How keys are written: bytes, string, int or long.",
        "value": "How values are written: bytes, string, int, long, json, avro or protobuf.",
        "time": "The column with the time of an event; by default the time of the record, `_time`.",
        "watermark": "How late a record may be, as in 10m; what is later is left out.",
    },
    Encoding: {
        "format": "bytes, string, int, long, json, avro or protobuf.",
        "fields": "The fields of a JSON object, and their types.",
        "record": "The schema of Avro records, as in an .avsc file.",
        "message": "The schema of Protobuf messages, as in a .proto file.",
    },
    Sink: {
        "topic": "A topic of the file.",
        "key": "The column that keys are made of, and how they are written.",
        "value": "All columns as JSON, or one column and how it is written.",
    },
    Output: {
        "format": "bytes, string, int, long, json, avro or protobuf.",
        "column": "The column that it is made of.",
        "record": "The schema of Avro records, as in an .avsc file.",
        "message": "The schema of Protobuf messages, as in a .proto file.",
    },
    Function: {
        "call": "The function: module:name. The module is beside the file, or installed.",
        "gives": "The columns of the rows that it gives, and their types.",
    },
    Window: {
        "size": "How long a window is.",
        "every": "How often one begins; as often as one ends, if this is left out.",
        "session": "A window ends when nothing came for so long.",
    },
    Certificates: {
        "validity": "How long a certificate lasts.",
        "ca_validity": "How long the bus's own authority lasts.",
        "renew_before": "How long before its end a certificate is renewed.",
        "names": "Further names or addresses that stand in every broker's certificate.",
    },
}


def json_schema() -> dict[str, Any]:
    """The schema of twinlog.yaml."""
    schema: dict[str, Any] = {"$schema": DIALECT, **typed.json_schema(Bus), "title": "twinlog.yaml"}
    definitions = schema["$defs"]
    for part, descriptions in DESCRIPTIONS.items():
        target = schema if part is Bus else definitions[part.__name__]
        for name, description in descriptions.items():
            target["properties"][name]["description"] = description
        if part is not Bus:
            target["type"] = ["object", "null"]  # a section may be left empty
    for name in ("topics", "users", "streams", "kafka"):
        schema["properties"][name]["type"] = ["object", "null"]
    definitions["Site"]["properties"]["controllers"]["enum"] = [1, 3, 5, 7]
    for name in ("Site", "Broker"):
        definitions[name]["properties"]["data"] = {
            "description": _DATA,
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        }
    _drop_titles(schema)
    return schema


def _drop_titles(node: Any) -> None:
    """Pydantic's titles repeat the keys; editors show the descriptions instead."""
    if isinstance(node, dict):
        for name, value in node.items():
            if isinstance(value, dict) and isinstance(value.get("title"), str) and name != "properties":
                del value["title"]
            _drop_titles(value)
    elif isinstance(node, list):
        for value in node:
            _drop_titles(value)
