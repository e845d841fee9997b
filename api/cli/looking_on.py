"""For commands that look on while something goes on elsewhere, until it ends or the person has seen enough."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from domain.kernel.errors import Unavailable

PAUSE: Final = 0.5
"""Seconds between two looks."""

T = TypeVar("T")


@contextmanager
def looking_on() -> Iterator[None]:
    """Ctrl-C is how looking on ends, not a fault."""
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()  # or whatever is closed after this would be cut off too


async def patiently(look: Callable[[], Awaitable[T]]) -> T:
    """A database that is away is waited for."""
    told = False
    while True:
        try:
            return await look()
        except Unavailable as fault:
            if not told:
                print(f"medialedger: {fault}; waiting for it", file=sys.stderr)
            told = True
            await asyncio.sleep(PAUSE)
