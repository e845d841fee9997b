"""Polling: for commands that show a state again and again, until an end or Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from domain.kernel.errors import Unavailable

INTERVAL: Final = 0.5
"""Seconds between two reads."""

T = TypeVar("T")


@contextmanager
def until_interrupted() -> Iterator[None]:
    """A block that ends on Ctrl-C without an error."""
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()  # or the clean-up after the block would be cancelled too


async def retry_unavailable(read: Callable[[], Awaitable[T]]) -> T:
    """The result of `read`, repeated while the database is unavailable."""
    printed = False
    while True:
        try:
            return await read()
        except Unavailable as fault:
            if not printed:
                print(f"medialedger: {fault}; waiting for it", file=sys.stderr)
            printed = True
            await asyncio.sleep(INTERVAL)
