"""The first producer id inside a site's bootstrap metadata."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from twinlog.errors import SiteError
from twinlog.sites.layout import Kind, Node
from twinlog.sites.storage import first_producer_id, is_formatted, reason, with_first_producer_id


def batch(base_offset: int, values: list[bytes]) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset, value in enumerate(values):
        builder.append(offset, 1000, None, value, [])
    built = bytearray(builder.build())
    struct.pack_into(">q", built, 0, base_offset)
    return bytes(built)


def batches(data: bytes) -> list[DefaultRecordBatch]:
    found = []
    while data:
        (length,) = struct.unpack_from(">i", data, 8)
        found.append(DefaultRecordBatch(data[: 12 + length]))
        data = data[12 + length :]
    return found


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.integers(0, 1 << 22))
def test_the_record_stands_before_the_footer_and_all_checksums_hold(values: list[bytes], number: int) -> None:
    header, body = batch(0, [b"header"]), batch(1, values)
    footer = batch(1 + len(values), [b"footer"])
    wanted = first_producer_id(number)
    changed = batches(with_first_producer_id(header + body + footer, wanted))
    assert all(part.validate_crc() for part in changed)
    assert [part.base_offset for part in changed] == [0, 1, 1 + len(values), 2 + len(values)]
    (record,) = list(changed[2])
    frame, key, version, _broker, _epoch, next_id, tags = struct.unpack(">bbbiqqb", record.value)
    assert (frame, key, version, tags) == (1, 15, 0, 0)
    assert next_id == number * 2**40
    assert next(iter(changed[3])).value == b"footer"


def node(data: Path) -> Node:
    return Node("a", 1, Kind.BROKER, data, (data,), ("x",), "127.0.0.1", "127.0.0.1", {}, 1)


def test_an_empty_directory_is_not_formatted(tmp_path: Path) -> None:
    assert not is_formatted(node(tmp_path), "cluster")


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=1\n")
    with pytest.raises(SiteError, match="cluster other"):
        is_formatted(node(tmp_path), "cluster")


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("#\nversion=1\ncluster.id=cluster\nnode.id=2\n")
    with pytest.raises(SiteError, match="node 2"):
        is_formatted(node(tmp_path), "cluster")


def test_the_reason_of_a_failed_tool_is_no_line_of_its_stack() -> None:
    output = """Formatting failed
Exception in thread "main" java.nio.file.NoSuchFileException: format.properties
\tat java.base/sun.nio.fs.UnixException.translate(UnixException.java:92)
\tat kafka.tools.StorageTool$.main(StorageTool.scala:86)
\t... 3 more
"""
    assert reason(output).endswith("NoSuchFileException: format.properties")
    assert reason("at most one controller is allowed\n") == "at most one controller is allowed"
    assert reason("\n") == "no output"
