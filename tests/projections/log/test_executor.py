"""Load, decide, append. Two cores on one database are two processes: each keeps aggregates that the other may have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent, AmendEvent, Expectation, Replacement
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, Conflict, Malformed, NotFound, PreconditionFailed, Refused
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation, Plan
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.record import Record, RegisterRecord
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.log.sized_cache import NOTHING
from projections.log.streams import SNAPSHOT_EVERY, Streams
from projections.record.queries import LinkUsers
from tests.projections.log.helpers import appenders, interrupted, log_locked, logged, rows, until, whole

ME = Cause.by("tester")


def room(key: object, name: str) -> RegisterRecord[Any]:
    return RegisterRecord(str(key), Room, {"name": name})


def named(key: object, name: str) -> Command[Any]:
    return Room.amend.on(str(key), {"name": name})


async def do(at: Core, command: Command[Any]) -> Any:
    return (await at.executor.execute(command, invocation=Invocation.by("tester"))).aggregate


async def did(at: Core, command: Command[MediaEvent], *, if_match: frozenset[int] | None = None) -> MediaEvent:
    return (await at.executor.execute(command, invocation=Invocation(Cause.by("tester"), if_match))).aggregate


def versions(url: str, stream: str) -> list[int]:
    return [version for _, of, version in logged(url) if of == stream]


async def test_nothing_to_do_is_never_reported_from_an_outdated_copy(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "Studio 1"))
    await do(other, named("r", "Studio 2"))
    back = await do(inner, named("r", "Studio 1"))  # what `inner` still holds is named so already
    assert (back.details.name, back.version) == ("Studio 1", 3)
    assert versions(database_url, "room:r") == [1, 2, 3]


async def test_nothing_to_do_is_reported_from_the_log_and_writes_nothing(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "Studio 1"))
    await do(other, named("r", "Studio 2"))
    same = await do(inner, named("r", "Studio 2"))
    assert (same.details.name, same.version) == ("Studio 2", 2)
    assert whole(database_url) == 2


async def test_a_refusal_is_never_reported_from_an_outdated_copy(inner: Core, other: Core) -> None:
    key = uuid4()
    await did(inner, AddOrUpdateEvent(key, {"title": "Derby"}))
    await did(inner, MediaEvent.delete.on(key))
    await did(other, MediaEvent.restore.on(key))
    event = await did(inner, AmendEvent(key, (Replacement("title", "Final"),)))  # `inner` holds it as deleted
    assert (event.details.title, event.version) == ("Final", 4)


async def test_a_test_of_a_value_is_made_on_the_log_before_it_fails(inner: Core, other: Core) -> None:
    key = uuid4()
    await did(inner, AddOrUpdateEvent(key, {"title": "Derby"}))
    await did(other, AmendEvent(key, (Replacement("title", "Final"),)))
    steps = (Expectation("title", "Final"), Replacement("title", "Replay"))
    assert (await did(inner, AmendEvent(key, steps))).details.title == "Replay"
    with pytest.raises(Refused):
        await did(other, AmendEvent(key, steps))


async def test_a_change_decided_on_an_outdated_copy_is_decided_again(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "Studio 1"))
    await do(other, Room.amend.on("r", {"reference_id": "R1"}))
    mended = await do(inner, named("r", "Studio 9"))
    assert (mended.details.name, mended.details.reference_id, mended.version) == ("Studio 9", "R1", 3)
    assert rows(database_url, "SELECT version, document::json->>'name' FROM record_view") == [(3, "Studio 9")]


async def test_an_aggregate_deleted_by_another_process_is_not_changed(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "Studio 1"))
    await do(other, Room.delete.on("r"))
    with pytest.raises(NotFound):
        await do(inner, named("r", "Studio 2"))
    assert whole(database_url) == 2


@dataclass
class Rival:
    """Changes the aggregate just before each of our appends, `times` times."""

    process: Core
    times: int
    tried: int = 0

    async def __call__(self) -> None:
        self.tried += 1
        if self.tried <= self.times:
            await do(self.process, named("r", f"theirs {self.tried}"))


async def test_a_command_is_decided_again_three_times(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "Studio 1"))
    rival = Rival(other, times=3)
    ours = interrupted(inner, rival)
    won = (await ours.execute(named("r", "ours"), invocation=Invocation(ME))).aggregate
    assert (won.details.name, won.version, rival.tried) == ("ours", 5, 4)
    assert ours.lost_races == {"version": 3}
    assert versions(database_url, "room:r") == [1, 2, 3, 4, 5]


async def test_after_a_fourth_lost_race_it_is_a_conflict(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "Studio 1"))
    rival = Rival(other, times=4)
    with pytest.raises(Conflict) as lost:
        await interrupted(inner, rival).execute(named("r", "ours"), invocation=Invocation(ME))
    assert isinstance(lost.value, ConcurrencyConflict)
    assert rival.tried == 4
    assert rows(database_url, "SELECT document::json->>'name' FROM record_view") == [("theirs 4",)]
    assert (await do(inner, named("r", "ours"))).version == 6


async def test_if_match_is_compared_with_the_log_and_not_with_a_copy(inner: Core, other: Core, database_url: str) -> None:
    key = uuid4()
    await did(inner, AddOrUpdateEvent(key, {"title": "Derby"}))
    await did(other, AmendEvent(key, (Replacement("title", "Final"),)))
    change = AmendEvent(key, (Replacement("title", "Replay"),))
    assert (await did(inner, change, if_match=frozenset({2}))).version == 3  # the copy of `inner` was at 1
    with pytest.raises(PreconditionFailed) as stale:
        await did(other, AmendEvent(key, (Replacement("title", "Late"),)), if_match=frozenset({2}))
    assert stale.value.current == 3
    assert (await did(other, AmendEvent(key, (Replacement("title", "Late"),)), if_match=frozenset({1, 3}))).version == 4
    assert whole(database_url) == 4


async def test_if_match_is_compared_again_after_a_lost_race(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "Studio 1"))
    ours = interrupted(inner, Rival(other, times=1))
    with pytest.raises(PreconditionFailed) as stale:
        await ours.execute(named("r", "ours"), invocation=Invocation(ME, frozenset({1})))
    assert stale.value.current == 2
    assert whole(database_url) == 2


async def test_400_and_404_come_before_a_failed_if_match_and_this_before_other_refusals(inner: Core) -> None:
    key, none = uuid4(), frozenset({77})
    with pytest.raises(NotFound):
        await did(inner, AmendEvent(key, (Replacement("title", "x"),)), if_match=none)
    await did(inner, AddOrUpdateEvent(key, {"title": "Derby"}))
    with pytest.raises(Malformed):
        await did(inner, AmendEvent(key, (Replacement("dvr_length", -1),)), if_match=none)
    with pytest.raises(PreconditionFailed):
        await did(inner, AmendEvent(key, (Expectation("title", "other"),)), if_match=none)
    with pytest.raises(PreconditionFailed):
        await did(inner, AmendEvent(key, (Replacement("title", "Derby"),)), if_match=none)


async def test_each_success_of_fifty_at_once_has_a_version_of_its_own(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "start"))
    results = await asyncio.gather(*(do((inner, other)[n % 2], named("r", f"name {n}")) for n in range(50)), return_exceptions=True)
    won = [root for root in results if isinstance(root, Record)]
    assert {type(fault) for fault in results if isinstance(fault, BaseException)} <= {ConcurrencyConflict}
    assert versions(database_url, "room:r") == list(range(1, len(won) + 2))
    assert len(won) >= 25
    assert whole(database_url) == len(won) + 1


async def test_a_companion_whose_claim_is_taken_meanwhile_is_planned_again(inner: Core, other: Core, database_url: str) -> None:
    """An Event with a new tag, and somebody else makes the tag first."""
    key, plans = uuid4(), 0

    async def plan() -> Plan:
        nonlocal plans
        plans += 1
        existing = rows(database_url, "SELECT id FROM record_view WHERE kind = 'tag'")
        if existing:
            return Plan([AddOrUpdateEvent(key, {"tag_ids": (UUID(str(existing[0][0])),)})])
        await do(other, RegisterRecord(str(uuid4()), Tag, {"name": "football"}))
        mine = uuid4()
        return Plan([RegisterRecord(mine, Tag, {"name": "football"}, new=True), AddOrUpdateEvent(key, {"tag_ids": (mine,)})])

    event = (await inner.executor.execute(plan, invocation=Invocation(ME))).aggregate
    assert plans == 2
    tags = rows(database_url, "SELECT originator_id FROM events WHERE topic = 'tag.registered'")
    assert [f"tag:{event.details.tag_ids[0]}"] == [stream for (stream,) in tags]


async def test_a_claim_without_companions_is_refused_at_once(inner: Core, other: Core, database_url: str) -> None:
    await do(other, RegisterRecord("a", Tag, {"name": "football"}))
    with pytest.raises(ClaimTaken):
        await do(inner, RegisterRecord("b", Tag, {"name": "football"}))
    await do(other, Tag.amend.on("a", {"name": "tennis"}))
    await do(inner, RegisterRecord("b", Tag, {"name": "football"}))
    assert rows(database_url, "SELECT value, owner FROM unique_claims ORDER BY 1") == [("football", "tag:b"), ("tennis", "tag:a")]


async def test_a_command_is_carried_out_although_its_caller_is_cancelled(inner: Core, other: Core, database_url: str) -> None:
    await do(inner, room("r", "Studio 1"))
    async with log_locked(database_url):
        gone = asyncio.create_task(do(inner, named("r", "Studio 2")))
        await until(lambda: appenders(database_url, waiting=True))
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        following = asyncio.create_task(do(inner, named("r", "Studio 3")))
    assert (await following).version == 3
    assert versions(database_url, "room:r") == [1, 2, 3]


class Counting(Streams):
    """Notes what is asked of the log."""

    def __init__(self, database: Database, mapper: EventMapper) -> None:
        super().__init__(database, mapper)
        self.asked: list[str] = []

    async def _load(self, streams: Sequence[str]) -> dict[str, AggregateRoot]:
        self.asked += streams
        return await super()._load(streams)


async def test_no_more_bytes_of_aggregates_are_kept_than_allowed_and_the_least_used_go_first(inner: Core) -> None:
    """There is room for two: one weighs `NOTHING` and about a kilobyte for each of its events."""
    mapper = EventMapper(inner.catalogue)
    streams = Counting(inner.database, mapper)
    executor = CommandExecutor(
        inner.appender,
        streams,
        mapper=mapper,
        views=inner.views,
        users=LinkUsers(inner.database),
        clock=inner.clock,
        cache=3 * NOTHING + 2700,
    )
    for key in "abc":
        await executor.execute(room(key, f"room {key}"), invocation=Invocation.by("tester"))
    streams.asked = []
    for step, key in enumerate("cbcab"):
        await executor.execute(named(key, f"room {key} {step}"), invocation=Invocation.by("tester"))
    assert streams.asked == ["room:a", "room:b"]  # c and b were kept; a had gone, and b went when a came


class TestSnapshots:
    async def grown(self, at: Core, events: int) -> None:
        """The room `r`, at version `events`."""
        await do(at, room("r", "name 1"))
        for number in range(2, events + 1):
            await do(at, named("r", f"name {number}"))
        await at.executor.stop()

    async def fresh(self, at: Core) -> Room:
        """Load the room like a process that has just started."""
        root = await Streams(at.database, EventMapper(at.catalogue)).load("room:r")
        assert isinstance(root, Room)
        return root

    async def test_one_is_written_at_every_hundredth_event(self, inner: Core, database_url: str) -> None:
        await self.grown(inner, SNAPSHOT_EVERY - 1)
        assert rows(database_url, "SELECT FROM snapshots") == []
        await do(inner, named("r", "name 100"))
        await inner.executor.stop()
        assert rows(database_url, "SELECT originator_id, originator_version FROM snapshots") == [("room:r", SNAPSHOT_EVERY)]
        for number in range(SNAPSHOT_EVERY + 1, 2 * SNAPSHOT_EVERY + 4):
            await do(inner, named("r", f"name {number}"))
        await inner.executor.stop()
        assert rows(database_url, "SELECT originator_version FROM snapshots") == [(2 * SNAPSHOT_EVERY,)]

    async def test_a_stream_is_read_from_its_snapshot_on(self, inner: Core, database_url: str) -> None:
        await self.grown(inner, SNAPSHOT_EVERY + 1)
        self.tamper(database_url, '"reference_id":null', '"reference_id":"from the snapshot"')
        loaded = await self.fresh(inner)
        assert loaded.details.reference_id == "from the snapshot"
        assert (loaded.details.name, loaded.version) == (f"name {SNAPSHOT_EVERY + 1}", SNAPSHOT_EVERY + 1)

    async def test_a_snapshot_of_another_form_is_left_aside(self, inner: Core, database_url: str) -> None:
        await self.grown(inner, SNAPSHOT_EVERY + 1)
        self.tamper(database_url, '"reference_id":null', '"reference_id":"from the snapshot"')
        rows(database_url, "UPDATE snapshots SET form = %s RETURNING 1", bytes(16))
        loaded = await self.fresh(inner)
        assert loaded.details.reference_id is None
        assert (loaded.details.name, loaded.version) == (f"name {SNAPSHOT_EVERY + 1}", SNAPSHOT_EVERY + 1)

    async def test_builds_that_know_different_events_keep_their_own(self, inner: Core, database_url: str) -> None:
        """An older build does not know a member of a newer event, and its snapshot lacks it."""
        await self.grown(inner, SNAPSHOT_EVERY - 1)
        forms = [(bytes([number]) * 16, version) for number, version in ((1, 5), (2, 90))]
        for form, version in forms:
            rows(database_url, "INSERT INTO snapshots VALUES ('room:r', %s, %s, '{}') RETURNING 1", form, version)
        await do(inner, named("r", "name 100"))
        await inner.executor.stop()
        assert rows(database_url, "SELECT originator_version FROM snapshots ORDER BY 1") == [(5,), (90,), (100,)]
        assert (await self.fresh(inner)).details.name == "name 100"
        await inner.streams.keep("room:r", version=1010, snapshot={})
        assert rows(database_url, "SELECT originator_version FROM snapshots ORDER BY 1") == [(90,), (1010,)]

    async def test_an_older_one_never_replaces_a_newer(self, inner: Core, database_url: str) -> None:
        streams = inner.streams
        for version in (200, 100, 300, 250):
            await streams.keep("room:x", version=version, snapshot={"details": {}})
        assert rows(database_url, "SELECT originator_version FROM snapshots") == [(300,)]

    @staticmethod
    def tamper(url: str, old: str, new: str) -> None:
        changed = rows(
            url,
            "UPDATE snapshots SET state = convert_to(replace(convert_from(state, 'UTF8'), %s, %s), 'UTF8')"
            " WHERE position(%s IN convert_from(state, 'UTF8')) > 0 RETURNING 1",
            old,
            new,
            old,
        )
        assert changed
