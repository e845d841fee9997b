"""Records by id, name, reference; and the names of links."""

from __future__ import annotations

from uuid import UUID

from api.wiring.catalogue import RECORD_VIEW, RECORDS
from api.wiring.core import Core
from domain.kernel.ports import Invocation, Plan
from domain.record.kinds.flow import Flow
from domain.record.kinds.room import Room
from domain.record.kinds.tag import Tag
from domain.record.record import RegisterRecord
from domain.webhook.aggregate import Webhook
from projections.record.queries import RecordQueries
from tests.projections.rows_read import counting
from tests.support.clock import NOON, HandClock
from tests.support.feeding import do, room, table, tag


def queries_of(inner: Core) -> RecordQueries:
    return RecordQueries(inner.database, RECORDS)


async def test_a_record_is_found_in_its_latest_state(inner: Core, clock: HandClock) -> None:
    key = await room(inner, 1, "Hall", "h")
    clock.forward(hours=1)
    await do(inner, Room.amend.on(str(key), {"name": "Great Hall"}))
    record = await queries_of(inner).find(Room, key)
    assert record is not None
    assert (record.kind, record.id, record.version) == ("room", str(key), 2)
    assert (record.details.name, record.details.reference_id) == ("Great Hall", "h")
    assert (record.date_created, record.date_modified) == (NOON, clock.now)


async def test_system_wide_webhooks_are_found_without_a_read_of_event_webhooks(inner: Core, database_url: str) -> None:
    values = {"webhook_url": "https://hooks.test/a"}
    plan = Plan(
        (
            RegisterRecord(UUID(int=900), Webhook, values, new=True),
            *(RegisterRecord(UUID(int=n), Webhook, {**values, "event_id": UUID(int=n)}, new=True) for n in range(300)),
        )
    )

    async def made() -> Plan:
        return plan

    await inner.executor.execute(made, invocation=Invocation.by("admin"))
    await inner.database.execute("ANALYZE record_view")
    async with counting(database_url) as database:
        database.lists = database
        webhooks = await RecordQueries(database, RECORDS).all(Webhook, without_parent=True)
        assert [row.id for row in webhooks] == [str(UUID(int=900))]
        scanned, by_index = await database.rows_read("record_view")
        assert scanned + by_index <= 3


async def test_an_id_belongs_to_its_kind(inner: Core) -> None:
    key = await room(inner, 1, "Hall")
    await tag(inner, 1, "football")
    record = await queries_of(inner).find(Tag, key)
    assert record is not None
    assert record.details.name == "football"
    assert await queries_of(inner).find(Flow, key) is None


async def test_a_deleted_record_is_in_no_result_but_keeps_its_row(inner: Core) -> None:
    key = await room(inner, 1, "Hall", "h")
    await do(inner, Room.delete.on(str(key)))
    queries = queries_of(inner)
    assert await queries.find(Room, key) is await queries.by_reference(Room, "h") is None
    assert await queries.all(Room) == await queries.by_ids(Room, [key]) == []
    assert await queries.named(Room, ["Hall"]) == {}
    assert await queries.shown([("room", str(key))]) == {}
    assert [row[2:4] for row in await table(inner.database, RECORD_VIEW)] == [(2, True)]


async def test_of_records_with_one_reference_id_the_most_recently_created_is_found(inner: Core, clock: HandClock) -> None:
    for number in (3, 1):
        await room(inner, number, f"Room {number}", "h")
        clock.forward(seconds=1)
    await do(inner, Room.amend.on(str(UUID(int=3)), {"name": "changed later"}))
    record = await queries_of(inner).by_reference(Room, "h")
    assert record is not None
    assert record.id == str(UUID(int=1))
    assert await queries_of(inner).by_reference(Room, "H") is None


async def test_a_list_is_by_name_and_ids_settle_ties(inner: Core) -> None:
    for number, name in ((3, "a"), (1, "b"), (2, "a")):
        await room(inner, number, name)
    assert [UUID(row.id).int for row in await queries_of(inner).all(Room)] == [2, 3, 1]


async def test_names_are_whole_and_exact(inner: Core) -> None:
    await tag(inner, 1, "football")
    await tag(inner, 2, "100%")
    records = await queries_of(inner).named(Tag, ["football", "Football", "foot", "%", "100%"])
    assert {name: UUID(row.id).int for name, row in records.items()} == {"football": 1, "100%": 2}
    assert await queries_of(inner).named(Tag, []) == {}


async def test_records_come_in_the_requested_order(inner: Core) -> None:
    for number in (1, 2, 3):
        await tag(inner, number, f"tag {number}")
    records = await queries_of(inner).by_ids(Tag, [UUID(int=3), UUID(int=9), UUID(int=1)])
    assert [row.details.name for row in records] == ["tag 3", "tag 1"]


async def test_names_of_links_of_several_kinds_are_found_together(inner: Core) -> None:
    hall, football = await room(inner, 1, "Hall"), await tag(inner, 1, "football")
    links = [("room", str(hall)), ("tag", str(football)), ("tag", str(UUID(int=9))), ("starship", "1"), ("room", str(hall))]
    records = await queries_of(inner).shown(links)
    assert {link: row.details.name for link, row in records.items()} == {
        ("room", str(hall)): "Hall",
        ("tag", str(football)): "football",
    }
    assert await queries_of(inner).shown([]) == {}
