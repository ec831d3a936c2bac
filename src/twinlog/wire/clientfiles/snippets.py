"""Client files that are Python: a small program for confluent-kafka, and options for Spark. Pure.

Called by `write`. What is made here is read by people first: a setting a line, its reason above it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from twinlog.wire.clientfiles.tuning import Role, Tuned

_SPARK = '''"""Spark options of user {name}; they let their holder in: keep them to yourself.

    spark.readStream.format("kafka").options(**OPTIONS).option("subscribe", TOPIC).load()
    frame.write.format("kafka").options(**OPTIONS).option("topic", TOPIC).save()
"""

OPTIONS = {{
{options}
}}
'''

_PYTHON = '''"""Send and receive as user {name} with confluent-kafka since 2.10; keep it to yourself.

    python FILE produce TOPIC          a record for each line of the input
    python FILE consume TOPIC GROUP    until Ctrl-C
"""

import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

CLIENT = {{
{client}
}}
PRODUCER = CLIENT | {{
{producer}
}}
CONSUMER = CLIENT | {{
    "auto.offset.reset": "earliest",
{consumer}
}}


def produce(topic):
    """Send the lines of the input; answers whether all of them were acknowledged."""
    failures = []

    def report(error, message):
        if error is not None:
            failures.append(error)
            print(explain(error), file=sys.stderr)

    producer = Producer(PRODUCER)
    for line in sys.stdin.buffer:
        while True:
            try:
                producer.produce(topic, line.rstrip(b"\\n"), on_delivery=report)
                break
            except BufferError:  # the local queue is full: let some of it go out
                producer.poll(1)
            except KafkaException as refused:
                report(refused.args[0], None)
                break
        producer.poll(0)
    producer.flush()
    return not failures


def explain(error):
    """An error in words, with the setting that decides where there is one."""
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return f"{{error}} (message.max.bytes of the site, max.message.bytes of the topic)"
    return str(error)


def consume(topic, group):
    """Print the values of records as they come."""
    consumer = Consumer(CONSUMER | {{"group.id": group}})
    consumer.subscribe([topic])
    try:
        while True:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error():
                print(message.error(), file=sys.stderr)
                continue
            sys.stdout.buffer.write((message.value() or b"") + b"\\n")
            sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        return True
    finally:
        consumer.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["produce", topic]:
            sys.exit(0 if produce(topic) else 1)
        case ["consume", topic, group]:
            sys.exit(0 if consume(topic, group) else 1)
        case _:
            sys.exit(__doc__)
'''


def spark(name: str, settings: Iterable[Tuned]) -> str:
    """A module with the options of Spark's Kafka source and sink."""
    return _SPARK.format(name=name, options=_entries(settings, prefix="kafka."))


def python(name: str, access: Iterable[Tuned], tuned: Iterable[Tuned]) -> str:
    """A program that produces and consumes."""
    tuned = list(tuned)
    return _PYTHON.format(
        name=name,
        client=_entries([*access, *(setting for setting in tuned if setting.role is Role.ANY)]),
        producer=_entries(setting for setting in tuned if setting.role is Role.PRODUCER),
        consumer=_entries(setting for setting in tuned if setting.role is Role.CONSUMER),
    )


def _entries(settings: Iterable[Tuned], prefix: str = "") -> str:
    lines = []
    for setting in settings:
        lines += [f"    # {setting.why}"] if setting.why else []
        lines.append(f"    {_literal(prefix + setting.key)}: {_value(setting.value)},")
    return "\n".join(lines)


def _value(text: str) -> str:
    if text.startswith("-----BEGIN "):
        return f'"""{text}"""'
    return _literal(text)


def _literal(text: str) -> str:
    # JSON's strings are Python's, as long as characters beyond 65535 are not split in two.
    return json.dumps(text, ensure_ascii=False)
