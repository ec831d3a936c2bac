"""The messages: made from their .proto files, and on the wire as others expect them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import protos
from twinlog.ordering.proto import common_pb2, orderer_pb2

Record = orderer_pb2.KafkaMessage
Regular = orderer_pb2.KafkaMessageRegular


def test_generating_again_gives_the_modules_that_are_checked_in(tmp_path: Path) -> None:
    protos.generate(tmp_path)
    made = {path.name: path.read_text() for path in (tmp_path / "twinlog/ordering/proto").iterdir()}
    present = (protos.SOURCES / "twinlog/ordering/proto").glob("*_pb2.py*")
    assert made == {path.name: path.read_text() for path in present}


@pytest.mark.parametrize(
    ("record", "ends"),
    [
        (Record(connect=orderer_pb2.KafkaMessageConnect()), "1a00"),
        (Record(time_to_cut=orderer_pb2.KafkaMessageTimeToCut(block_number=3)), "12020803"),
        (Record(regular=Regular(payload=b"p", message_class=Regular.NORMAL)), "1801"),
        (Record(regular=Regular(payload=b"p", message_class=Regular.CONFIG)), "1802"),
        (
            Record(
                regular=Regular(payload=b"p", config_seq=1, message_class=Regular.NORMAL, original_offset=5)
            ),
            "100118012005",
        ),
    ],
)
def test_records_are_those_of_a_real_partition(record: Record, ends: str) -> None:
    assert record.SerializeToString().hex().endswith(ends)


def test_last_config_zero_is_written_although_it_is_empty() -> None:
    metadata = common_pb2.OrdererBlockMetadata(last_config=common_pb2.LastConfig())
    assert metadata.SerializeToString().hex() == "0a00"


def test_paths_of_the_service_are_those_that_clients_call() -> None:
    service = orderer_pb2.DESCRIPTOR.services_by_name["AtomicBroadcast"]
    assert service.full_name == "orderer.AtomicBroadcast"
    assert {method.name: method.output_type.full_name for method in service.methods} == {
        "Broadcast": "orderer.BroadcastResponse",
        "Deliver": "orderer.DeliverResponse",
    }
    assert {method.input_type.full_name for method in service.methods} == {"common.Envelope"}
