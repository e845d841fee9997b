"""The job engine under faults: jobs of three tasks, of two clients, while processes and servers are killed, frozen and restarted.

Afterwards the rules are checked on the log. The scenario runs once with Kafka and once without.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from faults.findings import markdown
from faults.jobs_load import CLIENTS, JobLoad, Tally
from faults.jobs_log import Limits, LogCheck, Rule, facts
from faults.jobs_stage import LEASE, JobStage
from faults.jobs_verdict import Verdict, judge
from projections.audit.verify import verify
from projections.consumers.leases import LEASE as SHARE
from tests.support.s3 import REMEDY, new_bucket, serving, versitygw

NAME: Final = "jobs"
MEANING: Final = "jobs whose engine is killed, frozen and restarted, with Kafka and without"
LIMITS: Final = Limits(max_jobs=16, priority_slots=4, priority_threshold=5)
SETTINGS: Final = {"max_jobs": 16, "priority_slots": 4, "priority_threshold": 5, "retry_delay": 1}
_EXTRA_WORKER_KILLS: Final = 3
"""The factor of additional kills of `work` processes."""
_RISE: Final = 20.0
_PATIENCE: Final = 240.0
_NEARLY: Final = 100
_UNENDED: Final = "SELECT count(*) FROM job_view WHERE state NOT IN (2, 4)"
_PAUSED: Final = "SELECT client, id FROM job_view WHERE state = 6"
_HEAD_COLUMNS: Final = ("scenario", "accepted", "repeats", "completed", "broken", "given up", "runs", "leases lost", "too late")
_RULED: Final = ("most started", "lost", "twice", "too many", "two runs", "published twice", "wrong", "jobs/s", "holds")


@dataclass(frozen=True, slots=True)
class Faults:
    """The least numbers of faults of each kind; kills are per role."""

    kills: int
    freezes: int
    restarts: int
    outages: int


@dataclass(frozen=True, slots=True)
class Effort:
    """The extent of each scenario. Faults continue until nearly all jobs have ended."""

    jobs: int
    per_second: float
    faults: Faults


FULL: Final = Effort(jobs=5_000, per_second=60, faults=Faults(kills=6, freezes=6, restarts=2, outages=2))
QUICK: Final = Effort(jobs=500, per_second=25, faults=Faults(kills=1, freezes=1, restarts=1, outages=1))
IN_BUCKET: Final = Effort(jobs=150, per_second=15, faults=Faults(kills=1, freezes=1, restarts=1, outages=0))


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a scenario. `unexpected_ends` counts processes that ended on their own; `chain` is the reason why the log's
    chain is broken."""

    name: str
    tally: Tally
    log: LogCheck
    verdict: Verdict
    accidents: Counter[str]
    late: int
    unexpected_ends: int
    seconds: float
    chain: str

    @property
    def holds(self) -> bool:
        return not (self.verdict.faults or self.log.breaches.total() or self.tally.differing or self.chain)


