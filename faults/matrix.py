"""One scenario from its receivers to its figures: they subscribe, authors write, things go wrong, and the log says what was due."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from faults.load import Load
from faults.receivers import Mood, Receiver
from faults.scenarios import Effort, Scenario, Scene
from faults.stage import KEY, Stage
from faults.verdict import Findings, Notification, by_transaction, findings, missing, notifications, percentile, settled
from projections.audit.verify import verify

PATIENCE = 120.0
_WARM = 1.0
_HURRY = 2.0


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `unlogged`: acknowledged, and the log does not know. `settled`: seconds until all that was written
    before the last fault ended had arrived where the receiver was prompt, `well_again`: and where it was not."""

    scenario: Scenario
    acknowledged: int
    repeated: int
    unlogged: int
    logged: int
    found: Sequence[Findings]
    settled: float
    well_again: float
    parked: int
    fell: int
    broken_chain: str
    notes: str

    @property
    def holds(self) -> bool:
        bad = self.unlogged + self.parked + sum(one.lost + one.disordered + one.strange + one.wrong for one in self.found)
        return bad == 0 and not self.broken_chain and self.acknowledged > 0

    @property
    def latencies(self) -> list[float]:
        """Of the receivers that were well all the time."""
        return sorted(latency for one in self.found if _prompt(one.receiver) for latency in one.latencies)


async def played(stage: Stage, scenario: Scenario, *, effort: Effort) -> Result:
    """The scenario's result. Receivers that are well hear as JSON and as form parameters."""
    receivers = await _receivers(stage, scenario)
    before, fell = await stage.head(), sum(process.fell for process in stage.all)
    load = Load(f"{scenario.name}-{before}", stage.addresses, key=KEY, per_second=effort.per_second, dice=stage.dice)
    scene = Scene(stage, load, effort)
    await load.start()
    try:
        await asyncio.sleep(_WARM)
        await scenario.act(scene)
        over = time.time()
        await asyncio.sleep(_WARM)
        await load.finish()
    except BaseException:
        await load.close()
        raise
    await stage.until_ready()
    told = await asyncio.to_thread(notifications, stage.database, before)
    hurried = await _all_arrive(stage, receivers, told)
    if hurried:
        scene.notes.append(f"{hurried} deliveries made due at once")
    for receiver in receivers:
        await stage.unsubscribe(receiver)
        await receiver.stop()
    known = by_transaction(told)
    chain = await asyncio.to_thread(verify, stage.database)
    return Result(
        scenario,
        acknowledged=len(load.acknowledged),
        repeated=load.repeated,
        unlogged=sum(transaction not in known for transaction in load.acknowledged),
        logged=len(told),
        found=[findings(receiver, told) for receiver in receivers],
        settled=settled([one for one in receivers if _prompt(one)], told, since=over),
        well_again=settled([one for one in receivers if not _prompt(one)], told, since=over),
        parked=await stage.parked(),
        fell=sum(process.fell for process in stage.all) - fell,
        broken_chain=chain.reason or "",
        notes="; ".join(scene.notes),
    )


def _prompt(receiver: Receiver) -> bool:
    """Well all the time, and quick."""
    return receiver.mood is Mood.WELL and not receiver.ill


async def _receivers(stage: Stage, scenario: Scenario) -> list[Receiver]:
    dice = random.Random(stage.dice.random())
    well = [Receiver("json", dice=dice), Receiver("form", dice=dice)]
    well[1].as_json = False
    for one in well:
        await one.start()
    beside = [Receiver(mood.value, mood=mood, elsewhere=well[0].url, dice=dice) for mood in scenario.beside]
    for one in beside:
        await one.start()
    for one in (*well, *beside):
        await stage.subscribe(one)
    return [*well, *beside]


def _apart(receivers: Sequence[Receiver]) -> tuple[list[Receiver], list[Receiver]]:
    return [one for one in receivers if not one.ill], [one for one in receivers if one.ill]


async def _all_arrive(stage: Stage, receivers: Sequence[Receiver], told: Sequence[Notification]) -> int:
    """Or not, when patience ends. First those that are well all the time; how many deliveries of the others were hurried."""
    well, ill = _apart(receivers)
    await _arrive(well, told)
    for receiver in ill:
        receiver.recover()
    deadline, hurried = time.monotonic() + PATIENCE, 0
    while any(missing(one, told) for one in ill) and time.monotonic() < deadline:
        for receiver in ill:
            hurried += await stage.hurry(receiver)
        await asyncio.sleep(_HURRY)
    return hurried


async def _arrive(receivers: Sequence[Receiver], told: Sequence[Notification]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not any(missing(one, told) for one in receivers):
            return
        await asyncio.sleep(0.2)


def latency(result: Result) -> str:
    found = result.latencies
    return f"{percentile(found, 0.5) * 1000:.0f} / {percentile(found, 0.99) * 1000:.0f}"
