"""POST /api/audit/redact: what an erased event said is in no table and in no answer, and the log is intact."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, cast
from uuid import UUID

import httpx
import pytest
from psycopg import sql

from api.wiring.catalogue import RECORD_VIEW
from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.job.values import JobState
from domain.kernel.cause import Cause
from domain.kernel.errors import ConcurrencyConflict
from domain.kernel.mapper import EventMapper
from domain.redaction.events import Part
from projections.audit.index import fill
from projections.audit.redactor import RedactionSelection
from projections.audit.verify import Verification, verify
from projections.event.view import EVENT_VIEW
from projections.kernel.database.connection import Connection
from projections.kernel.database.database import Database
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.api.asking import UNKNOWN, add, add_room, assert_problem, event, last, logged, patch, replace
from tests.projections.log.helpers import rows, until
from tests.support.feeding import as_superuser, do
from tests.support.postgres import asked
from workers.audit.redactions import RedactionTask

MARK = "Ilse-Mustermann"
_TABLES = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace::regnamespace::text IN ('public', 'event_partitions')
"""


def places(url: str, mark: str = MARK) -> list[str]:
    """The tables with a row that holds this text, also as bytes."""
    result = []
    for (table,) in asked(url, _TABLES.encode(), ()).fetchall():
        question = sql.SQL("SELECT count(*) FROM {} AS t WHERE strpos(t::text, {}) > 0 OR strpos(t::text, {}) > 0").format(
            sql.SQL(table), sql.Literal(mark), sql.Literal(mark.encode().hex())
        )
        [(rows,)] = asked(url, question.as_bytes(None), ()).fetchall()
        result += [table] if rows else []
    return result


