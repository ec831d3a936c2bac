"""The checks that every message passes, in their order: content, size, identity, policy, signature. Pure.

Run by `processing` for what Broadcast takes, for configs that this orderer makes itself, and again for
messages that come from the log with an old config sequence. Nothing here remembers anything.
"""

from __future__ import annotations

from datetime import datetime

from twinlog.ordering.bundle import Bundle
from twinlog.ordering.identity import expires_at
from twinlog.ordering.messages import Message
from twinlog.ordering.policy import SignedData
from twinlog.ordering.statuses import FORBIDDEN, Refusal, bad


def check(message: Message, bundle: Bundle, now: datetime | None) -> None:
    """Raise a refusal unless the message may be ordered; without `now` certificates never end."""
    if not message.payload:
        raise bad("the message has no payload")
    limit_bytes = bundle.batch_size.absolute_max_bytes
    if message.size_bytes > limit_bytes:
        raise bad(f"the message has {message.size_bytes} bytes and the channel allows {limit_bytes}")
    if now is not None and bundle.checks_expiry:
        check_expiry(message.creator, now)
    if not bundle.writers.evaluate([SignedData(message.payload, message.creator, message.signature)]):
        raise Refusal(FORBIDDEN, "permission denied: the channel's policy for writers is not satisfied")
    if not message.signature:
        # A policy without organisations lets it through; peers refuse the block that it would be in.
        raise bad("the message is not signed")


def check_expiry(creator: bytes, now: datetime) -> None:
    """Raise a refusal for a certificate that has ended; bytes that are none decide nothing."""
    end = expires_at(creator)
    if end is not None and now > end:
        raise bad("identity expired")
