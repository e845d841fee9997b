"""One scenario from its receivers to its figures: they subscribe, authors write, things go wrong, and the log says what was due."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from faults.callbacks import JobLoad, job_notices
from faults.load import Load
from faults.receivers import Behaviour, Receiver
from faults.scenarios import Effort, Scenario, Scene
from faults.stage import KEY, Stage
from faults.verdict import Findings, Notification, by_transaction, findings, missing, notifications, percentile, settled
from projections.audit.verify import verify

PATIENCE = 120.0
"""Seconds in which nothing more arrives."""
_WARM = 1.0
_HURRY = 2.0


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `unlogged`: acknowledged, and the log does not know. `settled`: seconds until all that was written
    before the last fault ended had arrived where the receiver was prompt, `recovered`: and where it was not."""

    scenario: Scenario
    acknowledged: int
    repeated: int
    unlogged: int
    logged: int
    found: Sequence[Findings]
    settled: float
    recovered: float
    parked: int
    unexpected_ends: int
    broken_chain: str
    notes: str
    violations: Sequence[str]

    @property
    def holds(self) -> bool:
        bad = self.unlogged + self.parked + sum(one.lost + one.disordered + one.unknown + one.wrong for one in self.found)
        return bad == 0 and not self.broken_chain and not self.violations and self.acknowledged > 0

    @property
    def latencies(self) -> list[float]:
        """Of the receivers that were healthy all the time."""
        return sorted(latency for one in self.found if _prompt(one.receiver) for latency in one.latencies)


async def played(stage: Stage, scenario: Scenario, *, effort: Effort) -> Result:
    """Run a scenario. Its healthy receivers get JSON and forms."""
    receivers = await _receivers(stage, scenario)
    before, ended = await stage.head(), sum(process.unexpected_ends for process in stage.all)
    load = Load(f"{scenario.name}-{before}", stage.addresses, key=KEY, per_second=effort.per_second, dice=stage.dice)
    scene = Scene(stage, load, effort, receivers)
    callback = Receiver("callback", dice=random.Random(stage.dice.random())) if scenario.jobs else None
    jobs = await _jobs(stage, callback) if callback is not None else None
    await load.start()
    try:
        await asyncio.sleep(_WARM)
        await scenario.act(scene)
        over = time.time()
        await asyncio.sleep(_WARM)
        await load.finish()
        if jobs is not None:
            await jobs.finish()
    except BaseException:
        await load.close()
        if jobs is not None:
            await jobs.close()
        raise
    await stage.until_ready()
    all_notifications = await asyncio.to_thread(notifications, stage.database, before)
    made_due = await _all_arrive(stage, receivers, all_notifications)
    notices = await asyncio.to_thread(job_notices, stage.database, before) if callback is not None else []
    if callback is not None:
        await _arrive([callback], notices)
        scene.notes.append(f"{len(notices)} notices of jobs")
        receivers = [*receivers, callback]
    if made_due:
        scene.notes.append(f"{made_due} deliveries made due at once")
    for receiver in receivers:
        await stage.unsubscribe(receiver)
        await receiver.stop()
    known = by_transaction(all_notifications)
    chain = await asyncio.to_thread(verify, stage.database)
    return Result(
        scenario,
        acknowledged=len(load.acknowledged),
        repeated=load.repeated,
        unlogged=sum(transaction not in known and transaction not in load.lost for transaction in load.acknowledged),
        logged=len(all_notifications),
        found=[findings(one, notices if one is callback else all_notifications, given_up=scene.given_up) for one in receivers],
        settled=settled([one for one in receivers if _prompt(one) and one is not callback], all_notifications, since=over),
        recovered=settled([one for one in receivers if not _prompt(one)], all_notifications, since=over),
        parked=await stage.parked(),
        unexpected_ends=sum(process.unexpected_ends for process in stage.all) - ended,
        broken_chain=chain.reason or "",
        notes="; ".join(scene.notes),
        violations=scene.violations,
    )


async def _jobs(stage: Stage, receiver: Receiver) -> JobLoad:
    await receiver.start()
    load = JobLoad(stage, receiver)
    await load.start()
    return load


def _prompt(receiver: Receiver) -> bool:
    """Well all the time, and quick."""
    return receiver.behaviour is Behaviour.HEALTHY and not receiver.faulty


async def _receivers(stage: Stage, scenario: Scenario) -> list[Receiver]:
    dice = random.Random(stage.dice.random())
    healthy = [Receiver("json", dice=dice), Receiver("form", dice=dice)]
    healthy[1].as_json = False
    for one in healthy:
        await one.start()
    beside = [Receiver(one.value, behaviour=one, elsewhere=healthy[0].url, dice=dice) for one in scenario.beside]
    for one in beside:
        await one.start()
    for one in (*healthy, *beside):
        await stage.subscribe(one)
    return [*healthy, *beside]


def _apart(receivers: Sequence[Receiver]) -> tuple[list[Receiver], list[Receiver]]:
    return [one for one in receivers if not one.faulty], [one for one in receivers if one.faulty]


async def _all_arrive(stage: Stage, receivers: Sequence[Receiver], all_notifications: Sequence[Notification]) -> int:
    """Wait until everything has arrived, within a limit: first at the healthy receivers. Returns how many deliveries of the
    others were made due."""
    healthy, faulty = _apart(receivers)
    await _arrive(healthy, all_notifications)
    for receiver in faulty:
        receiver.recover()
    made_due = 0
    async for _ in _while_missing(faulty, all_notifications):
        for receiver in faulty:
            made_due += await stage.make_due(receiver)
        await asyncio.sleep(_HURRY)
    return made_due


async def _arrive(receivers: Sequence[Receiver], all_notifications: Sequence[Notification]) -> None:
    async for _ in _while_missing(receivers, all_notifications):
        await asyncio.sleep(0.2)


async def _while_missing(receivers: Sequence[Receiver], all_notifications: Sequence[Notification]) -> AsyncIterator[None]:
    """As long as something is missing and more arrives."""
    least, since = len(all_notifications) * len(receivers) + 1, time.monotonic()
    while left := sum(missing(one, all_notifications) for one in receivers):
        if left < least:
            least, since = left, time.monotonic()
        elif time.monotonic() - since > PATIENCE:
            return
        yield


def latency(result: Result) -> str:
    found = result.latencies
    return f"{percentile(found, 0.5) * 1000:.0f} / {percentile(found, 0.99) * 1000:.0f}"
