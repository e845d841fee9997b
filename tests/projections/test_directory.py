"""Tests of authentication: keys, their expiry, and how soon a change takes effect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from hashlib import sha256
from typing import Any

from psycopg.rows import TupleRow

from api.wiring.core import Core
from domain.client.aggregate import Client, NewKey
from domain.client.commands import RegisterClient
from domain.client.names import DEMO_LOADER
from projections.client.directory import FRESH, ClientDirectory
from projections.kernel.database.database import Database
from tests.support.clock import NOON, HandClock
from tests.support.feeding import do

OLD, NEW = "mlk_old", "mlk_new"


def key(secret: str) -> NewKey:
    return NewKey(f"id of {secret}", sha256(secret.encode()).hexdigest())


async def introduced(inner: Core, name: str = "studio", *roles: str, secret: str = OLD) -> None:
    await do(inner, RegisterClient(name, roles or ("operator",), key(secret)))
    inner.directory.invalidate()


def grown_old(directory: ClientDirectory) -> None:
    """Make the cache of the directory so old that it must be read again."""
    directory._loaded_at -= FRESH + 0.001


async def name_of(directory: ClientDirectory, secret: str) -> str | None:
    client = await directory.authenticate(secret)
    return client.name if client is not None else None


async def test_a_key_tells_its_client(inner: Core) -> None:
    await introduced(inner, "studio", "viewer", "operator")
    client = await inner.directory.authenticate(OLD)
    assert client is not None
    assert (client.name, client.roles, client.version) == ("studio", ("viewer", "operator"), 2)


async def test_an_unknown_key_authenticates_nobody(inner: Core) -> None:
    await introduced(inner)
    for secret in ("", "mlk_ol", "mlk_old ", key(OLD).key_hash, "\udcff", "😀"):
        assert await inner.directory.authenticate(secret) is None


async def test_a_key_works_until_the_moment_at_which_it_ends(inner: Core, clock: HandClock) -> None:
    await introduced(inner)
    await do(inner, Client.issue_key.on("studio", key(NEW), expire_others_after=60))
    inner.directory.invalidate()
    clock.now = NOON + timedelta(seconds=60) - timedelta(milliseconds=1)
    assert await name_of(inner.directory, OLD) == "studio"
    clock.forward(milliseconds=1)
    assert await name_of(inner.directory, OLD) is None
    assert await name_of(inner.directory, NEW) == "studio"


async def test_a_change_through_this_process_is_seen_at_once(inner: Core) -> None:
    await introduced(inner)
    await do(inner, Client.issue_key.on("studio", key(NEW)))
    assert await name_of(inner.directory, OLD) == "studio"
    inner.directory.invalidate()
    assert await name_of(inner.directory, NEW) == "studio"

    await do(inner, Client.revoke_key.on("studio", key(OLD).key_id, other_admins=True))
    inner.directory.invalidate()
    assert await name_of(inner.directory, OLD) is None

    await do(inner, Client.change.on("studio", ("viewer",), other_admins=True))
    inner.directory.invalidate()
    client = await inner.directory.authenticate(NEW)
    assert client is not None
    assert client.roles == ("viewer",)

    await do(inner, Client.delete.on("studio", other_admins=True))
    inner.directory.invalidate()
    assert await name_of(inner.directory, NEW) is None


async def test_a_change_by_another_process_is_seen_once_the_cache_is_outdated(inner: Core, clock: HandClock) -> None:
    other = ClientDirectory(inner.database, clock)
    await introduced(inner)
    assert await name_of(other, OLD) == "studio"

    await do(inner, Client.revoke_key.on("studio", key(OLD).key_id, other_admins=True))
    assert await name_of(other, OLD) == "studio", "within the second it may still be known"
    grown_old(other)
    assert await name_of(other, OLD) is None


async def test_a_key_made_by_another_process_is_looked_for_before_it_is_refused(inner: Core, clock: HandClock) -> None:
    other = ClientDirectory(inner.database, clock)
    assert await name_of(other, OLD) is None
    await introduced(inner)
    other._loaded_at -= FRESH / 2  # fresh enough for keys that are known, not for one that is not
    assert await name_of(other, OLD) == "studio"


async def test_a_removed_name_that_is_used_again_has_new_keys_only(inner: Core) -> None:
    await introduced(inner)
    await do(inner, Client.delete.on("studio", other_admins=True))
    await introduced(inner, secret=NEW)
    assert (await name_of(inner.directory, OLD), await name_of(inner.directory, NEW)) == (None, "studio")


async def test_keys_of_several_clients_are_told_apart(inner: Core) -> None:
    await introduced(inner, "studio")
    await introduced(inner, "desk", secret=NEW)
    assert [await name_of(inner.directory, secret) for secret in (OLD, NEW)] == ["studio", "desk"]
    assert [client.name for client in await inner.directory.all()] == ["desk", "studio"]
    assert await inner.directory.find("nobody") is None


class Paused(Database):
    """Answers questions of one row only when it is let."""

    def __init__(self, conninfo: str) -> None:
        super().__init__(conninfo, size=2)
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def row(self, question: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> TupleRow | None:
        result = await super().row(question, parameters)
        self.asked.set()
        await self.go.wait()
        return result


@asynccontextmanager
async def paused(conninfo: str) -> AsyncIterator[Paused]:
    database = Paused(conninfo)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def test_a_change_that_comes_while_it_looks_is_not_lost(inner: Core, database_url: str, clock: HandClock) -> None:
    """A key is revoked after the query: its result is outdated, and must not be used for another second."""
    await introduced(inner)
    async with paused(database_url) as database:
        directory = ClientDirectory(database, clock)
        database.go.set()
        assert await name_of(directory, OLD) == "studio"
        grown_old(directory)
        database.asked.clear()
        database.go.clear()
        looking = asyncio.create_task(directory.authenticate(OLD))
        await database.asked.wait()
        await do(inner, Client.revoke_key.on("studio", key(OLD).key_id, other_admins=True))
        directory.invalidate()
        database.go.set()
        await looking
        assert await directory.authenticate(OLD) is None


class TestLastUse:
    async def test_a_key_that_was_never_used_has_none(self, inner: Core) -> None:
        await introduced(inner)
        assert await inner.directory.last_used([key(OLD).key_id]) == {}
        await inner.directory.authenticate("wrong")
        assert await inner.directory.last_used([key(OLD).key_id]) == {}

    async def test_it_is_when_the_key_was_last_used(self, inner: Core, clock: HandClock) -> None:
        await introduced(inner)
        for hour in (1, 2):
            clock.now = NOON + timedelta(hours=hour)
            grown_old(inner.directory)
            await inner.directory.authenticate(OLD)
            assert await inner.directory.last_used([key(OLD).key_id]) == {key(OLD).key_id: clock.now}

    async def test_it_is_written_down_once_a_minute_and_never_goes_back(self, inner: Core, clock: HandClock) -> None:
        await introduced(inner)
        other = ClientDirectory(inner.database, clock)
        written = []
        for seconds in (0, 59, 60, -3600):
            clock.now = NOON + timedelta(seconds=seconds)
            grown_old(inner.directory)
            await inner.directory.authenticate(OLD)
            await inner.directory.store_usage()
            written.append((await other.last_used([key(OLD).key_id]))[key(OLD).key_id] - NOON)
        assert written == [timedelta(0), timedelta(0), timedelta(minutes=1), timedelta(minutes=1)]


class TestOtherAdmins:
    async def test_only_another_client_with_the_role_and_a_usable_key_is_one(self, inner: Core, clock: HandClock) -> None:
        directory = inner.directory
        await introduced(inner, "a", "admin", secret="a")
        await introduced(inner, "b", "operator", secret="b")
        assert not await directory.other_admins("a")
        assert await directory.other_admins("b")
        await introduced(inner, DEMO_LOADER, "admin", secret="demo")
        assert not await directory.other_admins("a"), "it goes with the demo"
        await do(inner, Client.change.on("b", ("admin",), other_admins=True))
        assert await directory.other_admins("a")
        await do(inner, Client.issue_key.on("b", key("b2"), expire_others_after=0))
        await do(inner, Client.revoke_key.on("b", key("b2").key_id, other_admins=True))
        assert not await directory.other_admins("a"), "b's last key has ended"

    async def test_admin_decisions_are_sequential_across_processes(self, inner: Core, clock: HandClock) -> None:
        other = ClientDirectory(inner.database, clock)
        order: list[str] = []

        async def second() -> None:
            async with other.admin_lock():
                order.append("second")

        async with inner.directory.admin_lock():
            waiting = asyncio.create_task(second())
            async with asyncio.timeout(60):
                while await inner.database.row(_WAITS) is None:
                    pass
            order.append("first")
        await waiting
        assert order == ["first", "second"]


_WAITS = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
