"""Parts of the file: what was given, what is a default, what stays as it is; from data and back."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from twinlog.spec.model import Bus, Cleanup, Gate, Quota, Site, Topic, User
from twinlog.spec.parts import names_of
from twinlog.spec.typed import takes, validated
from twinlog.spec.units import Bytes, BytesPerSecond, Duration
from twinlog.spec.written import written

counts = st.integers(1, 100)
topics = st.fixed_dictionaries(
    {},
    optional={
        "partitions": counts,
        "replication": counts,
        "mirror": st.booleans(),
        "cleanup": st.sampled_from([kind.value for kind in Cleanup]),
        "retention": st.just("forever") | counts.map(lambda count: f"{count}s"),
        "max_message": counts.map(lambda count: f"{count}kB"),
        "config": st.dictionaries(st.text(), st.text() | counts | st.booleans(), max_size=2),
    },
)


def test_part_knows_what_was_given_and_has_defaults_for_the_rest() -> None:
    topic = Topic(partitions=6, cleanup=Cleanup.DELETE)
    assert topic.given == {"partitions", "cleanup"}
    assert (topic.partitions, topic.mirror, topic.retention) == (6, True, None)
    assert topic == Topic(partitions=6)  # what was given is no part of what it says
    assert topic != Topic(partitions=7)
    assert topic != Gate()


def test_changed_part_is_another_one() -> None:
    site = Site(brokers=3)
    changed = site.but(controllers=3)
    assert (site.controllers, changed.controllers, changed.brokers) == (1, 3, 3)
    assert changed.given == {"brokers", "controllers"}


def test_part_does_not_change() -> None:
    with pytest.raises(AttributeError):
        Topic().partitions = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del Topic(partitions=1).partitions


@pytest.mark.parametrize("fields", [{"bus": "x"}, {"bus": "x", "sites": {}, "site": {}}])
def test_part_is_not_made_of_too_little_or_too_much(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Bus(**fields)


def test_part_can_be_sent_and_compared_and_counted() -> None:
    user = User(produce=("orders",), quota=Quota(produce=BytesPerSecond(5)))
    for same in (pickle.loads(pickle.dumps(user)), copy.deepcopy(user)):
        assert (same, same.given, hash(same)) == (user, user.given, hash(user))


@given(topics)
def test_what_was_written_of_a_topic_is_read_as_the_same(data: dict[str, Any]) -> None:
    topic = validated(Topic, data)
    assert topic.given == data.keys()
    assert validated(Topic, written(topic)) == topic
    assert set(written(topic)) <= data.keys()


def test_values_have_their_types() -> None:
    topic = validated(Topic, {"retention": "7d", "max_message": "1MB", "cleanup": "compact"})
    assert (topic.retention, topic.max_message, topic.cleanup) == (604800.0, 10**6, Cleanup.COMPACT)
    assert (type(topic.retention), type(topic.max_message)) == (Duration, Bytes)
    user = validated(User, {"produce": ["a"], "quota": {"produce": "1kB/s"}})
    assert (user.produce, user.quota) == (("a",), Quota(produce=BytesPerSecond(1000)))


def test_parts_within_data_are_taken_as_they_are() -> None:
    bus = validated(Bus, {"bus": "orders", "sites": {"a": Site(brokers=2)}, "gate": None})
    assert bus.sites == {"a": Site(brokers=2)}
    assert bus.gate == Gate()


@pytest.mark.parametrize(
    "data", [{"partitions": "3"}, {"partitions": 0}, {"partition": 1}, [], {"mirror": 1}]
)
def test_what_is_not_right_by_type_is_refused(data: Any) -> None:
    with pytest.raises(ValidationError):
        validated(Topic, data)


def test_every_field_can_be_asked_whether_it_takes_a_value() -> None:
    assert names_of(Quota) == ("produce", "consume", "request")
    assert takes(Bytes, "5MB") and takes(str, "x") and not takes(int, "5")
