"""`python -m faults [NAME…] [--quick] [--seed N]`: the fault matrices of deliveries, jobs, media, Events on the air,
infrastructure and publications, a machine that vanishes from the network, and the fuzzing of the key provider.
The exit code is 1 when an invariant was violated.

It runs in a temporary folder, which stays only when an invariant was violated.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from faults import (
    composing,
    floods,
    frozen_kafka,
    fuzz,
    hostile,
    jobs,
    media,
    network,
    on_air,
    playout,
    pooler,
    provisioning,
    pushes,
    syndication,
)
from faults.findings import markdown
from faults.matrix import Result, latency, play_scenario
from faults.outages import OUTAGES
from faults.scenarios import FULL, QUICK, SCENARIOS, Effort, Scenario
from faults.stage import Servers, Stage

T = TypeVar("T")
_ALL = (*SCENARIOS, *OUTAGES)
_STAGES = (
    *((True, Servers.ALONE), (False, Servers.ALONE), (True, Servers.LINKED), (True, Servers.REPLICATED)),
    *((False, Servers.ON_SMALL_DISK), (False, Servers.CLOCKED)),
)
_MATRICES = (jobs, media, composing, on_air, frozen_kafka, playout, provisioning, syndication, pushes)
"""Modules with their own servers and processes: `run_scenarios` runs them, `table` returns their results."""
_NOT_QUICK = ("receiver-", "calm-")
_COLUMNS = (
    *("scenario", "acknowledged", "in the log", "sent", "unique", "repeats", "lost", "out of order", "wrong"),
    *("settled s", "p50 / p99 ms", "holds"),
)


def main() -> None:
    others = tuple((module.NAME, module.MEANING) for module in (*_MATRICES, network, pooler, floods, hostile, fuzz))
    meanings = "; ".join(
        f"{name} ({meaning})" for name, meaning in (*((scenario.name, scenario.meaning) for scenario in _ALL), *others)
    )
    parser = argparse.ArgumentParser(
        prog="python -m faults",
        description=f"Names: {meanings}",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which scenarios (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer faults, and all faulty receivers at once")
    parser.add_argument(
        "--seed", type=int, default=None, metavar="N", help="the seed of the random source (default: another one each time)"
    )
    given = parser.parse_args()
    other_names = tuple(name for name, _ in others)
    every = (*(scenario.name for scenario in _ALL), *other_names)
    names = given.names or [name for name in every if not given.quick or not name.startswith(_NOT_QUICK)]
    if unknown := set(names) - set(every):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    seed = random.randrange(10**6) if given.seed is None else given.seed
    folder = Path(tempfile.mkdtemp(prefix="medialedger-faults-"))
    wanted = [scenario for scenario in _ALL if scenario.name in names]
    chosen = [scenario for scenario in wanted if scenario.obstacle() is None]
    print(f"seed {seed}, in {folder}", flush=True)
    since = time.monotonic()
    holds = True
    if chosen:
        results = uvloop.run(_interruptible(_matrix(chosen, folder, effort=QUICK if given.quick else FULL, seed=seed)))
        print(f"\n{table(results)}", flush=True)
        holds = len(results) == len(chosen) and all(result.holds for result in results)
    for module in _MATRICES:
        if module.NAME in names:
            module_results = uvloop.run(_interruptible(module.run_scenarios(folder, quick=given.quick, seed=seed, tell=_tell)))
            print(f"\n{module.table(module_results)}", flush=True)
            was_tried = (
                bool(module_results) or module.NAME not in given.names
            )  # a module that cannot run here has printed the reason
            holds = was_tried and all(result.holds for result in module_results) and holds
    if network.NAME in names:
        holds = _network(folder / network.NAME, must=network.NAME in given.names) and holds
    if pooler.NAME in names:
        holds = _pooler(folder / pooler.NAME, must=pooler.NAME in given.names) and holds
    if floods.NAME in names:
        holds = _floods(folder / floods.NAME, effort=floods.QUICK if given.quick else floods.FULL) and holds
    if hostile.NAME in names:
        holds = _hostile(folder / hostile.NAME, effort=hostile.QUICK if given.quick else hostile.FULL) and holds
    if fuzz.NAME in names:
        (folder / fuzz.NAME).mkdir()
        holds = uvloop.run(_interruptible(_fuzz(folder / fuzz.NAME, quick=given.quick, seed=seed))) and holds
    for scenario in wanted:
        if (obstacle := scenario.obstacle()) is not None:
            print(f"\n{scenario.name} was NOT TRIED: {obstacle}", flush=True)
            holds = holds and scenario.name not in given.names
    print(f"\nseed {seed}; {time.monotonic() - since:.0f} s", flush=True)
    if not holds:
        sys.exit(f"an invariant was violated; the logs of the processes are in {folder}")
    shutil.rmtree(folder, ignore_errors=True)


def _tell(text: str) -> None:
    print(text, flush=True)


async def _interruptible(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await work


def _network(folder: Path, *, must: bool) -> bool:
    if (obstacle := network.obstacle()) is not None:
        print(f"\n{network.NAME} was NOT TRIED: {obstacle}", flush=True)
        return not must
    folder.mkdir()
    measured = uvloop.run(_interruptible(network.measure_losses(folder)))
    print(f"\n{network.table(measured)}", flush=True)
    return all(result.holds for result in measured)


def _pooler(folder: Path, *, must: bool) -> bool:
    if (obstacle := pooler.obstacle()) is not None:
        print(f"\n{pooler.NAME} was NOT TRIED: {obstacle}", flush=True)
        return not must
    folder.mkdir()
    measured = uvloop.run(_interruptible(pooler.run_scenarios(folder)))
    print(f"\n{pooler.table(measured)}", flush=True)
    return all(result.holds for result in measured)


def _floods(folder: Path, *, effort: floods.Effort) -> bool:
    folder.mkdir()
    measured = uvloop.run(_interruptible(floods.run_floods(folder, effort=effort)))
    print(f"\n{floods.table(measured)}", flush=True)
    return all(result.holds for result in measured)


def _hostile(folder: Path, *, effort: hostile.Effort) -> bool:
    folder.mkdir()
    result = uvloop.run(_interruptible(hostile.run_scenarios(folder, effort=effort)))
    print(f"\n{hostile.table(result)}", flush=True)
    return result.holds


async def _fuzz(folder: Path, *, quick: bool, seed: int) -> bool:
    seconds = fuzz.QUICK_SECONDS if quick else fuzz.FULL_SECONDS
    report = await fuzz.run_fuzzing(folder, seconds=seconds, dice=random.Random(seed))
    print("\n" + "\n".join((report.line, *report.faults)), flush=True)
    return report.holds


async def _matrix(chosen: Sequence[Scenario], folder: Path, *, effort: Effort, seed: int) -> list[Result]:
    results: list[Result] = []
    for kafka, servers in _STAGES:
        scenarios = [candidate for candidate in chosen if (candidate.kafka, candidate.servers) == (kafka, servers)]
        if scenarios:
            name = f"{servers.name.lower()}-{'kafka' if kafka else 'log'}"
            async with Stage(folder / name, kafka=kafka, servers=servers, dice=random.Random(seed)) as stage:
                for scenario in scenarios:
                    results.append(await play_scenario(stage, scenario, effort=effort))
                    _show(results[-1])
    return results


def _show(result: Result) -> None:
    print(f"\n{result.scenario.name}: {result.scenario.meaning}; {result.notes}", flush=True)
    print(
        f"  writes acknowledged {result.acknowledged}, repeated by authors {result.repeated}, not in the log {result.unlogged};"
        f" unexpected ends {result.unexpected_ends}; parked {result.parked}; chain {result.broken_chain or 'whole'}"
    )
    for violation in result.violations:
        print(f"  VIOLATED: {violation}")
    for findings in result.findings:
        behaviours = ", ".join(f"{name} {times}" for name, times in sorted(findings.receiver.behaviours.items()))
        print(
            f"  {findings.receiver.name:<9} sent {findings.requests}, unique {findings.unique}, repeats {findings.repeats},"
            f" lost {findings.lost}, out of order {findings.disordered}, unknown {findings.unknown},"
            f" wrong {findings.wrong} ({behaviours})"
        )
    print(f"  commit to receipt, p50 / p99: {latency(result)} ms; everything from before the end of the last fault arrived")
    print(f"  {result.settled:.1f} s after it at healthy receivers, {result.recovered:.1f} s after it at the others", flush=True)


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown(_COLUMNS, map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    findings = result.findings
    counted = [result.acknowledged, result.logged]
    counted += [
        sum(receiver.requests for receiver in findings),
        sum(receiver.unique for receiver in findings),
        sum(receiver.repeats for receiver in findings),
    ]
    counted += [sum(receiver.lost for receiver in findings), sum(receiver.disordered for receiver in findings)]
    counted += [result.unlogged + sum(receiver.unknown + receiver.wrong for receiver in findings)]
    seconds = f"{result.settled:.1f}; {result.recovered:.1f}"
    return (result.scenario.name, *map(str, counted), seconds, latency(result), "yes" if result.holds else "NO")


if __name__ == "__main__":
    main()
