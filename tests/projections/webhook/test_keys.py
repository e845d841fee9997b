"""Ids of deliveries: the same for every retry, in every process and release."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from projections.webhook.keys import SHARDS, delivery_id, position_of, shard_of

WEBHOOK = UUID("6f1ed002-ab5d-4c0b-8f0a-0d6a3c0f2b11")
LANE = "0b9a3f6e-0000-4000-8000-000000000001"
positions = st.integers(1, 2**60 - 1)


@given(st.uuids(), positions, st.text(max_size=40))
def test_an_id_is_a_valid_uuid_and_gives_its_position(webhook: UUID, position: int, ordering_key: str) -> None:
    made = delivery_id(webhook, position, ordering_key=ordering_key)
    assert (position_of(made), made.version, made.variant) == (position, 8, RFC_4122)


@given(st.lists(positions, min_size=2, max_size=20))
def test_ids_sort_in_log_order(given_positions: list[int]) -> None:
    given_positions.sort()
    ids = [delivery_id(WEBHOOK, position, ordering_key=LANE) for position in given_positions]
    assert ids == sorted(ids)


def test_ids_are_the_same_in_every_release() -> None:
    assert str(delivery_id(WEBHOOK, 123_456_789, ordering_key=LANE)) == "00000000-75bc-8d15-84e7-c9488c957458"


def test_an_id_depends_on_webhook_position_ordering_key_and_epoch() -> None:
    others = {
        delivery_id(WEBHOOK, 7, ordering_key=LANE),
        delivery_id(WEBHOOK, 8, ordering_key=LANE),
        delivery_id(UUID(int=1), 7, ordering_key=LANE),
        delivery_id(WEBHOOK, 7, ordering_key="another"),
        delivery_id(WEBHOOK, 7, ordering_key=LANE, epoch=2),
        delivery_id(WEBHOOK, 7, ordering_key=LANE, epoch=3),
    }
    assert len(others) == 6


def test_shards_are_used_evenly_and_never_change() -> None:
    shards = [shard_of(UUID(int=number)) for number in range(1600)]
    assert set(shards) == set(range(SHARDS))
    assert max(shards.count(shard) for shard in range(SHARDS)) <= 200
    assert shard_of(WEBHOOK) == 5
