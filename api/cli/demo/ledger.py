"""What the demo has made, as the log tells it.

Every request of the demo carries a transaction id of its own, `demo-NUMBER/NAME`. So a later start finds what was done, and a
removal finds what to remove, also when people have renamed or moved it. NUMBER grows with every removal: it says how often the
client of the demo was added.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from api.cli.demo.product import ProductClient
from api.wiring.startup import StartError
from domain.client.names import DEMO_LOADER

CLIENT: Final = DEMO_LOADER
_RESTORED: Final = "client.restored"
_AT_A_TIME: Final = 8
JSON_PATCH: Final = {"Content-Type": "application/json-patch+json"}


@dataclass(frozen=True, slots=True)
class Made:
    """An event of the log that the demo caused."""

    aggregate: str
    id: str
    version: int
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """A request that is sent once. `name` is its name for ever; `by` is the person that it is made for; `about` is the kind of the
    aggregate that is asked for, where the request changes others too."""

    name: str
    method: str
    path: str
    body: Any = None
    by: str | None = None
    about: str | None = None


class Ledger:
    """Sends each step once, in all starts together."""

    def __init__(self, product: ProductClient, number: int, *, done: dict[str, list[Made]]) -> None:
        self.product = product
        self._number = number
        self._done = done
        self._limit = asyncio.Semaphore(_AT_A_TIME)

    @classmethod
    async def read(cls, product: ProductClient) -> Ledger:
        """The demo that is there, else an empty one with the next number."""
        added = await product.get(f"/api/audit/client/{CLIENT}/")
        number = 1 + sum(entry["type"] == _RESTORED for entry in added)
        done: dict[str, list[Made]] = {}
        for entry in await _entries(product, actor=CLIENT):
            prefix, _, name = entry["transactionId"].partition("/")
            if entry["actor"] == CLIENT and prefix == f"demo-{number}":
                done.setdefault(name, []).append(_made(entry))
        return cls(product, number, done=done)

    @property
    def number(self) -> int:
        return self._number

    @property
    def created(self) -> Sequence[Made]:
        """The first event of everything that the demo has created, in the order of the log."""
        return [made for entries in self._done.values() for made in entries if made.version == 1 or made.type == _RESTORED]

    def find(self, name: str, *, about: str | None = None) -> Made | None:
        """The first event of a step that was sent."""
        return next((made for made in self._done.get(name, ()) if about in (None, made.aggregate)), None)

    async def once(self, step: Step) -> str:
        """The id of what the step is about."""
        if (made := self.find(step.name, about=step.about)) is None:
            await self.send(step)
            made = self.find(step.name, about=step.about)
        return made.id if made is not None else ""

    async def send(self, step: Step) -> Any:
        """Send it, whether or not it was sent before. The answer."""
        transaction = f"demo-{self._number}/{step.name}"
        headers = {"X-Transaction-ID": transaction} | ({} if step.by is None else {"X-Actor": step.by})
        if step.method == "PATCH":
            headers |= JSON_PATCH
        async with self._limit:
            answer = await self.product.send(step.method, step.path, body=step.body, headers=headers)
            entries = [_made(one) for one in await _entries(self.product, transactionId=transaction)]
        if entries:
            self._done[step.name] = entries
        return answer

    async def all(self, steps: Sequence[Step]) -> list[str]:
        """Several that do not depend on each other."""
        return list(await asyncio.gather(*map(self.once, steps)))


async def _entries(product: ProductClient, **query: str) -> list[dict[str, Any]]:
    """From the oldest to the newest."""
    found, asked = [], {**query, "after": "0", "pageSize": "1000"}
    while True:
        page = await product.get("/api/audit/events/", **asked)
        found += page["results"]
        if page["next"] is None:
            return found
        asked = dict(parse_qsl(urlsplit(page["next"]).query))


def _made(entry: Mapping[str, Any]) -> Made:
    return Made(entry["aggregate"], entry["id"], entry["version"], entry["type"], entry["data"])


async def ended(product: ProductClient, job: str, *, pause: float = 0.5) -> Mapping[str, Any]:
    """A job when it has ended."""
    while True:
        found = await product.get(f"/engine/jobs/{job}")
        if not isinstance(found, dict):
            raise StartError(f"there is no job {job}")
        if found["queue_state"] in ("completed", "broken", "paused"):
            return found
        await asyncio.sleep(pause)
