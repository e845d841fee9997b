"""Films of playlists under faults: each completed film shows every frame of its items in order, and nothing else is published.

Media are stored in a directory, and then in S3, if an S3 server is installed; workers are killed and frozen during items. A source
of one film is replaced meanwhile. Then a playlist of many items is composed, and one on a disk that is too small.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from api.wiring.core import core
from domain.job.aggregate import Job
from domain.job.values import Submission
from domain.kernel.clock import system_clock
from faults.findings import markdown
from faults.jobs import Faults, Scene
from faults.media_stage import MediaStage
from faults.surroundings import SmallDisk
from projections.audit.verify import verify
from projections.job.queue import JobNumberSequence
from tests.support.engine import Engine
from tests.support.packages import run
from tests.support.s3 import REMEDY, new_bucket, serving, versitygw
from tests.support.sources.numbered_frames import numbers
from tests.support.sources.playlists import event, item, playlist, source
from workers.job.protocol import StepFailure
from workers.job.registry import builtin
from workers.job.step_process_pool import StepProcessPool
from workers.ports.buckets import BucketAddress

NAME: Final = "composing"
MEANING: Final = "films of playlists whose workers are killed and frozen, with changing sources, many items and a full disk"
_SOURCES: Final = 3
_CHANGING: Final = 9
_FRAMES: Final = 100
_PATIENCE: Final = 600.0
_SMALL: Final = 24 << 20
_CHANGED: Final = "was changed while the film was made"
_LOST: Final = "was lost 2 times in a row"
"""The reason with which the engine gives up a task that may itself cause the loss of workers."""
_UNENDED: Final = "SELECT count(*) FROM job_view WHERE state NOT IN (2, 4)"
_COLUMNS: Final = (
    "scenario",
    "films",
    "items",
    "completed",
    "refused",
    "runs",
    "leases lost",
    "MiB at most",
    "descriptors",
    "wrong",
    "holds",
)


@dataclass(frozen=True, slots=True)
class Amount:
    films: int
    items: int
    many: int
    faults: Faults


FULL: Final = Amount(10, 60, 1000, Faults(kills=3, freezes=3, restarts=2, outages=0))
QUICK: Final = Amount(3, 16, 60, Faults(kills=1, freezes=1, restarts=1, outages=0))


@dataclass
class Result:
    """The figures of a scenario. `wrong` holds sentences; `memory` (in MiB) and `descriptors` are the most of one
    process of steps."""

    name: str
    films: int
    items: int
    completed: int = 0
    refused: int = 0
    runs: int = 0
    leases: int = 0
    memory: float = 0.0
    descriptors: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.wrong


@dataclass(frozen=True, slots=True)
class _Film:
    """A requested film, and the frames that it must show."""

    content_id: str
    items: Sequence[dict[str, Any]]
    shown: Sequence[int]
    changing: bool


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> list[Result]:
    """Run the scenarios in a directory, in S3, with many items, and on a small disk."""
    amount = QUICK if quick else FULL
    results = [await _play_scenario(folder / NAME, NAME, amount, seed=seed, bucket=None)]
    tell(_describe(results[-1]))
    server = versitygw()
    if server is None:
        tell(f"{NAME}-s3 is not run: versitygw is not installed ({REMEDY})")
    else:
        root = folder / "composing-buckets"
        root.mkdir(parents=True)
        with serving(server, root) as endpoint:
            name = f"{NAME}-s3"
            results.append(await _play_scenario(folder / name, name, amount, seed=seed, bucket=new_bucket(endpoint)))
        tell(_describe(results[-1]))
    results.append(await _many(folder / "many", amount.many))
    tell(_describe(results[-1]))
    if os.geteuid() == 0:
        results.append(await _full(folder / "full"))
        tell(_describe(results[-1]))
    else:
        tell("a full disk was NOT TRIED: only root mounts a small one")
    return results


async def _play_scenario(folder: Path, name: str, amount: Amount, *, seed: int, bucket: BucketAddress | None) -> Result:
    dice, made = random.Random(seed), folder / "made"
    await asyncio.to_thread(_sources, made)
    films = [_film(dice, number, amount.items) for number in range(amount.films)]
    result = Result(name, len(films), sum(len(film.items) for film in films))
    async with MediaStage(folder, kafka=False, dice=dice, bucket=bucket) as stage:
        for path in made.rglob("*.mp4"):
            await stage.put(f"{path.parent.name}/{path.name}", path.read_bytes())
        asked = await _submitted(stage, films)
        changing = made / event(_CHANGING) / f"{event(_CHANGING)}.mp4"
        scene = Scene(stage, amount.faults)
        for number, (fault, happen) in enumerate(scene.planned_faults()):
            await scene.play(fault, happen)
            if number == 1:
                await stage.put(f"{event(_CHANGING)}/{changing.name}", changing.read_bytes() + b"\0\0\0\x08free")
        await stage.until_ready()
        await _ended(stage)
        jobs = await _jobs(stage, asked)
        await stage.tidy([job.number for job in jobs])
        await asyncio.to_thread(stage.fetch_media)
        for film, job in zip(films, jobs, strict=True):
            result.wrong += await asyncio.to_thread(_judge, film, job, stage.media_root)
        result.wrong += [f"housekeeping leaves {names[0]}" for names in (await asyncio.to_thread(stage.unfinished)).values()]
        result.wrong += filter(None, [(await asyncio.to_thread(verify, stage.database)).reason])
        result.completed = sum(not job.failed for job in jobs)
        result.refused = len(jobs) - result.completed
        result.runs, result.leases = await _counted(stage)
    return result


def _sources(folder: Path) -> None:
    """Make two sources of the same form, one of another form, and one that is replaced later."""
    for number, options in enumerate(
        ((), (), ("-vf", "scale=192:144:flags=neighbor", "-c:v", "libx264", "-pix_fmt", "yuv420p")), 1
    ):
        source(folder, number, *options, hertz=300 * number, decibels=-4.0 - 3 * number)
    source(folder, _CHANGING)


def _film(dice: random.Random, number: int, count: int) -> _Film:
    """Return a random film. The last item of the first film uses the source that is replaced."""
    items: list[dict[str, Any]] = []
    shown: list[int] = []
    for place in range(count):
        key = _CHANGING if number == 0 and place == count - 1 else dice.randint(1, _SOURCES)
        first, last = sorted(dice.sample(range(_FRAMES), 2))
        times = {name: f"00:00:{frame / 25:06.3f}" for name, frame in (("start", first), ("end", last))}
        if whole := dice.random() < 0.2:
            first, last = 0, _FRAMES
        items.append(item(key) if whole else item(key, **times, frameAccurate=True))
        shown += range(first, last)
    return _Film(event(1000 + number), items, shown, number == 0)


async def _submitted(stage: MediaStage, films: Sequence[_Film]) -> list[int]:
    """Submit the films as jobs without an owner, and return their numbers."""
    inner = core(stage.database, role=None, clock=system_clock)
    await inner.start()
    try:
        engine = Engine(inner, JobNumberSequence(inner.database))
        return [await _accepted(engine, film) for film in films]
    finally:
        await inner.stop()


async def _accepted(engine: Engine, film: _Film) -> int:
    number = await engine.numbers.draw()
    given = {"content_id": film.content_id, "generation": 1, "playlist": playlist(*film.items), "renditions": [96]}
    workflow, _ = builtin().checked("compose", given)
    submission = Submission(
        client="admin", workflow=workflow.name, content_id=film.content_id, parameters=given, tasks=workflow.graph()
    )
    await engine.do(Job.accept.on(number, submission, priority=5))
    return number


async def _jobs(stage: MediaStage, asked: Sequence[int]) -> list[Job]:
    inner = core(stage.database, role=None, clock=system_clock)
    await inner.start()
    try:
        engine = Engine(inner, JobNumberSequence(inner.database))
        return [await engine.job(number) for number in asked]
    finally:
        await inner.stop()


async def _ended(stage: MediaStage) -> None:
    """Wait until all jobs have ended or patience runs out; the verdict reports unended jobs."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with suppress(psycopg.Error):
            if (await stage.rows(_UNENDED))[0][0] == 0:
                return
        await asyncio.sleep(0.5)


