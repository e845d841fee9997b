"""Content keys: an issued key never changes; its usage is totalled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from domain.content_key import events
from domain.content_key.aggregate import ContentKey, KidTaken, Purpose, Usage
from domain.content_key.commands import IssueContentKey
from domain.content_key.handlers import key_of, kid_of
from domain.kernel.encryption import SecretCipher
from domain.kernel.errors import Malformed, NotFound
from tests.domain.scenario import NOW, THEN, Fact, Scenario, fact, given

KID = UUID("98ee5596-cd3e-a20d-163a-e382420c6eff")
PURPOSE = Purpose("studio", "movie-1", "7", KID)
KEY = key_of(client="studio", kid=KID)
IV = bytes(range(16))
SECRET = SecretCipher(bytes(32)).encrypt("00" * 16, owner=ContentKey.stream(KEY), reference=UUID(int=1), nonce=bytes(12))
ISSUE = IssueContentKey(KEY, PURPOSE, IV, SECRET)
ISSUED = fact(
    events.Issued,
    client="studio",
    content_id="movie-1",
    period="7",
    kid=KID,
    iv=IV.hex(),
    sealed_key=SECRET.ref,
    imported=False,
)
USAGE = Usage(2, THEN, THEN + timedelta(seconds=1), ("WIDEVINE",), ("1",))


def nothing() -> Scenario[ContentKey]:
    return given(ContentKey, KEY)


def a_key(*since: Fact) -> Scenario[ContentKey]:
    return given(ContentKey, KEY, ISSUED, *since)


def used(answers: Usage) -> Fact:
    return fact(
        events.Delivered,
        client="studio",
        content_id="movie-1",
        kid=KID,
        systems=answers.systems,
        speke_versions=answers.speke_versions,
        count=answers.count,
        first_at=answers.first_at,
        last_at=answers.last_at,
    )


def test_a_first_request_issues_a_key_and_takes_its_secret() -> None:
    root = nothing().when(ISSUE).then(ISSUED)
    assert root.secrets() == {SECRET.reference}
    assert (root.purpose, root.iv, root.sealed_key, root.imported, root.usage) == (PURPOSE, IV.hex(), SECRET.ref, False, None)


def test_a_key_that_was_brought_along_says_so() -> None:
    nothing().when(replace(ISSUE, imported=True)).then(Fact(events.Issued, {**ISSUED.facts, "imported": True}))


@pytest.mark.parametrize("period", ["7", "8", ""])
def test_who_comes_second_changes_nothing_whatever_the_period(period: str) -> None:
    again = replace(ISSUE, purpose=replace(PURPOSE, period=period), iv=bytes(16), secret=replace(SECRET, reference=UUID(int=2)))
    root = a_key().when(again).then_nothing()
    assert root.secrets() == {SECRET.reference}
    assert root.purpose == PURPOSE


def test_a_kid_is_not_given_to_another_content() -> None:
    refusal = a_key().when(replace(ISSUE, purpose=replace(PURPOSE, content_id="movie-2"))).then_refused(KidTaken)
    assert refusal.kid == KID


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"content_id": ""}, "contentId"),
        ({"content_id": "x" * 257}, "contentId"),
        ({"content_id": "a\0b"}, "contentId"),
        ({"period": "x" * 257}, "period"),
        ({"period": "\0"}, "period"),
    ],
)
def test_what_a_key_is_for_has_limits(wrong: dict[str, Any], field: str) -> None:
    refusal = nothing().when(replace(ISSUE, purpose=replace(PURPOSE, **wrong))).then_refused(Malformed)
    assert [error.field for error in refusal.errors] == [field]


@pytest.mark.parametrize("iv", [b"", bytes(15), bytes(17), bytes(32)])
def test_an_iv_has_sixteen_bytes(iv: bytes) -> None:
    assert nothing().when(replace(ISSUE, iv=iv)).then_refused(Malformed).errors[0].field == "explicitIV"


def test_the_longest_content_id_is_taken() -> None:
    assert nothing().when(replace(ISSUE, purpose=replace(PURPOSE, content_id="ü" * 256))).after is not None


def test_answers_are_recorded_with_all_that_a_reader_needs() -> None:
    root = a_key().when(ContentKey.record_usage.on(KEY, USAGE)).then(used(USAGE))
    assert root.usage == USAGE


def test_answers_add_up_and_the_aggregate_stays_small() -> None:
    later = Usage(40, THEN - timedelta(seconds=1), NOW, ("FAIRPLAY", "WIDEVINE"), ("2.0",))
    root = a_key(used(USAGE)).when(ContentKey.record_usage.on(KEY, later)).then(used(later))
    assert root.usage == Usage(42, THEN - timedelta(seconds=1), NOW, ("FAIRPLAY", "WIDEVINE"), ("1", "2.0"))
    busy = a_key(*[used(USAGE)] * 500).root
    assert busy is not None
    assert len(str(busy.snapshot())) < 700


def test_nobody_was_answered_with_a_key_that_is_not_there() -> None:
    nothing().when(ContentKey.record_usage.on(KEY, USAGE)).then_refused(NotFound)


@pytest.mark.parametrize("history", [[], [used(USAGE)]])
def test_a_snapshot_is_the_aggregate(history: list[Fact]) -> None:
    root = a_key(*history).root
    assert root is not None
    again = ContentKey.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert again == root


def test_no_event_or_command_shows_the_key_or_its_box() -> None:
    key = bytes(range(100, 116))
    secret = SecretCipher(bytes(32)).encrypt(key.hex(), owner="x", reference=UUID(int=1), nonce=bytes(12))
    shown = repr(replace(ISSUE, secret=secret))
    assert key.hex() not in shown
    assert repr(secret.ciphertext)[2:20] not in shown


# --- identity


def test_ids_are_guids_of_version_8() -> None:
    for made in (KEY, kid_of(client="a", content_id="b", period="", slot="")):
        assert made.version == 8
        assert made.variant == "specified in RFC 4122"


def test_ids_never_change() -> None:
    """The ids are in every log: a different computation would find none of the keys."""
    assert str(key_of(client="studio", kid=KID)) == "34733e96-2f91-8b8f-8050-c82104d6eaaa"
    assert str(kid_of(client="studio", content_id="movie-1", period="7", slot="")) == "cbf99c4d-f3da-883b-811d-62bc1011c19a"


parts = st.lists(st.text(max_size=4), min_size=4, max_size=4)


@for_all(parts, parts)
def test_two_questions_are_one_only_if_all_parts_are(first: list[str], second: list[str]) -> None:
    made = [kid_of(client=c, content_id=i, period=p, slot=s) for c, i, p, s in (first, second)]
    assert (made[0] == made[1]) == (first == second)


def test_clients_share_no_key_even_for_equal_ids_and_kids() -> None:
    assert key_of(client="studio", kid=KID) != key_of(client="studio2", kid=KID)
    assert kid_of(client="a", content_id="bc", period="", slot="") != kid_of(client="ab", content_id="c", period="", slot="")
