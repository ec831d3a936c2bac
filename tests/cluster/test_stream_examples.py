"""The examples of jobs, as they stand, on one real site: what they give is what plain Python gives."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cluster import jobs
from tests.cluster.conftest import Bus, MakeBus
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import Sender

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("payments", "turbines", "days")
SMALL = {
    "kafka": {"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3},
    "sites": {"a": {"brokers": 1}},
    "pipeline": {"memory": "700MiB"},
}
BEGIN = datetime(2026, 1, 30, 22, tzinfo=UTC)
SETTLED_S = 240.0
SALES = [(n * 60, f"{n % 50}.{n % 100:02d}") for n in range(300)]  # second, amount: over two days
ORDERS, PAID_EVERY = 40, 3
TURBINES, READINGS = 9, 200


def merged() -> dict[str, Any]:
    """All examples as one bus: their topics, users and jobs have names of their own, or are the same."""
    whole: dict[str, Any] = {"bus": "examples", **SMALL, "topics": {}, "users": {}, "streams": {}}
    for name in NAMES:
        told = YAML(typ="safe").load((EXAMPLES / f"{name}.yaml").read_text())
        for section in ("topics", "users", "streams"):
            for own, value in told[section].items():
                assert whole[section].get(own, value) == value, f"{own} is in two examples"
                whole[section][own] = value
    return whole


def second(number: int) -> str:
    return (BEGIN + timedelta(seconds=number)).isoformat().replace("+00:00", ".000Z")


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Iterator[Bus]:
    made = make_bus(json.dumps(merged()))
    writers = {
        user: Sender(made.home().user_access(user, "a"), timeout_s=60.0, tuning=Tuning())
        for user in ("shop", "park", "tills")
    }

    def put(user: str, topic: str, value: dict[str, Any], key: bytes | None = None) -> None:
        writers[user].queue(topic, json.dumps(value).encode(), key, (), None, None, None)

    for order in range(ORDERS):
        put("shop", "orders", {"id": order, "at": second(order), "amount": f"{order}.50"})
        if order % PAID_EVERY == 0:
            late = 7200 if order % 2 else 60
            put(
                "shop",
                "payments",
                {"order_id": order, "at": second(order + late), "card": "4111111111111234"},
            )
    for turbine in range(TURBINES):
        place = {"place": f"hill {turbine}", "kilowatts": turbine}
        put("park", "turbines", place, struct.pack(">i", turbine))
    for number in range(READINGS):
        reading = {"at": second(number * 60), "kwh": number}
        put("park", "readings", reading, struct.pack(">i", number % TURBINES))
    for at, amount in SALES:
        put("tills", "sales", {"at": second(at), "amount": amount, "shop": "north"})
    assert all(writer.flush(60.0) == 0 for writer in writers.values())
    made.done("stream", "up")
    try:
        yield made
    finally:
        for writer in writers.values():
            writer.close()
        made.done("stream", "down")


def test_orders_are_joined_with_payments_within_an_hour_and_cards_are_masked(bus: Bus) -> None:
    expected = {n: f"{n}.50" for n in range(0, ORDERS, PAID_EVERY) if n % 2 == 0}
    jobs.until(bus, "all payments", lambda: len(jobs.values(bus, "paid")) >= len(expected), SETTLED_S)
    found = jobs.values(bus, "paid")
    assert {one["id"]: f"{Decimal(str(one['amount'])):.2f}" for one in found} == expected
    assert len(found) == len(expected)
    assert {one["card"] for one in found} == {"…1234"}


def test_turbines_are_a_table_that_readings_are_joined_with(bus: Bus) -> None:
    jobs.until(bus, "the table", lambda: bus.run("table", "get", "turbines", "7").returncode == 0, SETTLED_S)
    assert bus.json("table", "get", "turbines", "7")["value"] == {"place": "hill 7", "kilowatts": 7.0}
    jobs.until(bus, "all readings", lambda: len(jobs.values(bus, "placed")) >= READINGS, SETTLED_S)
    found = jobs.values(bus, "placed")
    assert Counter(one["turbine"] for one in found) == Counter(n % TURBINES for n in range(READINGS))
    # A batch that ran before the table was there found no place.
    assert {one["place"] for one in found if one["turbine"] == 7} <= {"hill 7", None}


def test_days_have_totals_in_the_table_and_in_the_lake(bus: Bus) -> None:
    counts: Counter[str] = Counter()
    amounts: dict[str, Decimal] = {}
    for at, amount in SALES:
        day = second(at)[:10]
        counts[day] += 1
        amounts[day] = amounts.get(day, Decimal(0)) + Decimal(amount)
    expected = {day: (counts[day], amounts[day]) for day in counts}
    assert len(expected) == 2

    def table() -> dict[str, tuple[int, Decimal]]:
        ended = bus.run("table", "scan", "totals", "-o", "json")
        rows = json.loads(ended.stdout, parse_float=Decimal) if ended.returncode == 0 else []
        return {row["key"]: (row["value"]["sales"], Decimal(row["value"]["amount"])) for row in rows}

    jobs.until(bus, "both days", lambda: table() == expected, SETTLED_S)
    sql = "SELECT _date, count(*) AS sales, sum(amount) AS amount FROM sales GROUP BY _date"
    jobs.until(bus, "the lake", lambda: jobs.told(bus, "sales")["records"] >= len(SALES), SETTLED_S)
    told = json.loads(bus.done("sql", sql, "-o", "json"), parse_float=Decimal)
    assert {row["_date"]: (row["sales"], Decimal(row["amount"])) for row in told} == expected
