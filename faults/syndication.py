"""Publications under faults: uploading workers are killed and frozen in the middle of a film, targets refuse, break and forget, and
destinations are changed meanwhile.

The outcome is counted at the targets. The scenario runs once with Kafka and once without.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from faults.asking import Answered, Asking
from faults.findings import Verdict, markdown
from faults.jobs_stage import LEASE
from faults.patience import waited
from faults.stage import KEY
from faults.syndication_stage import Place, SyndicationStage
from faults.syndication_verdict import COMPLETED, Evidence, Kind, Upload, judge
from projections.audit.verify import verify

NAME: Final = "syndication"
MEANING: Final = "publications whose uploads are killed, frozen, cut and refused, at each kind of target, with Kafka and without"
_SIZE: Final = 40 << 20
_PATIENCE: Final = 120.0
_LOOK: Final = 0.02
_HEADERS: Final = {"API-KEY": KEY, "client": "admin"}
_VOD: Final = "/api/vodpublications"
_COLUMNS: Final = ("scenario", "publications", "completed", "refused", "connections lost", "most bytes sent twice", *Kind, "holds")
_RESUMED: Final = ("S3", "SFTP", "YOUTUBE", "FACEBOOK")
_EACH_PART: Final = (0.1, 0.3, 0.5, 0.7, 0.95)
_REFUSALS: Final = {403: "FailedDestination", 429: COMPLETED, 500: COMPLETED}

Happen = Callable[["_Scene", Place], Awaitable[int]]
"""A fault while a film is sent. It returns the number of connections that it costs."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case. `at` is the fraction of the film that was sent when the fault happens. `ends` are the states in which the publication
    may end."""

    place: str
    fault: str
    happen: Happen
    at: float = 0.5
    ends: tuple[str, ...] = (COMPLETED,)
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    evidence: Evidence
    verdict: Verdict[Kind]
    chain: str
    seconds: float

    @property
    def holds(self) -> bool:
        return not (self.verdict.counts.total() or self.chain) and bool(self.evidence.uploads)


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> list[Result]:
    """Run both scenarios, one after the other; a quick run only the one without Kafka."""
    results = []
    for kafka in (False,) if quick else (False, True):
        name = NAME if kafka else f"{NAME}-log"
        results.append(await play_scenario(folder / name, name, kafka=kafka, cases=_quick() if quick else _every(kafka), seed=seed))
        tell(describe(results[-1]))
    return results


async def play_scenario(folder: Path, name: str, *, kafka: bool, cases: Sequence[Case], seed: int) -> Result:
    """Run one scenario."""
    dice, since = random.Random(seed), time.monotonic()
    shuffled = dice.sample(cases, len(cases))
    async with SyndicationStage(folder, kafka=kafka, dice=dice) as stage, _opened(stage) as scene:
        uploads = [await scene.play(case) for case in shuffled]
        evidence = Evidence(scene.hash, uploads, await scene.cleared())
        chain = await asyncio.to_thread(verify, stage.database)
        return Result(name, evidence, judge(evidence), chain.reason or "", time.monotonic() - since)


@asynccontextmanager
async def _opened(stage: SyndicationStage) -> AsyncIterator[_Scene]:
    scene = _Scene(stage)
    try:
        await scene.prepare()
        yield scene
    finally:
        await scene.close()


class _Scene:
    """Publications of one film, one case after the other."""

    def __init__(self, stage: SyndicationStage) -> None:
        self.stage = stage
        self._asking = Asking(stage.addresses, tally=Answered(), dice=stage.dice)
        self._film = stage.dice.randbytes(_SIZE)
        self.hash = sha256(self._film).hexdigest()
        self._event = ""
        self.destinations: dict[str, str] = {}
        self._publications: list[tuple[str, str]] = []

    async def close(self) -> None:
        await self._asking.close()

    async def ask(self, method: str, path: str, body: Any = None, *, fine: Sequence[int] = ()) -> Any:
        return (await self._asking.answer(method, path, body, headers=_HEADERS, fine=fine))[1]

    async def prepare(self) -> None:
        """Create the film, and a destination of each kind that its activation has tried."""
        await self.ask("POST", "/engine/settings", {"name": "retry_limit", "setting": 5})
        self._event = (await self.ask("POST", "/api/event/", {"Title": "Final", "eventState": "VOD_PUBLIC"}))["id"]
        await self.stage.put(f"{self._event}/{self._event}.mp4", self._film)
        for place in self.stage.places.values():
            self.destinations[place.name] = await self.destination(place)

    async def destination(self, place: Place) -> str:
        body = {"name": place.name, "target": place.name, "destinationJson": json.dumps(place.config)}
        key = str((await self.ask("POST", "/api/media/destination/", body))["id"])
        answer = await self.ask("PUT", f"/api/media/destination/activate/{key}")
        assert not answer["actionRequired"], answer
        return key

    async def play(self, case: Case) -> Upload:
        """Publish, and inject the fault when the given fraction was sent. Return the end of the publication, and what the target
        has then."""
        place, since = self.stage.places[case.place], time.monotonic()
        before, sent = await asyncio.to_thread(place.objects), self._sent(place)
        where = self.destinations[case.place]
        wanted = [{"contentId": self._event, "destinationId": where, "publicationJson": "{}"}] * case.copies
        made = await self.ask("POST", f"{_VOD}/", {"publications": wanted})
        self._publications += [(publication["id"], where) for publication in made]
        await self._until(place, sent + int(case.at * _SIZE))
        lost = await case.happen(self, place)
        ends = [await self.ended(publication["id"], where) for publication in made]
        await self.stage.until_ready()
        after = await asyncio.to_thread(place.objects)
        worst = next((end for end in ends if end[0] not in case.ends), ends[0])
        return Upload(
            *(place.name, case.fault, *worst, frozenset(case.ends)),
            objects=[digest for name, digest in after.items() if name not in before],
            size=_SIZE,
            sent=self._sent(place) - sent,
            part=place.part or 0,
            resumes=place.part is not None,
            faults=lost,
            uploads=case.copies,
            seconds=time.monotonic() - since,
        )

    async def ended(self, publication: str, where: str) -> tuple[str, str]:
        """Return the state of a publication and its details; `Processing` if it never ends."""
        deadline, path = time.monotonic() + _PATIENCE, f"{_VOD}/{publication}?destinationId={where}"
        while True:
            evidence = await self.ask("GET", path)
            state = str(evidence["publicationStateString"])
            if state != "Processing" or time.monotonic() > deadline:
                return state, str(evidence.get("details"))
            await asyncio.sleep(0.2)

    async def cleared(self) -> dict[str, list[str]]:
        """Return what remains at the targets after all publications were deleted there."""
        for publication, where in self._publications:
            await self.ask("DELETE", f"{_VOD}/{publication}?destinationId={where}&hardDelete=true", fine=(404,))
        deadline = time.monotonic() + _PATIENCE
        while True:
            remains = {place.name: [*await asyncio.to_thread(place.objects)] for place in self.stage.places.values()}
            begun = {place.name: await asyncio.to_thread(place.stage.unfinished) for place in self.stage.places.values()}
            remains = {name: [*names, *["an unfinished upload"] * begun[name]] for name, names in remains.items()}
            if not any(remains.values()) or time.monotonic() > deadline:
                return remains
            await asyncio.sleep(0.5)

    async def _until(self, place: Place, sent: int) -> None:
        wire = place.wire
        if wire is not None:
            await waited(lambda: wire.sent >= sent, seconds=_PATIENCE, every=_LOOK)

    @staticmethod
    def _sent(place: Place) -> int:
        return place.wire.sent if place.wire is not None else 0


# --- what goes wrong


async def _kill(scene: _Scene, place: Place) -> int:
    for process in scene.stage.processes["work"]:
        process.kill()
    return 1


async def _freeze(scene: _Scene, place: Place) -> int:
    """Freeze the workers one after the other, for longer than a lease: one of them is uploading."""
    for process in scene.stage.processes["work"]:
        process.freeze()
        await asyncio.sleep(LEASE + 3)
        process.thaw()
    return len(scene.stage.processes["work"])


async def _cut(scene: _Scene, place: Place) -> int:
    assert place.wire is not None
    place.wire.cut_after(scene.stage.dice.randrange(1, 1 << 20))
    return 1


async def _slow(scene: _Scene, place: Place) -> int:
    """Let nothing pass for some seconds, too short to be given up."""
    assert place.wire is not None
    place.wire.swallow()
    await asyncio.sleep(5)
    place.wire.carry()
    return 0


async def _refuse(status: int, scene: _Scene, place: Place) -> int:
    if place.name == "YOUTUBE":
        reason = {403: "forbidden", 429: "rateLimitExceeded"}.get(status, "backendError")
        scene.stage.youtube.inject("/videos", status, reason)
    else:
        scene.stage.facebook.inject("/videos", status, {403: 200, 429: 4}.get(status, 2), 0)
    return 1


async def _expire(scene: _Scene, place: Place) -> int:
    scene.stage.youtube.expire()
    return 1


async def _postgres(scene: _Scene, place: Place) -> int:
    await scene.stage.restart_postgres(accident=True)
    return 1


async def _kafka(scene: _Scene, place: Place) -> int:
    broker = scene.stage.broker
    assert broker is not None
    await asyncio.to_thread(broker.kill)
    await asyncio.sleep(5)
    await asyncio.to_thread(broker.start)
    return 0


async def _deactivate(scene: _Scene, place: Place) -> int:
    """Deactivate the destination, and kill a worker, so that the destination is opened again."""
    path = f"/api/media/destination/active/{scene.destinations[place.name]}?active="
    await scene.ask("PUT", f"{path}false")
    await _kill(scene, place)
    await scene.ended(*scene._publications[-1])
    await scene.ask("PUT", f"{path}true")
    return 1


async def _edit(scene: _Scene, place: Place) -> int:
    """Change only the name: the flag of activation is reset by a change of the configuration."""
    await scene.ask("PUT", f"/api/media/destination/{scene.destinations[place.name]}", {"name": "another name"})
    return 0


async def _delete(scene: _Scene, place: Place) -> int:
    """Try to delete the destination, which is refused while a publication is running."""
    key = scene.destinations[place.name]
    await scene.ask("DELETE", f"/api/media/destination/{key}", fine=(409,))
    assert (await scene.ask("GET", f"/api/media/destination/{key}"))["id"] == key
    return 0


async def _nothing(scene: _Scene, place: Place) -> int:
    return 0


def _every(kafka: bool) -> list[Case]:
    cases = [Case(name, f"killed at {at:.0%}", _kill, at) for name in _RESUMED for at in _EACH_PART]
    cases += [Case(name, "frozen", _freeze, 0.4) for name in (*_RESUMED, "HTTP")]
    cases += [Case(name, "cut", _cut, at) for name in (*_RESUMED, "HTTP") for at in (0.2, 0.6)]
    cases += [Case(name, "nothing passes for 5 s", _slow, 0.4) for name in (*_RESUMED, "HTTP")]
    cases += [Case("HTTP", "killed at 50%", _kill), Case("FILESYSTEM", "killed at once", _kill, 0.0)]
    for status, end in _REFUSALS.items():
        cases += [Case(name, f"status {status}", partial(_refuse, status), 0.3, (end,)) for name in ("YOUTUBE", "FACEBOOK")]
    cases += [Case("YOUTUBE", "token expired", _expire, 0.3)]
    cases += [Case(name, "PostgreSQL killed", _postgres) for name in _RESUMED]
    cases += [Case("SFTP", "destination deactivated", _deactivate, ends=(COMPLETED, "FailedDestination"))]
    cases += [Case("SFTP", "destination edited", _edit), Case("S3", "destination deleted", _delete)]
    cases += [Case(name, "twice at once", _nothing, copies=2) for name in ("S3", "SFTP")]
    return [*cases, *[Case(name, "Kafka outage", _kafka) for name in ("S3", "SFTP") if kafka]]


def _quick() -> list[Case]:
    cases = [Case(name, "killed at 50%", _kill) for name in _RESUMED]
    cases += [Case("S3", "PostgreSQL killed", _postgres), Case("HTTP", "cut", _cut)]
    return [*cases, Case("YOUTUBE", "token expired", _expire)]


# --- words


def describe(result: Result) -> str:
    """Return all counts in words."""
    lines = [f"\n{result.name}: {len(result.evidence.uploads)} cases; {result.seconds:.0f} s; chain {result.chain or 'whole'}"]
    lines += [
        f"  {upload.place}, {upload.fault}: {upload.state}, {upload.sent} bytes sent, {upload.twice} twice, {upload.seconds:.1f} s"
        for upload in result.evidence.uploads
    ]
    lines.append(f"  wrong: {', '.join(f'{kind} {result.verdict.counts[kind]}' for kind in Kind)}")
    return "\n".join((*lines, *(f"  {sentence}" for sentence in result.verdict.messages)))


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown(_COLUMNS, map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    uploads = result.evidence.uploads
    completed = sum(upload.uploads for upload in uploads if upload.state == COMPLETED)
    counted = [sum(upload.uploads for upload in uploads), completed, sum(upload.uploads for upload in uploads) - completed]
    counted += [sum(upload.faults for upload in uploads), max((upload.twice for upload in uploads if upload.resumes), default=0)]
    return (result.name, *map(str, (*counted, *(result.verdict.counts[kind] for kind in Kind))), "yes" if result.holds else "NO")
