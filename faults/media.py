"""Assets, packages and captures under faults: their jobs have owners, whose state and files must agree with them in the end.

Media are stored in a directory, and then in S3, if an S3 server is installed. PostgreSQL is also killed when a file was just
published and its owner does not know this yet.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from domain.asset.values import AssetState
from domain.event.values import EventState
from faults.findings import Verdict, markdown
from faults.jobs import LIMITS, SETTINGS, Faults, Scene
from faults.jobs_log import LogCheck, Rule, facts
from faults.media_load import CLIENT, MediaLoad, MediaTally, readable, streamed
from faults.media_stage import MediaStage
from faults.media_verdict import AssetSeen, EventSeen, Evidence, Kind, State, assets_of, judge
from projections.audit.verify import verify
from tests.support.origin import Origin
from tests.support.s3 import REMEDY, new_bucket, serving, versitygw
from workers.ports.buckets import BucketAddress

NAME: Final = "media"
MEANING: Final = "assets, packages and captures whose engine is killed and frozen, in a directory and in S3"
_PATIENCE: Final = 180.0
_PUBLISHED_WITHIN: Final = 20.0
_LOOK: Final = 0.005
_AT_PUBLISHING: Final = "kill PostgreSQL at a publication"
_CALM: Final = 12
"""The number of consecutive checks without work in progress; longer than a dead member keeps its share of the log."""
_SETTLED: Final = f"""
SELECT (SELECT count(*) FROM job_view WHERE state NOT IN (2, 4)) + (SELECT count(*) FROM orders)
    + (SELECT count(*) FROM asset_view WHERE CASE WHEN removed THEN holds_path ELSE state = {AssetState.GENERATING} END)
    + (SELECT count(*) FROM event_view WHERE state = {EventState.VOD_INGESTING})
"""
_COLUMNS: Final = (
    *("scenario", "assets", "completed", "failed", "removed", "while generating", "pairs", "packages and captures", "failed"),
    *("runs", "leases lost", "killed at a publication", *Kind, "rules", "holds"),
)


@dataclass(frozen=True, slots=True)
class Amount:
    """The extent of a scenario. `at_publishing` is the number of times that PostgreSQL is killed when a file was just published."""

    assets: int
    events: int
    packages: int
    captures: int
    per_second: float
    at_publishing: int
    faults: Faults

    @property
    def seconds(self) -> float:
        """The seconds that its authors need without delays."""
        return (self.assets + self.events + self.packages + self.captures) / self.per_second


FULL: Final = Amount(400, 12, 10, 10, 1.5, 8, Faults(kills=4, freezes=4, restarts=2, outages=0))
QUICK: Final = Amount(36, 4, 3, 3, 1.0, 2, Faults(kills=1, freezes=1, restarts=1, outages=0))


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a scenario. `chain` is the reason why the log's chain is broken.

    `killed_at_publishing` counts the publications for which PostgreSQL was gone before their owners knew of them; `uploads` those
    that were begun and not ended, before and after housekeeping.
    """

    name: str
    tally: MediaTally
    evidence: Evidence
    log: LogCheck
    verdict: Verdict[Kind]
    happened: Counter[str]
    killed_at_publishing: int
    uploads: Sequence[int]
    late: int
    parked: int
    chain: str
    seconds: float

    @property
    def holds(self) -> bool:
        return not (self.verdict.counts.total() or self.log.breaches.total() or self.parked or self.chain)


@dataclass
class _Publications:
    """Kills PostgreSQL when a file was just published."""

    stage: MediaStage
    killed: list[tuple[set[str], float]] = field(default_factory=list)
    """The files that had just been published, with the time of each kill."""

    async def kill(self) -> None:
        """Kill PostgreSQL after a publication, or after some time without one."""
        before, deadline, new = await asyncio.to_thread(self.stage.published), time.monotonic() + _PUBLISHED_WITHIN, set[str]()
        while not new and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK)
            new = {name for name in (await asyncio.to_thread(self.stage.published)).keys() - before if "/assets/" in name}
        self.killed.append((new, time.time()))
        await self.stage.restart_postgres(accident=True)

    def before_completion(self, assets: Sequence[AssetSeen]) -> int:
        """Return the number of publications whose owners were informed later."""
        paths = {asset.path: asset for asset in assets if asset.completed_at is not None}
        return sum(
            any(name in paths and (paths[name].completed_at or 0) > at for name in published) for published, at in self.killed
        )


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> list[Result]:
    """Run the scenario in a directory, and in S3."""
    amount = QUICK if quick else FULL
    results = [await _play_scenario(folder / NAME, NAME, amount, seed=seed, bucket=None)]
    tell(describe(results[-1]))
    server = versitygw()
    if server is None:
        tell(f"{NAME}-s3 is not run: versitygw is not installed ({REMEDY})")
        return results
    root = folder / "media-buckets"
    root.mkdir(parents=True)
    with serving(server, root) as endpoint:
        name = f"{NAME}-s3"
        results.append(await _play_scenario(folder / name, name, amount, seed=seed, bucket=new_bucket(endpoint)))
    tell(describe(results[-1]))
    return results


