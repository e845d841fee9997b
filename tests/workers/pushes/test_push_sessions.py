"""Sessions that push live publications: on a real log with a pusher in memory, and with the real one to a receiver that counts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Trigger
from domain.publication.aggregate import Publication
from domain.publication.row import PublicationRow
from domain.publication.sources import ChannelSources
from domain.publication.values import PublicationKind, PublicationState, PublicationText
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.kinds.destination import Destination
from domain.record.record import RegisterRecord
from projections.consumers.leases import ShardLeases
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.publication.queries import WANTED, PublicationQueries
from projections.record.queries import RecordQueries
from projections.session.store import SessionStore
from tests.contract.encoder.ffmpeg_stage import LOCAL
from tests.support.engine import once
from tests.support.feeding import configured, do, event, record
from tests.support.live_origin import LiveOrigin, live_origin
from tests.support.rtmp_receiver import RtmpReceiver, rtmp_receiver
from tests.support.sessions import LEASE, until
from workers.adapters.ffmpeg import find
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.pushes.live_stream import StreamOpener
from workers.adapters.pushes.rtmp_push import RtmpPusher
from workers.adapters.pushes.stream_copy import Copying
from workers.adapters.step_account import program_confinement
from workers.kernel.wakeups import Waker
from workers.ports.live import LiveIngest
from workers.ports.pushes import Push, Pusher, PushFailed, PushRecord
from workers.ports.targets import Details, TargetFailed
from workers.session.push_session import PushPatience
from workers.session.pushes import PushSessions
from workers.session.worker import PUSHES, SHARDS, SessionWorker

FAST = PushPatience(first=0.05, longest=0.3, stable=5.0, tries=4)
DESTINATION, CHANNEL, EVENT = UUID(int=501), UUID(int=601), UUID(int=1)
SECONDS = 60


@dataclass
class Stage:
    """Where publications are pushed to, and what their target says. `how` is what the memory pusher does."""

    ingest: str = "rtmp://127.0.0.1:9/live"
    fault: TargetFailed | None = None
    shown: list[UUID] = field(default_factory=list)
    not_yet: int = 0
    """The number of times that the target reports that it has not seen enough."""
    how: list[PushFailed] = field(default_factory=list)
    pushes: list[Push] = field(default_factory=list)
    running: int = 0
    most: int = 0

    async def push(self, push: Push, record: PushRecord) -> None:
        """A pusher in memory: sends until it is stopped."""
        self.pushes.append(push)
        if self.how:
            raise self.how.pop(0)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            while True:
                record.took(100, frames=1)
                push.arrived()
                await asyncio.sleep(0.01)
        finally:
            self.running -= 1

    async def ingest_of(self, publication: PublicationRow) -> LiveIngest:
        if self.fault is not None:
            raise self.fault
        return LiveIngest(self.ingest, str(publication.id), {"broadcast": "b"})


class StagedTargets:
    """The port `LiveTargets`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def ingest(self, publication: PublicationRow) -> LiveIngest:
        return await self._stage.ingest_of(publication)

    async def show(self, publication: PublicationRow, details: Details) -> Details:
        if self._stage.not_yet:
            self._stage.not_yet -= 1
            raise TargetFailed("retry", "not enough yet", after=0.01)
        self._stage.shown.append(publication.id)
        return {**details, "status": "live"}


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture(scope="module")
async def origin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveOrigin]:
    async with live_origin(tmp_path_factory.mktemp("origin")) as made:
        yield made


@pytest.fixture
async def receiver(stage: Stage) -> AsyncIterator[RtmpReceiver]:
    async with rtmp_receiver() as made:
        stage.ingest = made.url
        yield made


async def on_air(inner: Core, url: str = "https://origin.test/a.m3u8") -> None:
    values = {"name": "Tube", "target": Target.YOUTUBE, "configuration_json": SentConfiguration("{}", {}, {})}
    await do(inner, RegisterRecord(DESTINATION, Destination, values))
    stream = {"streamProtocol": "HLS", "liveOriginPrimaryUrl": url}
    await record(inner, Channel, CHANNEL.int, **configured("main", json.dumps({"encoders": [{"outputUrls": [stream]}]})))
    await event(inner, EVENT.int, channel_id=CHANNEL)
    await do(inner, MediaEvent.change_state.on(EVENT, EventState.LIVE_UNPUBLISHED, trigger=Trigger.OPERATOR))


async def started(inner: Core, number: int = 11) -> UUID:
    key = UUID(int=number)
    facts: dict[str, Any] = {
        "content_id": str(EVENT),
        "destination_id": DESTINATION,
        "target": Target.YOUTUBE,
        "transaction_id": UUID(int=1),
        "client": "studio",
        "text": PublicationText(),
    }
    await do(inner, Publication.schedule.on(key, kind=PublicationKind.LIVE, **facts))
    await do(inner, Publication.start.on(key, {"broadcast": "b"}))
    return key


