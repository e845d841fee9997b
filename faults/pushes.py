"""Live publications under faults: pushing workers are killed, frozen and stopped; receiver, origin, database and broker fail; many
start at once; some are stopped while they connect.

Media are counted at the receiver by the numbers of sessions, with Kafka and without.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Final

from aiohttp import web

from faults.asking import Answered, Asking
from faults.findings import Verdict, markdown
from faults.marked_secrets import in_files, in_kafka, in_tables, watched_processes
from faults.on_air_stage import AirStage
from faults.patience import waited
from faults.pushes_verdict import AFTER_EVENT, Evidence, Kind, Stop, Taken, judge
from faults.stage import EACH, KEY
from projections.audit.verify import verify
from tests.support.live_origin import LiveOrigin, live_origin
from tests.support.rtmp_receiver import RtmpReceiver, rtmp_receiver
from tests.support.targets.stages import serving

NAME: Final = "pushes"
MEANING: Final = "live publications whose pushers are killed and frozen, and whose receivers fail, with Kafka and without"
_LIVE: Final = "/api/media/livepublication"
_HEADERS: Final = {"API-KEY": KEY, "client": "admin"}
_PATIENCE: Final = 120.0
_FROZEN: Final = 12.0
"""A number of seconds that is longer than the lease of a worker of sessions and its takeover."""
_AWAY: Final = 6.0
_BUFFERED: Final = 2.0
"""The seconds for which media of a pusher that is gone may still arrive."""
_ROUNDS: Final = 3
_FEW, _MANY, _MANY_QUICK = 4, 50, 10
_COLUMNS: Final = (
    *("scenario", "faults", "publications", "sessions", "s silent after a fault, at most", "s after a stop, at most"),
    *("callbacks", "Kafka records", *Kind, "holds"),
)


class PushStage(AirStage):
    """A stage with two processes of each role between the request and the receiver."""

    WORKERS: ClassVar[Mapping[str, int]] = {"relay": EACH, "syndication": EACH, "sessions": EACH, "callback deliveries": EACH}

    def logs(self) -> list[Path]:
        return sorted(self._logs.glob("*.log"))

    @property
    def bootstrap(self) -> str | None:
        return self._environment.get("MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS")


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    happened: Counter[str]
    evidence: Evidence
    publications: int
    callbacks: int
    records: int
    verdict: Verdict[Kind]
    chain: str
    seconds: float

    @property
    def holds(self) -> bool:
        return not (self.verdict.counts.total() or self.chain) and bool(self.evidence.media) and bool(self.callbacks)


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> list[Result]:
    """Run both scenarios, one after the other; a quick run only the one without Kafka."""
    results = []
    for kafka in (False,) if quick else (False, True):
        results.append(await _play_scenario(folder, kafka=kafka, quick=quick, seed=seed, tell=tell))
        tell(describe(results[-1]))
    return results


async def _play_scenario(folder: Path, *, kafka: bool, quick: bool, seed: int, tell: Callable[[str], None]) -> Result:
    name, dice, since = NAME if kafka else f"{NAME}-log", random.Random(seed), time.monotonic()
    faults = [*_FAULTS] if kafka else [each for each in _FAULTS if each != "Kafka outage"]
    kinds = faults if quick else dice.sample(faults * _ROUNDS, len(faults) * _ROUNDS)
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(live_origin(_made(folder / f"{name}-origin")))
        receiver = await stack.enter_async_context(rtmp_receiver())
        stage = await stack.enter_async_context(PushStage(folder / name, kafka=kafka, dice=dice))
        scene = await stack.enter_async_context(_opened(_Scene(stage, origin, receiver, tell)))
        await stack.enter_async_context(watched_processes(scene.mark, scene.secrets))
        await scene.few()
        for kind in kinds:
            await scene.happen(kind)
        await scene.connecting()
        await scene.many(_MANY_QUICK if quick else _MANY)
        await scene.ended()
        records = await scene.search()
        chain = await asyncio.to_thread(verify, stage.database)
        evidence = scene.evidence()
        counted = (Counter(kinds), evidence, len(scene.publications), len(scene.callbacks), records)
        return Result(name, *counted, judge(evidence), chain.reason or "", time.monotonic() - since)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


@asynccontextmanager
async def _opened(scene: _Scene) -> AsyncIterator[_Scene]:
    app = web.Application()
    app.router.add_post("/", scene.called)
    async with serving(app) as port:
        scene.callback = f"http://127.0.0.1:{port}/?token={scene.mark}-callback"
        try:
            await scene.prepare()
            yield scene
        finally:
            await scene.close()


@dataclass(frozen=True, slots=True)
class _Publication:
    """A publication. `stream` is its name at the receiver, a secret."""

    id: str
    event: str
    stream: str


@dataclass
class _Scene:
    stage: PushStage
    origin: LiveOrigin
    receiver: RtmpReceiver
    tell: Callable[[str], None]
    callback: str = ""
    callbacks: list[bytes] = field(default_factory=list)
    secrets: Counter[str] = field(default_factory=Counter)
    publications: list[_Publication] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    silent: list[tuple[str, float]] = field(default_factory=list)
    states: list[tuple[str, str, str]] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    _events: list[str] = field(default_factory=list)
    _destination: str = ""

    def __post_init__(self) -> None:
        self.mark = f"marked{self.stage.dice.getrandbits(64):x}"
        self._asking = Asking(self.stage.addresses, tally=Answered(), dice=self.stage.dice)

    async def close(self) -> None:
        await self._asking.close()

    async def called(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.callbacks.append(body)
        if self.mark.encode() in body or self.mark in str(request.headers):
            self.secrets["a callback"] += 1
        return web.Response()

    async def prepare(self) -> None:
        """Put two Events on the air: one is read unchanged, the other is demultiplexed by ffmpeg."""
        for name, url in (("cmaf", self.origin.cmaf), ("ts", self.origin.ts)):
            encoder = {"name": "e", "outputUrls": [{"streamProtocol": "HLS", "liveOriginPrimaryUrl": url}]}
            body = {"name": name, "configurationJson": json.dumps({"encoders": [encoder]})}
            channel = (await self._ask("POST", "/api/channel/", body))["id"]
            event = (await self._ask("POST", "/api/event/", {"title": name, "channelId": channel}))["id"]
            await self._ask("PUT", f"/api/event/state/{event}", {"state": "LIVE_PUBLISHED"})
            self._events.append(event)
        config = json.dumps({"cstm_streamUrl": self.receiver.url, "cstm_streamName": f"{self.mark}-0"})
        body = {"name": "Partner", "target": "CUSTOM", "destinationJson": config}
        self._destination = str((await self._ask("POST", "/api/media/destination/", body))["id"])
        answer = await self._ask("PUT", f"/api/media/destination/activate/{self._destination}")
        assert not answer["actionRequired"], answer

    async def few(self) -> None:
        """Start the publications that are pushed while faults happen."""
        for event in self._events:
            await self._publish(event, _FEW // 2, start=True)
        await self._arrive("the start", self.publications)

    async def happen(self, kind: str) -> None:
        """Inject a fault and wait until all is pushed again; then stop, recreate and start one publication."""
        since = time.monotonic()
        await _FAULTS[kind](self)
        await self._arrive(kind, self.publications, since=since)
        await self._again(self.stage.dice.choice(self.publications))

    async def connecting(self) -> None:
        """Stop a publication while the receiver does not answer."""
        self.receiver.how = "hang"
        begun = len(self.receiver.writers)
        [publication] = await self._publish(self._events[0], 1, start=True)
        await waited(lambda: len(self.receiver.writers) > begun, seconds=_PATIENCE)
        await self._stop([publication])
        self.receiver.how = ""

    async def many(self, count: int) -> None:
        """Start many publications with one request, move them by a kill, and stop them with one request."""
        event = self._events[0]
        made = await self._publish(event, count, start=False)
        await self._ask("PUT", f"{_LIVE}/start/all/", self._entries(event, made))
        await self._arrive(f"the start of {count}", made)
        since = time.monotonic()
        await _kill(self)
        await self._arrive(f"a kill with {count} running", made, since=since)
        await self._states(made, "InProgress")
        await self._stop(made)

    async def ended(self) -> None:
        """End the Events, which must end what is pushed, and with it all processes of ffmpeg."""
        stopped = {stop.stream for stop in self.stops if stop.again == inf}
        running = [publication for publication in self.publications if publication.stream not in stopped]
        await self._states(running, "InProgress")
        for event in self._events:
            await self._ask("PUT", f"/api/event/state/{event}", {"state": "STOPPED"})
            now = time.monotonic()
            self.stops += [Stop(publication.stream, now, AFTER_EVENT) for publication in running if publication.event == event]
        await self._states(self.publications, "Completed")
        await waited(lambda: not self.stage.children(), seconds=2 * AFTER_EVENT)
        self.children += self.stage.children()
        await asyncio.sleep(AFTER_EVENT)  # in which nothing may come

    async def search(self) -> int:
        """Search everywhere for the mark, and for an id that must be found. Return the number of Kafka records."""
        event = self._events[0]
        self.secrets += in_files(self.mark, self.stage.logs())
        self.secrets += await asyncio.to_thread(in_tables, self.mark, self.stage.database)
        assert await asyncio.to_thread(in_tables, event, self.stage.database)
        if self.stage.bootstrap is None:
            return 0
        records, there = await asyncio.to_thread(in_kafka, self.mark, self.stage.bootstrap)
        self.secrets += there
        assert (await asyncio.to_thread(in_kafka, event, self.stage.bootstrap))[1]
        return records

    def evidence(self) -> Evidence:
        media = [Taken(*columns) for columns in self.receiver.sent]
        return Evidence(media, self.stops, self.silent, self.states, self.children, self.secrets)

    async def _ask(self, method: str, path: str, body: Any = None, *, fine: Sequence[int] = ()) -> Any:
        return (await self._asking.answer(method, path, body, headers=_HEADERS, fine=fine))[1]

    async def _publish(self, event: str, count: int, *, start: bool) -> list[_Publication]:
        streams = [f"{self.mark}-{len(self.publications) + number}" for number in range(1, count + 1)]
        texts = [json.dumps({"cstm_streamName": stream, "callbackUrls": [self.callback]}) for stream in streams]
        wanted = [{"destinationId": self._destination, "publicationJson": text} for text in texts]
        answer = await self._ask("POST", f"{_LIVE}/", {"eventId": event, "publications": wanted, "startInstantly": start})
        made = [_Publication(answered["id"], event, stream) for answered, stream in zip(answer, streams, strict=True)]
        self.publications += made
        return made

    def _entries(self, event: str, some: Sequence[_Publication]) -> dict[str, Any]:
        entries = [{"publicationId": publication.id, "destinationId": self._destination} for publication in some]
        return {"eventId": event, "publications": entries}

    async def _stop(self, some: Sequence[_Publication]) -> None:
        await self._ask("PUT", f"{_LIVE}/stop/all/", self._entries(some[0].event, some))
        now = time.monotonic()
        self.stops += [Stop(publication.stream, now) for publication in some]
        await self._states(some, "Completed")

    async def _again(self, publication: _Publication) -> None:
        await self._stop([publication])
        await asyncio.sleep(self.stage.dice.uniform(0, 8))
        body = {"eventId": publication.event, "publicationId": publication.id, "destinationId": self._destination}
        await self._ask("PUT", f"{_LIVE}/recreate/", body, fine=(409,))
        self.stops[-1] = replace(self.stops[-1], again=time.monotonic())
        await self._ask("PUT", f"{_LIVE}/start/", body)
        await self._arrive("a start again", [publication])

    async def _states(self, some: Sequence[_Publication], wanted: str) -> None:
        for publication in some:
            deadline, state = time.monotonic() + _PATIENCE, ""
            while state != wanted and time.monotonic() < deadline:
                path = f"{_LIVE}/{publication.id}?destinationId={self._destination}"
                state = str((await self._ask("GET", path))["publicationStateString"])
                await asyncio.sleep(0 if state == wanted else 0.2)
            self.states.append((publication.stream, state, wanted))

    async def _arrive(self, what: str, some: Sequence[_Publication], *, since: float | None = None) -> None:
        """Wait until new media of each publication arrive, not counting what was still in transit, and record the longest silence
        since it began."""
        now, streams = time.monotonic(), {publication.stream for publication in some}
        since = now if since is None else since
        await waited(lambda: streams <= self._heard_since(now + _BUFFERED), seconds=_PATIENCE)
        last = dict.fromkeys(streams, since)
        longest = 0.0
        for at, stream, _ in self.receiver.sent:
            if stream in streams and at > since:
                longest, last[stream] = max(longest, at - last[stream]), at
        longest = max(longest, time.monotonic() - min(last.values()))
        self.silent.append((what, longest))
        self.tell(f"  {what}: {longest:.1f} s silent, of {len(streams)}")

    def _heard_since(self, when: float) -> set[str]:
        return {stream for _, stream, _ in takewhile(lambda sent: sent[0] > when, reversed(self.receiver.sent))}


# --- what goes wrong


async def _kill(scene: _Scene) -> None:
    scene.stage.dice.choice(scene.stage.processes["sessions"]).kill()


async def _kill_all(scene: _Scene) -> None:
    for process in scene.stage.processes["sessions"]:
        process.kill()


async def _freeze(scene: _Scene) -> None:
    """Stop a process with SIGSTOP during a stream: the other one takes over, and the first wakes up next to it."""
    process = scene.stage.dice.choice(scene.stage.processes["sessions"])
    process.freeze()
    await asyncio.sleep(_FROZEN)
    process.thaw()


async def _end(scene: _Scene) -> None:
    scene.stage.dice.choice(scene.stage.processes["sessions"]).terminate()


async def _postgres(scene: _Scene) -> None:
    await scene.stage.restart_postgres(accident=True)


async def _kafka(scene: _Scene) -> None:
    broker = scene.stage.broker
    assert broker is not None
    await asyncio.to_thread(broker.kill)
    await asyncio.sleep(_AWAY)
    await asyncio.to_thread(broker.start)


async def _dies(scene: _Scene) -> None:
    scene.receiver.drop()


async def _refuses(scene: _Scene) -> None:
    scene.receiver.how = "refuse"
    scene.receiver.drop()
    await asyncio.sleep(_AWAY)
    scene.receiver.how = ""


async def _gone(scene: _Scene) -> None:
    await scene.origin.end()
    await asyncio.sleep(_AWAY)
    await scene.origin.begin()


_FAULTS: Final = {
    "worker killed": _kill,
    "all workers killed": _kill_all,
    "worker frozen": _freeze,
    "worker ended": _end,
    "PostgreSQL killed": _postgres,
    "Kafka outage": _kafka,
    "receiver dies": _dies,
    "receiver refuses": _refuses,
    "origin gone": _gone,
}


# --- words


def describe(result: Result) -> str:
    """Return all counts in words."""
    lines = [f"\n{result.name}: {dict(result.happened)}; {result.seconds:.0f} s; chain {result.chain or 'whole'}"]
    lines.append(f"  wrong: {', '.join(f'{kind} {result.verdict.counts[kind]}' for kind in Kind)}")
    return "\n".join((*lines, *(f"  {sentence}" for sentence in result.verdict.messages)))


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown(_COLUMNS, map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    silent = max((seconds for _, seconds in result.evidence.silent), default=0.0)
    figures = (
        result.happened.total(),
        result.publications,
        result.evidence.sessions,
        f"{silent:.1f}",
        f"{result.evidence.late:.1f}",
    )
    counted = (result.callbacks, result.records, *(result.verdict.counts[kind] for kind in Kind))
    return (result.name, *map(str, (*figures, *counted)), "yes" if result.holds else "NO")
