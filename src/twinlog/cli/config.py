"""`twinlog config`: settings of brokers, topics, groups and loggers, with where each comes from."""

from __future__ import annotations

from typing import Any

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.reach import Reached, file_differs, reached, refuse_copy, site_options
from twinlog.errors import UsageError

# Written out, because the module that defines them is too heavy for `--help`; a test compares them.
KINDS = ["broker", "topic", "group", "logger"]
command = frame.group("config", "Look at and change settings of brokers, topics, groups and loggers.")
_kind = click.argument("kind", type=click.Choice(KINDS))
_name = click.argument("name")


@frame.command(
    parent=command,
    name="describe",
    example="""
    twinlog config describe topic orders
    twinlog config describe broker 1001 log.retention.ms --words
    twinlog config describe broker all --given
    """,
)
@_kind
@_name
@click.argument("keys", nargs=-1)
@click.option("--given", is_flag=True, help="Only what somebody set.")
@click.option("--words", is_flag=True, help="With Kafka's documentation of each; in JSON it is always there.")
@site_options
def describe(
    ctx: frame.Context,
    kind: str,
    name: str,
    keys: tuple[str, ...],
    given: bool,
    words: bool,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Show settings: the value, where it comes from, whether a change needs a restart.

    NAME is a broker's id or `all` (what holds for every broker), a topic, or a group.
    """
    from twinlog.ops import settings

    with reached(ctx, site, user, timeout) as reach:
        whose = settings.owner(kind, name)
        _must_exist(reach, kind, name)
        rows = settings.describe(reach.cluster, whose, keys, given_only=given)
    columns = [
        Column("setting"),
        Column("value", show=_value),
        Column("source", "from"),
        Column("needs_restart"),
    ]
    ctx.emit(Table([*columns, *([Column("documentation")] if words else [])], rows, empty="nothing was set"))


@frame.command(
    parent=command,
    name="set",
    example="""
    twinlog config set topic orders retention.ms=86400000 --yes
    twinlog config set logger 1001 org.apache.kafka=DEBUG
    """,
    confirms=True,
)
@_kind
@_name
@click.argument("given", nargs=-1, required=True, metavar="KEY=VALUE...")
@site_options
def set_values(
    ctx: frame.Context,
    kind: str,
    name: str,
    given: tuple[str, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Change settings of a running site, without a restart.

    The file does not learn of it: on a site of our own the next apply sets what the file says.
    """
    from twinlog.cli.topic_changes import pairs

    _change(ctx, (kind, name), pairs(given), (), (site, user, timeout))


@frame.command(
    parent=command,
    name="unset",
    confirms=True,
    example="twinlog config unset topic orders retention.ms --yes",
)
@_kind
@_name
@click.argument("keys", nargs=-1, required=True)
@site_options
def unset(
    ctx: frame.Context,
    kind: str,
    name: str,
    keys: tuple[str, ...],
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Take settings back, so that what is below them holds again."""
    _change(ctx, (kind, name), {}, keys, (site, user, timeout))


def _change(
    ctx: frame.Context,
    owner: tuple[str, str],
    values: dict[str, str],
    keys: tuple[str, ...],
    where: tuple[str | None, str | None, float],
) -> None:
    from twinlog.cli.topic_changes import given_settings
    from twinlog.ops import lines, settings
    from twinlog.ops.plan import loses_records

    kind, name = owner
    with reached(ctx, *where) as reach:
        whose = settings.owner(kind, name)
        _must_exist(reach, kind, name)
        if kind == "topic":
            refuse_copy(reach, name, "a topic is not changed")
            if loses_records(values, keys, given_settings(reach, name)):
                ctx.need_yes("Kafka will delete records that it keeps now", where=f"topic {name}")
        settings.change(reach.cluster, whose, values=values, unset=keys)
        if kind == "topic":
            what = f"the file does not say this of topic '{name}': the next apply sets what it says"
            line = lines.topic_line(name, config=values) if values else ""
            file_differs(ctx, reach.home, "topics", what, line)
        elif kind == "broker":
            what = "the file does not say this: a site that is brought up anew does not have it"
            shown = _without_secrets(values)
            line = "  and  ".join(lines.setting_line(key, value) for key, value in shown.items())
            file_differs(ctx, reach.home, "kafka", what, line)
    columns = [Column("kind"), Column("name"), Column("set", show=_pairs), Column("unset")]
    ctx.emit(Record(columns, {"kind": kind, "name": name, "set": _without_secrets(values), "unset": keys}))


def _must_exist(reach: Reached, kind: str, name: str) -> None:
    """Kafka answers questions about topics and brokers that are not there late or oddly."""
    from twinlog.ops import catalogue

    if kind == "topic":
        catalogue.existing(reach.cluster, [name])
    elif kind in ("broker", "logger") and name.isdigit():
        known = [broker.id for broker in reach.cluster.brokers()]
        if int(name) not in known:
            listed = ", ".join(map(str, known))
            raise UsageError(
                f"there is no live broker {name}", where=f"site {reach.site}", hint=f"alive are {listed}"
            )


def _without_secrets(values: dict[str, str]) -> dict[str, str]:
    from twinlog.wire.configs import without_secrets

    return {key: without_secrets(value, {key: value}) or "" for key, value in values.items()}


def _value(value: Any) -> str:
    return "(hidden)" if value is None else str(value)


def _pairs(value: dict[str, str]) -> str:
    return ", ".join(f"{key}={text}" for key, text in value.items()) or "none"