async def _play_scenario(folder: Path, name: str, amount: Amount, *, seed: int, bucket: BucketAddress | None) -> Result:
    dice, made = random.Random(seed), folder / "made"
    made.mkdir(parents=True)
    files = await asyncio.to_thread(streamed, made)
    async with MediaStage(folder, kafka=False, dice=dice, bucket=bucket) as stage, Origin(dict(files)) as origin:
        since = time.monotonic()
        load = MediaLoad(
            stage.addresses,
            put=stage.put,
            film=files["film.mp4"],
            origin=f"{origin.url}/live.m3u8",
            per_second=amount.per_second,
            dice=dice,
        )
        await load.start(
            settings=SETTINGS, assets=amount.assets, events=amount.events, packages=amount.packages, captures=amount.captures
        )
        scene, publications = Scene(stage, amount.faults), _Publications(stage)
        try:
            faults = [*scene.planned_faults(), *[(_AT_PUBLISHING, publications.kill)] * amount.at_publishing]
            dice.shuffle(faults)
            for fault, happen in faults:
                await scene.play(fault, happen)
            async with asyncio.timeout(amount.seconds + _PATIENCE):  # the faults may be over much sooner
                await load.finish()
            await stage.until_ready()
            await _settled(stage)
            events = {key: await load.event(key) for key in load.tally.owned}
        finally:
            await load.close()
        seconds = time.monotonic() - since
        log = await asyncio.to_thread(lambda: LogCheck({CLIENT: LIMITS}).take_all(facts(stage.database, 0)))
        unfinished = await asyncio.to_thread(stage.unfinished)
        uploads = [await asyncio.to_thread(stage.uploads)]
        await stage.tidy([job.number for job in log.jobs.values() if job.ended])
        uploads.append(await asyncio.to_thread(stage.uploads))
        await asyncio.to_thread(stage.fetch_media)
        evidence = Evidence(
            assets=await asyncio.to_thread(assets_of, stage.database),
            jobs=log.jobs,
            events={key: EventSeen(event["stateString"], event["capturingLive2Vod"]) for key, event in events.items()},
            files=await asyncio.to_thread(stage.published),
            unfinished=unfinished,
            untidied=await asyncio.to_thread(stage.unfinished),
        )
        return Result(
            name,
            load.tally,
            evidence,
            log,
            await asyncio.to_thread(judge, load.tally, evidence, readable=lambda path: readable(stage.media_root / path)),
            scene.happened,
            publications.before_completion([*evidence.assets.values()]),
            uploads,
            stage.late(),
            await stage.parked(),
            (await asyncio.to_thread(verify, stage.database)).reason or "",
            seconds,
        )


async def _settled(stage: MediaStage) -> None:
    """Wait until nothing is in progress or patience runs out; the verdict reports what is wrong then."""
    deadline, calm = time.monotonic() + _PATIENCE, 0
    while calm < _CALM and time.monotonic() < deadline:
        calm = calm + 1 if (await stage.rows(_SETTLED))[0][0] == 0 else 0
        await asyncio.sleep(0.5)


def describe(result: Result) -> str:
    """Return all counts in words."""
    log, verdict, tally, assets = result.log, result.verdict, result.tally, result.evidence.assets.values()
    happened = ", ".join(f"{name} {times}" for name, times in sorted(result.happened.items()))
    rules = ", ".join(f"{rule} {log.breaches[rule]}" for rule in Rule)
    reasons = Counter(asset.reason for asset in assets if asset.state is State.FAILED and not asset.removed)
    reasons += Counter(job.reason for job in log.jobs.values() if job.failed and job.number in tally.owned.values())
    lines = [
        f"\n{result.name}: {happened}; {result.seconds:.0f} s",
        f"  commands answered {tally.commands}, sent again for lack of an answer {tally.repeated}",
        f"  assets of synchronisations {sum(not asset.requested for asset in assets)}, files {len(result.evidence.files)},"
        f" runs too late {result.late}",
        f"  remaining before housekeeping: jobs {len(result.evidence.unfinished)}, uploads {result.uploads[0]};"
        f" after it: uploads {result.uploads[1]}",
        f"  wrong: {', '.join(f'{kind} {verdict.counts[kind]}' for kind in Kind)}; parked {result.parked}",
        f"  broken rules: {rules}; chain {result.chain or 'whole'}",
        *(f"  failed {times}: {reason}" for reason, times in reasons.items()),
    ]
    return "\n".join((*lines, *(f"  {sentence}" for sentence in (*log.violations, *verdict.messages))))


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown(_COLUMNS, map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    tally, log = result.tally, result.log
    requested = [asset for asset in result.evidence.assets.values() if asset.requested]
    stay = Counter(asset.state for asset in requested if not asset.removed)
    owned = [log.jobs[number] for number in tally.owned.values() if number in log.jobs]
    counted = [len(requested), stay[State.COMPLETED], stay[State.FAILED], sum(asset.removed for asset in requested)]
    counted += [tally.generating, tally.together, len(owned), sum(job.failed for job in owned)]
    counted += [log.topics["job.task_started"], log.topics["job.task_lease_expired"], result.killed_at_publishing]
    ruled = [result.verdict.counts[kind] for kind in Kind]
    return (result.name, *map(str, (*counted, *ruled, log.breaches.total())), "yes" if result.holds else "NO")
