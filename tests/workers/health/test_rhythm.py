"""The rhythm of samples: the due time of each point."""

from __future__ import annotations

from uuid import UUID

import pytest

from projections.publishing_point.samples import PointKey
from workers.health.prober import AT_ONCE, INTERVAL, Rhythm


def key(number: int) -> PointKey:
    return PointKey(UUID(int=number), 0, 0)


def taken(rhythm: Rhythm, now: float) -> list[PointKey]:
    results = []
    while (entry := rhythm.take(now)) is not None:
        results.append(entry[0])
    return results


def test_a_new_point_is_due_at_once_again_soon_and_then_once_in_an_interval() -> None:
    rhythm = Rhythm(10.0)
    rhythm.set({key(1): None}, now=100.0)
    due = []
    now = 101.0
    for _ in range(4):
        result = rhythm.take(now)
        assert result is not None
        assert rhythm.take(now + 1000) is None, "it is under way"
        due.append(result[1])
        rhythm.put_back(key(1), due=result[1], now=result[1] + 0.1)
        now = result[1] + 20
    assert due == pytest.approx([100.0, 104.0, 114.0, 124.0], abs=0.1)


def test_a_point_that_somebody_has_sampled_is_due_an_interval_later() -> None:
    rhythm = Rhythm(10.0)
    rhythm.set({key(1): 3.0, key(2): 30.0}, now=100.0)
    assert taken(rhythm, 106.9) == [key(2)]
    assert taken(rhythm, 107.0) == [key(1)]


def test_a_sample_of_the_future_puts_a_point_off_by_one_interval() -> None:
    """The clock of the database was set back."""
    rhythm = Rhythm(10.0)
    rhythm.set({key(1): -3600.0}, now=100.0)
    assert rhythm.due_at() == 110.0


def test_a_late_sample_does_not_make_the_next_one_early() -> None:
    rhythm = Rhythm(10.0)
    rhythm.set({key(1): 0.0}, now=100.0)
    assert rhythm.take(130.0) == (key(1), 110.0)
    rhythm.put_back(key(1), due=110.0, now=130.0)
    assert rhythm.due_at() == 135.0


def test_a_point_that_told_nothing_is_asked_half_as_often() -> None:
    rhythm = Rhythm(10.0)
    rhythm.set({key(1): 0.0}, now=100.0)
    rhythm.take(110.0)
    rhythm.put_back(key(1), due=110.0, now=113.0, answered=False)
    assert rhythm.due_at() == 130.0


@pytest.mark.parametrize(
    ("reported", "slow", "expected"),
    [
        ([False] * 6, [False] * 6, [100, 104, 108, 112, 132, 152]),
        ([False, False, True, True, True, True], [False] * 6, [100, 104, 108, 112, 122, 132]),
        ([False, False, False, False, True, True], [False] * 6, [100, 104, 108, 112, 132, 136]),
        ([True, False, True, True, True, True], [False] * 6, [100, 104, 124, 134, 144, 154]),
        ([False] * 6, [True] * 6, [100, 120, 140, 160, 180, 200]),
    ],
    ids=["silent", "begins", "begins late", "silent once", "hangs"],
)
def test_a_new_point_is_asked_soon_again_until_it_told_something_twice(
    reported: list[bool], slow: list[bool], expected: list[float]
) -> None:
    """The encoder of the point starts at the same time. A point that hangs is not asked sooner."""
    rhythm = Rhythm(10.0)
    rhythm.set({key(1): None}, now=100.0)
    due = []
    for entry, late in zip(reported, slow, strict=True):
        result = rhythm.take(1000.0)
        assert result is not None
        due.append(result[1])
        rhythm.put_back(key(1), due=result[1], now=result[1], answered=entry, slow=late)
    assert due == pytest.approx(expected, abs=0.1)


def test_many_new_points_are_spread_over_the_interval_and_stay_so() -> None:
    rhythm = Rhythm()
    rhythm.set({key(number): None for number in range(AT_ONCE)}, now=0.0)
    counts = []
    for tenth in range(1, 11):
        now = tenth * INTERVAL / 10
        result = taken(rhythm, now)
        counts.append(len(result))
    assert sum(counts) == AT_ONCE
    assert max(counts) < AT_ONCE / 10 * 1.5


def test_points_that_are_gone_are_not_due_and_others_keep_their_time() -> None:
    rhythm = Rhythm(10.0)
    rhythm.set({key(1): 4.0, key(2): 5.0}, now=100.0)
    rhythm.set({key(2): None, key(3): 9.0}, now=101.0)
    assert len(rhythm) == 2
    assert taken(rhythm, 104.9) == [key(3)]
    assert taken(rhythm, 105.0) == [key(2)]
    rhythm.set({}, now=105.0)
    rhythm.put_back(key(2), due=105.0, now=105.0)
    assert rhythm.due_at() is None


def test_a_point_that_is_put_off_is_due_then() -> None:
    rhythm = Rhythm(10.0)
    rhythm.set({key(1): 10.0}, now=100.0)
    assert taken(rhythm, 100.0) == [key(1)]
    rhythm.put_off(key(1), 100.5)
    assert taken(rhythm, 100.4) == []
    assert taken(rhythm, 100.5) == [key(1)]


def test_what_is_set_again_and_again_takes_no_more_room() -> None:
    rhythm = Rhythm(10.0)
    for turn in range(1000):
        rhythm.set({key(number): 0.0 for number in range(turn, turn + 10)}, now=float(turn))
    assert len(rhythm._heap) < 200
