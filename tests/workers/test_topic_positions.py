"""The positions that a partition of Kafka already stores, as the relay reads them back before it sends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.adapters.kafka.topic_positions import TopicPositions

positions = st.lists(st.integers(1, 12), max_size=12)


@given(positions_by_partition=st.dictionaries(st.sampled_from("ab"), positions), asked=st.lists(st.sampled_from("ab"), max_size=3))
def test_positions_count_up_to_the_first_missing_one(positions_by_partition: dict[str, list[int]], asked: list[str]) -> None:
    owned = TopicPositions()
    for partition, there in positions_by_partition.items():
        for position in there:
            owned.add(partition, position)
    for partition in dict.fromkeys(asked):
        expected, missing = set(positions_by_partition.get(partition, ())), False
        for position in range(1, 14):
            missing = missing or position not in expected
            assert owned.holds(partition, position) is not missing


def test_records_that_came_after_one_was_missing_are_held() -> None:
    owned = TopicPositions()
    owned.add("a", 2)
    assert not owned.holds("a", 1)
    for position in (4, 3):
        owned.add("a", position)
    assert [owned.holds("a", position) for position in (3, 4, 5)] == [True, True, False]
