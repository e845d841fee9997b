"""Clients that provision and terminate Events that share infrastructure keys, until they are told to end."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from faults.asking import Answered, Asking
from faults.provisioning_stage import RESOURCES
from faults.stage import KEY

_HEADERS: Final = {"API-KEY": KEY}
_LOOK: Final = 0.2
_PATIENCE: Final = 180.0
_RESTING: Final = ("SCHEDULED", "PROVISIONING_FAILED", "PROVISIONED", "TERMINATING_FAILED", "TERMINATED")


@dataclass(slots=True)
class ProvisionTally(Answered):
    """The answers. `wishes` holds the last request for each Event; `races` counts the times that two Events of a key were changed
    at once."""

    wishes: dict[str, bool] = field(default_factory=dict)
    acts: Counter[str] = field(default_factory=Counter)
    races: int = 0


class ProvisionLoad:
    """Clients with two Events for each of so many keys. On the first key they race all the time."""

    def __init__(self, addresses: Sequence[str], *, keys: int, races: int, dice: random.Random) -> None:
        self.tally = ProvisionTally()
        self.asked = asyncio.Event()
        self._asking = Asking(addresses, tally=self.tally, dice=dice)
        self._keys = [f"k{number}" for number in range(keys)]
        self._races = races
        self._dice = dice
        self._numbers = iter(range(1_000_000))
        self._events: dict[str, list[str]] = {}
        self._over = asyncio.Event()
        self._authors: asyncio.Future[Any] | None = None
        self._deck: dict[str, Callable[[Sequence[str]], Awaitable[None]]] = {
            "start and stop": self._start_and_stop,
            "two, one after the other": self._two,
            "stop in the middle": self._cancel,
            "start, stop, start": self._flicker,
            "reset": self._reset,
        }

    async def prepare(self) -> None:
        for key in self._keys:
            resources = [{"name": name, "type": name.partition("-")[0]} for name in RESOURCES]
            options = {"deploymentType": "template", "isolationMode": "byInfrastructure"}
            request = {"infrastructureKey": key, "options": options, "resources": resources}
            body = {"name": key, "configurationJson": json.dumps({"request": request, "workflow": {"termination": []}})}
            profile = (await self._ask("POST", "/api/infrastructureprofile/", body, once=True))["id"]
            event = {"title": key, "infrastructureProfileId": profile}
            self._events[key] = [str((await self._ask("POST", "/api/event/", event, once=True))["id"]) for _ in range(2)]

    async def calm(self) -> None:
        """Bring each key up and down once."""
        await asyncio.gather(*(self._start_and_stop(events) for events in self._events.values()))

    def start(self) -> None:
        first, *others = self._events.values()
        self._authors = asyncio.gather(self._race_on(first), *(self._author(events) for events in others))

    @property
    def failed(self) -> bool:
        """True if the clients ended before they were told to."""
        return self._authors is not None and self._authors.done() and not self._over.is_set()

    async def finish(self) -> None:
        """Leave every second key up, and wait until everything has come to rest."""
        self._over.set()
        assert self._authors is not None
        await self._authors
        for number, events in enumerate(self._events.values()):
            for event in events:
                await self._brought(event, up=number % 2 == 0 and event == events[0])

    async def close(self) -> None:
        if self._authors is not None:
            self._authors.cancel()
            await asyncio.gather(self._authors, return_exceptions=True)
        await self._asking.close()

    async def _author(self, events: Sequence[str]) -> None:
        remaining: list[str] = []
        while not (self._over.is_set() and self._deck.keys() <= self.tally.acts.keys()):
            remaining = remaining or self._dice.sample([*self._deck], len(self._deck))
            name = remaining.pop()
            await self._deck[name](events)
            self.tally.acts[name] += 1
            await asyncio.sleep(self._dice.choice((0.0, 0.5, 2.0)))

    async def _race_on(self, events: Sequence[str]) -> None:
        """Change both Events at the same time, in random order; from time to time wait until they come to rest."""
        while not (self._over.is_set() and self.tally.races >= self._races):
            await asyncio.gather(*(self._put(event, up=self._dice.random() < 0.5) for event in events))
            self.tally.races += 1
            await asyncio.sleep(self._dice.random() * 0.5)
            if self.tally.races % 5 == 0:
                await asyncio.gather(*(self._rested(event) for event in events))

    # --- acts

    async def _start_and_stop(self, events: Sequence[str]) -> None:
        await self._brought(events[0], up=True)
        await self._brought(events[0], up=False)

    async def _two(self, events: Sequence[str]) -> None:
        """Terminate the first Event while the second needs the infrastructure."""
        await self._brought(events[0], up=True)
        await self._brought(events[1], up=True)
        await self._brought(events[0], up=False)
        await asyncio.sleep(self._dice.random())
        await self._brought(events[1], up=False)

    async def _cancel(self, events: Sequence[str]) -> None:
        await self._put(events[0], up=True)
        await asyncio.sleep(self._dice.uniform(0, 2))
        await self._brought(events[0], up=False)

    async def _flicker(self, events: Sequence[str]) -> None:
        for up in (True, False, True):
            await self._put(events[1], up=up)
        await self._rested(events[1])
        await self._brought(events[1], up=False)

    async def _reset(self, events: Sequence[str]) -> None:
        await self._brought(events[0], up=True)
        await self._ask("DELETE", f"/api/provision/reset/{events[0]}")
        self.tally.wishes[events[0]] = False

    # --- requests

    async def _put(self, event: str, *, up: bool) -> None:
        """Send a request. While the opposite one is in progress it is refused until that has ended."""
        await self._ask("POST" if up else "DELETE", f"/api/provision/{event}")
        self.tally.wishes[event] = up
        self.asked.set()

    async def _brought(self, event: str, *, up: bool) -> None:
        """Bring an Event up or down, and retry if it failed, for example because of a full disk."""
        wanted = ("PROVISIONED",) if up else ("TERMINATED", "SCHEDULED")
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            await self._put(event, up=up)
            if await self._rested(event) in wanted:
                return

    async def _rested(self, event: str) -> str:
        deadline = time.monotonic() + _PATIENCE
        state = ""
        while state not in _RESTING and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK)
            state = (await self._ask("GET", f"/api/provision/{event}"))["stateString"]
        return str(state)

    async def _ask(self, method: str, path: str, body: Any = None, *, once: bool = False) -> Any:
        """Send a request and return the JSON of its answer. With `once` it is executed once, however often it is sent."""
        headers = {**_HEADERS, "Idempotency-Key": f"provisioning {next(self._numbers)}"} if once else _HEADERS
        return (await self._asking.answer(method, path, body, headers=headers))[1]
