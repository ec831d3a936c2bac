"""Formats the disks of a site, once, and never a disk that holds anything.

Kafka's own storage tool runs once for a site and its result is laid out for every node: the
bootstrap metadata and the first voters are the same everywhere, only `meta.properties` differs.
(A run of the tool takes a second of a core; eight nodes would take four seconds of two.)
Before that, the site's first producer id is put into the bootstrap metadata, because two sites
whose producer ids meet can mistake one producer's batch for another's repeated one.
Each directory appears by one rename, so a format killed half-way is simply done again.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import crc32c

from twinlog.durable import PRIVATE_DIRECTORY_MODE, write_text
from twinlog.errors import PrerequisiteError, SiteError
from twinlog.sites.java import environment
from twinlog.sites.layout import Kind, Listener, Node, SiteLayout
from twinlog.sites.properties import render

PRODUCER_IDS_PER_RANGE = 1 << 40
FORMAT_TIMEOUT_S = 180  # it takes a second; the rest is a busy machine
META = "meta.properties"
BOOTSTRAP = "bootstrap.checkpoint"
METADATA_LOG = "__cluster_metadata-0"
_BATCH_HEADER = ">qiibIhiqqqhii"
_BATCH_HEADER_SIZE = 61
_CRC_AT = 17
_CRC_FROM = 21
PRODUCER_IDS_RECORD = bytes([1, 15, 0])  # frame version, api key and version in the metadata log


def first_producer_id(producer_range: int) -> int:
    """The first id that a site of that range hands out."""
    return producer_range * PRODUCER_IDS_PER_RANGE


def with_first_producer_id(checkpoint: bytes, producer_id: int) -> bytes:
    """Bootstrap metadata with one more record: the next producer id to hand out.

    A checkpoint is a run of record batches that ends with a footer; the new batch goes before it.
    """
    footer_at, footer_offset, footer_time = _last_batch(checkpoint)
    value = PRODUCER_IDS_RECORD + struct.pack(">iqq", 1, 0, producer_id) + b"\0"
    record = b"\0\0\0" + _varint(-1) + _varint(len(value)) + value + _varint(0)
    body = _varint(len(record)) + record
    batch = bytearray(_BATCH_HEADER_SIZE + len(body))
    length = len(batch) - 12
    struct.pack_into(
        _BATCH_HEADER, batch, 0, footer_offset, length, 0, 2, 0, 0, 0, footer_time, footer_time, -1, -1, -1, 1
    )
    batch[_BATCH_HEADER_SIZE:] = body
    struct.pack_into(">I", batch, _CRC_AT, crc32c.crc32c(bytes(batch[_CRC_FROM:])))
    footer = bytearray(checkpoint[footer_at:])
    struct.pack_into(">q", footer, 0, footer_offset + 1)  # the offset is outside the checksum
    return checkpoint[:footer_at] + bytes(batch) + bytes(footer)


def _last_batch(checkpoint: bytes) -> tuple[int, int, int]:
    at = 0
    while True:
        offset, length = struct.unpack_from(">qi", checkpoint, at)
        end = at + 12 + length
        if end >= len(checkpoint):
            (time_ms,) = struct.unpack_from(">q", checkpoint, at + 27)
            return at, offset, time_ms
        at = end


def _varint(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def is_formatted(node: Node, cluster_id: str) -> bool:
    """True when every data directory of the node belongs to this cluster; an error if to another."""
    found = [read_meta(path) for path in node.data]
    for path, meta in zip(node.data, found, strict=True):
        owner = (meta.get("cluster.id"), meta.get("node.id"))
        if meta and owner != (cluster_id, str(node.id)):
            raise SiteError(
                f"the directory belongs to node {owner[1]} of cluster {owner[0]}, not to {node.name}",
                where=str(path),
                hint="choose another `data:` directory; Twinlog never formats one that is in use",
            )
    return all(found)


def read_meta(directory: Path) -> dict[str, str]:
    """What Kafka wrote about a data directory; empty when it was never formatted."""
    try:
        lines = (directory / META).read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def format_site(site: SiteLayout, nodes: Sequence[Node], java: Sequence[str], scratch: Path) -> None:
    """Give the nodes that have none their first data directories; `scratch` is left to the caller."""
    new = [node for node in nodes if not is_formatted(node, site.cluster_id)]
    if not new:
        return
    template = _run_storage_tool(site, java, scratch)
    checkpoint = with_first_producer_id(
        (template / BOOTSTRAP).read_bytes(), first_producer_id(site.producer_range)
    )
    for node in new:
        for position, target in enumerate(node.data):
            if not read_meta(target):
                voters = template / METADATA_LOG if position == 0 and node.kind is Kind.CONTROLLER else None
                _lay_out(node, site.cluster_id, position, checkpoint, target, voters)


def format_joining(site: SiteLayout, node: Node, java: Sequence[str], scratch: Path) -> None:
    """Give a node of a running site empty directories for those it lost; `scratch` is left to the caller.

    What a controller knows of the voters it learns from them: its own first list would be an old one.
    """
    template = _run_storage_tool(site, java, scratch)
    checkpoint = with_first_producer_id(
        (template / BOOTSTRAP).read_bytes(), first_producer_id(site.producer_range)
    )
    for position, target in enumerate(node.data):
        if not is_readable(target):
            _lay_out(node, site.cluster_id, position, checkpoint, target, None)


def is_readable(directory: Path) -> bool:
    """True for a data directory that Kafka could start from; a disk that only gives errors is none."""
    try:
        return bool(read_meta(directory))
    except OSError:
        return False


def _run_storage_tool(site: SiteLayout, java: Sequence[str], scratch: Path) -> Path:
    """Format a scratch directory as the site's first controller and return it.

    Each run has its own: the tool of a command that was killed may still be at work in the last one.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True, exist_ok=True)
    run = Path(tempfile.mkdtemp(dir=scratch))
    first = site.controllers[0]
    data = run / "data"
    config = run / "format.properties"
    lines = {
        "process.roles": "controller",
        "node.id": str(first.id),
        "listeners": f"CONTROLLER://{first.listen}:{first.ports[Listener.CONTROLLER]}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(site.bootstrap(Listener.CONTROLLER)),
        "log.dirs": str(data),
    }
    write_text(config, render(lines))
    voters = ",".join(
        f"{node.id}@{node.address(Listener.CONTROLLER)}:{node.directory_ids[0]}" for node in site.controllers
    )
    command = [*java, "kafka.tools.StorageTool", "format", "--cluster-id", site.cluster_id]
    command += ["--config", str(config), "--initial-controllers", voters]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=FORMAT_TIMEOUT_S,
            check=False,
            env=environment(first.withheld),
        )
    except subprocess.TimeoutExpired as error:
        raise SiteError(
            f"Kafka's storage tool did not end within {FORMAT_TIMEOUT_S} s",
            where=f"site {site.name}",
            hint="is this machine overloaded? uptime",
        ) from error
    if done.returncode != 0:
        raise SiteError(
            f"Kafka's storage tool refused to format: {reason(done.stderr or done.stdout)}",
            where=f"site {site.name}",
            hint="twinlog plan",
        )
    return data


