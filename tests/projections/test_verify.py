"""Changes of the stored log outside the product: verification finds them and names the first position that is wrong.

They need a superuser; test_roles.py shows that no other role can make them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import psycopg
import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState, Trigger
from projections.audit.verify import Verification, verify
from tests.support.feeding import as_superuser, do, event, room

VALID = Verification(True, 6)


async def six_events(inner: Core) -> None:
    key = await event(inner, 1, title="Grüße \u2028 😀", description="\\ \" '")
    await room(inner, 11, "Hall")
    await do(inner, AddOrUpdateEvent(key, {"title": "Final", "room_id": UUID(int=11)}))
    await do(inner, MediaEvent.change_state.on(key, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    await event(inner, 2)


@pytest.fixture
async def log(inner: Core, database_url: str) -> AsyncIterator[str]:
    """The address of a database whose log holds six events."""
    await six_events(inner)
    yield database_url
    as_superuser(database_url, "DROP TABLE IF EXISTS in_front")


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
    "the salt": "salt = set_byte(salt, 0, 255 - get_byte(salt, 0))",
}
COMMIT_EDITS = {
    "the root": "root = set_byte(root, 0, 255 - get_byte(root, 0))",
    "the chain hash": "chain_hash = set_byte(chain_hash, 0, 255 - get_byte(chain_hash, 0))",
    "the time": "recorded_at = recorded_at + interval '1 microsecond'",
    "the first position": "first_position = first_position - 1",
    "the number": "number = number + 1",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("position", [1, 3, 6])
async def test_an_edited_event_is_found(log: str, edit: str, position: int) -> None:
    as_superuser(log, f"UPDATE events SET {edit} WHERE position = {position}")
    verdict = verify(log)
    assert (verdict.valid, verdict.checked, verdict.first_bad_position) == (False, position - 1, position)


@pytest.mark.parametrize("edit", COMMIT_EDITS.values(), ids=COMMIT_EDITS.keys())
@pytest.mark.parametrize("position", [2, 6])
async def test_an_edited_commit_is_found(log: str, edit: str, position: int) -> None:
    as_superuser(log, f"UPDATE commits SET {edit} WHERE last_position = {position}")
    verdict = verify(log)
    assert (verdict.valid, verdict.checked, verdict.first_bad_position) == (False, position - 1, position)


async def test_an_edited_event_and_its_time_in_both_tables_are_found(log: str) -> None:
    for table, place in (("events", "position"), ("commits", "last_position")):
        as_superuser(log, f"UPDATE {table} SET recorded_at = recorded_at - interval '1 hour' WHERE {place} = 2")
    assert verify(log).first_bad_position == 2


async def test_another_log_in_its_place_is_found(log: str) -> None:
    """The first chain hash names the log, so commits of one installation do not fit another."""
    with psycopg.connect(log, autocommit=True) as connection:
        identity = connection.execute("SELECT log_id FROM log_identity").fetchone()
    assert identity is not None
    as_superuser(log, "UPDATE log_identity SET log_id = gen_random_uuid()")
    verification = verify(log)
    as_superuser(log, f"UPDATE log_identity SET log_id = '{identity[0]}'")
    assert (verification.valid, verification.first_bad_position) == (False, 1)
    assert verify(log) == VALID


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
            "DELETE FROM commits WHERE last_position = 6",
        ],
    ),
    "the last event removed": (6, ["DELETE FROM events WHERE position = 6"]),
    "the last event removed, but not its commit's place": (
        6,
        [
            "DELETE FROM events WHERE position = 6",
            "UPDATE commits SET last_position = 7, first_position = 7 WHERE last_position = 6",
        ],
    ),
    "all events removed": (1, ["TRUNCATE events"]),
    "all commits removed": (1, ["TRUNCATE commits"]),
    "an event put in front": (
        1,
        [
            "CREATE TABLE in_front PARTITION OF events FOR VALUES FROM (0) TO (1)",
            "INSERT INTO events SELECT 0, 'event:x', 1, topic, gen_random_uuid(), state, metadata, recorded_at, salt "
            "FROM events WHERE position = 1",
        ],
    ),
    "an event put behind": (
        7,
        [
            "INSERT INTO events SELECT 7, 'event:x', 1, topic, gen_random_uuid(), state, metadata, recorded_at, salt "
            "FROM events WHERE position = 6"
        ],
    ),
    "an event put far behind": (
        7,
        [
            "INSERT INTO events SELECT 70, 'event:x', 1, topic, gen_random_uuid(), state, metadata, recorded_at, salt "
            "FROM events WHERE position = 6"
        ],
    ),
    "the last commit removed": (6, ["DELETE FROM commits WHERE last_position = 6"]),
    "a commit in the middle removed": (2, ["DELETE FROM commits WHERE last_position = 2"]),
    "two commits made one": (
        1,
        ["DELETE FROM commits WHERE last_position = 1", "UPDATE commits SET first_position = 1 WHERE last_position = 2"],
    ),
    "the place of an event removed": (3, ["DELETE FROM stream_versions WHERE position = 3"]),
    "the places of two events swapped": (1, ["UPDATE stream_versions SET position = 3 - position WHERE position IN (1, 2)"]),
    "a version put behind": (7, ["INSERT INTO stream_versions SELECT stream, 1000, 3 FROM stream_versions WHERE position = 3"]),
    "a version far behind": (7, ["INSERT INTO stream_versions SELECT stream, 1000, 70 FROM stream_versions WHERE position = 3"]),
    "a commit put behind": (
        7,
        ["INSERT INTO commits SELECT 7, number + 1, 7, recorded_at, root, chain_hash FROM commits WHERE last_position = 6"],
    ),
}


@pytest.mark.parametrize(("first_bad", "statements"), ATTACKS.values(), ids=ATTACKS.keys())
async def test_a_moved_event_is_found(log: str, first_bad: int, statements: list[str]) -> None:
    as_superuser(log, *statements)
    verdict = verify(log)
    assert (verdict.valid, verdict.checked, verdict.first_bad_position) == (False, first_bad - 1, first_bad)
    assert verdict.reason