async def publication_of(inner: Core, key: UUID) -> Publication:
    root = await inner.streams.load(Publication.stream(key))
    assert isinstance(root, Publication)
    return root


async def become(inner: Core, key: UUID, condition: Callable[[Publication], bool]) -> Publication:
    async def ask() -> Publication | None:
        root = await publication_of(inner, key)
        return root if condition(root) else None

    return await once(ask)


@dataclass
class Member:
    worker: SessionWorker

    async def die(self) -> None:
        """Stop like after SIGKILL: nothing is reported, no lease is released, and the connections end."""
        keeping = self.worker._leases.keeper._task
        tasks = [task for task in (self.worker._task, keeping, self.worker._ticking) if task is not None]
        tasks += [session._task for session in self.worker.sessions.values() if session._task is not None]
        pushes = [session._running._task for session in self.worker.sessions.values() if session._running is not None]  # type: ignore[attr-defined]
        for task in (*tasks, *pushes):
            task.cancel()
        await asyncio.wait({*tasks, *pushes})


@asynccontextmanager
async def member(
    inner: Core, stage: Stage, *, pusher: Pusher | None = None, name: str = "one", database: Database | None = None
) -> AsyncIterator[Member]:
    database = database or inner.database
    kind = PushSessions(
        inner.executor,
        PublicationQueries(database),
        EventQueries(database),
        sources=ChannelSources(RecordQueries(database, RECORDS)),
        targets=StagedTargets(stage),
        pusher=pusher or stage,
        patience=FAST,
    )
    leases = ShardLeases(database, PUSHES, shards=SHARDS, member=uuid4(), host=name, lease=LEASE, reads_log=False)
    worker = SessionWorker(kind, SessionStore(database, WANTED), leases=leases, waker=Waker(), host=name)
    await worker.start()
    try:
        yield Member(worker)
    finally:
        if worker._task is not None and not worker._task.cancelled():
            await worker.stop()


@asynccontextmanager
async def real_pusher(silent: float = 20.0) -> AsyncIterator[RtmpPusher]:
    client = GuardedClient(LOCAL)
    yield RtmpPusher(client, StreamOpener(client, Copying(find("ffmpeg"), program_confinement), silent))
    await client.close()


async def test_what_is_in_progress_is_pushed_shown_and_stopped(inner: Core, stage: Stage) -> None:
    await on_air(inner)
    stage.not_yet = 2
    async with member(inner, stage) as first:
        key = await started(inner)
        await until(lambda: stage.shown, seconds=SECONDS)
        await become(inner, key, lambda root: root.arrived)
        assert (await publication_of(inner, key)).details == {"broadcast": "b", "status": "live"}
        [row] = await inner.database.rows("SELECT number, state FROM sessions WHERE kind = 'publication'")
        assert (stage.pushes[0].session, stage.pushes[0].ingest.stream_name) == (row[0], str(key))
        await do(inner, Publication.stop.on(key))
        await until(lambda: not stage.running and not first.worker.sessions, seconds=SECONDS)
        count = len(stage.pushes)
        await asyncio.sleep(3 * FAST.longest)
        assert len(stage.pushes) == count, "never again after a stop"
    assert (await publication_of(inner, key)).state is PublicationState.Completed


async def test_it_comes_back_for_ever_once_it_had_arrived(inner: Core, stage: Stage) -> None:
    await on_air(inner)
    async with member(inner, stage) as first:
        key = await started(inner)
        await until(lambda: stage.running, seconds=SECONDS)
        session = first.worker.sessions[str(key)]
        running: Any = session._running
        stage.how = [PushFailed("target", "it is down")] * (FAST.tries + 3)
        running._task.cancel()
        await asyncio.wait([running._task])
        running._task = asyncio.create_task(running._run())
        await until(lambda: stage.running and not stage.how, seconds=SECONDS)
        statistics = session.statistics()
        assert statistics is not None
        assert (statistics["connected"], statistics["reconnects"], statistics["last_error"]) == (True, 1, "it is down")
    assert (await publication_of(inner, key)).state is PublicationState.InProgress


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        ([PushFailed("target", "it refuses the stream")] * FAST.tries, "it refuses the stream"),
        ([PushFailed("target", "no rtmp", hopeless=True)], "no rtmp"),
    ],
)
async def test_a_push_that_the_target_never_accepts_fails_for_good(
    inner: Core, stage: Stage, faults: list[PushFailed], reason: str
) -> None:
    await on_air(inner)
    stage.how = list(faults)
    async with member(inner, stage) as first:
        key = await started(inner)
        failed = await become(inner, key, lambda root: root.state is not PublicationState.InProgress)
        assert (failed.state, failed.reason, failed.open) == (PublicationState.FailedPublication, reason, True)
        await until(lambda: not first.worker.sessions, seconds=SECONDS)
        await do(inner, Publication.recreate.on(key, ""))
        await do(inner, Publication.start.on(key, {}))
        await until(lambda: stage.running, seconds=SECONDS)


