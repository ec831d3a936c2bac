"""Every command that asks a site something, with names that no site has.

For tests of what commands say where things go wrong: `tests/program` tries them where nobody answers,
`tests/cluster` where the topic, the group or the right is missing. One that is new must be added here.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from twinlog.cli.app import program

TOPIC, GROUP, BROKER = "nothing-there", "nobody-there", "999999"
EVERY: dict[str, tuple[str, ...]] = {
    "topic advise": ("--peak-rate", "1", "--record-size", "1KB", "--seconds", "0.5"),
    "topic alter": (TOPIC, "--partitions", "9", "--yes"),
    "topic create": (TOPIC,),
    "topic delete": (TOPIC, "--yes"),
    "topic describe": (TOPIC,),
    "topic list": (),
    "topic offsets": (TOPIC,),
    "topic size": (TOPIC,),
    "topic trim": (TOPIC, "--before", "end", "--yes"),
    "produce": (TOPIC,),
    "consume": (TOPIC,),
    "redrive": (TOPIC, "--yes"),
    "group delete": (GROUP, "--yes"),
    "group describe": (GROUP,),
    "group lag": (GROUP,),
    "group list": (),
    "group members": (GROUP,),
    "group reset": (GROUP, "--to", "end", "--yes"),
    "config describe": ("topic", TOPIC),
    "config set": ("topic", TOPIC, "retention.ms=1", "--yes"),
    "config unset": ("topic", TOPIC, "retention.ms", "--yes"),
    "transactions abort": (GROUP, "--yes"),
    "transactions describe": (GROUP,),
    "transactions list": (),
    "producers": (TOPIC,),
    "quorum": (),
    "broker api-versions": (BROKER,),
    "broker list": (),
    "broker log-dirs": (BROKER,),
    "move cancel": (),
    "move plan": ("--topic", TOPIC),
    "move run": ("--topic", TOPIC),
    "move status": (),
    "move throttle": ("none",),
    "elect": (TOPIC,),
    "events check": (TOPIC,),
}
# Those that work at all sites at once, or on nodes, or serve. They have no `--user`.
BESIDE: dict[str, tuple[str, ...]] = {
    "user add": ("nobody-there", "--consume", TOPIC),
    "user grant": ("nobody-there", "--consume", TOPIC),
    "user revoke": ("nobody-there", "--consume", TOPIC),
    "user rights": (),
    "user quota": ("nobody-there", "--produce", "1MB/s"),
    "user list": (),
    "user show-password": ("nobody-there",),
    "user rotate": ("nobody-there",),
    "broker roll": (BROKER,),
    "broker replace": (BROKER, "--disk-lost", "--yes"),
    "broker add": (),
    "broker remove": ("--yes",),
    "exporter": (),
}
FAMILIES = {"user", "broker", "exporter"}
# They have no time limit in seconds, or a meaning of their own for it.
APART = {"perf consume"}


def words_of(command: str) -> tuple[str, ...]:
    """A whole command line."""
    return (*command.split(), *(EVERY | BESIDE)[command])


def found_in_the_program() -> set[str]:
    """The commands that take `--site`, `--user` and `--timeout`."""
    return {
        " ".join(path)
        for path, command in _leaves(program(), ())
        if {"site", "user", "timeout"} <= {parameter.name for parameter in command.params}
    } - APART


def beside_in_the_program() -> set[str]:
    """The other commands of the families that ask sites without such options."""
    found = {" ".join(path) for path, _ in _leaves(program(), ()) if path[0] in FAMILIES}
    return found - found_in_the_program()


def _leaves(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _leaves(found, (*path, name))