def making_of(target: Path) -> Path:
    """Where a data directory is made before it takes its name."""
    return target.with_name(target.name + ".formatting")


def _lay_out(
    node: Node, cluster_id: str, position: int, checkpoint: bytes, target: Path, voters: Path | None
) -> None:
    if target.exists() and any(target.iterdir()):
        raise SiteError(
            f"{node.name} would have to format a directory that is not empty",
            where=str(target),
            hint=f"is it the right one? If so, empty it yourself: ls {target}",
        )
    making = making_of(target)
    try:
        shutil.rmtree(making, ignore_errors=True)
        making.parent.mkdir(parents=True, exist_ok=True)
        making.mkdir(mode=PRIVATE_DIRECTORY_MODE)  # records lie in it
        (making / BOOTSTRAP).write_bytes(checkpoint)
        if voters is not None:
            shutil.copytree(voters, making / METADATA_LOG)
        meta = {
            "version": "1",
            "cluster.id": cluster_id,
            "node.id": str(node.id),
            "directory.id": node.directory_ids[position],
        }
        write_text(making / META, "".join(f"{name}={value}\n" for name, value in meta.items()))
        if target.exists():
            target.rmdir()
        os.rename(making, target)
    except OSError as error:
        raise PrerequisiteError(
            f"cannot write {node.name}'s data directory: {error.strerror}",
            where=str(target),
            hint=f"df -h {target.parent}",
        ) from error


def reason(output: str) -> str:
    """Why a Java tool failed: its last line that is not part of a stack trace."""
    lines = [line.strip() for line in output.splitlines()]
    told = [line for line in lines if line and not re.match(r"at \S+\(|\.\.\. \d+ (more|common)", line)]
    return told[-1] if told else "no output"
