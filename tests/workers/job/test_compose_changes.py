"""The workflow `compose` with sources that change on their way: flashes and beeps are measured in its film."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.packages import Results, run
from tests.support.sources.films import LASTS, Form, changing, ffmpeg, film, late, slides, sound_first, still
from tests.support.sources.measure import apart, box, picture, sound
from tests.support.sources.playlists import event, item, playlist
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

PLAIN, CHANGING, NARROW, EARLY_SOUND, LATE_PICTURE, LATE_SOUND, SHORT_SOUND, STILL, SLIDES = range(1, 10)
GAIN: Final = 8.0
"""The gain of the measurement: composed films are much softer."""
FRAME: Final = 0.045
"""The duration of a frame at 25 frames per second, and the rounding of times."""


def source(root: Path, number: int) -> Path:
    path = root / event(number) / f"{event(number)}.mp4"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("changes") / "media"
    film(source(root, PLAIN), Form(seconds=6))
    ffmpeg("-i", str(changing(root / "changing.ts")), "-c", "copy", str(source(root, CHANGING)))
    film(source(root, NARROW), Form(size=(240, 180), seconds=4))
    sound_first(source(root, EARLY_SOUND), earlier=0.4)
    late(source(root, LATE_PICTURE), picture=1.0)
    late(source(root, LATE_SOUND), sound=3.0)
    film(source(root, SHORT_SOUND), Form(seconds=8), "-af", "atrim=end=3.5")
    still(source(root, STILL))
    slides(source(root, SLIDES))
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


async def composed(hosts: StepProcessPool, root: Path, name: str, *items: dict[str, Any]) -> tuple[Path, Results]:
    made = await run(hosts, root, "compose", content_id=name, generation=1, playlist=playlist(*items), renditions=[90])
    assert not isinstance(made, StepFailure), made
    return root / name / f"{name}.mp4", made


def in_sync(path: Path, flashes: Sequence[float], *, lasts: float) -> None:
    """Check that a film flashes and beeps at these times, and lasts as long, in picture and in sound."""
    shown, heard = picture(path), sound(path, gain=GAIN)
    assert shown.flashes == pytest.approx(flashes, abs=FRAME)
    assert heard.beeps == pytest.approx(flashes, abs=FRAME)
    assert apart(shown.flashes, heard.beeps) < FRAME
    assert shown.times[-1] == pytest.approx(lasts, abs=2 * FRAME)
    assert heard.ends == pytest.approx(lasts, abs=FRAME)
    assert len(shown.sizes) == 1
    assert shown.gap < 0.05


async def test_a_source_that_changes_is_whole_and_in_sync(hosts: StepProcessPool, root: Path) -> None:
    path, _ = await composed(hosts, root, "whole", item(CHANGING))
    in_sync(path, [0, 2, 4, 6, 8, 10], lasts=12)
    assert sound(path, gain=GAIN).silences == ()
    assert box(path, 0.0) == (0, 0, 320, 180)
    assert box(path, 4.0) == pytest.approx((40, 0, 240, 180), abs=2), "bars, not stretched"
    assert box(path, 8.0) == pytest.approx((0, 0, 320, 180), abs=2)


async def test_it_can_be_cut_before_in_behind_and_at_its_changes(hosts: StepProcessPool, root: Path) -> None:
    """The source changes at 4 s and at 8 s. Its parts alternate with whole films of others."""
    cuts: list[tuple[float, float]] = [(1, 3.5), (3, 5), (5, 7.5), (4, 8), (0, 4), (8, 11.5), (1, 11)]
    changing = picture(root / event(CHANGING) / f"{event(CHANGING)}.mp4")
    frames, white = (tuple(time - changing.times[0] for time in measured) for measured in (changing.times, changing.flashes))
    items, flashes, begin = list[dict[str, Any]](), list[float](), 0.0
    for start, end in cuts:
        times = {"start": f"00:00:{start:06.3f}", "end": f"00:00:{end:06.3f}", "frameAccurate": True}
        items += [item(CHANGING, **times), item(NARROW)]
        at, after = max(frame for frame in frames if frame <= start), min(frame for frame in frames if frame >= end)
        flashes += [begin + flash - at for flash in white if at - 0.001 < flash < after - 0.001]
        begin += after - at
        flashes += [begin, begin + 2]
        begin += 4
    path, _ = await composed(hosts, root, "cuts", *items)
    in_sync(path, [after for before, after in pairwise([-1.0, *flashes]) if after - before > LASTS], lasts=begin)
    assert sound(path, gain=GAIN).silences == ()


async def test_what_is_copied_does_not_change(hosts: StepProcessPool, root: Path) -> None:
    """The film has one form, though both sources could be copied according to their headers."""
    path, _ = await composed(hosts, root, "copied", item(PLAIN), item(CHANGING, start="00:00:00", end="00:00:03.900"))
    in_sync(path, [0, 2, 4, 6, 8], lasts=9.9)
    path, _ = await composed(hosts, root, "mixed", item(PLAIN), item(CHANGING))
    in_sync(path, [0, 2, 4, 6, 8, 10, 12, 14, 16], lasts=18)


@pytest.mark.parametrize(
    ("number", "flashes", "beeps", "lasts"),
    [
        (EARLY_SOUND, [0, 2, 4, 6], [1.6, 3.6, 5.6], 8),
        (LATE_PICTURE, [1, 3, 5], [1, 3, 5], 7),
        (LATE_SOUND, [0, 2, 4, 6], [4, 6], 8),
        (SHORT_SOUND, [0, 2, 4, 6], [0, 2], 8),
        (STILL, [0, 2, 14], [0, 2, 4, 6, 8, 10, 12, 14], 16),
        (SLIDES, [0], [0, 2, 4, 6, 8, 10, 12, 14], 16),
    ],
)
async def test_sound_goes_with_the_picture(
    hosts: StepProcessPool, root: Path, number: int, flashes: list[float], beeps: list[float], lasts: float
) -> None:
    """The item is between two others, so it begins within the film and not with it, and it is shown to its end. While a source has
    no sound, the film is silent."""
    path, _ = await composed(hosts, root, f"sync-{number}", item(NARROW), item(number), item(NARROW))
    shown, heard = picture(path), sound(path, gain=GAIN)
    around = [0, 2], [4 + lasts, 6 + lasts]
    assert shown.flashes == pytest.approx([*around[0], *(4 + flash for flash in flashes), *around[1]], abs=FRAME)
    assert heard.beeps == pytest.approx([*around[0], *(4 + beep for beep in beeps), *around[1]], abs=FRAME)
    assert shown.times[-1] == pytest.approx(lasts + 8, abs=2 * FRAME)
    assert heard.ends == pytest.approx(lasts + 8, abs=FRAME)


@pytest.mark.parametrize(
    ("number", "start", "end", "flashes", "beeps"),
    [
        (STILL, 1.0, 7.0, [1], [1, 3, 5]),
        (STILL, 5.0, 8.0, [], [1]),
        (STILL, 9.0, 15.0, [5], [1, 3, 5]),
        (SLIDES, 6.0, 9.0, [], [0, 2]),
        (SLIDES, 12.0, 15.0, [], [0, 2]),
        (SLIDES, 9.0, 15.0, [], [1, 3, 5]),
    ],
)
async def test_an_item_may_begin_and_end_while_its_picture_stands_still(
    hosts: StepProcessPool, root: Path, number: int, start: float, end: float, flashes: list[float], beeps: list[float]
) -> None:
    """The item is cut at the requested times, not where the picture that stands still begins and ends."""
    times = {"start": f"00:00:{start:06.3f}", "end": f"00:00:{end:06.3f}"}
    path, _ = await composed(hosts, root, f"within-{number}-{start:g}", item(NARROW), item(number, **times), item(NARROW))
    shown, heard, lasts = picture(path), sound(path, gain=GAIN), end - start
    assert shown.flashes == pytest.approx([0, 2, *(4 + flash for flash in flashes), 4 + lasts, 6 + lasts], abs=FRAME)
    assert heard.beeps == pytest.approx([0, 2, *(4 + beep for beep in beeps), 4 + lasts, 6 + lasts], abs=FRAME)
    assert shown.times[-1] == pytest.approx(lasts + 8, abs=2 * FRAME)


async def test_times_of_an_item_are_those_of_a_player(hosts: StepProcessPool, root: Path) -> None:
    """The sound begins 0.4 s before the picture: at 1.0 s of the player is the frame one second after the first."""
    for accurate in (True, False):
        times = {"start": "00:00:02.000", "end": "00:00:05.000", "frameAccurate": accurate}
        path, _ = await composed(hosts, root, f"player-{accurate}", item(EARLY_SOUND, **times))
        shown, heard = picture(path), sound(path, gain=GAIN if accurate else 1.0)
        assert shown.flashes == pytest.approx([0, 2], abs=FRAME)
        assert heard.beeps == pytest.approx([1.6], abs=FRAME)


async def test_an_item_behind_the_end_of_its_sound_is_silent(hosts: StepProcessPool, root: Path) -> None:
    times = {"start": "00:00:05.000", "end": "00:00:07.000", "frameAccurate": True}
    path, _ = await composed(hosts, root, "silent", item(SHORT_SOUND, **times), item(NARROW))
    assert picture(path).flashes == pytest.approx([1, 2, 4], abs=FRAME)
    assert sound(path, gain=GAIN).beeps == pytest.approx([2, 4], abs=FRAME)
