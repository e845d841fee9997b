"""Idempotency keys: kept for a day, for one client each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.wiring.core import Core
from domain.kernel.idempotency import IdempotencyKey, IdempotencyKeyUsed, IdempotencyRecord
from projections.log.idempotency import IdempotencyRecords
from tests.support.feeding import as_superuser

KEY = IdempotencyKey("studio", "k-1", b"\x00\xff", 201, "https://media.example")
RECORD = IdempotencyRecord(KEY, ("room:1", "tag:a b"), {"x": "ä", "n": 1}, 0)


def aged(conninfo: str, key: str, age: str) -> None:
    as_superuser(conninfo, f"UPDATE idempotency_keys SET recorded_at = now() - interval '{age}' WHERE key = '{key}'")


async def test_an_answer_is_given_again_as_it_was(inner: Core) -> None:
    records = IdempotencyRecords(inner.database, inner.streams)
    assert await records.find("studio", "k-1") is None
    await records.record(RECORD)
    assert await records.find("studio", "k-1") == RECORD


async def test_a_key_is_the_clients_own(inner: Core) -> None:
    records = IdempotencyRecords(inner.database, inner.streams)
    await records.record(RECORD)
    assert await records.find("desk", "k-1") is await records.find("studio", "K-1") is None
    other = replace(RECORD, of=replace(KEY, client="desk", status=200))
    await records.record(other)
    assert await records.find("desk", "k-1") == other
    assert await records.find("studio", "k-1") == RECORD


async def test_the_first_answer_counts(inner: Core) -> None:
    records = IdempotencyRecords(inner.database, inner.streams)
    await records.record(RECORD)
    with pytest.raises(IdempotencyKeyUsed) as refused:
        await records.record(replace(RECORD, of=replace(KEY, status=200)))
    assert (refused.value.client, refused.value.key) == ("studio", "k-1")
    assert await records.find("studio", "k-1") == RECORD


async def test_after_a_day_the_key_is_free_again(inner: Core, database_url: str) -> None:
    records = IdempotencyRecords(inner.database, inner.streams)
    await records.record(RECORD)
    aged(database_url, "k-1", "23 hours 59 minutes 50 seconds")
    assert await records.find("studio", "k-1") == RECORD
    aged(database_url, "k-1", "24 hours 1 second")
    assert await records.find("studio", "k-1") is None
    later = replace(RECORD, of=replace(KEY, fingerprint=b"other", status=200))
    await records.record(later)
    assert await records.find("studio", "k-1") == later


async def test_sweeping_deletes_keys_older_than_a_day_and_counts_them(inner: Core, database_url: str) -> None:
    records = IdempotencyRecords(inner.database, inner.streams)
    for key in ("a", "b", "c"):
        await records.record(replace(RECORD, of=replace(KEY, key=key)))
    aged(database_url, "a", "25 hours")
    aged(database_url, "b", "9 days")
    assert await records.sweep() == 2
    assert await records.sweep() == 0
    assert [await records.find("studio", key) is not None for key in ("a", "b", "c")] == [False, False, True]
