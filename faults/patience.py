"""Waiting, with an end, for what other processes do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def waited(condition: Callable[[], bool], *, seconds: float, every: float = 0.05) -> float:
    """Seconds until the condition held, or how long it was waited for. It is looked at `every` so many seconds."""
    begun = time.monotonic()
    while not condition() and time.monotonic() < begun + seconds:  # noqa: ASYNC110 - what is watched are other processes
        await asyncio.sleep(every)
    return time.monotonic() - begun
