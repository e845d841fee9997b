"""The faults while Events are on the air, each with the times at which it was made."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from faults.on_air_stage import AirStage
from faults.on_air_verdict import ENDING, Disturbance
from faults.patience import waited
from faults.processes import Supervised
from faults.publishing_points import POINTS, How, PublishingPoints
from projections.consumers.leases import LEASE as SHARE
from workers.adapters.encoders.ffmpeg import STALL
from workers.adapters.encoders.point import LONGEST_PAUSE
from workers.session.worker import LEASE

_ALL: Final = frozenset(range(POINTS))
_NONE: Final = frozenset[int]()
_RISE: Final = 60.0
_PAUSE: Final = (0.5, 3.0)
_TAKEOVER: Final = (8.0, 11.0)
FROZEN: Final = 40.0
_LONGEST: Final = max(LEASE, SHARE)
_STALLED: Final = STALL + 8
_LEAPS: Final = ("+3600", "+0", "-3600", "+0")

Happen = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Faults:
    """The numbers of faults of each kind: kills, freezes and orderly ends of each role, `sessions` more for the role with encoders;
    `points` for each way in which a point fails, and `both` if both fail at once."""

    kills: int = 0
    freezes: int = 0
    ends: int = 0
    sessions: int = 0
    children: int = 0
    restarts: int = 0
    outages: int = 0
    points: int = 0
    both: int = 0
    leaps: int = 0
    broker_freezes: int = 0


@dataclass
class Scene:
    """A scenario in progress."""

    stage: AirStage
    points: PublishingPoints
    faults: Faults
    happened: Counter[str] = field(default_factory=Counter)
    disturbances: list[Disturbance] = field(default_factory=list)
    _since: float = 0.0
    """The time when the present fault was made."""

    def planned(self) -> list[tuple[str, Happen, frozenset[int]]]:
        """Return the faults of the scenario in random order, each with the points that accept nothing meanwhile.

        An unavailable database or broker counts as both points, because encoders that are not alone fall silent then.
        """
        faults, stage, kafka = self.faults, self.stage, self.stage.broker is not None
        deck: list[tuple[str, Happen, frozenset[int]]] = []
        for role in stage.processes:
            more = faults.sessions if role == "sessions" else 0
            deck += [(f"kill {role}", partial(self._kill, role), _NONE)] * (faults.kills + more)
            deck += [(f"freeze {role}", partial(self._freeze, role), _NONE)] * (faults.freezes + more)
            deck += [(f"end {role}", partial(self._end, role), _NONE)] * faults.ends
        deck += [("kill ffmpeg", self._kill_child, _NONE), ("freeze ffmpeg", self._freeze_child, _NONE)] * faults.children
        deck += [("stop PostgreSQL", partial(stage.restart_postgres, accident=False), _ALL)] * faults.restarts
        deck += [("kill PostgreSQL", partial(stage.restart_postgres, accident=True), _ALL)] * faults.restarts
        deck += [("Kafka outage", self._kafka, _NONE)] * (faults.outages if kafka else 0)
        deck += [("freeze Kafka", self._freeze_kafka, _NONE)] * (faults.broker_freezes if kafka else 0)
        ill = [how for how in How if how is not How.WELL]
        for how in ill * faults.points:
            place = frozenset({stage.dice.randrange(POINTS)})
            deck.append((f"point {how}", partial(self._ill, place, how), place))
        deck += [(f"both points {how}", partial(self._ill, _ALL, how), _ALL) for how in stage.dice.sample(ill, faults.both)]
        if stage.clocked:
            deck += [("clock", self._leap, _NONE)] * faults.leaps
        stage.dice.shuffle(deck)
        return deck

    async def play(self, name: str, happen: Happen, points: frozenset[int]) -> None:
        """Inject a fault, and wait for some time in which other processes take over. A sender retries a point after a pause."""
        self._since = time.time()
        await happen()
        self.happened[name] += 1
        until = time.time() + (LONGEST_PAUSE + 1 if points else 0)
        self.disturbances.append(Disturbance(name, self._since, until, points))
        await self._all_roles_ready()
        await asyncio.sleep(self.stage.dice.uniform(*(_TAKEOVER if name.endswith(ENDING) else _PAUSE)))

    async def _all_roles_ready(self) -> None:
        """Wait until every role has a ready process: a fault tests nothing while the role is down anyway."""
        await self._until(lambda: all(any(process.ready for process in places) for places in self.stage.processes.values()))

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait until the condition holds or patience runs out."""
        await waited(holds, seconds=_RISE, every=0.1)

    # --- processes

    async def _kill(self, role: str) -> None:
        for process in await self._chosen(role):
            process.kill()

    async def _end(self, role: str) -> None:
        for process in await self._chosen(role):
            process.terminate()

    async def _freeze(self, role: str) -> None:
        """Freeze a process for longer than any lease and a takeover, so that it wakes up while another one does its work."""
        chosen = await self._chosen(role)
        for process in chosen:
            process.freeze()
        await asyncio.sleep(_LONGEST + self.stage.dice.uniform(3, 6))
        for process in chosen:
            process.thaw()

    async def _chosen(self, role: str) -> Sequence[Supervised]:
        """Choose one of two ready processes; the other one has to take over. Among those with encoders it is the one
        with the most."""
        places = self.stage.processes[role]
        await self._until(lambda: all(process.ready for process in places))
        ready = [process for process in places if process.ready]
        self.stage.dice.shuffle(ready)
        parents = Counter((await asyncio.to_thread(self.stage.children)).values())
        self._since = time.time()
        return sorted(ready, key=lambda process: -parents[process.pid])[:1]

    async def _kill_child(self) -> None:
        await self._signal_child(signal.SIGKILL)

    async def _freeze_child(self) -> None:
        child = await self._signal_child(signal.SIGSTOP)
        await asyncio.sleep(_STALLED)
        if child is not None:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGCONT)

    async def _signal_child(self, number: signal.Signals) -> int | None:
        children = await asyncio.to_thread(self.stage.children)
        self._since = time.time()
        if not children:
            return None
        child = self.stage.dice.choice([*children])
        with suppress(ProcessLookupError):
            os.kill(child, number)
        return child

    # --- servers

    async def _kafka(self) -> None:
        assert self.stage.broker is not None
        end = self.stage.dice.choice((self.stage.broker.stop, self.stage.broker.kill))
        await asyncio.to_thread(end)
        await asyncio.sleep(self.stage.dice.uniform(3, 8))
        await asyncio.to_thread(self.stage.broker.start)

    async def _freeze_kafka(self) -> None:
        """Freeze Kafka for so long that an Event which waited for it would be late."""
        assert self.stage.broker is not None
        self.stage.broker.freeze()
        await asyncio.sleep(FROZEN)
        self.stage.broker.thaw()

    async def _ill(self, places: frozenset[int], how: How) -> None:
        for place in places:
            await self.points.behave(place, how)
        await asyncio.sleep(self.stage.dice.uniform(4, 10))
        for place in places:
            await self.points.behave(place, How.WELL)

    async def _leap(self) -> None:
        for leap in _LEAPS:
            self.stage.set_clocks(leap)
            await asyncio.sleep(self.stage.dice.uniform(1, 3))
