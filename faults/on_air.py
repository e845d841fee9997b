"""Events on the air under faults: everything between an order and the publishing points is killed, frozen and stopped.

Segments are counted at the publishing points, by the numbers of sessions. The scenario runs once with Kafka and once without.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from faults.findings import Verdict, markdown
from faults.on_air_faults import Faults, Scene
from faults.on_air_load import AirLoad, AirTally
from faults.on_air_log import air_log
from faults.on_air_stage import AirStage
from faults.on_air_verdict import Evidence, Kind, Limits, Overlap, Start, judge, last_writes, overlaps, starts, takeovers
from faults.publishing_points import PublishingPoints, Write
from faults.stage import Servers
from faults.surroundings import faketime
from projections.audit.verify import verify

NAME: Final = "on-air"
MEANING: Final = "Events on the air whose encoders, workers, servers and publishing points fail, with Kafka and without"
LIMITS: Final = Limits()
_PATIENCE: Final = 60.0
_QUIET: Final = LIMITS.stop + 5
_GONE: Final = 10.0
_LOOK: Final = 0.2
_COLUMNS: Final = (
    *("scenario", "Events", "orders", "on the air", "sessions", "segments", "s to the first segment, calm", "with faults"),
    *("s after a killed worker", "s to the last byte after a stop", "overlap ms; bytes", *Kind, "holds"),
)


@dataclass(frozen=True, slots=True)
class Effort:
    """The extent of a scenario. `stays` is the range of seconds for which an Event stays on the air."""

    channels: int
    stays: tuple[float, float]
    faults: Faults


FULL: Final = Effort(
    6, (10, 40), Faults(kills=3, freezes=2, ends=1, sessions=3, children=5, restarts=2, outages=2, points=2, both=7, leaps=2)
)
QUICK: Final = Effort(
    3, (6, 15), Faults(kills=1, freezes=0, ends=0, sessions=1, children=1, restarts=1, outages=1, points=1, both=1, leaps=1)
)


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a scenario. `unexpected_ends` counts processes that ended on their own; `chain` is the reason why the log's
    chain is broken."""

    name: str
    tally: AirTally
    evidence: Evidence
    verdict: Verdict[Kind]
    happened: Counter[str]
    parked: int
    unexpected_ends: int
    chain: str
    seconds: float

    @property
    def holds(self) -> bool:
        return not (self.verdict.counts.total() or self.parked or self.chain) and any(
            write.segment for write in self.evidence.writes
        )


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> list[Result]:
    """Run both scenarios, one after the other. Clocks are set in the one without Kafka."""
    results = []
    clocked = Servers.CLOCKED if faketime() is not None else Servers.ALONE
    if clocked is Servers.ALONE:
        tell(f"{NAME}: no clock is set, because there is no libfaketime: apt-get install faketime")
    for kafka, servers in ((False, clocked), (True, Servers.ALONE)):
        name = NAME if kafka else f"{NAME}-log"
        results.append(
            await play_scenario(folder / name, name, kafka=kafka, servers=servers, seed=seed, effort=QUICK if quick else FULL)
        )
        tell(describe(results[-1]))
    return results


async def play_scenario(
    folder: Path, name: str, *, kafka: bool, servers: Servers, seed: int, effort: Effort, limits: Limits = LIMITS
) -> Result:
    """Run one scenario."""
    dice, since = random.Random(seed), time.monotonic()
    async with PublishingPoints() as points, AirStage(folder, kafka=kafka, dice=dice, servers=servers) as stage:
        load = AirLoad(stage.addresses, points=points, channels=effort.channels, stays=effort.stays, dice=dice)
        scene = Scene(stage, points, effort.faults)
        try:
            await load.prepare()
            await load.calm()
            load.start()
            for fault in scene.planned():
                if not load.failed:
                    await scene.play(*fault)
            await load.finish()
        finally:
            await load.close()
        children = await _remaining(stage, points)
        evidence = await _evidence(stage, points, load.tally, scene=scene, children=children)
        chain = await asyncio.to_thread(verify, stage.database)
        return Result(
            name,
            load.tally,
            evidence,
            judge(evidence, limits),
            scene.happened,
            await stage.parked(),
            sum(process.unexpected_ends for process in stage.all),
            chain.reason or "",
            time.monotonic() - since,
        )


