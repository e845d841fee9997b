"""Clips, GIFs and pictures of sources that change on their way, that stand still, or that have several programmes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from domain.job.values import Severity
from tests.support.sources.films import Form, changing, clock_jump, ffmpeg, film, slides, still, two_programmes
from tests.support.sources.measure import apart, box, picture, sound
from tests.support.sources.numbered_frames import probed
from tests.support.step_hosts import Listener, order
from workers.job.protocol import Finished, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

FRAME = 0.045


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clips") / "media"
    folder = root / "film"
    folder.mkdir(parents=True)
    changing(folder / "changing.ts")
    ffmpeg("-i", str(folder / "changing.ts"), "-c", "copy", str(folder / "changing.mp4"))
    still(folder / "still.mp4")
    still(folder / "long-still.mkv", begins=3.0, ends=16.0, seconds=18.0)
    slides(folder / "slides.mkv")
    clock_jump(folder / "jump.ts")
    slides(folder / "slides.mp4")
    two_programmes(folder / "two.ts")
    film(folder / "short-sound.mp4", Form(seconds=8), "-af", "atrim=end=3.5")
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


async def made(hosts: StepProcessPool, root: Path, workflow: str, *, listener: Listener | None = None, **wanted: Any) -> Path:
    result = await hosts.run(order("make", workflow=workflow, name="assets/made", **wanted), listener or Listener())
    assert isinstance(result, Finished), result
    return root / ".jobs/17/2/1" / result.outputs[0].path


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        *(("changing.mp4", start, end) for start, end in ((1.5, 11.0), (3.0, 5.0), (4.5, 7.5), (0.0, 3.5), (8.5, 11.0))),
        *(("changing.ts", start, end) for start, end in ((1.5, 11.0), (3.0, 5.0))),
    ],
)
async def test_a_clip_of_a_source_that_changes_is_whole_and_in_sync(
    hosts: StepProcessPool, root: Path, name: str, start: float, end: float
) -> None:
    """The source changes at 4 s and at 8 s. The clips are across both changes, across one, between, before, and after them."""
    source = picture(root / "film" / name)
    times, white = ([time - source.times[0] for time in measured] for measured in (source.times, source.flashes))
    begin, after = max(time for time in times if time <= start + 0.001), min(time for time in times if time >= end - 0.001)
    given: dict[str, Any] = {"source": name, "start": f"00:00:{start:06.3f}", "end": f"00:00:{end:06.3f}", "frame_accurate": True}
    clip = await made(hosts, root, "asset_video", **given)
    shown, heard = picture(clip), sound(clip)
    assert shown.flashes == pytest.approx([flash - begin for flash in white if begin - 0.001 < flash < after - 0.001], abs=FRAME)
    assert apart(shown.flashes, heard.beeps) < FRAME
    assert shown.sizes == ((320, 180),)
    assert len(shown.times) == sum(begin - 0.001 < time < after - 0.001 for time in times)
    assert heard.ends == pytest.approx(after - begin, abs=FRAME)
    assert heard.silences == ()


@pytest.mark.parametrize("mezzanine", [False, True])
async def test_a_clip_that_changes_is_not_copied(hosts: StepProcessPool, root: Path, mezzanine: bool) -> None:
    """The log states when the picture changes. A clip before the change is copied."""
    listener = Listener()
    given: dict[str, Any] = {"source": "changing.mp4", "mezzanine": mezzanine}
    clip = await made(hosts, root, "asset_video", **given, listener=listener, start="00:00:02.500", end="00:00:06.500")
    assert picture(clip).sizes == ((320, 180),)
    assert box(clip, 1.54) == pytest.approx((40, 0, 240, 180), abs=2), "bars, not stretched"
    assert apart(picture(clip).flashes, sound(clip).beeps) < FRAME
    message = "The picture of film/changing.mp4 changes at 3.995 s, so the clip is encoded again."
    assert (Severity.INFO, message) in listener.lines
    listener = Listener()
    clip = await made(hosts, root, "asset_video", **given, listener=listener, start="00:00:00.500", end="00:00:03.500")
    assert listener.lines == []
    assert picture(clip).flashes == pytest.approx([0.0, 2.0], abs=FRAME)


async def test_pictures_and_gifs_have_the_shape_of_the_film(hosts: StepProcessPool, root: Path) -> None:
    """A frame of another shape has bars, as in a player."""
    still = await made(hosts, root, "asset_image", source="changing.mp4", time="00:00:04.020")
    assert picture(still).sizes == ((320, 180),)
    assert box(still, 0.0) == pytest.approx((40, 0, 240, 180), abs=2)
    times: dict[str, Any] = {"start": "00:00:03.000", "end": "00:00:05.000"}
    gif = await made(hosts, root, "asset_gif", source="changing.mp4", **times)
    shown = picture(gif)
    assert (shown.sizes, len(shown.times)) == (((320, 180),), 20)
    assert shown.flashes == pytest.approx([1.0], abs=0.11)
    assert box(gif, 1.0) == pytest.approx((40, 0, 240, 180), abs=2)


@pytest.mark.parametrize(("start", "end", "flashes"), [(5.0, 8.0, 0), (12.0, 15.5, 1), (1.0, 6.0, 1)])
async def test_a_clip_of_a_picture_that_stands_still_lasts_as_long_as_was_wanted(
    hosts: StepProcessPool, root: Path, start: float, end: float, flashes: int
) -> None:
    """The picture has no frame from 3 s to 13 s. The clip has one at least twice a second."""
    times: dict[str, Any] = {"start": f"00:00:{start:06.3f}", "end": f"00:00:{end:06.3f}"}
    clip = await made(hosts, root, "asset_video", source="still.mp4", **times, frame_accurate=True)
    shown, heard = picture(clip), sound(clip)
    assert len(shown.flashes) == flashes
    assert shown.times[0] == 0
    assert shown.gap < 0.55
    assert shown.times[-1] > end - start - 0.55
    assert heard.ends == pytest.approx(end - start, abs=FRAME)
    beeps = [second - start for second in range(0, 16, 2) if start <= second < end]
    assert heard.beeps == pytest.approx(beeps, abs=FRAME)
    gif = await made(hosts, root, "asset_gif", source="still.mp4", **times, fps=5)
    assert len(picture(gif).times) == pytest.approx((end - start) * 5, abs=1)


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("long-still.mkv", 3.5, 5.0),
        ("long-still.mkv", 13.0, 15.5),
        ("slides.mp4", 12.5, 15.5),
        ("slides.mkv", 12.5, 15.5),
    ],
)
async def test_a_picture_may_stand_still_for_long_and_until_the_sound_ends(
    hosts: StepProcessPool, root: Path, name: str, start: float, end: float
) -> None:
    """The next frame is more than ten seconds away, or there is none."""
    times: dict[str, Any] = {"start": f"00:00:{start:06.3f}", "end": f"00:00:{end:06.3f}"}
    clip = await made(hosts, root, "asset_video", source=name, **times, frame_accurate=True)
    shown, heard = picture(clip), sound(clip)
    assert (shown.times[0], shown.gap < 0.55, shown.times[-1] > end - start - 0.55) == (0.0, True, True)
    assert heard.ends == pytest.approx(end - start, abs=FRAME)
    assert heard.beeps == pytest.approx([second - start for second in range(0, 16, 2) if start <= second < end], abs=FRAME)
    still = await made(hosts, root, "asset_image", source=name, time=f"00:00:{end:06.3f}")
    assert len(picture(still).times) == 1


async def test_a_time_behind_a_jump_of_the_clock_is_refused_with_the_reason(hosts: StepProcessPool, root: Path) -> None:
    times: dict[str, Any] = {"start": "00:00:03.000", "end": "00:00:05.000"}
    result = await hosts.run(order("make", workflow="asset_gif", name="assets/made", source="jump.ts", **times), Listener())
    assert isinstance(result, StepFailure)
    assert "The clock of film/jump.ts jumps by 4996.0 s at 4.0 s, and what is after that cannot be looked up." in result.reason


async def test_a_clip_is_of_one_programme(hosts: StepProcessPool, root: Path) -> None:
    """The clip has the programme of the largest picture, with its own sound."""
    for mezzanine in (False, True):
        times: dict[str, Any] = {"start": "00:00:01.000", "end": "00:00:05.000"}
        clip = await made(hosts, root, "asset_video", source="two.ts", **times, frame_accurate=True, mezzanine=mezzanine)
        assert [stream["codec_type"] for stream in probed(clip)["streams"]] == ["video", "audio"]
        assert picture(clip).flashes == pytest.approx([1.0, 3.0], abs=FRAME)
        assert sound(clip).beeps == pytest.approx([1.0, 3.0], abs=FRAME)


async def test_a_clip_is_silent_where_its_source_is(hosts: StepProcessPool, root: Path) -> None:
    """Sound ends at 3.5 s."""
    for start, end, beeps in ((1.0, 6.0, [1.0]), (5.0, 7.0, [])):
        times: dict[str, Any] = {"start": f"00:00:{start:06.3f}", "end": f"00:00:{end:06.3f}"}
        clip = await made(hosts, root, "asset_video", source="short-sound.mp4", **times, frame_accurate=True)
        heard = sound(clip)
        assert heard.beeps == pytest.approx(beeps, abs=FRAME)
        assert heard.ends == pytest.approx(end - start, abs=FRAME)
