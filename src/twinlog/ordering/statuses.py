"""Why a message was not taken: the status that its sender gets, and a sentence.

Raised by the checks of Broadcast and Deliver, turned into a response by their streams. The numbers are
those of `common.Status`; 413 exists and is not used: what is too large is a bad request.
"""

from __future__ import annotations

from typing import Final

SUCCESS: Final = 200
BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
INTERNAL_SERVER_ERROR: Final = 500
SERVICE_UNAVAILABLE: Final = 503

NAMES: Final = {
    SUCCESS: "SUCCESS",
    BAD_REQUEST: "BAD_REQUEST",
    FORBIDDEN: "FORBIDDEN",
    NOT_FOUND: "NOT_FOUND",
    INTERNAL_SERVER_ERROR: "INTERNAL_SERVER_ERROR",
    SERVICE_UNAVAILABLE: "SERVICE_UNAVAILABLE",
}


class Refusal(Exception):
    """A request that is answered with a status other than SUCCESS."""

    def __init__(self, status: int, info: str) -> None:
        super().__init__(info)
        self.status = status
        self.info = info


def bad(info: str) -> Refusal:
    """A request that could not be understood, or asks for what cannot be."""
    return Refusal(BAD_REQUEST, info)
