"""A disk that is full: all commands are refused at once, and the log says so once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from domain.kernel.errors import Unavailable
from projections.kernel.database.database import Database
from projections.log.append import Appender
from tests.projections.log.helpers import whole, write_of

_FULL = """
CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER disk_is_full BEFORE INSERT ON commits FOR EACH ROW EXECUTE FUNCTION disk_is_full();
"""


@pytest.fixture
def full_disk(database_url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(_FULL)
        try:
            yield owner
        finally:
            owner.execute("DROP FUNCTION disk_is_full CASCADE")


async def test_a_full_disk_refuses_all_at_once_and_is_logged_once(
    full_disk: psycopg.Connection[tuple[object, ...]], database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    appender = Appender(Database(database_url))
    await appender.start()
    try:
        for turn in range(3):
            results = await asyncio.gather(
                *(appender.append(write_of(f"test:{turn}-{n}")) for n in range(20)), return_exceptions=True
            )
            assert [type(each) for each in results] == [Unavailable] * 20
        messages = [record.getMessage() for record in caplog.records if record.name == "projections.log.append"]
        assert messages == ['the database refuses to write: could not extend file "base/1/2": No space left on device']
        full_disk.execute("ALTER TABLE commits DISABLE TRIGGER disk_is_full")
        assert await appender.append(write_of("test:after")) == 1
    finally:
        await appender.stop()
    assert whole(database_url) == 1
