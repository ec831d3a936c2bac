"""Holds: notes beside a node that say "stopped on purpose, leave it alone", with the reason.

Whoever stops a node for a while (a roll, a fence, a drill, `down`) writes one first; whoever
starts it removes it. The supervisor restarts only nodes without a hold.
"""

from __future__ import annotations

import errno

from twinlog.durable import write_text
from twinlog.sites.layout import Node

FILE = "held"


def hold(node: Node, why: str) -> None:
    """Say that the node is stopped on purpose."""
    if node.directory.exists():
        try:
            write_text(node.directory / FILE, why + "\n")
        except OSError as error:
            if error.errno != errno.ENOSPC:  # a node on a full disk must be stopped too
                raise


def release(node: Node) -> None:
    """The node may run again."""
    (node.directory / FILE).unlink(missing_ok=True)


def reason(node: Node) -> str:
    """Why the node is held; empty when it is not."""
    try:
        return (node.directory / FILE).read_text().strip() or "no reason given"
    except FileNotFoundError:
        return ""
