"""Infrastructure under faults: provisioners are killed and frozen at chosen moments of a run, and their resources become
unavailable.

The outcome is counted from the outside, by a journal that the commands of Terraform write. The scenario runs once with Kafka and
once without.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from faults.findings import Verdict, markdown
from faults.provisioning_faults import Faults, Scene
from faults.provisioning_load import ProvisionLoad, ProvisionTally
from faults.provisioning_stage import RESOURCES, ProvisioningStage, obstacle
from faults.provisioning_verdict import Evidence, Kind, Limits, convergence, judge, there_by_key
from projections.audit.verify import verify

NAME: Final = "provisioning"
MEANING: Final = "infrastructure whose workers are killed and frozen at chosen moments, with Kafka and without"
LIMITS: Final = Limits()
_COLUMNS: Final = (
    *("scenario", "orders", "ends", "races", "made", "unmade", "programs at once for a key"),
    *("s to the end, calm", "with faults", *Kind, "holds"),
)


@dataclass(frozen=True, slots=True)
class Effort:
    """The extent of a scenario."""

    keys: int
    races: int
    faults: Faults


FULL: Final = Effort(5, 100, Faults(kills=3, freezes=2, ends=2, restarts=2, outages=2, disks=2))
QUICK: Final = Effort(3, 10, Faults(kills=1, freezes=0, ends=0, restarts=1, outages=1, disks=1))


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a scenario. `unexpected_ends` counts processes that ended on their own; `chain` is the reason why the log's
    chain is broken."""

    name: str
    tally: ProvisionTally
    evidence: Evidence
    verdict: Verdict[Kind]
    happened: Counter[str]
    missed: Counter[str]
    most: int
    unexpected_ends: int
    chain: str
    seconds: float

    @property
    def holds(self) -> bool:
        return not (self.verdict.counts.total() or self.chain) and bool(self.evidence.journal)


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> list[Result]:
    """Run both scenarios, one after the other; a quick run only the one without Kafka."""
    if (why := obstacle()) is not None:
        tell(f"{NAME} was NOT TRIED: {why}")
        return []
    results = []
    for kafka in (False,) if quick else (False, True):
        name = NAME if kafka else f"{NAME}-log"
        results.append(await play_scenario(folder / name, name, kafka=kafka, seed=seed, effort=QUICK if quick else FULL))
        tell(describe(results[-1]))
    return results


async def play_scenario(folder: Path, name: str, *, kafka: bool, seed: int, effort: Effort) -> Result:
    """Run one scenario."""
    dice, since = random.Random(seed), time.monotonic()
    async with ProvisioningStage(folder, kafka=kafka, dice=dice) as stage:
        load = ProvisionLoad(stage.addresses, keys=effort.keys, races=effort.races, dice=dice)
        scene = Scene(stage, load, effort.faults)
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
        evidence = await _evidence(stage, load.tally, scene=scene)
        chain = await asyncio.to_thread(verify, stage.database)
        return Result(
            name,
            load.tally,
            evidence,
            judge(evidence, LIMITS),
            scene.happened,
            scene.missed,
            stage.most,
            sum(process.unexpected_ends for process in stage.all),
            chain.reason or "",
            time.monotonic() - since,
        )


async def _evidence(stage: ProvisioningStage, tally: ProvisionTally, *, scene: Scene) -> Evidence:
    journal = stage.journal()
    return Evidence(
        await stage.infos(),
        journal,
        frozenset(RESOURCES),
        there_by_key(journal),
        stage.states(),
        tally.wishes,
        time.time(),
        stage.together,
        scene.disturbances,
    )


# --- words


def describe(result: Result) -> str:
    """Return all counts in words."""
    evidence, tally = result.evidence, result.tally
    happened = ", ".join(f"{name} {times}" for name, times in sorted(result.happened.items()))
    missed = ", ".join(f"{name} {times}" for name, times in sorted(result.missed.items()))
    acts = ", ".join(f"{name} {times}" for name, times in sorted(tally.acts.items()))
    ends = Counter(end.topic for info in evidence.infos for end in info.ends)
    steps = Counter(step.what for step in evidence.journal)
    calm, disturbed = convergence(evidence)
    lines = [
        f"\n{result.name}: {happened}; {result.seconds:.0f} s; processes that ended on their own {result.unexpected_ends}",
        f"  moments that did not come: {missed or 'none'}",
        f"  acts: {acts}; races {tally.races}; requests answered {tally.commands}, sent again {tally.repeated}",
        f"  ends: {', '.join(f'{topic} {times}' for topic, times in sorted(ends.items()))}",
        f"  commands: {', '.join(f'{what} {times}' for what, times in sorted(steps.items()))}",
        f"  s from the order to its end, p50 / max: calm {_spread(calm)}, with faults {_spread(disturbed)}",
        f"  wrong: {', '.join(f'{kind} {result.verdict.counts[kind]}' for kind in Kind)}; chain {result.chain or 'whole'}",
    ]
    return "\n".join((*lines, *(f"  {sentence}" for sentence in result.verdict.messages)))


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown(_COLUMNS, map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    steps = Counter(step.what for step in result.evidence.journal)
    ends = sum(len(info.ends) for info in result.evidence.infos)
    counted = [
        sum(info.run for info in result.evidence.infos),
        ends,
        result.tally.races,
        steps["made"],
        steps["dropped"],
        result.most,
    ]
    ruled = [result.verdict.counts[kind] for kind in Kind]
    measured = [_spread(seconds) for seconds in convergence(result.evidence)]
    return (result.name, *map(str, counted), *measured, *map(str, ruled), "yes" if result.holds else "NO")


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.1f} / {max(values):.1f} ({len(values)})" if values else "-"