async def _remaining(stage: AirStage, points: PublishingPoints) -> list[str]:
    """Return the processes of encoders that remain after everything was stopped, and after every process of the product was killed.

    In between all processes are killed and started once more: nothing may begin again.
    """
    remaining = [f"process {child} after the last stop" for child in await _children(stage, _PATIENCE)]
    for process in stage.all:
        process.kill()
    await asyncio.sleep(1)
    await stage.until_ready()
    await asyncio.sleep(_QUIET)
    remaining += [f"process {child} after a start of all processes" for child in await _children(stage, 0)]
    await stage.end_all()
    remaining += [f"process {child} after the end of all workers" for child in await _children(stage, _GONE)]
    return remaining


async def _children(stage: AirStage, seconds: float) -> Sequence[int]:
    """Return the processes that still exist after this time, if any."""
    deadline = time.monotonic() + seconds
    while True:
        children = [*await asyncio.to_thread(stage.children)]
        if not children or time.monotonic() >= deadline:
            return children
        await asyncio.sleep(_LOOK)


async def _evidence(
    stage: AirStage, points: PublishingPoints, tally: AirTally, *, scene: Scene, children: Sequence[str]
) -> Evidence:
    offset = time.time() - time.monotonic()
    log = await asyncio.to_thread(lambda: air_log(stage.database, channels=tally.channels, names=tally.names))
    return Evidence(
        log,
        [_at(write, offset) for write in await points.writes()],
        await stage.draws(tally.names),
        tally.requests,
        time.time(),
        tally.scheduled,
        scene.disturbances,
        children,
    )


def _at(write: Write, offset: float) -> Write:
    """Return the write with its times in seconds since 1970."""
    return replace(write, began=write.began + offset, pieces=[(at + offset, size) for at, size in write.pieces])


# --- words


def describe(result: Result) -> str:
    """Return all counts in words."""
    evidence, tally = result.evidence, result.tally
    happened = ", ".join(f"{name} {times}" for name, times in sorted(result.happened.items()))
    acts = ", ".join(f"{name} {times}" for name, times in sorted(tally.acts.items()))
    statuses = Counter(write.status for write in evidence.writes)
    lines = [
        f"\n{result.name}: {happened}; {result.seconds:.0f} s; processes that ended on their own {result.unexpected_ends}",
        f"  acts: {acts}; commands answered {tally.commands}, sent again for lack of an answer {tally.repeated}",
        f"  requests at the points by status: {', '.join(f'{status} {times}' for status, times in sorted(statuses.items()))}",
        f"  s from the order to the first segment, p50 / max: calm {_spread(_seconds(evidence, calm=True))}, with faults"
        f" {_spread(_seconds(evidence, calm=False))}",
        *(
            f"  s from `{name}` to the next segment, p50 / max: {_spread(times)}"
            for name, times in sorted(takeovers(evidence).items())
        ),
        f"  wrong: {', '.join(f'{kind} {result.verdict.counts[kind]}' for kind in Kind)}; parked {result.parked};"
        f" chain {result.chain or 'whole'}",
        f"  events: {', '.join(f'{topic} {times}' for topic, times in sorted(evidence.log.topics.items()))}",
    ]
    return "\n".join((*lines, *(f"  {sentence}" for sentence in result.verdict.messages)))


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown(_COLUMNS, map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    evidence = result.evidence
    counted = [len(evidence.log.states), len(evidence.log.orders), len(evidence.log.holds), len(evidence.draws)]
    counted += [sum(write.segment for write in evidence.writes)]
    late: Sequence[Overlap] = overlaps(evidence.writes, bound=LIMITS.together)
    overlap = f"{max((entry.seconds for entry in late), default=0) * 1000:.0f}; {max((entry.bytes for entry in late), default=0)}"
    measured = [_spread(_seconds(evidence, calm=True)), _spread(_seconds(evidence, calm=False))]
    measured += [_spread(takeovers(evidence).get("kill sessions", [])), _spread(last_writes(evidence)), overlap]
    ruled = [result.verdict.counts[kind] for kind in Kind]
    return (result.name, *map(str, counted), *measured, *map(str, ruled), "yes" if result.holds else "NO")


def _seconds(evidence: Evidence, *, calm: bool) -> list[float]:
    measured: Sequence[Start] = starts(evidence)
    return [start.seconds for start in measured if start.calm is calm]


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.1f} / {max(values):.1f} ({len(values)})" if values else "-"
