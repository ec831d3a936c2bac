"""From the files of nodes back to the state that they were made from."""

from __future__ import annotations

import shutil
import struct
from dataclasses import asdict
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.durable import write_text
from twinlog.errors import SiteError
from twinlog.sites import properties, remains, storage
from twinlog.sites.layout import allocate, lay_out
from twinlog.sites.properties import TlsFiles
from twinlog.sites.recovery import NodeFiles, differences, give_missing_ports, rebuilt
from twinlog.sites.state import BusState
from twinlog.spec.model import Broker, Bus, Site
from twinlog.wire.notes import Note
from twinlog.wire.records import Record, encode_batch

TLS = TlsFiles("a.pem", "b.pem", "c.pem", "d.pem")
NOTE = Note("__note", b"note", "the note")


def bus(a: Site, b: Site | None = None) -> Bus:
    return Bus(bus="orders", sites={"a": a} if b is None else {"a": a, "b": b})


def made(declared: Bus, directory: Path) -> BusState:
    """What a bus remembers when all its disks have been formatted."""
    ports = count(20000)
    state = BusState("orders", declared.active_site)
    allocate(declared, state, directory, lambda host, wanted: [next(ports) for _ in range(wanted)])
    for site in state.sites.values():
        for node in site.nodes.values():
            node.formatted = True
    return state


def files(
    declared: Bus, state: BusState, directory: Path, *, open_to_clients: bool = True
) -> list[NodeFiles]:
    """What the nodes' files say of such a bus."""
    found = []
    for name in state.sites:
        site = lay_out(declared, name, state, directory)
        for node in site.nodes:
            settings = properties.server_properties(node, site, TLS, open_to_clients=open_to_clients)
            text = properties.render(settings)
            metas = {
                str(path): {"cluster.id": site.cluster_id, "node.id": str(node.id), "directory.id": own}
                for path, own in zip(node.data, node.directory_ids, strict=True)
            }
            read = properties.written(text)
            found.append(NodeFiles(name, f"{node.kind}-{node.id}", read, metas, site.producer_range))
    return found


def same(one: BusState, other: BusState) -> bool:
    """Whether two states say the same of sites and nodes, agents apart: no disk knows of those."""
    texts = []
    for state in (one, other):
        told = asdict(state)
        for site in told["sites"].values():
            del site["agent_port"]
        texts.append((told["sites"], told["active"], told["term"], told["lost"]))
    return texts[0] == texts[1]


@given(
    st.integers(1, 5), st.integers(1, 5), st.sampled_from([1, 3]), st.sampled_from([(), ("x",), ("x", "y")])
)
def test_what_was_allocated_is_found_again_from_the_files(
    a: int, b: int, controllers: int, disks: tuple[str, ...]
) -> None:
    directory = Path("/bus/.twinlog")
    declared = bus(Site(brokers=a, data=disks, listen="::1"), Site(brokers=b, controllers=controllers))
    state = made(declared, directory)
    found = rebuilt(declared, None, files(declared, state, directory))
    assert same(found, state)
    assert found.next_producer_range >= state.next_producer_range


def test_a_state_that_agrees_has_no_differences_and_loses_nothing(tmp_path: Path) -> None:
    declared = bus(Site(brokers=2), Site(brokers=(Broker(port=9000),)))
    state = made(declared, tmp_path)
    state.applied, state.active, state.term = {"a": {"app": "x"}}, "b", 4
    found = rebuilt(declared, state, files(declared, state, tmp_path))
    assert found == state
    assert not list(differences(state, found))


def test_a_state_older_than_a_new_format_gives_way_to_the_disks(tmp_path: Path) -> None:
    declared = bus(Site(brokers=1), Site(brokers=1))
    old, new = made(declared, tmp_path), made(declared, tmp_path)
    new.sites["b"].producer_range = 3
    found = rebuilt(declared, old, files(declared, new, tmp_path))
    assert found.sites["b"].cluster_id == new.sites["b"].cluster_id
    assert found.next_producer_range > 3
    told = {one.what: one for one in differences(old, found)}
    assert told["the cluster id of site b"].remembered == old.sites["b"].cluster_id
    assert told["the producer ids of site b"].found == "range 3"


def test_a_node_that_only_the_state_knows_stays(tmp_path: Path) -> None:
    declared = bus(Site(brokers=3))
    state = made(declared, tmp_path)
    found = rebuilt(declared, state, files(declared, state, tmp_path)[:-1])
    assert found.sites["a"].nodes == state.sites["a"].nodes


