"""HTTP requests that are repeated, to any process, until they are answered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from faults.load import NotUnderstood

_LATER: Final = frozenset({409, 429, 500, 502, 503})
_AGAIN: Final = 0.2


@dataclass(slots=True)
class Answered:
    """The number of answered commands, and of requests that were `repeated` for lack of an answer."""

    commands: int = 0
    repeated: int = 0


class Asking:
    """Sends requests and counts them in `tally`."""

    def __init__(self, addresses: Sequence[str], *, tally: Answered, dice: random.Random) -> None:
        self._addresses = addresses
        self._tally = tally
        self._dice = dice
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20), connector=aiohttp.TCPConnector(limit=0))

    async def close(self) -> None:
        await self._http.close()

    async def answer(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str], fine: Sequence[int] = ()
    ) -> tuple[int, Any]:
        """Return the status, which is 2xx or one of `fine`, and the JSON of the answer."""
        while True:
            try:
                async with self._http.request(
                    method, self._dice.choice(self._addresses) + path, json=body, headers=headers
                ) as answer:
                    if answer.status < 300 or answer.status in fine:
                        self._tally.commands += 1
                        return answer.status, await answer.json()
                    if answer.status not in _LATER:
                        raise NotUnderstood(f"{method} {path}: {answer.status} {await answer.text()}")
            except (aiohttp.ClientError, TimeoutError):
                pass
            self._tally.repeated += 1
            await asyncio.sleep(_AGAIN * self._dice.uniform(0.5, 1.5))
