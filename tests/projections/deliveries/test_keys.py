"""A delivery's id is made of what it is, so that every retry, in every process and release, says the same."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from projections.deliveries.keys import SHARDS, delivery_id, position_of, shard_of

WEBHOOK = UUID("6f1ed002-ab5d-4c0b-8f0a-0d6a3c0f2b11")
LANE = "0b9a3f6e-0000-4000-8000-000000000001"
positions = st.integers(1, 2**60 - 1)


@given(st.uuids(), positions, st.text(max_size=40))
def test_the_position_can_be_read_back_and_the_id_is_a_proper_uuid(webhook: UUID, position: int, lane: str) -> None:
    made = delivery_id(webhook, position, lane=lane)
    assert (position_of(made), made.version, made.variant) == (position, 8, RFC_4122)


@given(st.lists(positions, min_size=2, max_size=20))
def test_ids_of_a_lane_sort_as_the_log_does(given_positions: list[int]) -> None:
    given_positions.sort()
    ids = [delivery_id(WEBHOOK, position, lane=LANE) for position in given_positions]
    assert ids == sorted(ids)


def test_an_id_never_changes_from_release_to_release() -> None:
    assert str(delivery_id(WEBHOOK, 123_456_789, lane=LANE)) == "00000000-75bc-8d15-84e7-c9488c957458"


def test_webhook_position_and_lane_all_count() -> None:
    others = {
        delivery_id(WEBHOOK, 7, lane=LANE),
        delivery_id(WEBHOOK, 8, lane=LANE),
        delivery_id(UUID(int=1), 7, lane=LANE),
        delivery_id(WEBHOOK, 7, lane="another"),
    }
    assert len(others) == 4


def test_shards_are_used_evenly_and_never_change() -> None:
    shards = [shard_of(UUID(int=number)) for number in range(1600)]
    assert set(shards) == set(range(SHARDS))
    assert max(shards.count(shard) for shard in range(SHARDS)) <= 200
    assert shard_of(WEBHOOK) == 5
