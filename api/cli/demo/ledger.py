"""The actions of the demo, as recorded in the log. Every request of the demo has its own transaction id, `demo-NUMBER/NAME`. So a
later start finds the finished steps, and a removal finds the objects to remove, even if people have renamed or moved them. NUMBER
grows with every removal: it is the number of times that the client of the demo was added."""

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
class DemoChange:
    """An event of the log that the demo caused."""

    aggregate: str
    id: str
    version: int
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """A request that is sent once. `name` identifies it permanently; `by` is the person on whose behalf it is sent; `about` is the
    kind of the aggregate whose id is needed, if the request changes other aggregates too."""

    name: str
    method: str
    path: str
    body: Any = None
    by: str | None = None
    about: str | None = None


class Ledger:
    """Sends each step once over all starts together."""

    def __init__(self, product: ProductClient, number: int, *, done: dict[str, list[DemoChange]]) -> None:
        self.product = product
        self._number = number
        self._done = done
        self._limit = asyncio.Semaphore(_AT_A_TIME)

    @classmethod
    async def read(cls, product: ProductClient) -> Ledger:
        """Return the ledger of the loaded demo, else an empty one with the next number."""
        added = await product.get(f"/api/audit/client/{CLIENT}/")
        number = 1 + sum(entry["type"] == _RESTORED for entry in added)
        done: dict[str, list[DemoChange]] = {}
        for entry in await _entries(product, actor=CLIENT):
            prefix, _, name = entry["transactionId"].partition("/")
            if entry["actor"] == CLIENT and prefix == f"demo-{number}":
                done.setdefault(name, []).append(_change_of(entry))
        return cls(product, number, done=done)

    @property
    def number(self) -> int:
        return self._number

    @property
    def created(self) -> Sequence[DemoChange]:
        """The first event of each object that the demo has created, in the order of the log."""
        return [change for entries in self._done.values() for change in entries if change.version == 1 or change.type == _RESTORED]

    def find(self, name: str, *, about: str | None = None) -> DemoChange | None:
        """Return the first event of a step that was sent; None if it was not."""
        return next((change for change in self._done.get(name, ()) if about in (None, change.aggregate)), None)

    async def once(self, step: DemoRequest) -> str:
        """Send the step unless it was sent before. Return the id of the object that it is about."""
        if (change := self.find(step.name, about=step.about)) is None:
            await self.send(step)
            change = self.find(step.name, about=step.about)
        return change.id if change is not None else ""

    async def send(self, step: DemoRequest) -> Any:
        """Send the step, even if it was sent before. Return the answer."""
        transaction = f"demo-{self._number}/{step.name}"
        headers = {"X-Transaction-ID": transaction} | ({} if step.by is None else {"X-Actor": step.by})
        if step.method == "PATCH":
            headers |= JSON_PATCH
        async with self._limit:
            answer = await self.product.send(step.method, step.path, body=step.body, headers=headers)
            entries = [_change_of(entry) for entry in await _entries(self.product, transactionId=transaction)]
        if entries:
            self._done[step.name] = entries
        return answer

    async def all(self, steps: Sequence[DemoRequest]) -> list[str]:
        """Send several steps that do not depend on each other. Return the ids of their objects."""
        return list(await asyncio.gather(*map(self.once, steps)))


async def _entries(product: ProductClient, **query: str) -> list[dict[str, Any]]:
    """Return the entries of the log, the oldest first."""
    entries, query_of_page = [], {**query, "after": "0", "pageSize": "1000"}
    while True:
        page = await product.get("/api/audit/events/", **query_of_page)
        entries += page["results"]
        if page["next"] is None:
            return entries
        query_of_page = dict(parse_qsl(urlsplit(page["next"]).query))


def _change_of(entry: Mapping[str, Any]) -> DemoChange:
    return DemoChange(entry["aggregate"], entry["id"], entry["version"], entry["type"], entry["data"])


async def wait_for_job(product: ProductClient, job: str, *, pause: float = 0.5) -> Mapping[str, Any]:
    """Wait until a job has ended and return it."""
    while True:
        document = await product.get(f"/engine/jobs/{job}")
        if not isinstance(document, dict):
            raise StartError(f"the job {job} does not exist")
        if document["queue_state"] in ("completed", "broken", "paused"):
            return document
        await asyncio.sleep(pause)