async def _counted(stage: MediaStage) -> tuple[int, int]:
    topics = Counter(dict(await stage.rows("SELECT topic, count(*) FROM events WHERE topic LIKE 'job.task%%' GROUP BY topic")))
    return topics["job.task_started"], topics["job.task_lease_expired"]


def _judge(film: _Film, job: Job, root: Path) -> list[str]:
    named = f"the film {film.content_id}"
    folder = root / film.content_id
    published = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    if not job.ended:
        return [f"{named} has not ended"]
    if job.failed:
        explained = _LOST in job.reason or (film.changing and _CHANGED in job.reason)
        return [
            *([] if explained else [f"{named} failed: {job.reason}"]),
            *([f"{named} failed, and has files"] if published else []),
        ]
    listed = json.loads((folder / "metadata.json").read_text())["files"]
    if {entry["name"]: entry["size"] for entry in listed} != {
        name: size for name, size in published.items() if name != "metadata.json"
    }:
        return [f"{named} has other files than metadata.json says"]
    files = (f"{film.content_id}.mp4", "clear/video-96.mp4")
    return [f"{named}: {file} shows other frames" for file in files if numbers(folder / file) != list(film.shown)]


async def _many(folder: Path, count: int) -> Result:
    """Compose a playlist of the greatest supported length, and measure the resources of a process of steps."""
    await asyncio.to_thread(_sources, folder)
    items = [item(1 + place % 2, start="00:00:01.200", end="00:00:02.400") for place in range(count)]
    result = Result(f"{count} items", 1, count, runs=9)
    hosts = StepProcessPool(media_root=folder, allow=[])
    await hosts.start()
    watching = asyncio.create_task(_watched(result))
    try:
        made = await run(hosts, folder, "compose", generation=1, playlist=playlist(*items), renditions=[96])
    finally:
        watching.cancel()
        await hosts.stop()
    if isinstance(made, StepFailure):
        result.wrong.append(made.reason)
        return result
    result.completed = 1
    shown = await asyncio.to_thread(numbers, folder / "film/film.mp4")
    if shown != [*range(30, 60)] * count:
        result.wrong.append("the film shows other frames")
    return result


