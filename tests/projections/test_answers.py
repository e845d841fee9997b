"""First answers under an Idempotency-Key: kept for a day, for one client each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.core import Core
from domain.kernel.answers import AnswerAlreadyRecorded, RecordedAnswer
from projections.log.answers import KeptAnswers
from tests.projections.feeding import as_superuser

ANSWER = RecordedAnswer("studio", "k-1", b"\x00\xff", 201, {"location": "/api/room/1", "x": "ä"}, b'{"Id":"1"}\x00')


def aged(conninfo: str, key: str, age: str) -> None:
    as_superuser(conninfo, f"UPDATE answers SET recorded_at = now() - interval '{age}' WHERE key = '{key}'")


async def test_an_answer_is_given_again_as_it_was(inner: Core) -> None:
    answers = KeptAnswers(inner.database)
    assert await answers.recorded("studio", "k-1") is None
    await answers.record(ANSWER)
    assert await answers.recorded("studio", "k-1") == ANSWER


async def test_a_key_is_the_clients_own(inner: Core) -> None:
    answers = KeptAnswers(inner.database)
    await answers.record(ANSWER)
    assert await answers.recorded("desk", "k-1") is await answers.recorded("studio", "K-1") is None
    other = replace(ANSWER, client="desk", status=200)
    await answers.record(other)
    assert await answers.recorded("desk", "k-1") == other
    assert await answers.recorded("studio", "k-1") == ANSWER


async def test_the_first_answer_counts(inner: Core) -> None:
    answers = KeptAnswers(inner.database)
    await answers.record(ANSWER)
    with pytest.raises(AnswerAlreadyRecorded) as refused:
        await answers.record(replace(ANSWER, status=200))
    assert (refused.value.client, refused.value.key) == ("studio", "k-1")
    assert await answers.recorded("studio", "k-1") == ANSWER


async def test_after_a_day_the_key_is_free_again(inner: Core, database_url: str) -> None:
    answers = KeptAnswers(inner.database)
    await answers.record(ANSWER)
    aged(database_url, "k-1", "23 hours 59 minutes 50 seconds")
    assert await answers.recorded("studio", "k-1") == ANSWER
    aged(database_url, "k-1", "24 hours 1 second")
    assert await answers.recorded("studio", "k-1") is None
    later = replace(ANSWER, fingerprint=b"other", status=200)
    await answers.record(later)
    assert await answers.recorded("studio", "k-1") == later


async def test_sweeping_forgets_what_is_older_than_a_day_and_says_how_much(inner: Core, database_url: str) -> None:
    answers = KeptAnswers(inner.database)
    for key in ("a", "b", "c"):
        await answers.record(replace(ANSWER, key=key))
    aged(database_url, "a", "25 hours")
    aged(database_url, "b", "9 days")
    assert await answers.sweep() == 2
    assert await answers.sweep() == 0
    assert [await answers.recorded("studio", key) is not None for key in ("a", "b", "c")] == [False, False, True]
