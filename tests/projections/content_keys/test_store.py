"""The same question gives the same key, for ever and to nobody else. reference/drm.md, c.5; issue 6, points 6 and 9."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import TupleRow

from api.core import Core, core
from domain.content_key.aggregate import KeyDiffers, KidElsewhere, Purpose
from domain.content_key.identity import key_of
from domain.kernel.cause import Cause
from domain.kernel.errors import Malformed
from domain.kernel.mapper import EventMapper
from domain.kernel.sealed import Sealer, Unsealable
from projections.content_keys.store import KeyBrought
from projections.content_keys.view import CONTENT_KEY_VIEW
from projections.kernel.database import Database
from projections.kernel.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.conftest import NOON, HandClock
from tests.projections.content_keys.keys_given import KID, asked, given, keys_on, one, told, topics
from tests.projections.feeding import as_superuser, table


async def test_a_new_key_is_made_once_and_given_ever_after(inner: Core) -> None:
    first = await one(keys_on(inner), asked())
    assert (first.made, len(first.key), len(first.iv), first.kid.version) == (True, 16, 16, 8)
    again = await one(keys_on(inner), asked())
    assert not again.made
    assert told(again) == told(first)
    assert await topics(inner) == ["content_key.issued"]


async def test_a_kid_of_the_caller_is_kept(inner: Core) -> None:
    first = await one(keys_on(inner), asked(kid=KID, iv=bytes(range(16))))
    assert (first.kid, first.iv, first.id) == (KID, bytes(range(16)), key_of(client="studio", kid=KID))
    assert told(await one(keys_on(inner), asked(kid=KID))) == told(first), "the IV of the first caller is the key's"


async def test_an_iv_of_the_caller_is_echoed_and_does_not_replace_the_first(inner: Core) -> None:
    first = await one(keys_on(inner), asked())
    other = await one(keys_on(inner), asked(iv=bytes(16)))
    assert (other.iv, other.key) == (bytes(16), first.key)
    assert told(await one(keys_on(inner), asked())) == told(first)


@pytest.mark.parametrize(
    "other",
    [
        {"client": "studio2"},
        {"content_id": "movie-2"},
        {"period": "1"},
        {"slot": "2"},
        {"kid": KID},
    ],
)
async def test_another_question_is_another_key(inner: Core, other: dict[str, Any]) -> None:
    keys = await given(keys_on(inner), asked(), asked(**other))
    assert len({key.key for key in keys}) == len({key.kid for key in keys}) == len({key.iv for key in keys}) == 2


async def test_two_clients_with_the_same_kid_share_no_key(inner: Core) -> None:
    keys = await given(keys_on(inner), asked(kid=KID), asked(client="other", kid=KID))
    assert keys[0].kid == keys[1].kid == KID
    assert keys[0].key != keys[1].key


async def test_a_kid_that_we_made_is_known_when_it_comes_back(inner: Core) -> None:
    """A player's or packager's second call names the kid of the first answer, perhaps in another period."""
    first = await one(keys_on(inner), asked(period="1"))
    for again in (asked(kid=first.kid), asked(kid=first.kid, period="1"), asked(kid=first.kid, period="2")):
        assert told(await one(keys_on(inner), again)) == told(first)


async def test_a_kid_never_opens_two_contents(inner: Core) -> None:
    keys = keys_on(inner)
    await one(keys, asked(kid=KID))
    with pytest.raises(KidElsewhere):
        await given(keys, asked("movie-9"), asked("movie-9", kid=KID))
    assert await topics(inner) == ["content_key.issued"], "the other key of that document was not made either"
    assert (await one(keys, asked("movie-9", client="other", kid=KID))).made


async def test_two_contents_that_race_for_a_kid_are_told_apart(inner: Core, other: Core) -> None:
    questions = [(keys_on(one), asked(f"movie-{n}", kid=KID)) for n in range(4) for one in (inner, other)]
    found = await asyncio.gather(*(one(keys, question) for keys, question in questions), return_exceptions=True)
    given_out = [key for key in found if not isinstance(key, BaseException)]
    assert {type(fault) for fault in found if isinstance(fault, BaseException)} == {KidElsewhere}
    assert (len(given_out), len({told(key) for key in given_out})) == (2, 1)


async def test_the_keys_of_a_document_are_made_in_one_append_and_answered_in_order(inner: Core) -> None:
    keys = keys_on(inner)
    known = await one(keys, asked(slot="2"))
    questions = [asked(), asked(slot="2"), asked(kid=KID), asked(), *(asked(period=str(n)) for n in range(5))]
    found = await given(keys, *questions)
    assert [key.made for key in found] == [True, False, *[True] * 7]
    assert (told(found[1]), told(found[3])) == (told(known), told(found[0]))
    commands = await inner.database.rows(
        "SELECT metadata->>'command_id', count(*), max(position) - min(position) FROM events GROUP BY 1 ORDER BY 2"
    )
    assert [(count, spread) for _, count, spread in commands] == [(1, 0), (7, 6)]
    [actor] = await inner.database.rows("SELECT DISTINCT metadata->>'actor', metadata->>'correlation_id' FROM events")
    assert actor == ("studio", "t-1")
    assert [told(key) for key in await given(keys, *questions)] == [told(key) for key in found]


class Counting(Database):
    """Remembers how many questions were asked."""

    asked = 0

    async def rows(self, question: str, parameters: Any = ()) -> list[TupleRow]:
        self.asked += 1
        return await super().rows(question, parameters)


async def test_known_keys_of_a_document_cost_one_question_and_no_append(inner: Core, database_url: str) -> None:
    questions = [asked(period=str(n)) for n in range(8)]
    first = await given(keys_on(inner), *questions)
    async with Counting(database_url, role=None) as database:
        keys = keys_on(inner, database=database)
        assert [told(key) for key in await given(keys, *questions)] == [told(key) for key in first]
        assert database.asked == 1
    assert len(await topics(inner)) == 8


async def test_it_reads_by_the_index(inner: Core) -> None:
    await one(keys_on(inner), asked())
    async with inner.database.connection() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")
        plan = await connection.execute(
            "EXPLAIN SELECT 1 FROM content_key_view k JOIN vault v ON v.reference = k.sealed_key WHERE k.id = ANY(ARRAY[%s::uuid])",
            (KID,),
        )
        shown = "\n".join(line for (line,) in await plan.fetchall())
    assert "content_key_view_key" in shown
    assert "vault_pkey" in shown


async def test_64_parallel_first_requests_give_one_key(inner: Core) -> None:
    keys = keys_on(inner)
    found = await asyncio.gather(*(one(keys, asked()) for _ in range(64)))
    assert len({told(key) for key in found}) == 1
    assert [key.made for key in found].count(True) == 1
    assert await topics(inner) == ["content_key.issued"]
    assert await inner.database.row("SELECT count(*) FROM vault") == (1,)


@pytest.mark.parametrize("questions", [[asked()], [asked(), asked(slot="2"), asked(kid=KID)]], ids=["one key", "three keys"])
async def test_64_parallel_first_requests_of_two_processes_give_one_key(inner: Core, other: Core, questions: list[Any]) -> None:
    here, there = keys_on(inner), keys_on(other)
    turns = [given(keys, *order) for _ in range(16) for keys in (here, there) for order in (questions, questions[::-1])]
    found = [key for keys in await asyncio.gather(*turns) for key in keys]
    assert len({told(key) for key in found}) == len(questions)
    assert [key.made for key in found].count(True) == len(questions)
    assert await topics(inner) == ["content_key.issued"] * len(questions)
    assert await inner.database.row("SELECT count(*) FROM vault") == (len(questions),)


async def test_after_a_restart_the_answer_is_the_same(
    inner: Core, database_url: str, migrated: tuple[str, str | None], clock: HandClock
) -> None:
    """Nothing but rows of the database make the answer: a dump that is restored gives the same one for the same reason."""
    first = await given(keys_on(inner), asked(), asked(kid=KID))
    anew = core(database_url, role=migrated[1], clock=clock)
    await anew.start()
    try:
        again = await given(keys_on(anew), asked(), asked(kid=KID))
    finally:
        await anew.stop()
    assert [told(key) for key in again] == [told(key) for key in first]
    assert not any(key.made for key in again)


async def test_a_box_of_another_key_is_never_answered(inner: Core, database_url: str) -> None:
    """Somebody who may write to the vault still cannot make one kid answer with the key of another."""
    await given(keys_on(inner), asked(), asked(slot="2"))
    as_superuser(
        database_url, "UPDATE content_key_view SET sealed_key = (SELECT sealed_key FROM content_key_view ORDER BY id LIMIT 1)"
    )
    keys = keys_on(inner)
    found = await asyncio.gather(one(keys, asked()), one(keys, asked(slot="2")), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in found) == ["KeyGiven", "Unsealable"]


async def test_a_rebuilt_view_is_the_live_one(inner: Core, database_url: str, migrated: tuple[str, str | None]) -> None:
    first = await given(keys_on(inner), asked(), asked(kid=KID, iv=bytes(16)))
    live = await table(inner.database, CONTENT_KEY_VIEW)
    async with Database(database_url, size=4) as owner:
        streams = Streams(owner, EventMapper(inner.catalogue))
        await Rebuilder(owner, streams, app_role=migrated[1]).rebuild(CONTENT_KEY_VIEW)
    assert await table(inner.database, CONTENT_KEY_VIEW) == live
    assert [told(key) for key in await given(keys_on(inner), asked(), asked(kid=KID))] == [told(key) for key in first]


# --- what operators see


async def test_operators_see_kids_and_never_a_key(inner: Core, clock: HandClock) -> None:
    keys = keys_on(inner)
    first = await one(keys, asked(period="1"))
    clock.forward(seconds=1)
    second = await one(keys, asked(kid=KID))
    await given(keys, asked(client="other"), asked("movie-2"))
    page = await keys.of_content("movie-1")
    assert [(row.client, row.kid) for row in page.results][1:] == [("studio", first.kid), ("studio", KID)]
    [of_one] = [row for row in page.results if row.kid == KID]
    assert (of_one.period, of_one.iv, of_one.imported, of_one.answers, of_one.systems) == ("", second.iv.hex(), False, 0, ())
    assert of_one.issued_at > NOON
    assert (await keys.of_content("movie-1", client="studio")).total == 2
    assert (await keys.of_content("unknown")).total == 0
    assert first.key.hex() not in repr(page)


# --- keys of others


def brought(key: bytes = bytes(range(16)), kid: UUID = KID, content_id: str = "movie-1") -> KeyBrought:
    return KeyBrought(Purpose("studio", content_id, "", kid), key)


async def test_a_key_that_is_brought_along_is_answered(inner: Core) -> None:
    keys, cause = keys_on(inner), Cause.by("system")
    assert await keys.take_in([brought(), brought()], cause=cause) == 1
    found = await one(keys, asked(kid=KID))
    assert (found.key, found.made) == (bytes(range(16)), False)
    assert await keys.take_in([brought(), brought(bytes(16), UUID(int=1))], cause=Cause.by("system")) == 1
    assert [row.imported for row in (await keys.of_content("movie-1")).results] == [True, True]
    assert "000102030405" not in repr(brought())


async def test_a_key_that_was_given_out_is_never_replaced(inner: Core) -> None:
    keys = keys_on(inner)
    first = await one(keys, asked(kid=KID))
    for refused in (
        [brought(bytes(16), UUID(int=1)), brought()],
        [brought(bytes(16), UUID(int=1)), brought(bytes(15) + b"\1", UUID(int=1))],
    ):
        with pytest.raises(KeyDiffers):
            await keys.take_in(refused, cause=Cause.by("system"))
    with pytest.raises(KidElsewhere):
        await keys.take_in([brought(first.key, content_id="movie-2")], cause=Cause.by("system"))
    with pytest.raises(Malformed):
        await keys.take_in([brought(bytes(15), UUID(int=1))], cause=Cause.by("system"))
    assert await keys.take_in([brought(first.key)], cause=Cause.by("system")) == 0
    assert len(await topics(inner)) == 1


async def test_without_the_master_key_nothing_is_answered_and_nothing_made(inner: Core) -> None:
    await one(keys_on(inner), asked())
    with pytest.raises(Unsealable):
        await one(keys_on(inner, sealer=Sealer(bytes(31) + b"\1")), asked())
    assert len(await topics(inner)) == 1
