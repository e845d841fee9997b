"""Times of assets count from the first picture that a player shows, whatever else a file begins with. Frames show their numbers;
flashes and beeps compare picture and sound."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.sources.films import AAC, HEVC, between_keys, late
from tests.support.sources.measure import apart, picture, sound
from tests.support.sources.numbered_frames import film, numbers, probed
from tests.support.step_hosts import Listener, order
from tests.workers.job.sources import WRAP, ffmpeg
from workers.job.protocol import Finished
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

TONE: Final = ("-f", "lavfi", "-i", "sine=frequency=440:duration=4:sample_rate=48000")
BOTH: Final = ("-map", "0:v", "-map", "1:a", "-c:a", "aac")
H264: Final = ("-c:v", "libx264", "-preset", "veryfast", "-g", "30", "-sc_threshold", "0", "-bf", "2", "-pix_fmt", "yuv420p")
RATE: Final = 25


def _sound_before_picture(path: Path) -> None:
    _moved(path, picture=0.4)


def _picture_before_sound(path: Path) -> None:
    _moved(path, sound=0.4)


def _moved(path: Path, *, picture: float = 0.0, sound: float = 0.0) -> None:
    whole = path.with_name("whole.mp4")
    film(whole, *BOTH, *H264, inputs=TONE)
    inputs = ("-itsoffset", str(picture), "-i", str(whole), "-itsoffset", str(sound), "-i", str(whole))
    ffmpeg(*inputs, "-map", "0:v", "-map", "1:a", "-c", "copy", str(path))
    whole.unlink()


def _edit_list(path: Path) -> None:
    """Make a file that begins in the middle of B-frames, with frame 12."""
    whole = path.with_name("whole.mp4")
    film(whole, *BOTH, *H264, inputs=TONE)
    ffmpeg("-ss", "0.48", "-i", str(whole), "-c", "copy", str(path))
    whole.unlink()


def _between_keys(path: Path) -> None:
    """Make a file whose packets begin with frame 10, and whose first decodable frame is frame 30."""
    whole = path.with_name("whole.ts")
    film(whole, *BOTH, *H264, "-bf", "0", "-muxdelay", "0", "-muxpreload", "0", inputs=TONE)
    cut = ("-copyts", "-i", str(whole), "-c", "copy", "-bsf:v", "noise=drop=lt(n\\,10)", "-bsf:a", "noise=drop=lt(pts*tb\\,0.4)")
    ffmpeg(*cut, "-copyinkf", str(path))
    whole.unlink()


def _wrapping(path: Path) -> None:
    """Make a file whose clock starts again in the middle."""
    film(path, *BOTH, *H264, "-output_ts_offset", f"{WRAP - 3.4:.3f}", inputs=TONE)


SOURCES: Final[Mapping[str, tuple[Callable[[Path], None], int]]] = {
    "sound-before.mp4": (_sound_before_picture, 0),
    "sound-before.mkv": (_sound_before_picture, 0),
    "sound-before.ts": (_sound_before_picture, 0),
    "sound-late.mp4": (_picture_before_sound, 0),
    "edit-list.mp4": (_edit_list, 12),
    "wrapping.ts": (_wrapping, 0),
    "between-keys.ts": (_between_keys, 30),
    "between-keys.mkv": (_between_keys, 30),
    "between-keys.mp4": (_between_keys, 30),
}
"""Files, and the number of the first frame that is shown."""
COPIED: Final = tuple(name for name in SOURCES if name.endswith(".mp4"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("times") / "media"
    folder = root / "film"
    folder.mkdir(parents=True)
    for name, (make, _) in SOURCES.items():
        make(folder / name)
    late(folder / "late-picture.mp4", picture=1.0)
    late(folder / "late-sound.mp4", sound=1.0)
    between_keys(folder / "recording.ts", begins=4.3)
    between_keys(folder / "hevc.ts", video=HEVC, audio=AAC)
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


async def made(hosts: StepProcessPool, root: Path, workflow: str, **wanted: Any) -> Path:
    result = await hosts.run(order("make", workflow=workflow, name="assets/made", **wanted), Listener())
    assert isinstance(result, Finished), result
    return root / ".jobs/17/2/1" / result.outputs[0].path


def clock(frame: int) -> str:
    """Return the time of the middle of a frame. Frames count from the first."""
    return f"00:00:{(frame + 0.5) / RATE:06.3f}"


@pytest.mark.parametrize("name", SOURCES)
async def test_a_picture_is_the_frame_that_a_player_shows_at_its_time(hosts: StepProcessPool, root: Path, name: str) -> None:
    first = SOURCES[name][1]
    for frame in (0, 1, 31, 50):
        given: dict[str, Any] = {"source": name, "time": clock(frame)}
        assert numbers(await made(hosts, root, "asset_image", **given)) == [first + frame], frame
    times = {"start": clock(31), "end": clock(40)}
    assert numbers(await made(hosts, root, "asset_gif", source=name, **times, playback_speed=0.0)) == [first + 31]


@pytest.mark.parametrize("name", SOURCES)
async def test_an_accurate_clip_has_the_frames_that_a_player_shows(hosts: StepProcessPool, root: Path, name: str) -> None:
    first = SOURCES[name][1]
    clip = await made(hosts, root, "asset_video", source=name, start=clock(31), end=clock(49), frame_accurate=True)
    assert numbers(clip) == list(range(first + 31, first + 50))
    whole = await made(hosts, root, "asset_video", source=name, start="00:00:00", end="00:00:01", frame_accurate=True)
    assert numbers(whole) == list(range(first, first + 25))


@pytest.mark.parametrize("name", COPIED)
async def test_a_copied_clip_has_the_frames_that_a_player_shows(hosts: StepProcessPool, root: Path, name: str) -> None:
    """The clip begins with the key frame before its start. Key frames are every 30 frames."""
    first = SOURCES[name][1]
    clip = await made(hosts, root, "asset_video", source=name, start=clock(50 - first), end=clock(65 - first))
    shown = numbers(clip)
    assert shown[:36] == list(range(30, 66))
    assert len(shown) < 40
    begins = [float(stream["start_time"]) for stream in probed(clip)["streams"] if stream["codec_type"] == "video"]
    assert begins == pytest.approx([0.0], abs=0.03)


@pytest.mark.parametrize("name", ["late-picture.mp4", "late-sound.mp4", "recording.ts"])
async def test_sound_goes_with_the_picture(hosts: StepProcessPool, root: Path, name: str) -> None:
    """The clip begins at half a second of the player."""
    source = picture(root / "film" / name)
    times = [time - source.times[0] for time in source.times]
    begin = max(time for time in times if time <= 0.5)
    flashes = [flash - source.times[0] - begin for flash in source.flashes if 0.5 < flash - source.times[0] < 4.5]
    given: dict[str, Any] = {"source": name, "start": "00:00:00.500", "end": "00:00:04.500"}
    for accurate in (True, False)[: 2 if name.endswith(".mp4") else 1]:
        clip = await made(hosts, root, "asset_video", **given, frame_accurate=accurate)
        shown, heard = picture(clip), sound(clip)
        assert len(flashes) == 2
        assert shown.flashes == pytest.approx(flashes, abs=0.01)
        assert heard.beeps == pytest.approx(flashes, abs=0.04)
        assert apart(shown.flashes, heard.beeps) < 0.04


async def test_a_key_frame_may_be_decoded_long_before_it_is_shown(hosts: StepProcessPool, root: Path) -> None:
    """The key frame of this recording of HEVC is decoded five frames before it is shown. It has a flash at 2 s."""
    for time, white in (("00:00:02.020", True), ("00:00:01.980", False)):
        still = await made(hosts, root, "asset_image", source="hevc.ts", time=time)
        assert bool(picture(still).flashes) is white
    clip = await made(hosts, root, "asset_video", source="hevc.ts", start="00:00:02.020", end="00:00:04.500", frame_accurate=True)
    assert picture(clip).flashes == pytest.approx([0.0, 2.0], abs=0.01)