async def redact(http: httpx.AsyncClient, *, headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    answer = await http.post("/api/audit/redact", json={"reason": "asked for", **body}, headers=headers)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def marked_event(http: httpx.AsyncClient, inner: Core, inner_url: str) -> str:
    """An Event that says the mark wherever a caller may write, and what is made of that."""
    made = await add(http, Title=MARK, Description=f"about {MARK}", RefId=f"ref {MARK}", TaskEngineJson=f'{{"by":"{MARK}"}}')
    key: str = made["id"]
    await patch(http, key, replace("/Title", f"{MARK} again"))
    await http.put(f"/api/event/state/{key}", json={"state": 10})
    for statement in (
        f"INSERT INTO pending_deliveries VALUES (gen_random_uuid(), 1, '{key}', 0, 0, '{MARK}', null, 0, now(), now())",
        f"INSERT INTO finished_deliveries VALUES (gen_random_uuid(), 1, '{key}', 0, 0, '{MARK}', null, 1, 1, now(), now(), null)",
        f"INSERT INTO delivery_attempts VALUES (gen_random_uuid(), 1, '{key}', now(), 1, 200, null, 'a', '{MARK}')",
        f"INSERT INTO logbook (recorded_at, level, message, username, subject) VALUES (now(), 2, '{MARK}', 'admin', '{key}')",
        f"INSERT INTO parked_records (consumer, position, stream, topic, error) VALUES ('x', 1, 'event:{key}', 't', '{MARK}')",
    ):
        as_superuser(inner_url, statement)
    root = await inner.streams.load(f"event:{key}")
    assert root is not None
    await inner.streams.keep(root.id, version=root.version, snapshot=root.snapshot())
    return key


async def test_an_erased_text_is_nowhere_any_more(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    key = await marked_event(http, inner, database_url)
    before = places(database_url)
    assert {"event_partitions.events_1", "event_view", "snapshots", "pending_deliveries", "parked_records"} <= set(before)
    shown = await redact(http, aggregate="event", id=key)
    assert (shown["state"], shown["events"], shown["streams"], shown["kept"]) == ("done", 2, 1, 0)
    assert places(database_url) == []
    assert verify(database_url) == Verification(True, await last(inner))
    after = await event(http, key)
    assert (after["title"], after["description"], after["state"], after["id"]) == ("", None, 10, key)
    for address in (f"/api/event/{key}", f"/api/audit/event/{key}/", f"/api/audit/event/{key}/state?version=1", "/api/event/"):
        answer = await http.get(address)
        assert answer.status_code == 200, address
        assert MARK not in answer.text, address


async def test_an_erased_event_can_be_changed_again(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    key = await marked_event(http, inner, database_url)
    await redact(http, aggregate="event", id=key)
    await patch(http, key, replace("/Title", "New"))
    assert (await event(http, key))["title"] == "New"
    assert places(database_url) == []


async def test_another_process_cannot_bring_it_back(http: httpx.AsyncClient, inner: Core, second: Core, database_url: str) -> None:
    """The process remembers the aggregate with its content. A decision on that state is a conflict, and is repeated on the log."""
    key = await marked_event(http, inner, database_url)
    await do(second, AddOrUpdateEvent(UUID(key), {"ref_id": f"by the other {MARK}"}))
    following = RedactionTask(second.database, second.redactor, second.executor)
    await following.forget()
    await redact(http, aggregate="event", id=key)
    await do(second, AddOrUpdateEvent(UUID(key), {"description": "later"}))
    assert places(database_url) == []
    await following.forget()
    assert f"event:{key}" not in second.executor._cache


async def test_unique_names_stay_unique(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    tags = [(await http.put("/api/tag/", json={"name": f"{MARK} {n}"})).json()["id"] for n in range(3)]
    for tag in tags:
        await redact(http, aggregate="tag", id=tag)
    assert places(database_url) == []
    names = [(await http.get(f"/api/tag/{tag}")).json()["name"] for tag in tags]
    assert names == [f"redacted {tag}" for tag in tags]
    assert (await http.put("/api/tag/", json={"name": f"{MARK} 0"})).status_code in (200, 201)


async def test_causes_of_a_person_are_erased_and_the_content_stays(http: httpx.AsyncClient, inner: Core, database_url: str) -> None:
    room = await add_room(http, "Hall")
    counted = await redact(http, actor="admin", dryRun=True)
    assert (counted["state"], counted["id"]) == ("counted", None)
    shown = await redact(http, actor="admin")
    assert (shown["events"], shown["streams"], shown["state"]) == (counted["events"], 0, "done")
    stored = await logged(inner, f"room:{room}")
    assert [(entry.data["name"], entry.cause["actor"]) for entry in stored] == [("Hall", "redacted")]
    assert verify(database_url).valid
    assert (await http.get("/api/audit/events/", params={"actor": "redacted"})).json()["results"][0]["transactionId"] == "redacted"


class _BeforeTheCommit:
    """A database whose transactions are committed when `go` is set."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.done, self.go = asyncio.Event(), asyncio.Event()

    async def rows(self, query: LiteralString) -> Sequence[Any]:
        return await self._database.rows(query)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with self._database.connection() as connection, connection.transaction():
            yield connection
            self.done.set()
            await self.go.wait()


async def test_an_erasure_waits_for_a_part_of_the_index_that_is_being_inserted(
    http: httpx.AsyncClient, inner: Core, database_url: str
) -> None:
    """The part was read before the erasure, and would restore the name."""
    await add_room(http, "Hall")
    owned = _BeforeTheCommit(inner.database)
    filling = asyncio.create_task(fill(cast("Database", owned)))
    await owned.done.wait()
    erasing = asyncio.create_task(redact(http, actor="admin"))
    await until(lambda: erasing.done() or rows(database_url, "SELECT FROM pg_locks WHERE NOT granted"))
    owned.go.set()
    assert (await filling, (await erasing)["state"]) == (False, "done")
    await fill(inner.database)
    assert "admin" not in {actor for (actor,) in rows(database_url, "SELECT actor FROM audit_index WHERE kind = 'room'")}


async def test_positions_are_erased_in_batches(
    http: httpx.AsyncClient, inner: Core, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await add_room(http, f"{MARK} {number}")
    end = await last(inner)
    monkeypatch.setattr("projections.audit.redactor._BATCH", 2)
    shown = await redact(http, positions=[[1, 2], [2, end]])
    assert (shown["events"], shown["streams"], shown["through"]) == (5, 5, end)
    assert places(database_url) == []
    assert (await redact(http, positions=[[1, end]]))["events"] == 0


async def test_what_was_cut_off_goes_on(http: httpx.AsyncClient, inner: Core, second: Core, database_url: str) -> None:
    """The process ends after the first append: another one goes on."""
    key = await marked_event(http, inner, database_url)
    order = await inner.redactor.request(
        RedactionSelection(stream=f"event:{key}"), [Part.CONTENT], reason="x", cause=Cause.by("admin")
    )
    [result], _ = (
        (await inner.redactor._next(order.selection or RedactionSelection(), [Part.CONTENT], after=0, through=order.through))[0][
            :1
        ],
        0,
    )
    await inner.redactor._erase(order, [result])
    await RedactionTask(second.database, second.redactor, second.executor).carry_out()
    status = (await http.get(f"/api/audit/redact/{order.id}")).json()
    assert (status["state"], places(database_url)) == ("done", [])
    assert verify(database_url).valid


@pytest.mark.parametrize("parts", [[Part.CONTENT], [Part.CAUSE], [Part.CONTENT, Part.CAUSE]], ids=str)
async def test_two_processes_that_carry_out_one_redaction_erase_once(
    http: httpx.AsyncClient, inner: Core, second: Core, database_url: str, parts: list[Part]
) -> None:
    """The request and the background of another process: one of them has found what is to go before the other has erased it."""
    key = await marked_event(http, inner, database_url)
    order = await inner.redactor.request(RedactionSelection(stream=f"event:{key}"), parts, reason="x", cause=Cause.by("admin"))
    assert order.selection is not None
    result, _ = await inner.redactor._next(order.selection, parts, after=0, through=order.through)
    await RedactionTask(second.database, second.redactor, second.executor).carry_out()
    with pytest.raises(ConcurrencyConflict):
        await inner.redactor._erase(order, result)
    done = await inner.redactor.step(order)
    assert (done.reached, done.events, done.skipped) == (order.through, len(result), 0)
    topics = [
        topic for (topic,) in rows(database_url, "SELECT topic FROM events WHERE strpos(topic, '.redacted') > 0 ORDER BY position")
    ]
    assert topics == ["log.redacted"] * len(parts) + ["event.redacted"] * (Part.CONTENT in parts)
    assert verify(database_url).valid


_TRACES = """
SELECT tableoid::regclass::text, ctid::text FROM finished_deliveries
UNION ALL SELECT tableoid::regclass::text, ctid::text FROM delivery_attempts
UNION ALL SELECT tableoid::regclass::text, ctid::text FROM logbook
UNION ALL SELECT tableoid::regclass::text, ctid::text FROM parked_records
UNION ALL SELECT tableoid::regclass::text, ctid::text FROM orders
UNION ALL SELECT tableoid::regclass::text, ctid::text FROM sessions
"""


async def test_while_a_consumer_is_behind_only_what_is_new_is_written(
    http: httpx.AsyncClient, inner: Core, second: Core, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await marked_event(http, inner, database_url)
    as_superuser(
        database_url,
        "INSERT INTO orders (consumer, position, target, body, event_id, correlation_id, error) "
        f"VALUES ('x', 1, 'event:{key}', '', gen_random_uuid(), '', '{MARK}')",
        "INSERT INTO sessions (kind, key, shard, owner, wish, number, state, host, reason, started_at, changed_at) "
        f"VALUES ('x', '{key}', 0, '', 1, 1, '', '', '{MARK}', '2026-01-01', '2026-01-01')",
        f"UPDATE delivery_attempts SET error = '{MARK}'",
        "INSERT INTO consumer_shards (consumer, shard, position) VALUES ('x', 0, 0)",
        "INSERT INTO consumer_members (consumer, member, host, seen_at) VALUES ('x', gen_random_uuid(), '', now())",
    )
    shown = await redact(http, aggregate="event", id=key)
    assert (shown["state"], places(database_url)) == ("cleaning", [])
    before = asked(database_url, _TRACES.encode()).fetchall()
    assert len({table for table, _ in before}) == 6
    other = RedactionTask(second.database, second.redactor, second.executor)
    await other.carry_out()
    assert asked(database_url, _TRACES.encode()).fetchall() == before
    as_superuser(database_url, f"UPDATE parked_records SET error = '{MARK}'")
    await other.carry_out()
    assert places(database_url) == ["parked_records"], "it has looked a moment ago"
    monkeypatch.setattr("projections.audit.redactor._CLEAN_AGAIN", 0.0)
    await other.carry_out()
    assert places(database_url) == []
    monkeypatch.undo()
    as_superuser(database_url, f"UPDATE parked_records SET error = '{MARK}'", "UPDATE consumer_shards SET position = 1000")
    await other.carry_out()
    status = (await http.get(f"/api/audit/redact/{shown['id']}")).json()
    assert (status["state"], places(database_url)) == ("done", [])


async def test_a_repeat_with_the_same_key_is_the_same_redaction(http: httpx.AsyncClient, inner: Core) -> None:
    room = await add_room(http, MARK)
    first = await redact(http, headers={"Idempotency-Key": "k"}, aggregate="room", id=room)
    assert await redact(http, headers={"Idempotency-Key": "k"}, aggregate="room", id=room) == first


BAD: list[tuple[dict[str, Any], int]] = [
    ({"reason": "r"}, 400),
    ({"aggregate": "room", "id": UNKNOWN}, 400),
    ({"reason": "", "actor": "x"}, 400),
    ({"reason": "r", "aggregate": "room"}, 400),
    ({"reason": "r", "aggregate": "nothing", "id": UNKNOWN}, 400),
    ({"reason": "r", "aggregate": "room", "id": UNKNOWN}, 404),
    ({"reason": "r", "aggregate": "client", "id": "admin"}, 409),
    ({"reason": "r", "positions": [[2, 1]]}, 400),
    ({"reason": "r", "positions": [[1]]}, 400),
    ({"reason": "r", "positions": [[0, 1]]}, 400),
    ({"reason": "r", "actor": "x", "positions": [[1, 1]]}, 400),
    ({"reason": "r", "actor": "x", "parts": ["state"]}, 400),
]


@pytest.mark.parametrize(("body", "status"), BAD, ids=[str(body) for body, _ in BAD])
async def test_bad_input_erases_nothing(http: httpx.AsyncClient, inner: Core, body: dict[str, Any], status: int) -> None:
    before = await last(inner)
    assert_problem(await http.post("/api/audit/redact", json=body), status)
    assert await last(inner) == before


async def test_what_is_at_work_keeps_its_content(http: httpx.AsyncClient, inner: Core) -> None:
    answer = await http.post(
        "/engine/job",
        json={
            "client": "admin",
            "job": {"workflow": "probe_media", "priority": 3},
            "parameters": {"content_id": "c", "file": "f.mp4"},
        },
        headers={"client": "admin"},
    )
    assert answer.status_code in (200, 201), answer.text
    number = answer.json()["id"]
    assert_problem(await http.post("/api/audit/redact", json={"reason": "r", "aggregate": "job", "id": str(number)}), 409)
    await http.put(f"/engine/job/{number}", json={"queue_state": "broken"}, headers={"client": "admin"})
    assert (await redact(http, aggregate="job", id=str(number)))["state"] == "done"
    for address in ("/engine/jobs", f"/engine/jobs/{number}", f"/engine/logs/{number}", f"/api/audit/job/{number}/"):
        answer = await http.get(address, headers={"client": "admin"})
        assert answer.status_code == 200, address
    assert await inner.database.rows("SELECT state FROM job_view WHERE id = %s", (number,)) == [(int(JobState.BROKEN),)]


async def test_a_rebuilt_view_is_the_one_that_was_written(
    http: httpx.AsyncClient, inner: Core, database_url: str, migrated: tuple[str, str | None]
) -> None:
    key = await marked_event(http, inner, database_url)
    tag = (await http.put("/api/tag/", json={"name": MARK})).json()["id"]
    await redact(http, aggregate="event", id=key)
    await redact(http, aggregate="tag", id=tag)
    async with Database.of_owner(database_url, size=4) as owner:
        rebuilder = Rebuilder(owner, Streams(owner, EventMapper(inner.catalogue)), app_role=migrated[1])
        for view in (EVENT_VIEW, RECORD_VIEW):
            before = await inner.database.rows(f"SELECT * FROM {view.name} ORDER BY 1, 2")
            await rebuilder.rebuild(view)
            assert await inner.database.rows(f"SELECT * FROM {view.name} ORDER BY 1, 2") == before
    assert places(database_url) == []
