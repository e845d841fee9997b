"""Clients of the job engine who hand jobs in, and change their minds: twice, in the wrong order, and again whatever is
not answered.

What each job must come to in the end is known from what was asked of it; the log says what it came to.
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
    """What is done to a job after it was accepted."""

    PLAIN = "left alone"
    PRIORITY = "other priorities"
    PAUSED = "paused and resumed"
    BROKEN = "broken off"
    REVIVED = "broken off, then resumed"
    RERUN = "run again"


_SHARES: Final = {Fate.PLAIN: 60, Fate.PRIORITY: 12, Fate.PAUSED: 10, Fate.BROKEN: 6, Fate.REVIVED: 5, Fate.RERUN: 7}


@dataclass(slots=True)
class Submitted:
    """`mark` is its content id, which no other job has but its rerun. The numbers are those that were answered."""

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
    """`twice` were sent again on purpose; `differing` of these were not answered alike."""

    twice: int = 0
    differing: int = 0
    resumed: int = 0
    submitted: list[Submitted] = field(default_factory=list)


class JobLoad(Authors):
    """`keys` are those of the clients, by name."""

    def __init__(
        self, addresses: Sequence[str], *, keys: Mapping[str, str], jobs: int, per_second: float, dice: random.Random
    ) -> None:
        super().__init__(authors=AUTHORS, per_second=per_second, dice=dice)
        self.tally = Tally()
        self._addresses = addresses
        self._keys = keys
        self._jobs = jobs

    async def start(self, settings: Mapping[str, int]) -> None:
        """Every client has these settings before the first job."""
        self._asking = Asking(self._addresses, tally=self.tally, dice=self._dice)
        for client in self._keys:
            for name, value in settings.items():
                await self._until_answered(client, "POST", "/engine/settings", {"name": name, "setting": value})
        self._begin(partial(self._job, number) for number in range(self._jobs))

    async def _job(self, number: int) -> None:
        one = Submitted(f"job-{number}", self._dice.choice(CLIENTS), self._dice.choices(*zip(*_SHARES.items(), strict=True))[0])
        await self._submit(one)
        await self._carry_out(one)
        self.tally.submitted.append(one)

    # --- what is asked of a job

    async def _submit(self, one: Submitted) -> None:
        job: dict[str, Any] = {"workflow": WORKFLOW, "priority": self._dice.choice(_PRIORITIES[one.client])}
        if self._dice.random() < _SCHEDULED:
            later = datetime.fromtimestamp(time.time() + self._dice.uniform(0.2, 4), UTC)
            job["run_at"] = later.strftime("%Y-%m-%dT%H:%M:%S.") + f"{later.microsecond // 1000:03}"
        body = {"client": one.client, "job": job, "parameters": {"content_id": one.mark}}
        one.number = await self._once(one, "/engine/job", body)

    async def _carry_out(self, one: Submitted) -> None:
        await asyncio.sleep(self._dice.choice((0.0, _SOON, 3.0)) * self._dice.random())
        match one.fate:
            case Fate.PRIORITY:
                await self._in_any_order(one, [{"priority": self._dice.randint(1, 10)} for _ in range(3)])
            case Fate.PAUSED:
                await self._in_any_order(one, [{"queue_state": state} for state in ("paused", "queued", "paused", "queued")])
                await self.resume(one.client, one.number)
            case Fate.BROKEN:
                await self._in_any_order(one, [{"queue_state": "broken"}, {"queue_state": "broken"}, {"priority": 1}])
            case Fate.REVIVED:
                for state in ("broken", "paused"):
                    await self._put(one.client, one.number, {"queue_state": state})
                    await asyncio.sleep(_SOON * self._dice.random())
                await self.resume(one.client, one.number)
            case Fate.RERUN:
                one.rerun = await self._once(one, f"/engine/jobs/{one.number}/rerun", None)

    async def resume(self, client: str, number: int) -> None:
        """If it is paused: whoever finds that it is not was told so, or resumed it before and did not hear of it."""
        await self._put(client, number, {"queue_state": "queued"})
        self.tally.resumed += 1

    async def _in_any_order(self, one: Submitted, bodies: Sequence[Mapping[str, Any]]) -> None:
        """All at once, through all processes, some of them twice."""
        asked = [body for body in bodies for _ in range(1 + (self._dice.random() < _TWICE))]
        self._dice.shuffle(asked)
        await asyncio.gather(*(self._put(one.client, one.number, body) for body in asked))

    async def _put(self, client: str, number: int, body: Mapping[str, Any]) -> None:
        fine = (400,) if body.get("queue_state") == "queued" else ()
        await self._until_answered(client, "PUT", f"/engine/job/{number}", body, fine=fine)

    # --- asking

    async def _once(self, one: Submitted, path: str, body: Any) -> int:
        """A POST that must be carried out once, however often it is sent."""
        key = f"{one.mark} {path}"
        copies = 2 if self._dice.random() < _TWICE else 1
        self.tally.twice += copies - 1
        answers = await asyncio.gather(*(self._until_answered(one.client, "POST", path, body, key=key) for _ in range(copies)))
        self.tally.differing += len({answer["id"] for answer in answers}) - 1
        return int(answers[0]["id"])

    async def _until_answered(
        self, client: str, method: str, path: str, body: Any, *, key: str | None = None, fine: Sequence[int] = ()
    ) -> Any:
        headers = {"API-KEY": self._keys[client], "client": client} | ({"Idempotency-Key": key} if key else {})
        return (await self._asking.answer(method, path, body, headers=headers, fine=fine))[1]