async def _watched(result: Result) -> None:
    """Measure the processes of steps below this one, with all their descendants."""
    while True:
        with suppress(OSError, ValueError):
            for process in _below(os.getpid()):
                resident = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
                result.memory = max(result.memory, resident)
                result.descriptors = max(result.descriptors, len(os.listdir(process / "fd")))
        await asyncio.sleep(0.2)


def _below(ancestor: int) -> list[Path]:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
    descendants = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in descendants} - descendants:
        descendants |= more
    return [Path("/proc", str(pid)) for pid in descendants - {ancestor}]


async def _full(folder: Path) -> Result:
    """Check that a job fails with a sentence on a full disk, leaves nothing behind, and succeeds once there is space."""
    result, disk = Result("full disk", 2, 2 * 40), SmallDisk(folder, size=_SMALL)
    await asyncio.to_thread(disk.mount)
    try:
        await asyncio.to_thread(_sources, folder)
        hosts = StepProcessPool(media_root=folder, allow=[])
        await hosts.start()
        try:
            long = playlist(*[item(1 + place % _SOURCES, start="00:00:00.040", frameAccurate=True) for place in range(40)])
            made = await run(hosts, folder, "compose", generation=1, playlist=long)
            if not isinstance(made, StepFailure) or made.reason != "The disk is full.":
                result.wrong.append(f"it ended with {made}")
            if (folder / "film").exists() or any((folder / ".jobs").glob("*")):
                result.wrong.append("something was left")
            result.refused = 1
            made = await run(hosts, folder, "compose", generation=2, playlist=playlist(item(1), item(2)))
            if isinstance(made, StepFailure):
                result.wrong.append(f"with space it ended with {made}")
            result.completed = 1
            if remaining := [path for path in _below(os.getpid()) if "ffmpeg" in os.readlink(path / "exe")]:
                result.wrong.append(f"{len(remaining)} programs were left")
        finally:
            await hosts.stop()
    finally:
        await asyncio.to_thread(disk.unmount)
        shutil.rmtree(folder, ignore_errors=True)
    return result


def _describe(result: Result) -> str:
    return "\n".join(
        (f"\n{result.name}: {result.films} films, {result.completed} completed, {result.refused} refused", *result.wrong)
    )


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown(_COLUMNS, map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    counted = (result.films, result.items, result.completed, result.refused, result.runs, result.leases)
    needed = (f"{result.memory:.0f}" if result.memory else "", str(result.descriptors or ""))
    return (result.name, *map(str, counted), *needed, str(len(result.wrong)), "yes" if result.holds else "NO")
