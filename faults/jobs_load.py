"""Clients of the job engine that submit jobs and change their minds: twice, in the wrong order, and again if there is no answer.

The required outcome of each job follows from the requests; the log shows the actual outcome.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final

from faults.asking import Answered, Asking
from faults.authors import Authors
from faults.jobs_log import Phase

AUTHORS: Final = 40
WORKFLOW: Final = "chain"
_PRIORITIES: Final[Mapping[str, Sequence[int]]] = {"studio": (1, 2, 3, 4, 4, 5, 6), "archive": (3, 5, 6, 7, 8, 9, 10)}
CLIENTS: Final = tuple(_PRIORITIES)
_SCHEDULED: Final = 0.1
_TWICE: Final = 0.15
_SOON: Final = 0.2


class Fate(StrEnum):
    """The requests about a job after it was accepted."""

    PLAIN = "left alone"
    PRIORITY = "other priorities"
    PAUSED = "paused and resumed"
    BROKEN = "broken off"
    REVIVED = "broken off, then resumed"
    RERUN = "run again"


_SHARES: Final = {Fate.PLAIN: 60, Fate.PRIORITY: 12, Fate.PAUSED: 10, Fate.BROKEN: 6, Fate.REVIVED: 5, Fate.RERUN: 7}


@dataclass(slots=True)
class Submitted:
    """A submitted job. `mark` is its content id, which only its rerun shares. The numbers are those of the answers."""

    mark: str
    client: str
    fate: Fate
    number: int = 0
    rerun: int | None = None

    @property
    def end(self) -> Phase:
        return Phase.BROKEN if self.fate in (Fate.BROKEN, Fate.RERUN) else Phase.COMPLETED


@dataclass(slots=True)
class Tally(Answered):
    """The counts of requests. `twice` were sent again on purpose; `differing` of these received different answers."""

    twice: int = 0
    differing: int = 0
    resumed: int = 0
    submitted: list[Submitted] = field(default_factory=list)


class JobLoad(Authors):
    """The clients of the job engine. `keys` are their API keys, by name."""

    def __init__(
        self, addresses: Sequence[str], *, keys: Mapping[str, str], jobs: int, per_second: float, dice: random.Random
    ) -> None:
        super().__init__(authors=AUTHORS, per_second=per_second, dice=dice)
        self.tally = Tally()
        self._addresses = addresses
        self._keys = keys
        self._jobs = jobs

    async def start(self, settings: Mapping[str, int]) -> None:
        """Give every client these settings before the first job, and begin."""
        self._asking = Asking(self._addresses, tally=self.tally, dice=self._dice)
        for client in self._keys:
            for name, value in settings.items():
                await self._until_answered(client, "POST", "/engine/settings", {"name": name, "setting": value})
        self._begin(partial(self._job, number) for number in range(self._jobs))

    async def _job(self, number: int) -> None:
        job = Submitted(f"job-{number}", self._dice.choice(CLIENTS), self._dice.choices(*zip(*_SHARES.items(), strict=True))[0])
        await self._submit(job)
        await self._carry_out(job)
        self.tally.submitted.append(job)

    # --- what is asked of a job

    async def _submit(self, submitted: Submitted) -> None:
        job: dict[str, Any] = {"workflow": WORKFLOW, "priority": self._dice.choice(_PRIORITIES[submitted.client])}
        if self._dice.random() < _SCHEDULED:
            later = datetime.fromtimestamp(time.time() + self._dice.uniform(0.2, 4), UTC)
            job["run_at"] = later.strftime("%Y-%m-%dT%H:%M:%S.") + f"{later.microsecond // 1000:03}"
        body = {"client": submitted.client, "job": job, "parameters": {"content_id": submitted.mark}}
        submitted.number = await self._once(submitted, "/engine/job", body)

    async def _carry_out(self, submitted: Submitted) -> None:
        await asyncio.sleep(self._dice.choice((0.0, _SOON, 3.0)) * self._dice.random())
        match submitted.fate:
            case Fate.PRIORITY:
                await self._in_any_order(submitted, [{"priority": self._dice.randint(1, 10)} for _ in range(3)])
            case Fate.PAUSED:
                await self._in_any_order(submitted, [{"queue_state": state} for state in ("paused", "queued", "paused", "queued")])
                await self.resume(submitted.client, submitted.number)
            case Fate.BROKEN:
                await self._in_any_order(submitted, [{"queue_state": "broken"}, {"queue_state": "broken"}, {"priority": 1}])
            case Fate.REVIVED:
                for state in ("broken", "paused"):
                    await self._put(submitted.client, submitted.number, {"queue_state": state})
                    await asyncio.sleep(_SOON * self._dice.random())
                await self.resume(submitted.client, submitted.number)
            case Fate.RERUN:
                submitted.rerun = await self._once(submitted, f"/engine/jobs/{submitted.number}/rerun", None)

    async def resume(self, client: str, number: int) -> None:
        """Resume a job if it is paused. An error means that it is not, because the client was told so or an earlier answer was
        lost."""
        await self._put(client, number, {"queue_state": "queued"})
        self.tally.resumed += 1

    async def _in_any_order(self, submitted: Submitted, bodies: Sequence[Mapping[str, Any]]) -> None:
        """Send all changes at once, through all processes, some of them twice."""
        asked = [body for body in bodies for _ in range(1 + (self._dice.random() < _TWICE))]
        self._dice.shuffle(asked)
        await asyncio.gather(*(self._put(submitted.client, submitted.number, body) for body in asked))

    async def _put(self, client: str, number: int, body: Mapping[str, Any]) -> None:
        fine = (400,) if body.get("queue_state") == "queued" else ()
        await self._until_answered(client, "PUT", f"/engine/job/{number}", body, fine=fine)

    # --- asking

    async def _once(self, submitted: Submitted, path: str, body: Any) -> int:
        """Send a POST that must be executed once, however often it is sent. Return the id of its answer."""
        key = f"{submitted.mark} {path}"
        copies = 2 if self._dice.random() < _TWICE else 1
        self.tally.twice += copies - 1
        answers = await asyncio.gather(
            *(self._until_answered(submitted.client, "POST", path, body, key=key) for _ in range(copies))
        )
        self.tally.differing += len({answer["id"] for answer in answers}) - 1
        return int(answers[0]["id"])

    async def _until_answered(
        self, client: str, method: str, path: str, body: Any, *, key: str | None = None, fine: Sequence[int] = ()
    ) -> Any:
        headers = {"API-KEY": self._keys[client], "client": client} | ({"Idempotency-Key": key} if key else {})
        return (await self._asking.answer(method, path, body, headers=headers, fine=fine))[1]
