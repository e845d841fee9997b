"""How work that never ends goes on: every fault is told, and none ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from domain.kernel.errors import Unavailable

_PAUSE: Final = 0.5

_log = logging.getLogger(__name__)


async def again(work: Callable[[], Awaitable[object]], *, what: str, until: Callable[[], bool] = lambda: False) -> None:
    """One kind of work, again and again, whatever fails meanwhile. A database that is away is told of once."""
    trouble = ""
    while not until():
        try:
            await work()
            trouble = ""
        except Unavailable as fault:
            if str(fault) != trouble:
                _log.warning("%s: %s; trying again until it works", what, fault)
            trouble = str(fault)
            await asyncio.sleep(_PAUSE)
        except Exception:
            _log.exception("%s: failed; trying again", what)
            await asyncio.sleep(_PAUSE)
