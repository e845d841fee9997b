"""What a partition of Kafka holds already, as the relay reads it back before it sends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.adapters.kafka.held import HeldPositions

positions = st.lists(st.integers(1, 12), max_size=12)


@given(found=st.dictionaries(st.sampled_from("ab"), positions), asked=st.lists(st.sampled_from("ab"), max_size=3))
def test_what_is_found_in_any_order_is_held_up_to_the_first_that_is_missing(found: dict[str, list[int]], asked: list[str]) -> None:
    held = HeldPositions()
    for partition, there in found.items():
        for position in there:
            held.add(partition, position)
    for partition in dict.fromkeys(asked):
        known, missing = set(found.get(partition, ())), False
        for position in range(1, 14):
            missing = missing or position not in known
            assert held.holds(partition, position) is not missing


def test_records_that_came_after_one_was_missing_are_held() -> None:
    held = HeldPositions()
    held.add("a", 2)
    assert not held.holds("a", 1)
    for position in (4, 3):
        held.add("a", position)
    assert [held.holds("a", position) for position in (3, 4, 5)] == [True, True, False]
