"""Issuing content keys on a database: races, restarts, other master keys. Decisions: tests/domain/content_key/test_handlers.py."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import TupleRow

from api.wiring.core import Core, core
from domain.content_key.aggregate import KidTaken, Purpose
from domain.content_key.handlers import ImportedKey
from domain.kernel.encryption import SecretCipher
from domain.kernel.errors import DecryptionFailed
from domain.kernel.mapper import EventMapper
from projections.content_key.queries import ContentKeyQueries
from projections.content_key.view import CONTENT_KEY_VIEW
from projections.kernel.database.database import Database
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.projections.content_key.issuing import KID, SYSTEM, handlers_on, issue, issue_one, key_request, topics, values
from tests.support.clock import NOON, HandClock
from tests.support.feeding import as_superuser, table


async def test_a_key_is_issued_once_and_given_again(inner: Core) -> None:
    first = await issue_one(handlers_on(inner), key_request())
    assert (first.is_new, len(first.key), len(first.iv), first.kid.version) == (True, 16, 16, 8)
    again = await issue_one(handlers_on(inner), key_request())
    assert not again.is_new
    assert values(again) == values(first)
    assert await topics(inner) == ["content_key.issued"]


async def test_only_one_of_two_contents_gets_a_kid_in_a_race(inner: Core, other: Core) -> None:
    questions = [(handlers_on(core), key_request(f"movie-{n}", kid=KID)) for n in range(4) for core in (inner, other)]
    results = await asyncio.gather(*(issue_one(keys, question) for keys, question in questions), return_exceptions=True)
    given_out = [key for key in results if not isinstance(key, BaseException)]
    assert {type(fault) for fault in results if isinstance(fault, BaseException)} == {KidTaken}
    assert (len(given_out), len({values(key) for key in given_out})) == (2, 1)


async def test_the_keys_of_a_document_are_issued_in_one_append_and_given_in_order(inner: Core) -> None:
    keys = handlers_on(inner)
    earlier = await issue_one(keys, key_request(slot="2"))
    questions = [
        key_request(),
        key_request(slot="2"),
        key_request(kid=KID),
        key_request(),
        *(key_request(period=str(n)) for n in range(5)),
    ]
    issued = await issue(keys, *questions)
    assert [key.is_new for key in issued] == [True, False, *[True] * 7]
    assert (values(issued[1]), values(issued[3])) == (values(earlier), values(issued[0]))
    commands = await inner.database.rows(
        "SELECT metadata->>'command_id', count(*), max(position) - min(position) FROM events GROUP BY 1 ORDER BY 2"
    )
    assert [(count, spread) for _, count, spread in commands] == [(1, 0), (7, 6)]
    [actor] = await inner.database.rows("SELECT DISTINCT metadata->>'actor', metadata->>'correlation_id' FROM events")
    assert actor == ("studio", "t-1")
    assert [values(key) for key in await issue(keys, *questions)] == [values(key) for key in issued]


class Counting(Database):
    """Counts queries."""

    asked = 0

    async def rows(self, question: str, parameters: Any = ()) -> list[TupleRow]:
        self.asked += 1
        return await super().rows(question, parameters)


async def test_known_keys_of_a_document_cost_one_query_and_no_append(inner: Core, database_url: str) -> None:
    questions = [key_request(period=str(n)) for n in range(8)]
    first = await issue(handlers_on(inner), *questions)
    async with Counting(database_url, role=None) as database:
        keys = handlers_on(inner, database=database)
        assert [values(key) for key in await issue(keys, *questions)] == [values(key) for key in first]
        assert database.asked == 1
    assert len(await topics(inner)) == 8


async def test_the_look_up_uses_the_indexes(inner: Core, database_url: str) -> None:
    """With enough keys, and statistics of these and not of an earlier test, that indexes differ in cost."""
    await issue(handlers_on(inner), *(key_request(f"movie-{number}") for number in range(200)))
    as_superuser(database_url, "ANALYZE content_key_view, vault")
    async with inner.database.connection() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")
        plan = await connection.execute(
            "EXPLAIN SELECT 1 FROM content_key_view k JOIN vault v ON v.reference = k.sealed_key WHERE k.id = ANY(ARRAY[%s::uuid])",
            (KID,),
        )
        shown = "\n".join(line for (line,) in await plan.fetchall())
    assert CONTENT_KEY_VIEW.key_name in shown
    assert "vault_pkey" in shown


async def test_64_parallel_first_requests_give_one_key(inner: Core) -> None:
    keys = handlers_on(inner)
    issued = await asyncio.gather(*(issue_one(keys, key_request()) for _ in range(64)))
    assert len({values(key) for key in issued}) == 1
    assert [key.is_new for key in issued].count(True) == 1
    assert await topics(inner) == ["content_key.issued"]
    assert await inner.database.row("SELECT count(*) FROM vault") == (1,)


@pytest.mark.parametrize(
    "questions", [[key_request()], [key_request(), key_request(slot="2"), key_request(kid=KID)]], ids=["one key", "three keys"]
)
async def test_64_parallel_first_requests_of_two_processes_give_one_key(inner: Core, other: Core, questions: list[Any]) -> None:
    here, there = handlers_on(inner), handlers_on(other)
    turns = [issue(keys, *order) for _ in range(16) for keys in (here, there) for order in (questions, questions[::-1])]
    results = [key for keys in await asyncio.gather(*turns) for key in keys]
    assert len({values(key) for key in results}) == len(questions)
    assert [key.is_new for key in results].count(True) == len(questions)
    assert await topics(inner) == ["content_key.issued"] * len(questions)
    assert await inner.database.row("SELECT count(*) FROM vault") == (len(questions),)


async def test_the_keys_are_the_same_after_a_restart(
    inner: Core, database_url: str, migrated: tuple[str, str | None], clock: HandClock
) -> None:
    """The keys depend on rows of the database only, so a restored dump gives the same keys."""
    first = await issue(handlers_on(inner), key_request(), key_request(kid=KID))
    anew = core(database_url, role=migrated[1], clock=clock)
    await anew.start()
    try:
        again = await issue(handlers_on(anew), key_request(), key_request(kid=KID))
    finally:
        await anew.stop()
    assert [values(key) for key in again] == [values(key) for key in first]
    assert not any(key.is_new for key in again)


async def test_the_secret_of_another_key_cannot_be_decrypted(inner: Core, database_url: str) -> None:
    """A changed row cannot give one kid the key of another: a secret is bound to its owner."""
    await issue(handlers_on(inner), key_request(), key_request(slot="2"))
    as_superuser(
        database_url, "UPDATE content_key_view SET sealed_key = (SELECT sealed_key FROM content_key_view ORDER BY id LIMIT 1)"
    )
    keys = handlers_on(inner)
    results = await asyncio.gather(issue_one(keys, key_request()), issue_one(keys, key_request(slot="2")), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in results) == ["DecryptionFailed", "PlainKey"]


async def test_a_rebuilt_view_is_the_live_one(inner: Core, database_url: str, migrated: tuple[str, str | None]) -> None:
    first = await issue(handlers_on(inner), key_request(), key_request(kid=KID, iv=bytes(16)))
    live = await table(inner.database, CONTENT_KEY_VIEW)
    async with Database(database_url, size=4) as owner:
        streams = Streams(owner, EventMapper(inner.catalogue))
        await Rebuilder(owner, streams, app_role=migrated[1]).rebuild(CONTENT_KEY_VIEW)
    assert await table(inner.database, CONTENT_KEY_VIEW) == live
    assert [values(key) for key in await issue(handlers_on(inner), key_request(), key_request(kid=KID))] == [
        values(key) for key in first
    ]


# --- what operators see


async def test_the_list_of_keys_shows_kids_and_no_key(inner: Core, clock: HandClock) -> None:
    keys = handlers_on(inner)
    first = await issue_one(keys, key_request(period="1"))
    clock.forward(seconds=1)
    second = await issue_one(keys, key_request(kid=KID))
    await issue(keys, key_request(client="other"), key_request("movie-2"))
    page = await ContentKeyQueries(inner.database).of_content("movie-1")
    assert [(row.client, row.kid) for row in page.results][1:] == [("studio", first.kid), ("studio", KID)]
    [of_one] = [row for row in page.results if row.kid == KID]
    assert (of_one.period, of_one.iv, of_one.imported, of_one.answers, of_one.systems) == ("", second.iv.hex(), False, 0, ())
    assert of_one.issued_at > NOON
    assert (await ContentKeyQueries(inner.database).of_content("movie-1", client="studio")).total == 2
    assert (await ContentKeyQueries(inner.database).of_content("unknown")).total == 0
    assert first.key.hex() not in repr(page)


# --- keys of others


def imported(key: bytes = bytes(range(16)), kid: UUID = KID, content_id: str = "movie-1") -> ImportedKey:
    return ImportedKey(Purpose("studio", content_id, "", kid), key)


async def test_an_imported_key_is_given_out(inner: Core) -> None:
    keys = handlers_on(inner)
    assert await keys.import_keys([imported(), imported()], invocation=SYSTEM) == 1
    issued = await issue_one(keys, key_request(kid=KID))
    assert (issued.key, issued.is_new) == (bytes(range(16)), False)
    assert await keys.import_keys([imported(), imported(bytes(16), UUID(int=1))], invocation=SYSTEM) == 1
    assert [row.imported for row in (await ContentKeyQueries(inner.database).of_content("movie-1")).results] == [True, True]
    assert "000102030405" not in repr(imported())


async def test_without_the_master_key_no_key_is_given_or_issued(inner: Core) -> None:
    await issue_one(handlers_on(inner), key_request())
    with pytest.raises(DecryptionFailed):
        await issue_one(handlers_on(inner, cipher=SecretCipher(bytes(31) + b"\1")), key_request())
    assert len(await topics(inner)) == 1
