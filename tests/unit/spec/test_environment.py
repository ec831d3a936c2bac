"""What the environment changes, and what it is told when it makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.errors import FileProblems
from twinlog.spec.environment import SCRIPT_VARIABLES, setting_of, variable_of
from twinlog.spec.file import Loaded
from twinlog.spec.kafka_settings import names
from twinlog.spec.load import parse
from twinlog.spec.template import starter

FILE = """\
bus: orders
sites:
  a: {controllers: 3}
  b: {controllers: 3, brokers: [{}, {port: 9100}, {}]}
topics:
  orders: {partitions: 6}
  new-orders.v1: {}
users:
  shop: {produce: [orders], password: {env: TWINLOG_SHOP_PASSWORD}}
kafka: {num.io.threads: 4}
"""


def load(text: str = FILE, **env: str) -> Loaded:
    return parse(text.encode(), Path("twinlog.yaml"), env)


def problem_of(**env: str) -> tuple[str, str, str]:
    with pytest.raises(FileProblems) as caught:
        load(**env)
    (problem,) = caught.value.problems
    assert problem.line == 0
    return problem.path, problem.what, problem.hint


def test_variable_changes_the_value_that_its_path_names() -> None:
    bus = load(
        TWINLOG_SITES_A_BROKERS="5",
        TWINLOG_SITES_B_BROKERS_1_PORT="9200",
        TWINLOG_GATE_FAILOVER_AFTER="5s",
        TWINLOG_TOPICS_NEW_ORDERS_V1_PARTITIONS="12",
        TWINLOG_TOPICS_ORDERS_CONFIG_SEGMENT_BYTES="100MB",
        TWINLOG_TOPICS_ORDERS_MIRROR="false",
        TWINLOG_USERS_SHOP_PRODUCE="[orders, new-orders.v1]",
        TWINLOG_SITES_A_RACKS="[1a, 1b]",
        TWINLOG_SITES_A_ADVERTISE="12345",
    ).bus
    assert bus.sites["a"].brokers == 5
    assert bus.sites["b"].broker_specs[1].port == 9200
    assert bus.gate.failover_after == 5.0
    assert bus.topics["new-orders.v1"].partitions == 12
    assert bus.topics["orders"].config == {"segment.bytes": "100MB"}
    assert bus.topics["orders"].mirror is False
    assert bus.users["shop"].produce == ("orders", "new-orders.v1")
    assert bus.sites["a"].racks == ("1a", "1b")
    assert bus.sites["a"].advertise == "12345"


def test_kafka_variable_sets_a_broker_setting_and_wins_over_the_file() -> None:
    bus = load(
        KAFKA_NUM_IO_THREADS="8", KAFKA_MESSAGE_MAX_BYTES="15728640", KAFKA_REPLICA_FETCH_MAX_BYTES="15MiB"
    ).bus
    assert bus.kafka == {
        "num.io.threads": "8",
        "message.max.bytes": "15728640",
        "replica.fetch.max.bytes": "15MiB",
    }


def test_variables_that_mean_something_else_are_left_alone() -> None:
    env = dict.fromkeys([*SCRIPT_VARIABLES, "TWINLOG_FILE", "TWINLOG_CACHE", "TWINLOG_DEBUG"], "x")
    env |= {"TWINLOG_SHOP_PASSWORD": "secret", "KAFKA_SERVICE_HOST": "10.0.0.1"}
    env |= {"KAFKA_PORT": "tcp://10.0.0.1:9092", "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1", "PATH": "/bin"}
    assert load(**env) == load()


def test_unknown_path_names_the_variable_and_the_nearest_one() -> None:
    assert problem_of(TWINLOG_SITES_A_BROKER="5") == (
        "$TWINLOG_SITES_A_BROKER",
        "names nothing in the file",
        "did you mean TWINLOG_SITES_A_BROKERS?",
    )


def test_section_instead_of_a_value_is_refused() -> None:
    assert "it is a section" in problem_of(TWINLOG_GATE="x")[2]


def test_two_names_that_a_variable_cannot_tell_apart_are_ambiguous() -> None:
    text = FILE.replace("  orders: {partitions: 6}", "  orders: {}\n  a-b: {}\n  a.b: {}")
    with pytest.raises(FileProblems) as caught:
        load(text, TWINLOG_TOPICS_A_B_PARTITIONS="3")
    assert "can mean topics.a-b.partitions and topics.a.b.partitions" in str(caught.value)


def test_two_variables_for_one_value_are_refused() -> None:
    path, what, _ = problem_of(KAFKA_NUM_IO_THREADS="8", TWINLOG_KAFKA_NUM_IO_THREADS="9")
    assert (path, what) == ("$TWINLOG_KAFKA_NUM_IO_THREADS", "says the same as $KAFKA_NUM_IO_THREADS")


@pytest.mark.parametrize(
    ("variable", "value", "what", "hint"),
    [
        ("TWINLOG_SITES_A_BROKERS", "many", "expected a whole number or a list, found 'many'", "how many"),
        ("TWINLOG_SITES_A_CONTROLLERS", "2", "2 controllers survive no more", "use 1 or 3"),
        ("TWINLOG_GATE_FAILOVER_AFTER", "5", "'5' has no unit of time", "5s"),
        ("TWINLOG_TOPICS_ORDERS_REPLICATION", "9", "9 copies need 9 brokers", "at most 3"),
        ("KAFKA_MESAGE_MAX_BYTES", "1", "no broker setting mesage.max.bytes", "message.max.bytes"),
        ("KAFKA_NUM_IO_THREADS", "many", "whole number, found 'many'", "default is 8"),
        ("KAFKA_NODE_ID", "1", "node.id is set by Twinlog", "ids are given"),
        ("KAFKA_ZOOKEEPER_CONNECT", "zk:2181", "gone since Kafka 4.0", "controllers"),
    ],
)
def test_value_that_makes_no_sense_is_a_problem_of_the_variable(
    variable: str, value: str, what: str, hint: str
) -> None:
    path, found, hinted = problem_of(**{variable: value})
    assert path == f"${variable}"
    assert what in found and hint in hinted


def test_problem_of_a_variable_is_shown_with_the_variable_as_its_place() -> None:
    with pytest.raises(FileProblems) as caught:
        load(KAFKA_NODE_ID="1")
    assert str(caught.value).startswith("$KAFKA_NODE_ID: error: node.id is set by Twinlog itself\n    hint: ")


def test_section_of_the_wrong_type_is_the_problem_of_the_file() -> None:
    with pytest.raises(FileProblems) as caught:
        load(FILE + "gate: here\n", TWINLOG_GATE_ADDRESS="127.0.0.1:9092")
    assert [problem.line for problem in caught.value.problems] == [11]


def test_container_convention_is_read_as_images_write_it() -> None:
    assert setting_of("KAFKA_MESSAGE_MAX_BYTES") == "message.max.bytes"
    assert setting_of("KAFKA_LISTENER_NAME_CLIENT__TLS_MAX_CONNECTIONS") == (
        "listener.name.client_tls.max.connections"
    )
    assert setting_of("KAFKA_A___B") == "a-b"


WORDS = st.text("abcxyz019", min_size=1, max_size=6)


@given(st.lists(st.tuples(st.sampled_from("._-"), WORDS), min_size=1, max_size=8))
def test_container_convention_survives_the_way_there_and_back(parts: list[tuple[str, str]]) -> None:
    name = "x" + "".join(separator + word for separator, word in parts)
    assert setting_of(variable_of(name)) == name


def test_every_broker_setting_has_a_variable_of_its_own() -> None:
    assert [setting_of(variable_of(name)) for name in names()] == list(names())


NAMES = st.tuples(st.sampled_from(["TWINLOG_", "KAFKA_"]), st.text("ABSITEKFC019_", max_size=20)).map("".join)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(NAMES, TEXTS, max_size=4))
def test_arbitrary_variables_raise_nothing_but_problems(env: dict[str, str]) -> None:
    try:
        load(starter("orders"), **env)
    except FileProblems as error:
        assert all(problem.path in {f"${name}" for name in env} for problem in error.problems)
