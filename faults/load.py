"""Authors that write to Events continuously: a request without an answer is sent again unchanged, until it is answered.

Every write has its own transaction id, the same on every repeat, so the log itself shows its outcome.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import aiohttp

AUTHORS = 50
_STATES = ("VOD_PRIVATE", "VOD_PUBLIC")
_LATER = frozenset({409, 429, 500, 502, 503})
_PATCH = "application/json-patch+json"


class NotUnderstood(Exception):
    """Raised for an answer that no fault explains."""


@dataclass(frozen=True, slots=True)
class Write:
    """A request, the same however often it is sent."""

    transaction: str
    method: str
    path: str
    body: Any
    content_type: str = "application/json"


class Load:
    """The load. `per_second` is the rate of all authors together, as long as they are answered in time."""

    def __init__(self, name: str, addresses: Sequence[str], *, key: str, per_second: float, dice: random.Random) -> None:
        self.acknowledged: list[str] = []
        """Transaction ids."""
        self.repeated = 0
        self.lost: set[str] = set()
        """The writes that a primary acknowledged and whose standby never got them."""
        self._name = name
        self._addresses = addresses
        self._key = key
        self._pause = AUTHORS / per_second
        self._dice = dice
        self._over = asyncio.Event()
        self._going = asyncio.Event()
        self._going.set()
        self._under_way = 0
        self._quiet = asyncio.Event()
        self._authors: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._http = aiohttp.ClientSession(
            headers={"API-KEY": self._key}, timeout=aiohttp.ClientTimeout(20), connector=aiohttp.TCPConnector(limit=0)
        )
        self._authors = [asyncio.create_task(self._author(number)) for number in range(AUTHORS)]

    async def hush(self) -> None:
        """Pause the load. When this returns, no write is in progress, and none begins before `resume`."""
        self._going.clear()
        self._quiet.clear()
        if self._under_way:
            await self._quiet.wait()

    def resume(self, *, lost: Iterable[str] = ()) -> None:
        """Continue the load. `lost` are transactions that the log does not hold any more. Authors then begin with new Events, since
        they do not know the state of the others."""
        self.lost |= set(lost)
        self._going.set()

    async def finish(self) -> None:
        """Wait until every write that was begun is answered."""
        self._over.set()
        try:
            await asyncio.gather(*self._authors)
        finally:
            await self.close()

    async def close(self) -> None:
        for author in self._authors:
            author.cancel()
        await asyncio.gather(*self._authors, return_exceptions=True)
        await self._http.close()

    async def _author(self, author: int) -> None:
        await self._rest(self._pause * self._dice.random())
        event, state, number, lost = "", 0, 0, 0
        while not self._over.is_set():
            await self._going.wait()
            if lost != len(self.lost):
                event, lost = "", len(self.lost)
            number += 1
            transaction = f"{self._name}-{author}-{number}"
            draw = self._dice.random()
            if not event or draw < 0.03:
                made = await self._carried_through(Write(transaction, "POST", "/api/event/", {"title": transaction}))
                event, state = str(UUID(made["id"])), 0
            elif draw < 0.5:
                state += 1
                body = {"state": _STATES[state % len(_STATES)]}
                await self._carried_through(Write(transaction, "PUT", f"/api/event/state/{event}", body))
            else:
                steps = [{"op": "replace", "path": "/title", "value": transaction}]
                await self._carried_through(Write(transaction, "PATCH", f"/api/event/{event}", steps, _PATCH))
            await self._rest(self._pause * (0.5 + self._dice.random()))

    async def _carried_through(self, write: Write) -> Any:
        headers = {"X-Transaction-ID": write.transaction, "Content-Type": write.content_type}
        if write.method == "POST":
            headers["Idempotency-Key"] = write.transaction
        self._under_way += 1
        try:
            return await self._until_answered(write, headers)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._quiet.set()

    async def _until_answered(self, write: Write, headers: dict[str, str]) -> Any:
        while True:
            address = self._dice.choice(self._addresses)
            try:
                async with self._http.request(write.method, address + write.path, json=write.body, headers=headers) as answer:
                    if answer.status < 300:
                        shown = await answer.json()
                        self.acknowledged.append(write.transaction)
                        return shown
                    if answer.status not in _LATER:
                        raise NotUnderstood(f"{write.method} {write.path}: {answer.status} {await answer.text()}")
            except (aiohttp.ClientError, TimeoutError):
                pass
            self.repeated += 1
            await asyncio.sleep(0.05)

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return