@dataclass
class Scene:
    """A scenario in progress."""

    stage: JobStage
    faults: Faults
    happened: Counter[str] = field(default_factory=Counter)

    def planned_faults(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        """Return the faults of the scenario, in random order."""
        roles = (*self.stage.processes, *(["work"] * _EXTRA_WORKER_KILLS))
        faults = [(f"kill {role}", self._killer(role)) for role in roles for _ in range(self.faults.kills)]
        faults += [("freeze", self._freeze)] * self.faults.freezes
        faults += [("stop PostgreSQL", self._postgres(accident=False)), ("kill PostgreSQL", self._postgres(accident=True))] * (
            self.faults.restarts
        )
        if self.stage.broker is not None:
            faults += [("Kafka outage", self._kafka)] * self.faults.outages
        self.stage.dice.shuffle(faults)
        return faults

    async def play(self, name: str, happen: Callable[[], Awaitable[None]]) -> None:
        """Inject a fault, and wait for some time after it."""
        await happen()
        self.happened[name] += 1
        await self.all_roles_ready()
        await asyncio.sleep(self.stage.dice.uniform(0.2, 2.5))

    async def all_roles_ready(self) -> None:
        """Wait for a limited time until every role has a ready process: a fault tests nothing while the role is down anyway."""
        deadline = time.monotonic() + _RISE
        while time.monotonic() < deadline:
            if all(any(process.ready for process in places) for places in self.stage.processes.values()):
                return
            await asyncio.sleep(0.1)

    def _killer(self, role: str) -> Callable[[], Awaitable[None]]:
        async def kill() -> None:
            places = [process for process in self.stage.processes[role] if process.ready]
            if places:
                self.stage.dice.choice(places).kill()

        return kill

    async def _freeze(self) -> None:
        """Freeze one process of every role that has a lease, and two of those that run steps, for longer than any lease."""
        chosen = [self.stage.dice.choice(places) for role, places in self.stage.processes.items() if role != "api"]
        chosen += self.stage.dice.sample(self.stage.processes["work"], 1)
        frozen = list(dict.fromkeys(chosen))
        for process in frozen:
            process.freeze()
            await asyncio.sleep(self.stage.dice.uniform(0, 0.1))
        await asyncio.sleep(max(LEASE, SHARE) + self.stage.dice.uniform(1, 3))
        for process in frozen:
            process.thaw()

    def _postgres(self, *, accident: bool) -> Callable[[], Awaitable[None]]:
        async def restart() -> None:
            await self.stage.restart_postgres(accident=accident)

        return restart

    async def _kafka(self) -> None:
        assert self.stage.broker is not None
        end = self.stage.dice.choice((self.stage.broker.stop, self.stage.broker.kill))
        await asyncio.to_thread(end)
        await asyncio.sleep(self.stage.dice.uniform(3, 8))
        await asyncio.to_thread(self.stage.broker.start)


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> list[Result]:
    """Run all scenarios, one after the other, each in its own folder. The last one stores media in S3, if an S3 server is
    installed."""
    results = []
    for kafka in (True, False):
        dice, name = random.Random(seed), f"{NAME}{'' if kafka else '-log'}"
        async with JobStage(folder / name, kafka=kafka, dice=dice) as stage:
            results.append(await _play_scenario(stage, name, effort=QUICK if quick else FULL))
            tell(describe(results[-1]))
    server = versitygw()
    if server is None:
        tell(f"{NAME}-s3 is not run: versitygw is not installed ({REMEDY})")
    else:
        results.append(await run_in_bucket(folder, server, seed=seed))
        tell(describe(results[-1]))
    return results


async def run_in_bucket(folder: Path, server: Path, *, seed: int) -> Result:
    """Run a short scenario without a directory that the workers share. It differs only in where files are stored."""
    name = f"{NAME}-s3"
    root = folder / "buckets"
    root.mkdir(parents=True)
    with serving(server, root) as endpoint:
        async with JobStage(folder / name, kafka=False, dice=random.Random(seed), bucket=new_bucket(endpoint)) as stage:
            return await _play_scenario(stage, name, effort=IN_BUCKET)


async def _play_scenario(stage: JobStage, name: str, *, effort: Effort) -> Result:
    keys = {}
    for client in CLIENTS:
        keys[client] = (await stage.request("POST", "/api/client/", {"name": client, "roles": ["operator"]}))["key"]
    load = JobLoad(stage.addresses, keys=keys, jobs=effort.jobs, per_second=effort.per_second, dice=stage.dice)
    await load.start(SETTINGS)
    since, scene = time.monotonic(), Scene(stage, effort.faults)
    try:
        await _faults(scene, load)
        await load.finish()
        await stage.until_ready()
        await _all_end(stage, load)
    finally:
        await load.close()
    await asyncio.to_thread(stage.fetch_media)
    log = await asyncio.to_thread(lambda: LogCheck(dict.fromkeys(CLIENTS, LIMITS)).take_all(facts(stage.database, 0)))
    ended = max((job.ended_at for job in log.jobs.values()), default=0.0)
    began = min((job.accepted_at for job in log.jobs.values()), default=0.0)
    chain = await asyncio.to_thread(verify, stage.database)
    return Result(
        name,
        load.tally,
        log,
        await asyncio.to_thread(judge, load.tally.submitted, log, media_root=stage.media_root),
        scene.happened,
        late=stage.late(),
        unexpected_ends=sum(process.unexpected_ends for process in stage.all),
        seconds=max(ended - began, time.monotonic() - since if not ended else 0.0),
        chain=chain.reason or "",
    )


async def _faults(scene: Scene, load: JobLoad) -> None:
    """Inject all planned faults, and then further ones until nearly all jobs have ended."""
    whole = False
    while not whole or not await _nearly_done(scene, load):
        for name, happen in scene.planned_faults():
            if (whole and await _nearly_done(scene, load)) or _failed(load):
                return
            await scene.play(name, happen)
        whole = True


def _failed(load: JobLoad) -> bool:
    return load.over and not load.well


async def _nearly_done(scene: Scene, load: JobLoad) -> bool:
    return load.over and await _unended(scene.stage) < _NEARLY


async def _unended(stage: JobStage) -> int:
    return int((await stage.rows(_UNENDED))[0][0])


async def _all_end(stage: JobStage, load: JobLoad) -> None:
    """Wait until all jobs have ended or patience runs out. Jobs that a late pause left paused are resumed, because their clients
    want them to complete."""
    deadline = time.monotonic() + _PATIENCE
    while await _unended(stage) and time.monotonic() < deadline:
        for client, number in await stage.rows(_PAUSED):
            await load.resume(client, number)
        await asyncio.sleep(0.5)


def describe(result: Result) -> str:
    """Return all counts in words."""
    log, verdict, tally = result.log, result.verdict, result.tally
    happened = ", ".join(f"{name} {times}" for name, times in sorted(result.accidents.items()))
    rules = ", ".join(f"{rule} {log.breaches[rule]}" for rule in Rule)
    most = ", ".join(
        f"{client} {log.most[client]} of {LIMITS.max_jobs}, {log.most_low[client]} of {LIMITS.low}" for client in CLIENTS
    )
    lines = [
        f"\n{result.name}: {happened}; processes that ended on their own {result.unexpected_ends}",
        f"  commands answered {tally.commands}, sent again for lack of an answer {tally.repeated}, twice on purpose {tally.twice},"
        f" answered otherwise then {tally.differing}, resumed {tally.resumed}",
        f"  most started at a time, of them not urgent: {most}",
        f"  lost {verdict.lost}, accepted twice {verdict.twice}, unknown {verdict.unknown}, not ended {verdict.unended},"
        f" ended otherwise {verdict.otherwise}, wrong files {verdict.files}",
        f"  broken rules: {rules}; chain {result.chain or 'whole'}",
        f"  events: {', '.join(f'{topic} {times}' for topic, times in sorted(log.topics.items()))}",
    ]
    return "\n".join((*lines, *(f"  {sentence}" for sentence in (*log.violations, *verdict.messages))))


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown((*_HEAD_COLUMNS, *_RULED), map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    log, verdict = result.log, result.verdict
    jobs, broken = log.jobs.values(), log.breaches
    completed = sum(job.ended and job.phase == "completed" and not job.failed for job in jobs)
    counted = [len(jobs), result.tally.repeated + result.tally.twice, completed]
    counted += [sum(job.phase == "broken" for job in jobs), sum(job.failed and job.phase == "completed" for job in jobs)]
    counted += [log.topics["job.task_started"], log.topics["job.task_lease_expired"], result.late]
    most = f"{max(log.most.values(), default=0)}; {max(log.most_low.values(), default=0)}"
    ruled = [verdict.lost + verdict.unended, verdict.twice + result.tally.differing + broken[Rule.ENDS_ONCE]]
    ruled += [broken[Rule.SLOTS] + broken[Rule.RESERVED], broken[Rule.ONE_RUN] + broken[Rule.OVERTAKEN]]
    ruled += [broken[Rule.PUBLISHED_ONCE] + verdict.files]
    ruled += [verdict.unknown + verdict.otherwise + broken[Rule.STARTS] + broken[Rule.GIVEN_UP]]
    rate = f"{len(jobs) / result.seconds:.0f}" if result.seconds else "0"
    return (result.name, *map(str, counted), most, *map(str, ruled), rate, "yes" if result.holds else "NO")
