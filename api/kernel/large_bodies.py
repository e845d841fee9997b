"""The queue of requests with large bodies, which serves clients in turn."""

from __future__ import annotations

from typing import Final

from api.guards.large_bodies import LargeBodies
from domain.kernel.errors import Unavailable
from projections.kernel.database.fair_queue import PATIENCE, FairQueue

_MOST: Final = 32
_WAITING: Final = 1000


def fair_large_bodies(most: int = _MOST, *, patience: float = PATIENCE) -> LargeBodies:
    """Return the limits on large bodies. At most `most` are held at the same time, half of them of one client, and one is
    processed at a time. A request that waits for `patience` seconds is refused."""
    each = (most + 1) // 2
    room = FairQueue(most, each=each, waiting=_WAITING, refusal=_too_many, counts=False, patience=patience)
    turn = FairQueue(1, each=1, waiting=most, refusal=_too_many, patience=patience)
    return LargeBodies(room.place, turn.place)


def _too_many() -> Unavailable:
    return Unavailable("too many large requests are in progress", retry_after=2)
