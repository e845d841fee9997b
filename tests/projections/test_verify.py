"""Changes of the stored log outside the product: verification finds them and names the first position that is wrong.

They need a superuser; the tests of the database roles show that no other role can make them.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from api.wiring.core import Core
from domain.media_event.commands import AddOrUpdateEvent, ChangeEventState
from domain.media_event.values import EventState
from projections.audit.verify import Verification, verify
from projections.kernel.database import APP_ROLE
from projections.log.hash_chain import chain_hash, leaf
from tests.projections.feeding import as_superuser, do, event, room

VALID = Verification(True, 6)


async def six_events(inner: Core) -> None:
    key = await event(inner, 1, title="Grüße \u2028 😀", description="\\ \" '")
    await room(inner, 11, "Hall")
    await do(inner, AddOrUpdateEvent(key, {"title": "Final", "room_id": UUID(int=11)}))
    await do(inner, ChangeEventState(key, EventState.LIVE_PUBLISHED))
    await event(inner, 2)


@pytest.fixture
async def log(inner: Core, database_url: str) -> str:
    """The address of a database whose log holds six events."""
    await six_events(inner)
    return database_url


def test_an_empty_log_is_valid(database_url: str) -> None:
    assert verify(database_url) == Verification(True, 0)


async def test_an_untouched_log_is_valid_and_is_counted(log: str) -> None:
    seen: list[int] = []
    assert verify(log, progress=seen.append) == VALID
    assert seen == [6]


async def test_a_log_that_grows_stays_valid(inner: Core, log: str) -> None:
    await event(inner, 3)
    assert verify(log) == Verification(True, 7)


EDITS = {
    "a byte of the state": "state = set_byte(state, 20, get_byte(state, 20) # 1)",
    "a space in the state": "state = state || ' '::bytea",
    "the actor": "metadata = replace(metadata::text, 'system', 'nobody')::json",
    "a space in the metadata": "metadata = replace(metadata::text, ',', ', ')::json",
    "the time by a microsecond": "recorded_at = recorded_at + interval '1 microsecond'",
    "the time to no time": "recorded_at = 'infinity'",
    "the time to before all time": "recorded_at = '-infinity'",
    "the stream": "originator_id = originator_id || '0'",
    "the version": "originator_version = originator_version + 100",
    "the topic": "topic = 'event.restored'",
    "the event id": "event_id = gen_random_uuid()",
    "the chain hash": "chain_hash = set_byte(chain_hash, 0, 255 - get_byte(chain_hash, 0))",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("position", [1, 3, 6])
async def test_an_edited_event_is_found(log: str, edit: str, position: int) -> None:
    as_superuser(log, f"UPDATE events SET {edit} WHERE position = {position}")
    verdict = verify(log)
    assert (verdict.valid, verdict.checked, verdict.first_bad_position) == (False, position - 1, position)


ATTACKS = {
    "two events swapped": (
        3,
        [
            "UPDATE events SET position = 1000 WHERE position = 3",
            "UPDATE events SET position = 3 WHERE position = 4",
            "UPDATE events SET position = 4 WHERE position = 1000",
        ],
    ),
    "the first event removed": (1, ["DELETE FROM events WHERE position = 1"]),
    "an event in the middle removed": (3, ["DELETE FROM events WHERE position = 3"]),
    "an event removed and the hole closed": (
        3,
        [
            "DELETE FROM events WHERE position = 3",
            *(f"UPDATE events SET position = {old - 1} WHERE position = {old}" for old in (4, 5, 6)),
            "UPDATE log_head SET position = 5",
        ],
    ),
    "the last event removed": (6, ["DELETE FROM events WHERE position = 6"]),
    "the last events removed and the head moved, but not its chain hash": (
        4,
        ["DELETE FROM events WHERE position > 4", "UPDATE log_head SET position = 4"],
    ),
    "everything removed": (1, ["TRUNCATE events"]),
    "an event put in front": (
        1,
        [
            "INSERT INTO events SELECT 0, 'event:x', 1, topic, gen_random_uuid(), state, metadata, recorded_at, chain_hash "
            "FROM events WHERE position = 1"
        ],
    ),
    "an event put behind": (
        7,
        [
            "INSERT INTO events SELECT 7, 'event:x', 1, topic, gen_random_uuid(), state, metadata, recorded_at, chain_hash "
            "FROM events WHERE position = 6"
        ],
    ),
    "an event put far behind": (
        7,
        [
            "INSERT INTO events SELECT 70, 'event:x', 1, topic, gen_random_uuid(), state, metadata, recorded_at, chain_hash "
            "FROM events WHERE position = 6"
        ],
    ),
    "the head moved back": (6, ["UPDATE log_head SET position = 5"]),
    "the head moved on": (7, ["UPDATE log_head SET position = 8"]),
    "the head's chain hash edited": (6, ["UPDATE log_head SET chain_hash = sha256(chain_hash)"]),
    "the head removed": (1, ["DELETE FROM log_head"]),
}


@pytest.fixture
def head_restored(database_url: str) -> Iterator[None]:
    yield
    as_superuser(database_url, "INSERT INTO log_head DEFAULT VALUES ON CONFLICT DO NOTHING")


@pytest.mark.usefixtures("head_restored")
@pytest.mark.parametrize(("first_bad", "statements"), ATTACKS.values(), ids=ATTACKS.keys())
async def test_a_moved_event_is_found(log: str, first_bad: int, statements: list[str]) -> None:
    as_superuser(log, *statements)
    verdict = verify(log)
    assert (verdict.valid, verdict.first_bad_position) == (False, first_bad)
    assert verdict.reason
    assert verdict.checked < first_bad or first_bad in (4, 6)


async def test_an_added_event_with_a_right_chain_hash_is_found(log: str) -> None:
    """Whoever knows the formula can make a chain hash; the head does not know of it."""
    with psycopg.connect(log, autocommit=True) as connection:
        found = connection.execute("SELECT chain_hash, metadata::text FROM events WHERE position = 6").fetchone()
        assert found is not None
        previous, metadata = found
        state, event_id = b'{"timestamp":"2031-01-02T03:04:05Z"}', UUID(int=5)
        mark = leaf(
            stream="event:x", version=1, topic="event.registered", event_id=event_id, metadata=metadata.encode(), state=state
        )
        forged = chain_hash(previous, leaf=mark, position=7, recorded_micros=1_000_000)
        connection.execute(
            "INSERT INTO events VALUES (7, 'event:x', 1, 'event.registered', %s, %s, %s::json, to_timestamp(1), %s)",
            (event_id, state, metadata, forged),
        )
    verdict = verify(log)
    assert (verdict.valid, verdict.checked, verdict.first_bad_position) == (False, 6, 7)
    as_superuser(log, "UPDATE log_head SET position = 7")
    assert not verify(log).valid


FORBIDDEN = [
    "UPDATE events SET topic = 'x'",
    "DELETE FROM events",
    "TRUNCATE events",
    "DELETE FROM log_head",
    "INSERT INTO log_head (only_row) VALUES (true)",
    "TRUNCATE log_head",
    "DROP TABLE events",
    "ALTER TABLE events DISABLE TRIGGER ALL",
    "SET session_replication_role = replica",
    "DELETE FROM migrations",
    "CREATE TABLE shadow (x int)",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
async def test_the_role_of_the_running_product_cannot_change_the_past(log: str, statement: str) -> None:
    with psycopg.connect(log, autocommit=True) as connection:
        connection.execute(f"SET ROLE {APP_ROLE}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())
    assert verify(log) == VALID


@pytest.mark.parametrize("statement", FORBIDDEN[:3])
async def test_even_the_owner_is_stopped_by_the_logs_own_trigger(log: str, statement: str) -> None:
    with (
        psycopg.connect(log, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"),
    ):
        connection.execute(statement.encode())
    assert verify(log) == VALID
