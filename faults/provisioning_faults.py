"""The faults while infrastructure is made and unmade: workers are hit at chosen moments of a run."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final

from faults.processes import Supervised
from faults.provisioning_load import ProvisionLoad
from faults.provisioning_stage import Program, ProvisioningStage, workdir_name
from faults.provisioning_verdict import DISK, Disturbance
from projections.consumers.leases import LEASE

_RISE: Final = 60.0
_MOMENT: Final = 90.0
_LOOK: Final = 0.005
_PAUSE: Final = (0.5, 3.0)
_FULL: Final = (2.0, 6.0)

Happen = Callable[[], Awaitable[None]]


class Moment(StrEnum):
    """The moment at which a worker is hit."""

    CLAIM = "claim"
    """A client has just requested something."""
    INIT = "init"
    APPLY = "half of apply"
    """A command makes something."""
    REPORT = "report"
    """Terraform has ended, and the state is read for the report."""
    DESTROY = "half of destroy"


@dataclass(frozen=True, slots=True)
class Faults:
    """The numbers of faults of each kind: kills and freezes at each moment, orderly ends, restarts of PostgreSQL, outages of Kafka,
    and full disks."""

    kills: int
    freezes: int
    ends: int
    restarts: int
    outages: int
    disks: int


@dataclass
class Scene:
    """A scenario in progress. `missed` counts the moments that did not come."""

    stage: ProvisioningStage
    load: ProvisionLoad
    faults: Faults
    disturbances: list[Disturbance] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)

    def planned(self) -> list[tuple[str, Happen]]:
        """Return the faults of the scenario in random order."""
        faults, stage = self.faults, self.stage
        deck: list[tuple[str, Happen]] = []
        for moment in Moment:
            deck += [(f"kill at {moment}", partial(self._kill, moment))] * faults.kills
            deck += [(f"freeze at {moment}", partial(self._freeze, moment))] * faults.freezes
        deck += [("end a worker", self._end)] * faults.ends
        deck += [("stop PostgreSQL", partial(stage.restart_postgres, accident=False))] * faults.restarts
        deck += [("kill PostgreSQL", partial(stage.restart_postgres, accident=True))] * faults.restarts
        deck += [("Kafka outage", self._kafka)] * (faults.outages if stage.broker is not None else 0)
        deck += [(DISK, self._disk)] * (faults.disks if stage.small_disk is not None else 0)
        stage.dice.shuffle(deck)
        return deck

    async def play(self, name: str, happen: Happen) -> None:
        """Inject a fault, and wait until every role has two ready processes again."""
        self._since = time.time()
        await happen()
        self.happened[name] += 1
        await self._ready()
        self.disturbances.append(Disturbance(name, self._since, time.time()))
        await asyncio.sleep(self.stage.dice.uniform(*_PAUSE))

    async def _ready(self) -> None:
        deadline = time.monotonic() + _RISE
        while not all(process.ready for process in self.stage.all) and time.monotonic() < deadline:  # noqa: ASYNC110 - others' processes
            await asyncio.sleep(0.1)

    # --- workers

    async def _kill(self, moment: Moment) -> None:
        (await self._chosen(moment)).kill()

    async def _freeze(self, moment: Moment) -> None:
        """Freeze a worker for longer than a lease and a takeover, so that it wakes up while another one does its work."""
        chosen = await self._chosen(moment)
        chosen.freeze()
        await asyncio.sleep(LEASE + self.stage.dice.uniform(3, 6))
        chosen.thaw()

    async def _end(self) -> None:
        self.stage.dice.choice(self.stage.processes["provisioning"]).terminate()

    async def _chosen(self, moment: Moment) -> Supervised:
        """Return the worker that has reached this moment; any worker if the moment does not come."""
        deadline = time.monotonic() + _MOMENT
        workers = self.stage.processes["provisioning"]
        if moment is Moment.CLAIM:
            self.load.asked.clear()
            await self.load.asked.wait()
            self._since = time.time()
            return self.stage.dice.choice(workers)
        while time.monotonic() < deadline:
            for program in self.stage.programs():
                for worker in workers:
                    if worker.ready and worker.pid == program.parent and self._is_at(moment, program):
                        self._since = time.time()
                        return worker
            await asyncio.sleep(_LOOK)
        self.missed[moment] += 1
        return self.stage.dice.choice(workers)

    def _is_at(self, moment: Moment, program: Program) -> bool:
        verb = program.arguments[0] if program.arguments else ""
        if moment is Moment.INIT:
            return verb == "init"
        if moment is Moment.REPORT:
            return program.arguments == ("show", "-json")
        last = [step.what for step in self.stage.journal()[-40:] if workdir_name(step.key) == program.workdir]
        return verb == "apply" and last[-1:] == ["make" if moment is Moment.APPLY else "drop"]

    # --- servers and disks

    async def _kafka(self) -> None:
        assert self.stage.broker is not None
        end = self.stage.dice.choice((self.stage.broker.stop, self.stage.broker.kill))
        await asyncio.to_thread(end)
        await asyncio.sleep(self.stage.dice.uniform(3, 8))
        await asyncio.to_thread(self.stage.broker.start)

    async def _disk(self) -> None:
        assert self.stage.small_disk is not None
        await asyncio.to_thread(self.stage.small_disk.fill)
        try:
            await asyncio.sleep(self.stage.dice.uniform(*_FULL))
        finally:
            await asyncio.to_thread(self.stage.small_disk.free)
