"""The plan of a film, without ffmpeg: copied and encoded items, their lengths, and the places of breaks."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from workers.job.context import StepFailed
from workers.job.workflows.compose.parameters import Compose
from workers.job.workflows.compose.plan import (
    PLAN,
    FilmPart,
    FilmPlan,
    ItemMarker,
    SourcePicture,
    SourceSound,
    blocks,
    breaks,
    grid_rate,
    plan_of,
    sound_again,
    steps,
)
from workers.job.workflows.compose.sources import End, StartFrame, end_of, start_of, whole
from workers.media.codecs import frames
from workers.media.errors import Unreadable
from workers.media.file import FramePacket

SHOWN = SourcePicture("h264", 1920, 1080, (25, 1), "a", steady=True, plain=True, reorder=2)
STEREO = SourceSound(1, 2, 48_000, "eng", simple=True, begins=0.0)
MARK = ItemMarker(0, 4.0, 30.0, accurate=True, replaces=False, text="00:00:04")


def part(seconds: float = 10.0, **changes: Any) -> FilmPart:
    made = FilmPart("e", "v", SHOWN, (STEREO,), 0.0, seconds, 0.0, seconds, begins_at_key=True, exact=False)
    return replace(made, **changes)


def shown(**changes: Any) -> FilmPart:
    return part(shown=replace(SHOWN, **changes))


def heard(*sounds: SourceSound) -> FilmPart:
    return part(sounds=sounds)


def copied(plan: FilmPlan) -> list[bool]:
    return [item.copied for item in plan.items]


def test_items_that_agree_are_copied_as_they_are() -> None:
    plan = plan_of([part(), part(5.0), part()])
    assert copied(plan) == [True, True, True]
    assert (plan.one_header, plan.tracks.copied, plan.frames) == (True, True, 625)
    assert PLAN.validate_json(PLAN.dump_json(plan)) == plan


@pytest.mark.parametrize(
    "other",
    [
        shown(width=1280, height=720),
        shown(rate=(50, 1)),
        shown(codec="hevc", headers="b"),
        shown(steady=False),
        part(begins_at_key=False),
        part(exact=True),
        shown(codec="vp9"),
    ],
)
def test_what_does_not_agree_is_encoded_again(other: FilmPart) -> None:
    plan = plan_of([part(), part(), other])
    assert copied(plan) == [True, True, False]
    assert (plan.width, plan.height, plan.rate, plan.codec) == (1920, 1080, (25, 1), "h264")
    assert not plan.tracks.copied, "sound is of one kind in all of the film"
    assert not plan.one_header


def test_other_headers_alone_are_copied_with_them() -> None:
    plan = plan_of([part(), shown(headers="b")])
    assert (copied(plan), plan.one_header, plan.tracks.copied) == ([True, True], False, False)


@pytest.mark.parametrize("change", [{"plain": False}, {"codec": "hevc"}])
def test_some_pictures_are_copied_only_if_all_are(change: dict[str, Any]) -> None:
    odd = shown(**change)
    assert copied(plan_of([odd, odd])) == [True, True]
    assert copied(plan_of([odd, odd, part(1.0)])) == [False, False, True]


def test_what_its_container_turns_or_stretches_is_not_copied() -> None:
    turned = shown(bare=False)
    assert copied(plan_of([turned, turned])) == [False, False]
    assert copied(plan_of([turned, part()])) == [False, True]


def test_the_film_has_the_form_that_most_of_it_has() -> None:
    small = replace(SHOWN, width=641, height=361, rate=(50, 1), plain=False)
    plan = plan_of([part(10.0), part(30.0, shown=small, exact=True)])
    assert (plan.width, plan.height, plan.rate, copied(plan)) == (640, 360, (50, 1), [False, False])
    large = replace(SHOWN, width=8192, height=4320, codec="av1")
    assert (plan_of([part(shown=large)]).width, plan_of([part(shown=large)]).height) == (4096, 2160)


def test_copies_begin_at_key_frames_and_others_at_their_frames() -> None:
    cut_part = part(at=1.5, after=3.0, begin=1.2, end=3.04)
    assert [(item.begin, item.frames) for item in plan_of([cut_part]).items] == [(1.2, 46)]
    assert [(item.begin, item.frames) for item in plan_of([replace(cut_part, exact=True)]).items] == [(1.5, 38)]


@given(
    lengths=st.lists(st.floats(0.001, 100), min_size=1, max_size=50),
    rate=st.sampled_from([(24_000, 1001), (25, 1), (30_000, 1001), (60, 1)]),
)
def test_nothing_drifts(lengths: list[float], rate: tuple[int, int]) -> None:
    """Items follow each other without a gap, in pictures and samples, each within a frame of its length, and so does the film."""
    plan = plan_of([part(seconds, shown=replace(SHOWN, rate=rate)) for seconds in lengths])
    frame = float(1 / Fraction(*rate))
    for before, after in pairwise(plan.items):
        assert before.first + before.frames == after.first
        assert plan.samples(before)[1] == plan.samples(after)[0]
        assert plan.samples(before, unit=1024)[1] == plan.samples(after, unit=1024)[0]
    assert all(abs(item.frames * frame - seconds) <= frame * 1.001 for item, seconds in zip(plan.items, lengths, strict=True))
    assert plan.time(plan.frames) == pytest.approx(sum(lengths), abs=frame / 2 + 1e-6)
    assert plan.samples(plan.items[-1])[1] == pytest.approx(plan.time(plan.frames) * 48_000, abs=1)


@given(work=st.lists(st.integers(1, 10_000), min_size=1, max_size=60), count=st.integers(1, 6))
def test_blocks_hold_each_item_once_and_in_order(work: list[int], count: int) -> None:
    plan = plan_of([part(frames / 25) for frames in work])
    groups = blocks(plan, count)
    assert len(groups) == count
    assert [number for block in groups for number in block] == list(range(len(work)))


def test_a_film_of_more_than_a_day_is_refused() -> None:
    with pytest.raises(StepFailed, match="longer than 24 hours"):
        plan_of([part(50_000.0)] * 2)


@pytest.mark.parametrize(
    ("sounds", "channels", "languages", "copies"),
    [
        ([(STEREO,), (STEREO,)], (2,), ("eng",), True),
        ([(STEREO,), ()], (2,), ("eng",), False),
        ([(), ()], (), (), False),
        ([(STEREO,), (replace(STEREO, channels=6),)], (6,), ("eng",), False),
        ([(STEREO,), (replace(STEREO, rate=44_100),)], (2,), ("eng",), False),
        ([(STEREO,), (replace(STEREO, simple=False),)], (2,), ("eng",), False),
        ([(STEREO,), (STEREO, replace(STEREO, language="deu", channels=1))], (2, 1), ("eng", "deu"), False),
    ],
)
def test_sound_is_copied_where_all_of_it_agrees(
    sounds: list[tuple[SourceSound, ...]], channels: tuple[int, ...], languages: tuple[str, ...], copies: bool
) -> None:
    tracks = plan_of([heard(*sound) for sound in sounds]).tracks
    assert (tracks.channels, tracks.languages, tracks.copied) == (channels, languages, copies)
    assert not sound_again(plan_of([heard(*sound) for sound in sounds])).tracks.copied


def test_sound_goes_into_the_track_of_its_language() -> None:
    german = replace(STEREO, language="deu")
    plan = plan_of([heard(STEREO, german), heard(german), heard(german, STEREO), heard(replace(STEREO, language="")), heard()])
    assert [item.sounds for item in plan.items] == [(0, 1), (None, 0), (1, 0), (0, None), (None, None)]


def test_loudness_steps_where_it_changes_by_more_than_3_lu() -> None:
    assert steps([-23.0, -20.1, -17.2, -20.3, -15.0]) == [3, 4]
    assert steps([-23.0, None, -10.0]) == [], "silence tells nothing"


def test_an_insertion_shifts_what_follows_and_a_replacement_does_not() -> None:
    marks = [replace(MARK, item=1, at=1.0), MARK, replace(MARK, at=6.0, duration=2.0, replaces=True)]
    ad_breaks, keys = breaks(plan_of([part(), part()]), marks)
    assert [(ad_break.event, ad_break.at, ad_break.until, ad_break.shift, ad_break.duration) for ad_break in ad_breaks] == [
        (1, 4.0, 4.0, 0.0, 30.0),
        (2, 6.0, 8.0, 30.0, 2.0),
        (3, 11.0, 11.0, 30.0, 30.0),
    ]
    assert keys == (4.0, 6.0, 8.0, 11.0)


def test_a_marker_that_need_not_be_accurate_is_at_the_nearest_key_frame() -> None:
    loose = replace(MARK, accurate=False)
    ad_breaks, keys = breaks(plan_of([part()]), [replace(loose, at=4.9), replace(loose, at=5.1), replace(MARK, at=7.32)])
    assert ([ad_break.at for ad_break in ad_breaks], keys) == ([4.0, 6.0, 7.32], (7.32,))
    [short], _ = breaks(plan_of([part()]), [replace(loose, at=4.1, duration=0.5, replaces=True)])
    assert (short.at, short.until) == (4.0, 6.0), "never empty"


@pytest.mark.parametrize(
    ("mark", "says"),
    [
        (replace(MARK, at=10.1), "The marker at 00:00:04 of item 1 is past its end."),
        (replace(MARK, at=9.0, replaces=True), "is past its end"),
        (replace(MARK, at=-1.0), "is before its start"),
    ],
)
def test_a_marker_that_is_not_within_its_item_is_refused(mark: ItemMarker, says: str) -> None:
    with pytest.raises(StepFailed, match=says):
        breaks(plan_of([part(), part()]), [mark])


def test_a_marker_may_be_at_the_end_of_its_item() -> None:
    assert breaks(plan_of([part()]), [replace(MARK, at=10.0)])[0][0].at == 10.0


@given(st.lists(st.tuples(st.floats(0, 20), st.booleans(), st.booleans()), max_size=12))
def test_breaks_are_on_key_frames_and_in_order(marks: list[tuple[float, bool, bool]]) -> None:
    plan = plan_of([part(30.0)])
    given = [ItemMarker(0, at, 5.0, accurate, replaces, "x") for at, accurate, replaces in marks]
    ad_breaks, keys = breaks(plan, given)
    assert [ad_break.at for ad_break in ad_breaks] == sorted(ad_break.at for ad_break in ad_breaks)
    on_keys = {round(key, 4) for key in (*keys, *(2.0 * n for n in range(16)))}
    assert {round(time, 4) for ad_break in ad_breaks for time in (ad_break.at, ad_break.until)} <= on_keys
    assert [ad_break.event for ad_break in ad_breaks] == list(range(1, len(given) + 1))
    inserted = 0.0
    for ad_break in ad_breaks:
        assert ad_break.shift == inserted
        inserted += ad_break.duration if ad_break.inserts else 0.0


B_FRAMES = [
    FramePacket(at / 25, 0.04, key, True)
    for at, key in ((0, True), (3, False), (1, False), (2, False), (6, False), (4, False), (5, False))
]


def test_a_cut_is_between_frames_as_they_are_decoded() -> None:
    assert start_of(B_FRAMES, 0.1) == StartFrame(0.08, 0.0)
    assert end_of(B_FRAMES, 0.16) == End(0.16, 0.16, 0.12)
    assert end_of(B_FRAMES, 0.12) == End(0.12, 0.16, 0.08), "the fourth frame is needed to decode the third"
    last = end_of(B_FRAMES, 0.28)
    assert last is not None
    assert (last.after, last.copied) == pytest.approx((0.28, 0.28))
    assert end_of(B_FRAMES, 0.3) is None
    assert whole(B_FRAMES) == pytest.approx(0.28)


def test_frames_that_are_not_shown_are_no_start() -> None:
    trimmed = [FramePacket(-0.04, 0.04, True, False), FramePacket(0.0, 0.04, False, True), FramePacket(0.04, 0.04, True, True)]
    assert start_of(trimmed, 0.0) == StartFrame(0.0, None)
    assert start_of(trimmed, 0.05) == StartFrame(0.04, 0.04)
    assert start_of(trimmed, -1.0) is None


@pytest.mark.parametrize("stream", [b"\xff\xf1\x50", b"\xff\xf1\x50\x80\x00\x1f\xfc", b"\x00" * 9, b"\xff\xf1\x50\x80\x02\x1f\xfc"])
def test_a_broken_frame_of_aac_is_refused(stream: bytes) -> None:
    with pytest.raises(Unreadable, match="frames of sound are broken"):
        list(frames(stream))


def test_rates_that_cannot_be_on_a_grid_become_usual_ones() -> None:
    ntsc = Fraction(30_000, 1001)
    assert grid_rate(ntsc, ntsc, steady=True) == ntsc
    assert grid_rate(Fraction(12), Fraction(12), steady=True) == 12
    assert grid_rate(Fraction(25), Fraction(17), steady=False) == 25, "every third frame is missing"
    assert grid_rate(Fraction(90_000), Fraction(298, 10), steady=False) == ntsc
    assert grid_rate(Fraction(90_000), Fraction(90_000), steady=True) == 60


ITEM: dict[str, Any] = {"type": 0, "value": "00000000-0000-0000-0000-000000000001"}


@pytest.mark.parametrize(
    ("items", "place"),
    [
        ([], "items"),
        ([ITEM] * 1001, "items"),
        ([{**ITEM, "type": 1}], "type"),
        ([{**ITEM, "value": "match"}], "value"),
        ([{**ITEM, "properties": {"start": "noon"}}], "properties"),
        ([{**ITEM, "properties": {"end": 3}}], "properties"),
        ([{**ITEM, "markers": [{"startAt": "00:00:01", "duration": "30"}]}], "duration"),
        ([{**ITEM, "markers": [{"startAt": "soon", "duration": "00:00:30"}]}], "startAt"),
        ([{**ITEM, "markers": [{"startAt": "00:00:01", "duration": "00:00:30"}] * 501}] * 2, "items"),
    ],
)
def test_a_playlist_that_cannot_be_composed_is_refused(items: list[Any], place: str) -> None:
    given = {"content_id": "film", "generation": 1, "playlist": {"items": items}}
    with pytest.raises(ValidationError) as refused:
        Compose.model_validate_json(json.dumps(given))
    assert place in refused.value.errors()[0]["loc"]
