"""Sessions of encoders in memory, with the log and the views on a real PostgreSQL: the resulting Event and log store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.channel.hosts import Hosts
from domain.event.aggregate import MediaEvent
from domain.event.values import AudioInput
from domain.kernel.encryption import SecretCipher
from domain.record.kinds.channel import Channel
from projections.consumers.leases import ShardLeases
from projections.event.queries import EventQueries
from projections.log_store.log_store import Logbook
from projections.record.queries import RecordQueries
from projections.session.store import SessionQueries, SessionState, SessionStore
from projections.vault.vault import Vault
from tests.support.feeding import configured, event, record
from tests.support.playout import Shelf
from tests.support.sessions import FAST, LEASE, go_live, stop, until
from tests.workers.encoders.memory import MemoryEncoder, MemoryPoint
from workers.kernel.metrics import PlayoutMetrics
from workers.kernel.wakeups import Waker
from workers.playout.programme import PlayoutProgramme
from workers.ports.playout import Place, PlayoutPlaylist, Programme
from workers.session.encoder_session import Patience
from workers.session.encoders import WANTED, EncoderSessions
from workers.session.playouts import Playouts
from workers.session.worker import CONSUMER, SHARDS, SessionWorker

CHANNEL, EVENT = UUID(int=101), UUID(int=1)
SOON = Patience(look=0.05, failing=0.5)
ENGLISH, FRENCH = AudioInput(id="a1", name="English"), AudioInput(id="a2", name="French", index=1)


@dataclass
class Stage:
    """A channel, an Event on it, and a worker of its encoders."""

    inner: Core
    encoder: MemoryEncoder = field(default_factory=MemoryEncoder)
    failing: bool = False
    event: UUID = EVENT
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    shelf: Shelf = field(default_factory=lambda: Shelf(Path("/nowhere")))
    composed: bool = False

    async def given(self, *encoders: dict[str, Any], **values: Any) -> None:
        await record(self.inner, Channel, CHANNEL.int, **configured("main", json.dumps({"encoders": encoders})))
        await event(self.inner, self.event.int, channel_id=CHANNEL, **values)

    async def on_air(self) -> None:
        await go_live(self.inner, self.event)

    async def off_air(self) -> None:
        await stop(self.inner, self.event)

    async def points_fail(self, channel: str) -> bool:
        return self.failing

    async def hosts_of(self, events: Collection[UUID]) -> Mapping[UUID, Hosts]:
        return {event: self.hosts for event in events if event == self.event}

    async def of(self, event_id: UUID) -> PlayoutPlaylist | None:
        """Return the playlist of the Event, if it has one for encoders."""
        return self.shelf.playlist if self.composed and event_id == self.event else None

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[SessionWorker]:
        inner = self.inner
        store = SessionStore(inner.database, WANTED)
        notes = Logbook(inner.database, inner.clock, machine="here")
        kind = EncoderSessions(
            inner.executor,
            EventQueries(inner.database),
            RecordQueries(inner.database, RECORDS),
            hosts=self,
            vault=Vault(inner.database, SecretCipher(bytes(32))),
            encoders={"ffmpeg": self.encoder},
            notes=notes,
            points_fail=self.points_fail,
            playouts=Playouts(self, self.shelf, store, notes, inner.clock, PlayoutMetrics()),
            patience=SOON,
        )
        member = uuid4()
        leases = ShardLeases(inner.database, CONSUMER, shards=SHARDS, member=member, lease=LEASE, reads_log=False)
        worker = SessionWorker(kind, store, leases=leases, waker=Waker(), host="here", retries=FAST)
        await worker.start()
        try:
            yield worker
        finally:
            await worker.stop()

    def point(self, name: str) -> MemoryPoint:
        return self.encoder.points.setdefault(url(name), MemoryPoint())

    def sends(self, name: str) -> Any:
        before = len(self.point(name).pieces)
        return lambda: len(self.point(name).pieces) > before

    async def history(self) -> list[str]:
        rows = await self.inner.database.rows(
            "SELECT topic FROM events WHERE originator_id = %s ORDER BY position", (MediaEvent.stream(self.event),)
        )
        return [topic.removeprefix("event.") for (topic,) in rows]

    async def happened(self, topic: str, times: int = 1) -> None:
        while (await self.history()).count(topic) < times:
            await self.inner.database.rows("SELECT pg_sleep(0.02)")

    async def noted(self, times: int) -> list[str]:
        """Return the entries of the log store about the Event, once there are so many."""
        while len(result := await self.notes()) < times:
            await self.inner.database.rows("SELECT pg_sleep(0.02)")
        return result

    async def notes(self) -> list[str]:
        rows = await self.inner.database.rows("SELECT message FROM logbook WHERE subject = %s ORDER BY id", (str(self.event),))
        return [message for (message,) in rows]


def url(name: str) -> str:
    return f"http://origin.test/live/{name}"


def encoder(name: str, *points: str, type: str = "ffmpeg", composes: bool = False) -> dict[str, Any]:
    places = dict(zip(("primaryPublishingPoint", "secondaryPublishingPoint"), points, strict=False))
    specific = {place: {"publishingPointUrl": url(point)} for place, point in places.items()}
    return {"name": name, "type": type, "supportsComposition": composes, "streamingServer": {"streamingServerSpecific": specific}}


@pytest.fixture
def stage(inner: Core) -> Stage:
    return Stage(inner)


async def test_the_encoders_of_a_channel_send_under_the_number_of_one_session(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a", "b"), encoder("enc-2", "c"))
    async with stage.worker():
        await stage.on_air()
        for name in "abc":
            await until(stage.sends(name))
        await stage.happened("encoder_started")
        [row] = await SessionQueries(stage.inner.database).list()
        assert {number for name in "abc" for number in stage.point(name).pieces} == {row.number}
        assert (row.key, row.owner, row.state) == (str(CHANNEL), str(stage.event), "running")
        await stage.off_air()
        await stage.happened("encoder_stopped")
        assert stage.encoder.running == []
    taken = await stage.history()
    assert taken[-5:] == ["channel_taken", "encoder_started", "state_changed", "channel_released", "encoder_stopped"]


async def test_an_encoder_that_ends_beside_others_is_started_again_by_itself(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a"), encoder("enc-2", "b"))
    async with stage.worker():
        await stage.on_air()
        for name in "ab":
            await until(stage.sends(name))
        next(run for run in stage.encoder.running if run.plan.name == "enc-1").end("its source is over.")
        await until(lambda: len(stage.encoder.running) == 1)
        await until(stage.sends("b"))
        await until(lambda: len(stage.encoder.running) == 2)
        await until(stage.sends("a"))
        assert len({*stage.point("a").pieces, *stage.point("b").pieces}) == 1, "under the number of the session"
    assert "encoder_failed" not in await stage.history()


@pytest.mark.parametrize("again", [False, True], ids=["at the start", "when it starts again"])
async def test_an_encoder_whose_start_does_not_end_keeps_no_other_one_on_the_air(stage: Stage, again: bool) -> None:
    await stage.given(encoder("enc-1", "a"), encoder("enc-2", "b"))
    stage.encoder.stuck = set() if again else {1}
    async with asyncio.timeout(120), stage.worker() as worker:
        await stage.on_air()
        await stage.happened("encoder_started")
        await until(stage.sends("a"))
        if again:
            await until(stage.sends("b"))
            stage.encoder.stuck = {1}
            next(run for run in stage.encoder.running if run.plan.name == "enc-2").end("its source is over.")
            await until(lambda: len(stage.encoder.running) == 1)
        await stage.off_air()
        await until(lambda: not worker.sessions)
        assert stage.encoder.running == []
        await stage.happened("encoder_stopped")
        await stage.on_air()
        await until(stage.sends("a"))
    assert stage.encoder.running == []


async def test_when_the_last_encoder_ends_the_next_session_starts(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a"))
    async with stage.worker():
        await stage.on_air()
        await until(stage.sends("a"))
        stage.encoder.running[0].end("its source is over.")
        await stage.happened("encoder_started", 2)
        first, second = sorted(set(stage.point("a").pieces))
        assert second > first
    rows = await stage.inner.database.rows(
        "SELECT convert_from(state, 'UTF8')::json->>'reason' FROM events WHERE topic = 'event.encoder_stopped' ORDER BY position"
    )
    assert rows[0] == ("its source is over.",)


async def test_an_encoder_that_cannot_be_started_is_given_up_and_the_log_store_says_why(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a"))
    stage.encoder.failure = "There is no ffmpeg on this machine."
    async with stage.worker():
        await stage.on_air()
        await stage.happened("encoder_failed")
        [note] = await stage.noted(1)
        assert "There is no ffmpeg on this machine." in note
        stage.encoder.failure = ""
        await stage.off_air()
        await stage.on_air()
        await until(stage.sends("a"))
    assert (await stage.history()).count("encoder_failed") == 1


async def test_an_encoder_of_an_unknown_type_gives_an_entry_and_no_session(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a", type="elemental"))
    async with stage.worker():
        await stage.on_air()
        await stage.noted(2)
    history = await stage.history()
    assert history[-2:] == ["encoder_failed", "channel_released"]
    assert "encoder_started" not in history
    unknown, given_up = await stage.noted(2)
    assert unknown == "the encoder 1 (enc-1) was not started: its type is not supported here"
    assert "no encoder of a type that is supported here" in given_up


async def test_an_unknown_encoder_is_skipped_if_a_known_one_exists(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a", type="elemental"), encoder("enc-2", "b"))
    async with stage.worker():
        await stage.on_air()
        await until(stage.sends("b"))
    assert len(await stage.notes()) == 1
    assert stage.point("a").pieces == []


async def test_options_that_are_left_out_are_named_once(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a"), additional_streaming_options="-i /etc/passwd --dvr_window_length=60")
    async with stage.worker():
        await stage.on_air()
        await until(stage.sends("a"))
        stage.encoder.running[0].end("over.")
        await stage.happened("encoder_started", 2)
    [note] = await stage.notes()
    assert note.startswith("options were ignored: ")
    assert "passwd" not in note


async def test_audio_inputs_become_facts_when_they_change(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a"))
    stage.encoder.audio = [ENGLISH]
    async with stage.worker():
        await stage.on_air()
        await stage.happened("audio_inputs_changed")
        stage.encoder.audio = [ENGLISH, FRENCH]
        await stage.happened("audio_inputs_changed", 2)
        await until(stage.sends("a"))
    aggregate = await stage.inner.streams.load(MediaEvent.stream(stage.event))
    assert isinstance(aggregate, MediaEvent)
    assert aggregate.details.audio_inputs == (ENGLISH, FRENCH)
    assert (await stage.history()).count("audio_inputs_changed") == 2


async def test_statistics_are_columns_of_the_row_and_hold_no_secret(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a?key=s3cret"))
    async with stage.worker():
        await stage.on_air()
        while not (result := [row.statistics for row in await SessionQueries(stage.inner.database).list() if row.statistics]):
            await stage.inner.database.rows("SELECT pg_sleep(0.05)")
    [entry] = result[0]["encoders"]
    assert (entry["name"], entry["running"]) == ("enc-1", True)
    assert entry["bytes"] > 0
    assert entry["points"][0]["connected"]
    assert "s3cret" not in json.dumps(result)


async def test_odd_statistics_are_null_and_spoil_no_other_row(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a"))
    store, queries = SessionStore(stage.inner.database, WANTED), SessionQueries(stage.inner.database)
    async with stage.worker():
        await stage.on_air()
        await stage.happened("encoder_started")
        [row] = await queries.list()
        await stage.inner.database.execute(
            "INSERT INTO sessions (kind, key, shard, owner, wish, number, state, host, started_at, changed_at)"
            " SELECT kind, name, shard, owner, wish, number, 'stopped', host, started_at, changed_at FROM sessions,"
            " unnest(ARRAY['good', 'odd', 'broken']) AS name"
        )
        odd = {"fps": float("nan"), "bytes": 10**30, "last_error": "a\0b\ud800", "points": ({"dropped": float("inf")},)}
        reports: dict[str, dict[str, Any]] = {"good": {"fps": 25.0}, "odd": odd, "broken": {"fps": object()}}
        assert await store.report({(key, row.number): document for key, document in reports.items()}) == set()
        assert await store.settle("odd", row.number, state=SessionState.STOPPED, reason="a\0b")
        results = {entry.key: entry for entry in await queries.list()}
    assert results["good"].statistics == {"fps": 25.0}
    assert results["odd"].statistics == {"fps": None, "bytes": None, "last_error": "a\ufffdb\ufffd", "points": [{"dropped": None}]}
    assert results["broken"].statistics is None
    assert results["odd"].reason == "a\ufffdb"


async def test_an_encoder_whose_statistics_fail_keeps_those_of_no_other_session(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise KeyError("fps")

    await stage.given(encoder("enc-1", "a"))
    async with stage.worker() as worker:
        await stage.on_air()
        await until(stage.sends("a"))
        monkeypatch.setattr(stage.encoder.running[0], "statistics", broken)
        reported = worker._reported
        await until(lambda: worker._reported > reported)
        await until(stage.sends("a"))
        assert [session.statistics() for session in worker.sessions.values()] == [None]


async def test_a_reason_that_no_column_can_hold_is_told_all_the_same(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a"))
    async with stage.worker():
        await stage.on_air()
        await until(stage.sends("a"))
        stage.encoder.running[0].end("its source\0 is \ud800 over.")
        await stage.happened("encoder_started", 2)


async def test_a_fault_of_what_is_sent_is_in_the_log_of_the_event_once(stage: Stage) -> None:
    await stage.given(encoder("enc-1", "a"))
    async with stage.worker():
        await stage.on_air()
        await stage.happened("encoder_started")
        stage.encoder.running[0].fault = "The sound has run 12.0 s ahead of the picture."
        assert await stage.noted(1) == ["the encoder 1 (enc-1): The sound has run 12.0 s ahead of the picture."]
        stage.encoder.running[0].fault = "It is gone."
        assert len(await stage.noted(2)) == 2, "the first one was told once in all looks before"


class TestAutoExpire:
    @pytest.mark.parametrize("seen_by", ["encoder", "prober"])
    async def test_when_all_points_fail_the_encoders_are_started_again(self, stage: Stage, seen_by: str) -> None:
        await stage.given(encoder("enc-1", "a", "b"), auto_expire_publishing_points=True)
        async with stage.worker():
            await stage.on_air()
            await until(stage.sends("a"))
            await stage.happened("encoder_started")
            if seen_by == "prober":
                stage.failing = True
            else:
                stage.point("a").refusal = "503"
                await until(stage.sends("b"))
                assert (await stage.history()).count("encoder_started") == 1, "one point still works"
                stage.point("b").refusal = "503"
                await until(lambda: not stage.encoder.running)
                stage.point("a").refusal = stage.point("b").refusal = ""
            await stage.happened("encoder_started", 2)
            stage.failing = False
            await until(stage.sends("b"))
            stage.failing = True
            await stage.off_air()
            await stage.happened("channel_released")
            await until(lambda: not stage.encoder.running)
            starts = (await stage.history()).count("encoder_started")
            await stage.inner.database.rows("SELECT pg_sleep(1)")
            assert (await stage.history()).count("encoder_started") == starts, "nothing is started after a stop"

    async def test_without_the_flag_they_go_on(self, stage: Stage) -> None:
        await stage.given(encoder("enc-1", "a"))
        stage.failing = True
        async with stage.worker():
            await stage.on_air()
            await stage.happened("encoder_started")
            await stage.inner.database.rows("SELECT pg_sleep(1)")
            await until(stage.sends("a"))
        assert len(set(stage.point("a").pieces)) == 1


async def test_points_on_hosts_that_are_provisioned_later_are_sent_to_then(stage: Stage) -> None:
    """Waiting is no failure, however long it takes. If one point is known, the encoder does not wait for the other."""
    await stage.given(provisioned("{dns}/live/a", "{internalDns}/live/b"))
    async with stage.worker():
        await stage.on_air()
        [note] = await stage.noted(1)
        assert "host is unknown" in note
        [row] = await SessionQueries(stage.inner.database).list()
        first = row.number
        while row.number < first + FAST.most + 3 or row.state is SessionState.STARTING:
            [row] = await SessionQueries(stage.inner.database).list()
        assert (row.state, row.failures, row.restarts, stage.encoder.points) == ("waiting", 0, 0, {})
        assert await stage.noted(1) == [note]
        stage.hosts = {"origin-1": {"dns": "origin.test"}}
        await until(stage.sends("a"))
    assert list(stage.encoder.points) == [url("a")]
    assert "encoder_failed" not in await stage.history()


def provisioned(*points: str) -> dict[str, Any]:
    made = encoder("enc-1")
    places = dict(zip(("primaryPublishingPoint", "secondaryPublishingPoint"), points, strict=False))
    specific = {place: {"publishingPointUrl": f"http://{point}", "resource": "origin-1"} for place, point in places.items()}
    return {**made, "streamingServer": {"streamingServerSpecific": specific}}


async def test_a_film_that_is_over_is_not_begun_anew(stage: Stage) -> None:
    """While another encoder of the channel runs, so does the session. Then the channel is free, until the Event is started
    again."""
    await stage.given(encoder("film", "a"), encoder("live", "b"))
    async with stage.worker():
        await stage.on_air()
        await until(stage.sends("a"))
        await until(stage.sends("b"))
        film, live = sorted(stage.encoder.running, key=lambda run: run.plan.index)
        film.end("The source has ended.", over=True)
        await until(lambda: stage.encoder.running == [live])
        await until(stage.sends("b"))
        assert stage.encoder.running == [live]
        live.end("The source has ended.", over=True)
        await stage.happened("encoder_failed")
        [note] = await stage.noted(1)
        assert note == "the encoder no longer runs: The source has ended.; the next change to the state 1 or 2 restarts it"
        [row] = await SessionQueries(stage.inner.database).list()
        assert (row.state, row.restarts, stage.encoder.running) == ("failed", 0, [])
        await stage.off_air()
        await stage.on_air()
        await until(stage.sends("a"))
    assert "channel_released" in await stage.history()


def programmes(stage: Stage) -> list[Programme | None]:
    return [run.programme for run in stage.encoder.running]


async def test_only_encoders_that_compose_play_the_composition_of_an_event(stage: Stage) -> None:
    stage.composed = True
    stage.shelf.put("a", "b", looped=True)
    await stage.given(
        encoder("enc-1", "a"), encoder("enc-2", "b", composes=True), encoder("enc-3", "c", type="http", composes=True)
    )
    async with stage.worker():
        await stage.on_air()
        await until(stage.sends("b"))
        assert not stage.sends("a")()
        [programme] = programmes(stage)
        assert programme is not None
        assert programme.playlist.looped
        first, second = await stage.noted(2)
    assert "encoder 1 (enc-1) was not started: it does not play the composition" in first
    assert "encoder 3 (enc-3) was not started: its type is not supported here" in second


async def test_a_composition_that_no_encoder_plays_is_given_up(stage: Stage) -> None:
    stage.composed = True
    await stage.given(encoder("enc-1", "a"))
    async with stage.worker():
        await stage.on_air()
        await stage.happened("encoder_failed")
        assert "no encoder of the channel plays the composition" in (await stage.noted(2))[1]


async def test_a_session_that_follows_goes_on_where_the_one_before_was_and_a_new_order_begins_anew(stage: Stage) -> None:
    stage.composed = True
    stage.shelf.put("a", "b")
    await stage.given(encoder("enc-1", "a", composes=True))

    async def running(worker: SessionWorker) -> tuple[PlayoutProgramme, int]:
        await until(lambda: programmes(stage) and worker.sessions)
        await until(stage.sends("a"))
        [programme] = programmes(stage)
        assert isinstance(programme, PlayoutProgramme)
        [session] = worker.sessions.values()
        return programme, session.number

    store = SessionStore(stage.inner.database, WANTED)
    place = Place(1, stage.shelf.playlist.marks[1])
    async with stage.worker() as worker:
        await stage.on_air()
        programme, number = await running(worker)
        assert programme.place() == {"lengths": {}}
        programme.measured(place.mark, 12.5)
        programme.began(place, at=1_000.0)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            keeping = group.create_task(programme.keep())
            while not await stage.inner.database.rows("SELECT FROM sessions WHERE place -> '0' ? 'anchor'"):
                await stage.inner.database.rows("SELECT pg_sleep(0.02)")
            keeping.cancel()
    async with stage.worker() as worker:
        programme, later = await running(worker)
        assert programme.place() == {
            "anchor": {"index": 1, "mark": place.mark, "at": 1_000.0, "over": False},
            "lengths": {place.mark: 12.5},
        }
        assert not await store.keep_place(str(CHANNEL), number, part="0", place={}), "that of the session before writes no more"
        assert await store.keep_place(str(CHANNEL), later, part="0", place=programme.place())
        await stage.off_air()
        await until(lambda: not stage.encoder.running)
        await stage.on_air()
        programme, _ = await running(worker)
        assert programme.place() == {"lengths": {}}
