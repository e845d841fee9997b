"""Places that several owners share: the owner with the most places gives way, and no owner is kept out by an earlier one."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.kernel.fair_places import FairPlaces, NoPlace, PlacesInUse, WorkPlace


class Hall:
    """Places with a clock that the test controls."""

    def __init__(self, most: int) -> None:
        self.now = 0.0
        self.places = FairPlaces(most, clock=lambda: self.now)
        self.given_up: list[str] = []

    def take(self, owner: str, name: str = "", size: int = 1) -> WorkPlace:
        return self.places.take(owner, partial(self.given_up.append, name or owner), size=size)


def test_the_slowest_of_the_owner_with_the_most_gives_way() -> None:
    hall = Hall(4)
    mine = hall.take("b", "mine")
    first, _, _ = hall.take("a", "first"), hall.take("a", "second"), hall.take("a", "third")
    hall.now = 0.5
    hall.places.moved(first)
    hall.take("c")
    assert hall.given_up == ["second"]
    hall.places.leave(mine)
    assert hall.places.used == 3


def test_who_has_most_gets_no_more_while_others_are_not_slower() -> None:
    hall = Hall(3)
    hall.take("b"), hall.take("a", "first"), hall.take("a", "second")
    with pytest.raises(NoPlace):
        hall.take("a")
    with pytest.raises(NoPlace):
        hall.take("b")
    assert (hall.given_up, hall.places.refused) == ([], 2)


def test_what_does_not_move_gives_way_to_an_owner_with_as_many() -> None:
    """A stalled place also gives way to another place of the same owner: a phone that is gone keeps no place from the next one."""
    hall = Hall(2)
    hall.take("a", "first"), hall.take("b", "second")
    hall.now = 0.5
    with pytest.raises(NoPlace):
        hall.take("c")
    hall.now = 1.0
    hall.take("c")
    assert hall.given_up == ["first"]
    alone = Hall(1)
    alone.take("a", "first")
    alone.now = 1.0
    alone.take("a", "second")
    assert alone.given_up == ["first"]


def test_what_cannot_be_given_up_stays() -> None:
    places = FairPlaces(2)
    places.take("a", None), places.take("a", None)
    with pytest.raises(NoPlace):
        places.take("b", None)


def test_a_place_that_was_given_up_does_not_grow() -> None:
    hall = Hall(10)
    large = hall.take("a", "large", size=0)
    hall.places.grow(large, 8)
    small = hall.take("b", "small", size=0)
    hall.places.grow(small, 5)
    assert hall.given_up == ["large"]
    with pytest.raises(NoPlace):
        hall.places.grow(large, 1)
    hall.places.leave(large)
    assert hall.places.used == 5


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 4), st.booleans()), max_size=60))
def test_there_are_never_more_and_an_owner_with_less_than_its_share_is_not_refused(asked: list[tuple[str, int, bool]]) -> None:
    hall = Hall(8)
    owned: list[WorkPlace] = []
    for owner, size, leaves in asked:
        before = sum(place.size for place in owned if place.owner == owner and hall.places._holds(place))
        try:
            owned.append(hall.take(owner, size=size))
        except NoPlace:
            assert before + size > 2, "a quarter of the places is everybody's"
        if leaves and owned:
            hall.places.leave(owned.pop(0))
        assert hall.places.used == sum(place.size for place in owned if hall.places._holds(place)) <= 8


def test_metrics_tell_how_many_are_taken() -> None:
    hall = Hall(1)
    hall.take("a")
    hall.now = 1.0
    hall.take("b")
    with pytest.raises(NoPlace):
        hall.take("b")
    shown = {
        (sample.name, sample.labels["kind"]): sample.value
        for family in PlacesInUse({"media": hall.places}, prefix="x").collect()
        for sample in family.samples
    }
    assert shown == {
        ("x_places", "media"): 1,
        ("x_places_used", "media"): 1,
        ("x_places_given_up_total", "media"): 1,
        ("x_places_refused_total", "media"): 1,
    }
