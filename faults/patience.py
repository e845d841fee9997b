"""Limited waiting for what other processes do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def waited(condition: Callable[[], bool], *, seconds: float, every: float = 0.05) -> float:
    """Wait until the condition holds, for at most `seconds`, and return the seconds waited. The condition is checked `every` so
    many seconds."""
    begun = time.monotonic()
    while not condition() and time.monotonic() < begun + seconds:  # noqa: ASYNC110 - what is watched are other processes
        await asyncio.sleep(every)
    return time.monotonic() - begun
