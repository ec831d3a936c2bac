"""The connections of a small server: bounded in number, each with a time limit of its own.

Used by the health page and the DNS server for what they say over TCP. A connection is closed when its
conversation ends, however it ends; beyond the limit, and after the close, new ones are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class Conversations:
    """All connections that are open now."""

    def __init__(self, converse: Converse, limit: int) -> None:
        self._converse = converse
        self._limit = limit
        self._under_way: set[asyncio.Task[None]] = set()
        self._closed = False

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin one, or drop it."""
        # Connections that were accepted before the close come in a moment after it.
        if self._closed or len(self._under_way) >= self._limit:
            writer.transport.abort()
            return
        conversation = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._under_way.add(conversation)
        # Not in the conversation itself: one that is cancelled before it begins would never get there.
        conversation.add_done_callback(partial(self._end, writer))

    async def close(self) -> None:
        """End all of them and take no more."""
        self._closed = True
        for conversation in self._under_way:
            conversation.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _end(self, writer: asyncio.StreamWriter, conversation: asyncio.Task[None]) -> None:
        self._under_way.discard(conversation)
        # Not close: a client that does not read its answer would keep the socket.
        writer.transport.abort()