async def test_a_source_that_is_not_there_yet_fails_nothing(inner: Core, stage: Stage) -> None:
    await on_air(inner)
    stage.how = [PushFailed("source", "not yet")] * (FAST.tries * 3)
    async with member(inner, stage):
        key = await started(inner)
        await until(lambda: stage.running, seconds=SECONDS)
    assert (await publication_of(inner, key)).state is PublicationState.InProgress


async def test_fifty_at_once_are_pushed_once_each_and_stopped(inner: Core, stage: Stage) -> None:
    await on_air(inner)
    async with member(inner, stage, name="one") as first, member(inner, stage, name="two") as two:
        keys = [await started(inner, 100 + number) for number in range(50)]
        await until(lambda: stage.running == 50, seconds=SECONDS)
        assert stage.most == 50
        assert len(first.worker.sessions) + len(two.worker.sessions) == 50
        for key in keys:
            await do(inner, Publication.stop.on(key))
        await until(lambda: not stage.running, seconds=SECONDS)


async def test_a_dead_worker_is_replaced_and_two_never_send_at_once(
    inner: Core, second: Core, stage: Stage, origin: LiveOrigin, receiver: RtmpReceiver
) -> None:
    await on_air(inner, origin.cmaf)
    key = await started(inner)
    async with real_pusher() as pusher, real_pusher() as other, member(inner, stage, pusher=pusher) as first:
        await until(lambda: receiver.media(str(key)) > 20, seconds=SECONDS)
        async with member(second, stage, pusher=other, name="two") as two:
            await first.die()
            silent = len(receiver.sent)
            await until(lambda: len(receiver.sessions(str(key))) == 2, seconds=SECONDS)
            off_air = receiver.sent[silent][0] - receiver.sent[silent - 1][0]
            assert off_air < LEASE + LEASE / 3 + 20, "a lease and the next look; the rest is a busy machine"
            await do(inner, Publication.stop.on(key))
            stopped = time.monotonic()
            await until(lambda: not two.worker.sessions, seconds=SECONDS)
            await asyncio.sleep(0.1)  # what was on the way
            assert receiver.sent[-1][0] - stopped < 3 + 5, "three seconds; the rest is a busy machine"
            count = len(receiver.sent)
            await asyncio.sleep(0.5)
            assert len(receiver.sent) == count, "nothing after the stop"
    numbers = receiver.sessions(str(key))
    assert numbers == sorted(set(numbers))


async def test_a_receiver_that_dies_is_pushed_to_again_in_the_same_session(
    inner: Core, stage: Stage, origin: LiveOrigin, receiver: RtmpReceiver
) -> None:
    await on_air(inner, origin.cmaf)
    key = await started(inner)
    async with real_pusher() as pusher, member(inner, stage, pusher=pusher) as first:
        await until(lambda: receiver.media(str(key)) > 20, seconds=SECONDS)
        receiver.drop()
        count = receiver.media(str(key))
        await until(lambda: receiver.media(str(key)) > count + 20, seconds=SECONDS)
        statistics = first.worker.sessions[str(key)].statistics()
        assert statistics is not None
        assert statistics["reconnects"] == 1
    assert len(receiver.sessions(str(key))) == 1
    assert (await publication_of(inner, key)).state is PublicationState.InProgress


async def test_a_stop_while_it_connects_ends_it(inner: Core, stage: Stage, origin: LiveOrigin, receiver: RtmpReceiver) -> None:
    await on_air(inner, origin.cmaf)
    receiver.how = "hang"
    key = await started(inner)
    async with real_pusher() as pusher, member(inner, stage, pusher=pusher) as first:
        await until(lambda: receiver.writers, seconds=SECONDS)
        await do(inner, Publication.stop.on(key))
        await until(lambda: not first.worker.sessions, seconds=SECONDS)
        receiver.how = ""
        assert receiver.taken == []


async def test_a_gap_of_the_source_is_waited_for(inner: Core, stage: Stage, receiver: RtmpReceiver, tmp_path: Path) -> None:
    async with live_origin(tmp_path) as origin:
        await on_air(inner, origin.cmaf)
        key = await started(inner)
        async with real_pusher(silent=1.5) as pusher, member(inner, stage, pusher=pusher):
            await until(lambda: receiver.media(str(key)) > 20, seconds=SECONDS)
            await origin.end()
            await until(lambda: not receiver.taken[-1].open, seconds=SECONDS)
            count = receiver.media(str(key))
            await origin.begin()
            await until(lambda: receiver.media(str(key)) > count + 20, seconds=SECONDS)
    assert (await publication_of(inner, key)).state is PublicationState.InProgress
