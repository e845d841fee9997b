"""A scenario from its receivers to its figures: receivers subscribe, authors write, faults happen, and the log determines the
expected deliveries."""

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
"""The number of seconds without a new arrival after which waiting ends."""
_WARM = 1.0
_HURRY = 2.0


@dataclass(frozen=True, slots=True)
class Result:
    """A line of the table. `unlogged` counts acknowledged writes that are not in the log.

    `settled` is the number of seconds until all writes from before the end of the last fault had arrived at prompt receivers,
    `recovered` the same at the others.
    """

    scenario: Scenario
    acknowledged: int
    repeated: int
    unlogged: int
    logged: int
    findings: Sequence[Findings]
    settled: float
    recovered: float
    parked: int
    unexpected_ends: int
    broken_chain: str
    notes: str
    violations: Sequence[str]

    @property
    def holds(self) -> bool:
        bad = (
            self.unlogged
            + self.parked
            + sum(entry.lost + entry.disordered + entry.unknown + entry.wrong for entry in self.findings)
        )
        return bad == 0 and not self.broken_chain and not self.violations and self.acknowledged > 0

    @property
    def latencies(self) -> list[float]:
        """The latencies at the receivers that were healthy all the time."""
        return sorted(latency for entry in self.findings if _prompt(entry.receiver) for latency in entry.latencies)


async def play_scenario(stage: Stage, scenario: Scenario, *, effort: Effort) -> Result:
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
    positions = by_transaction(all_notifications)
    chain = await asyncio.to_thread(verify, stage.database)
    return Result(
        scenario,
        acknowledged=len(load.acknowledged),
        repeated=load.repeated,
        unlogged=sum(transaction not in positions and transaction not in load.lost for transaction in load.acknowledged),
        logged=len(all_notifications),
        findings=[
            findings(endpoint, notices if endpoint is callback else all_notifications, given_up=scene.given_up)
            for endpoint in receivers
        ],
        settled=settled(
            [endpoint for endpoint in receivers if _prompt(endpoint) and endpoint is not callback], all_notifications, since=over
        ),
        recovered=settled([endpoint for endpoint in receivers if not _prompt(endpoint)], all_notifications, since=over),
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
    """Return True if the receiver was healthy all the time, and quick."""
    return receiver.behaviour is Behaviour.HEALTHY and not receiver.faulty


async def _receivers(stage: Stage, scenario: Scenario) -> list[Receiver]:
    dice = random.Random(stage.dice.random())
    healthy = [Receiver("json", dice=dice), Receiver("form", dice=dice)]
    healthy[1].as_json = False
    for receiver in healthy:
        await receiver.start()
    others = [Receiver(receiver.value, behaviour=receiver, elsewhere=healthy[0].url, dice=dice) for receiver in scenario.others]
    for receiver in others:
        await receiver.start()
    for receiver in (*healthy, *others):
        await stage.subscribe(receiver)
    return [*healthy, *others]


def _apart(receivers: Sequence[Receiver]) -> tuple[list[Receiver], list[Receiver]]:
    return [receiver for receiver in receivers if not receiver.faulty], [receiver for receiver in receivers if receiver.faulty]


async def _all_arrive(stage: Stage, receivers: Sequence[Receiver], all_notifications: Sequence[Notification]) -> int:
    """Wait for a limited time until everything has arrived, first at the healthy receivers. Return the number of deliveries to the
    others that were made due."""
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
    """Yield as long as something is missing and more arrives."""
    least, since = len(all_notifications) * len(receivers) + 1, time.monotonic()
    while remaining := sum(missing(receiver, all_notifications) for receiver in receivers):
        if remaining < least:
            least, since = remaining, time.monotonic()
        elif time.monotonic() - since > PATIENCE:
            return
        yield


def latency(result: Result) -> str:
    latencies = result.latencies
    return f"{percentile(latencies, 0.5) * 1000:.0f} / {percentile(latencies, 0.99) * 1000:.0f}"