def test_a_site_that_is_closed_to_clients_keeps_its_ports_if_somebody_remembers_them(tmp_path: Path) -> None:
    declared = bus(Site(brokers=1))
    state = made(declared, tmp_path)
    closed = files(declared, state, tmp_path, open_to_clients=False)
    found = rebuilt(declared, state, closed)
    assert found.sites["a"].nodes[1].ports == state.sites["a"].nodes[1].ports
    forgotten = rebuilt(declared, None, closed)
    assert give_missing_ports(declared, forgotten, lambda host, wanted: [1, 2, 3][:wanted])
    ports = forgotten.sites["a"].nodes[1].ports
    assert ports == {"client": 1, "client_tls": 2, "link": state.sites["a"].nodes[1].ports["link"]}
    assert not give_missing_ports(declared, forgotten, lambda host, wanted: [])


def test_a_disk_that_is_not_there_is_named(tmp_path: Path) -> None:
    declared = bus(Site(brokers=1, data=("x", "y")))
    found = files(declared, made(declared, tmp_path), tmp_path)
    (broker,) = [one for one in found if one.name == "broker-1"]
    gone = list(broker.metas)[1]
    broken = NodeFiles("a", broker.name, broker.settings, {**broker.metas, gone: {}})
    with pytest.raises(SiteError, match="has lost its data") as caught:
        rebuilt(declared, None, [broken])
    assert gone in caught.value.hint


def test_disks_of_two_clusters_at_one_site_are_refused(tmp_path: Path) -> None:
    declared = bus(Site(brokers=2))
    first, second = (files(declared, made(declared, tmp_path), tmp_path) for _ in range(2))
    with pytest.raises(SiteError, match="2 clusters"):
        rebuilt(declared, None, [*first[:-1], second[-1]])


def checkpoint(producer_range: int) -> bytes:
    """Bootstrap metadata with a first producer id."""
    plain = encode_batch([Record(b"metadata", 0)]) + encode_batch([Record(b"footer", 0)])
    return storage.with_first_producer_id(plain, storage.first_producer_id(producer_range))


def test_node_directories_are_read_as_they_lie_on_the_disk(tmp_path: Path) -> None:
    declared = bus(Site(brokers=1), Site(brokers=1))
    state = made(declared, tmp_path)
    for one in files(declared, state, tmp_path):
        directory = tmp_path / "sites" / one.site / one.name
        directory.mkdir(parents=True)
        write_text(directory / "server.properties", properties.render(dict(one.settings)))
        for disk, meta in one.metas.items():
            Path(disk).mkdir(parents=True)
            write_text(Path(disk) / storage.META, "".join(f"{key}={text}\n" for key, text in meta.items()))
            (Path(disk) / storage.BOOTSTRAP).write_bytes(checkpoint(one.producer_range))
    assert same(rebuilt(declared, None, remains.node_files(tmp_path)), state)
    shutil.rmtree(tmp_path / "sites" / "b" / "broker-1001" / "data")
    with pytest.raises(SiteError, match="broker-1001 has lost its data"):
        rebuilt(declared, None, remains.node_files(tmp_path))


def segment(path: Path, first: int, values: list[bytes], epoch: int = 0) -> None:
    """A segment of the note's topic, as a leader of that epoch wrote it."""
    data = b""
    for offset, value in enumerate(values, first):
        batch = bytearray(encode_batch([Record(value, 0, NOTE.key)]))
        struct.pack_into(">q", batch, 0, offset)
        struct.pack_into(">i", batch, 12, epoch)  # both are outside the checksum
        data += bytes(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_the_newest_note_of_all_replicas_counts_and_a_torn_end_does_not(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    assert remains.note_on_disks([first, second], NOTE) is None
    segment(first / "__note-0" / f"{0:020d}.log", 0, [b"old", b"older than the other's"])
    segment(second / "__note-0" / f"{0:020d}.log", 0, [b"old"])
    segment(second / "__note-0" / f"{1:020d}.log", 1, [b"middle", b"newest", b"torn"])
    last = second / "__note-0" / f"{1:020d}.log"
    last.write_bytes(last.read_bytes()[:-3])
    assert remains.note_on_disks([first, second], NOTE) == b"newest"
    last.write_bytes(last.read_bytes()[:-40] + bytes(100))
    assert remains.note_on_disks([first, second], NOTE) == b"newest"


def test_a_later_leader_counts_more_than_a_longer_log(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    segment(first / "__note-0" / f"{0:020d}.log", 0, [b"old", b"never acknowledged", b"nor this"], epoch=3)
    segment(second / "__note-0" / f"{0:020d}.log", 0, [b"old"], epoch=3)
    segment(second / "__note-0" / f"{1:020d}.log", 1, [b"newest"], epoch=4)
    assert remains.note_on_disks([first, second], NOTE) == b"newest"
