"""The item of a playlist that is to be on the air: at any time, and after any change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.playout import item
from workers.playout.schedule import PlayoutAnchor, due, locate, successor
from workers.ports.playout import DueItem, Place, PlayoutPlaylist

NAMES = st.lists(st.sampled_from("abcdef"), max_size=6)


def playlist(names: str | list[str], *, looped: bool = False) -> PlayoutPlaylist:
    return PlayoutPlaylist(1, tuple(item(name) for name in names), looped)


def at(names: str, index: int) -> Place:
    return Place(index, playlist(names).marks[index])


def order(names: str, *, looped: bool = False, after: Place | None = None, count: int = 8) -> str:
    """Return the items that are played, in order."""
    shown, place = "", after
    while len(shown) < count and (place := successor(playlist(names, looped=looped), place)) is not None:
        shown += names[place.index]
    return shown


def test_items_follow_each_other_to_the_end_or_for_ever() -> None:
    assert order("abc") == "abc"
    assert order("abc", looped=True) == "abcabcab"
    assert order("aab") == "aab"
    assert order("") == order("", looped=True) == ""


def test_a_changed_playlist_goes_on_behind_the_same_item() -> None:
    on_air = at("abc", 1)
    assert order("abdc", after=on_air) == "dc"
    assert order("xyabz", after=on_air) == "z"
    assert order("xyz", after=on_air) == "xyz", "all of a playlist that has not the item"
    assert order("acb", after=on_air) == "", "it is the last one by now"
    assert order("babab", after=at("abc", 1)) == "abab", "the nearest of several, the first of two that are as near"
    assert order("ab", looped=True, after=on_air, count=3) == "aba"


def test_the_same_film_with_other_trims_is_another_item() -> None:
    first, other = item("a", start="00:00:01"), item("a")
    assert len(set(PlayoutPlaylist(1, (first, other)).marks)) == 2
    assert PlayoutPlaylist(1, (item("a", note="x"),)).marks == PlayoutPlaylist(2, (other,)).marks, "what means nothing here"


def lengths(names: str = "abc", seconds: float = 10.0) -> dict[str, float]:
    return dict.fromkeys(playlist(names).marks, seconds)


def shown(
    names: str, anchor: PlayoutAnchor | None, *, now: float, looped: bool = False, durations: dict[str, float] | None = None
) -> object:
    result = due(playlist(names, looped=looped), anchor, now=now, lengths=lengths() if durations is None else durations)
    return result and (names[result.place.index] if result.place.index < len(names) else "?", result.offset, result.over)


def test_what_is_on_the_air_is_told_by_the_clock() -> None:
    anchor = PlayoutAnchor(at("abc", 0), at=100.0)
    assert shown("abc", None, now=5.0) == ("a", 0.0, False)
    assert shown("abc", anchor, now=104.0) == ("a", 4.0, False)
    assert shown("abc", anchor, now=110.0) == ("b", 0.0, False)
    assert shown("abc", anchor, now=129.0) == ("c", 9.0, False)
    assert shown("abc", anchor, now=130.0) == ("c", 10.0, True)
    assert shown("abc", anchor, now=130.0, looped=True) == ("a", 0.0, False)
    assert shown("abc", anchor, now=100.0 + 30 * 1_000_000 + 12, looped=True) == ("b", 2.0, False)
    assert shown("abc", anchor, now=90.0) == ("a", 0.0, False), "a clock that was set back"
    assert shown("", anchor, now=104.0) is None


def test_an_item_of_unknown_length_lasts_and_one_without_length_is_passed() -> None:
    anchor, (a, b, _) = PlayoutAnchor(at("abc", 0), at=0.0), playlist("abc").marks
    assert shown("abc", anchor, now=1_000.0, durations={a: 10.0}) == ("b", 990.0, False)
    assert shown("abc", anchor, now=15.0, durations={a: 10.0, b: 0.0}) == ("c", 5.0, False)
    assert shown("abc", anchor, now=15.0, looped=True, durations=lengths(seconds=0.0)) == ("a", 0.0, False)


def test_a_playlist_that_changed_meanwhile() -> None:
    anchor = PlayoutAnchor(at("abc", 1), at=100.0)
    assert shown("xbc", anchor, now=112.0) == ("c", 2.0, False), "the item is still there"
    expected = lengths("abcx")
    assert shown("xc", anchor, now=112.0, durations=expected) == ("x", 2.0, False), "it was taken out, and is over"
    assert shown("xc", anchor, now=104.0, durations=expected) == ("x", 0.0, False), "it would still be on the air"


def test_a_playlist_that_was_over_goes_on_when_something_was_added() -> None:
    over = PlayoutAnchor(at("abc", 2), at=100.0, over=True)
    assert shown("abc", over, now=5_000.0) == ("c", 0.0, True)
    assert shown("abcd", over, now=5_000.0) == ("d", 0.0, False)
    assert shown("xy", over, now=5_000.0) == ("x", 0.0, False)
    assert shown("abc", over, now=5_000.0, looped=True) == ("a", 0.0, False)


@given(names=NAMES, others=NAMES, looped=st.booleans(), index=st.integers(0, 7), now=st.floats(0, 1e7), data=st.data())
def test_the_clock_and_the_order_never_contradict(
    names: list[str], others: list[str], looped: bool, index: int, now: float, data: st.DataObject
) -> None:
    """For any item on the air and any new playlist, the calculation ends, names an existing item, and never one that is already
    over."""
    before, after = playlist(names), playlist(others, looped=looped)
    expected = {mark: data.draw(st.floats(0, 100)) for mark in {*before.marks, *after.marks}}
    anchor = PlayoutAnchor(Place(index % len(names), before.marks[index % len(names)]), at=0.0) if names else None
    found_due = due(after, anchor, now=now, lengths=expected)
    if not others:
        assert found_due is None
        return
    assert isinstance(found_due, DueItem)
    assert after.marks[found_due.place.index] == found_due.place.mark
    assert 0 <= found_due.offset <= max(expected.values())
    if found_due.over:
        assert successor(after, found_due.place) is None
        assert not looped


@given(names=NAMES, looped=st.booleans(), until=st.floats(0, 500), data=st.data())
def test_going_on_by_the_clock_is_the_same_as_never_having_stopped(
    names: list[str], looped: bool, until: float, data: st.DataObject
) -> None:
    """The item on the air at any time is the one that is reached by playing one item after the other."""
    plan = playlist(names, looped=looped)
    expected = {mark: float(data.draw(st.integers(1, 60))) for mark in sorted(set(plan.marks))}
    place, begins = successor(plan, None), 0.0
    while place is not None and begins + expected[place.mark] <= until:
        begins += expected[place.mark]
        place = successor(plan, place)
    first = successor(plan, None)
    found_due = due(plan, PlayoutAnchor(first, 0.0), now=until, lengths=expected) if first is not None else None
    if place is None:
        assert found_due is None or found_due.over
    else:
        assert isinstance(found_due, DueItem)
        assert (found_due.place, found_due.offset, found_due.began) == (place, until - begins, begins)


@given(names=NAMES, index=st.integers(0, 5))
def test_an_item_is_found_where_it_is(names: list[str], index: int) -> None:
    plan = playlist(names)
    for place, mark in enumerate(plan.marks):
        assert locate(plan, Place(place, mark)) == Place(place, mark)
    assert locate(plan, Place(index, "no such")) is None
