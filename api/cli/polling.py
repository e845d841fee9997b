"""Polling, for commands that show a state repeatedly until an end or Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

INTERVAL: Final = 0.5
"""The seconds between two reads."""

T = TypeVar("T")


async def retry_unavailable(read: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `read`, which is repeated while the database is unavailable."""
    import asyncio  # commands that call the API wait without it

    from domain.kernel.errors import Unavailable

    printed = False
    while True:
        try:
            return await read()
        except Unavailable as fault:
            if not printed:
                print(f"medialedger: {fault}; waiting for it", file=sys.stderr)
            printed = True
            await asyncio.sleep(INTERVAL)
