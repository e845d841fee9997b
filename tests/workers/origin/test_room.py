"""The retention of recordings by time and by size, never less than players of the live stream need."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from re import findall

import pytest

from tests.support.clock import HandClock
from tests.workers.origin.studio import ARCHIVE, Studio, Track, master_playlist
from workers.origin.limits import RefusalReason, UploadRefused
from workers.origin.recordings import RecordedPoint
from workers.origin.track_index import TrackWriter

KIB = 1024


async def on_the_air(studio: Studio, tracks: Sequence[Track], *, seconds: float, count: int, size: int = 5) -> None:
    """Send so many segments of each track in their rhythm, with the tidying that a process does."""
    for _ in range(count):
        for track in tracks:
            await track.send(data=bytes(size), window=120)
        studio.clock.forward(seconds=seconds)
        await studio.origin.tidy()


def numbers(playlist: str) -> list[int]:
    """Return the media times of the listed segments, in seconds, as `Track` sends them."""
    return [int(time) // 1000 for time in findall(r"/(\d+)\.m4s", playlist)]


def first_number(playlist: str) -> int:
    return int(findall(r"#EXT-X-MEDIA-SEQUENCE:(\d+)", playlist)[0])


def files(studio: Studio, track: str) -> int:
    return len(list((studio.root / "news" / "1" / f"t-{track}").glob("*.m4s")))


async def test_a_recording_that_goes_on_keeps_its_last_hours(tmp_path: Path, clock: HandClock) -> None:
    """A channel is on the air for days. Another process, and one that starts later, see the same."""
    studio, other = (Studio(tmp_path / "origin", clock, hours=1) for _ in range(2))
    tracks = [Track(studio, name, lasts=60) for name in ("a0", "v0")]
    await studio.put("master.m3u8", master_playlist("v0"))
    await on_the_air(studio, tracks, seconds=60, count=50)
    assert first_number(await other.media("v0", ARCHIVE)) == 0
    assert "#EXT-X-PLAYLIST-TYPE:EVENT" in await other.media("v0", ARCHIVE)
    await on_the_air(studio, tracks, seconds=60, count=150)
    for each in (studio, other, Studio(tmp_path / "origin", clock)):
        for track in ("a0", "v0"):
            archive = await each.media(track, ARCHIVE)
            begins = first_number(archive)
            assert 135 <= begins <= 140, "an hour, and at most a step more"
            assert numbers(archive) == [60 * number for number in range(begins, 200)]
            assert "#EXT-X-PLAYLIST-TYPE" not in archive, "its beginning may go"
            assert numbers(await each.media(track)) == [60 * number for number in range(197, 200)]
            assert files(each, track) == 200 - begins
        assert f'<S t="{60_000 * begins}"' in str(await each.manifest(ARCHIVE))
        assert "v0.m3u8" in str(await each.master()), "it was complete long ago"


async def test_what_has_ended_or_is_silent_is_removed_hours_later(tmp_path: Path, clock: HandClock) -> None:
    studio = Studio(tmp_path / "origin", clock, hours=1)
    await Track(studio, "v0").send(ended=True)
    await Track(studio, "v0", session=2).send()
    clock.forward(minutes=59)
    await studio.origin.tidy()
    assert [(studio.root / "news" / name).is_dir() for name in "12"] == [True, True]
    clock.forward(minutes=2)
    await studio.origin.tidy()
    assert [(studio.root / "news" / name).is_dir() for name in "12"] == [False, False]
    with pytest.raises(UploadRefused) as refused:
        await Track(studio, "v0").send()
    assert refused.value.why is RefusalReason.FENCED, "the fence stays"


@pytest.mark.long
async def test_room_is_made_of_what_has_ended_and_then_of_the_oldest(tmp_path: Path, clock: HandClock) -> None:
    studio = Studio(tmp_path / "origin", clock, size=2000 * KIB)
    old = Track(studio, "v0")
    for ended in (False, False, True):
        await old.send(data=bytes(100 * KIB), ended=ended)
    tracks = [Track(studio, name, session=2) for name in ("a0", "v0")]
    await studio.put("master.m3u8", master_playlist("v0"), session=2)
    await on_the_air(studio, tracks, seconds=1, count=190, size=4 * KIB)
    assert (studio.root / "news" / "1").is_dir()
    await on_the_air(studio, tracks, seconds=1, count=300, size=4 * KIB)
    assert not (studio.root / "news" / "1").is_dir()
    archives = [await studio.media(track, ARCHIVE) for track in ("a0", "v0")]
    for archive in archives:
        begins = numbers(archive)[0]
        assert 490 - 250 <= begins <= 490 - 200, "as much as there is room for"
        assert numbers(archive) == list(range(begins, 490))
        assert numbers(await studio.media("v0")) == list(range(370, 490)), "the live window"
    assert abs(numbers(archives[0])[0] - numbers(archives[1])[0]) <= 1
    assert sum(path.stat().st_size for path in studio.root.rglob("*.m4s")) <= 2000 * KIB


async def test_the_live_window_is_not_cut(tmp_path: Path, clock: HandClock) -> None:
    """If there is no space for it, uploads of the encoder are refused until there is."""
    studio = Studio(tmp_path / "origin", clock, size=500 * KIB)
    track = Track(studio, "v0")
    with pytest.raises(UploadRefused) as refused:
        await on_the_air(studio, [track], seconds=1, count=200, size=10 * KIB)
    assert refused.value.why is RefusalReason.FULL
    assert "may still be played live" in refused.value.sentence
    assert numbers(await studio.media("v0")) == list(range(track.count))
    larger = Studio(tmp_path / "origin", clock, size=5000 * KIB)
    await larger.put("x.m3u8", b"#EXTM3U\n")


async def test_the_disk_is_left_with_what_it_shall_have_free(tmp_path: Path, clock: HandClock) -> None:
    studio = Studio(tmp_path / "origin", clock, free=10 * KIB, size=10_000 * KIB)
    track = Track(studio, "v0")
    await on_the_air(studio, [track], seconds=1, count=200, size=4 * KIB)
    assert first_number(await studio.media("v0", ARCHIVE)) == 0
    studio.disk.free = 0
    with pytest.raises(UploadRefused, match="are free"):
        await on_the_air(studio, [track], seconds=1, count=2)
    assert first_number(await studio.media("v0", ARCHIVE)) > 0
    assert len(numbers(await studio.media("v0"))) == 120


async def test_a_kill_while_room_is_made_loses_nothing(tmp_path: Path, clock: HandClock) -> None:
    """The process is killed after the new index was written and before the recording names it, and before the files were
    removed."""
    studio = Studio(tmp_path / "origin", clock)
    track = Track(studio, "v0")
    await on_the_air(studio, [track], seconds=1, count=300)
    point = RecordedPoint(studio.root / "news")
    [recording] = point.recordings()
    TrackWriter(recording.tracks["v0"]).without(100)
    await track.send()
    assert numbers(await studio.media("v0", ARCHIVE)) == list(range(301))
    stray = recording.tracks["v0"].folder / "99000.m4s"
    assert point.trim(recording, before=recording.tracks["v0"].segments[100].written, window=120) == 100
    stray.write_bytes(b"left by a killed process")
    await track.send()
    assert numbers(await studio.media("v0", ARCHIVE)) == list(range(100, 302))
    point.trim(recording, before=recording.tracks["v0"].segments[1].written, window=120)
    assert not stray.exists()
    assert len(list(recording.tracks["v0"].folder.glob("index*"))) == 1


async def test_half_a_line_is_no_line(studio: Studio) -> None:
    """A process was killed while it wrote; the rest may also be copied later."""
    track = Track(studio, "v0")
    await on_the_air(studio, [track], seconds=1, count=200)
    index = studio.root / "news" / "1" / "t-v0" / "index.jsonl"
    lines = index.read_bytes()
    index.write_bytes(lines + b'{"number":200,"name":"2000')
    await track.send()
    again = Studio(studio.root, studio.clock)
    assert numbers(await again.media("v0", ARCHIVE)) == list(range(201))
    point = RecordedPoint(studio.root / "news")
    [recording] = point.recordings()
    assert point.trim(recording, before=recording.tracks["v0"].segments[10].written, window=1) == 10
    assert numbers(await Studio(studio.root, studio.clock).media("v0", ARCHIVE)) == list(range(10, 201))
    assert index.exists() is False


async def recorded(studio: Studio, point: str, *, session: int = 1, count: int = 3, size: int = 100 * KIB) -> None:
    """Return a recording that has ended."""
    track = Track(studio, "v0", session=session, point=point)
    for number in range(count):
        await track.send(data=bytes(size), ended=number == count - 1)
        studio.clock.forward(seconds=1)


def is_there(studio: Studio, point: str, session: int = 1) -> bool:
    return (studio.root / point / str(session)).is_dir()


async def test_a_point_cannot_remove_recordings_of_another_point(tmp_path: Path, clock: HandClock) -> None:
    """Regression: the token of one point removed the recordings of all others: nineteen segments of 64 MiB, and a programme was
    gone."""
    studio = Studio(tmp_path / "origin", clock, size=2000 * KIB)
    await recorded(studio, "victim")
    greedy = Track(studio, "v0", point="greedy")
    with pytest.raises(UploadRefused) as refused:
        await on_the_air(studio, [greedy], seconds=1, count=200, size=100 * KIB)
    assert refused.value.why is RefusalReason.FULL
    assert is_there(studio, "victim")
    await recorded(studio, "third")
    assert [is_there(studio, point) for point in ("victim", "greedy", "third")] == [True] * 3


async def test_the_live_window_of_who_has_too_much_is_cut_for_others(tmp_path: Path, clock: HandClock) -> None:
    """Regression: an unneeded window of a day filled all of the disk."""
    studio = Studio(tmp_path / "origin", clock, size=2000 * KIB)
    greedy, other = (Track(studio, "v0", point=point) for point in ("greedy", "other"))
    await until_refused(studio, greedy)
    for _ in range(16):
        await other.send(data=bytes(50 * KIB), window=86_400)
        studio.clock.forward(seconds=1)
        await studio.origin.tidy()
    sizes = {point: sum(path.stat().st_size for path in (studio.root / point).rglob("*.m4s")) for point in ("greedy", "other")}
    assert sizes["other"] >= 16 * 50 * KIB
    assert sum(sizes.values()) <= 2050 * KIB
    await greedy.send(data=bytes(KIB))


async def until_refused(studio: Studio, track: Track) -> None:
    with suppress(UploadRefused):
        for _ in range(100):
            await track.send(data=bytes(50 * KIB), window=86_400)
            await studio.origin.tidy()
        raise AssertionError("it was never refused")


async def test_a_live_window_takes_no_recording_of_a_smaller_point(tmp_path: Path, clock: HandClock) -> None:
    """The smaller point may still have more than its share."""
    studio = Studio(tmp_path / "origin", clock, size=2000 * KIB)
    await recorded(studio, "victim", count=8)
    await recorded(studio, "small", count=1)
    await until_refused(studio, Track(studio, "v0", point="greedy"))
    assert is_there(studio, "victim")


async def test_what_nobody_waits_for_goes_first_and_what_is_awaited_last(tmp_path: Path, clock: HandClock) -> None:
    studio = Studio(tmp_path / "origin", clock, size=1150 * KIB)
    studio.to_capture = {("a", 1): True, ("b", 1): False}
    for point in "abcd":
        await recorded(studio, point)
        await studio.origin.tidy()
    assert [is_there(studio, point) for point in "abcd"] == [True, False, True, True], "b is younger than a"
    await recorded(studio, "a", session=2)
    await studio.origin.tidy()
    assert (is_there(studio, "a", 1), is_there(studio, "a", 2), studio.gone) == (True, False, []), "of the second nothing is known"
    await recorded(studio, "a", session=3, count=2)
    studio.to_capture["a", 3] = True
    await studio.origin.tidy()
    assert (is_there(studio, "a", 1), is_there(studio, "a", 3)) == (True, True)
    await recorded(studio, "a", session=4, count=2)
    studio.to_capture["a", 4] = True
    await studio.origin.tidy()
    assert (is_there(studio, "a", 1), studio.gone) == (False, [("a", 1)])
    assert [is_there(studio, "a", session) for session in (3, 4)] == [True, True]
