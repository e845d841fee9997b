"""Packages in a real player: Shaka Player in Chromium shows the frames of the requested times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from tests.support.npm_packages import shaka_player
from tests.support.packages import run
from tests.support.programs import program
from tests.support.sources.numbered_frames import film, numbers, probed
from tests.workers.job.sources import RISKY, SOURCES, Foreign
from tests.workers.job.theatre import HEIGHT, WIDTH, Theatre
from workers.job.protocol import Protection, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

TONES: Final = ("-f", "lavfi", "-i", "sine=frequency=440:duration=4", "-f", "lavfi", "-i", "sine=frequency=880:duration=4")
TRACKS: Final = ("-map", "0:v", "-map", "1:a", "-map", "2:a", "-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu")
CODED: Final = (
    "-vf",
    f"scale={WIDTH}:{HEIGHT}:flags=neighbor",
    "-c:v",
    "libx264",
    "-bf",
    "2",
    "-pix_fmt",
    "yuv420p",
    "-c:a",
    "aac",
)
KID, KEY = "22dac626328f8d21b3ffcd10e5b85d43", "000102030405060708090a0b0c0d0e0f"
COMMON = "0000003470737368010000001077efecc0b24d02ace33c1e52e2fb4b00000001" + KID + "00000000"
PROTECTION = Protection(KID, KEY, "1" * 32, "skd://a", {"cenc": COMMON, "cbcs": COMMON}, {})
SHOWN: Final = tuple((number, (number + 0.5) / 25) for number in (3, 37, 51, 98))
"""The numbers of frames, each with a time at which it should be visible."""

Played = Callable[..., Awaitable[tuple[list[int], dict[str, Any]]]]


@pytest.fixture(scope="module")
async def root(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> Path:
    """Make a film in clear, and the same film with DRM."""
    root = tmp_path_factory.mktemp("playback") / "media"
    hosts = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await hosts.start()

    async def protection(client: str, content_id: str) -> Protection | None:
        return PROTECTION if content_id == "secret" else None

    try:
        for content in ("film", "secret"):
            (root / content).mkdir(parents=True)
            film(root / content / f"{content}.mp4", *TRACKS, *CODED, inputs=TONES)
            made = await run(hosts, root, "vod_package", content_id=content, renditions=(192, 96), protection=protection)
            assert not isinstance(made, StepFailure), made
    finally:
        await hosts.stop()
    return root


@pytest.fixture(scope="module")
async def played(root: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Played]:
    picture = tmp_path_factory.mktemp("pictures") / "picture.jpg"

    def read(taken: bytes, turned: str = "") -> int:
        picture.write_bytes(taken)
        [number] = numbers(picture, turned=turned)
        return number

    theatre = Theatre(program("chromium"), shaka_player(), files=root, read=read)

    async def play(
        manifest: str,
        keys: Mapping[str, str] | None = None,
        *,
        shown: Sequence[tuple[int, float]] = SHOWN,
        turned: str = "",
    ) -> tuple[list[int], dict[str, Any]]:
        """Return the numbers of the frames that were seen, and the player's report on the package."""
        theatre.read = partial(read, turned=turned)
        return await theatre.play(f"/media/{manifest}", keys, shown=shown, home=tmp_path_factory.mktemp("profile"))

    async with theatre.open():
        yield play


@pytest.mark.parametrize("manifest", ["manifest.mpd", "master.m3u8"])
async def test_a_clear_package_plays(played: Played, manifest: str) -> None:
    seen, report = await played(f"film/clear/{manifest}")
    assert seen == [number for number, _ in SHOWN], report
    assert (report["languages"], report["heights"]) == (["de", "en"], [192, 96])
    assert report["duration"] == pytest.approx(4.0, abs=0.1)


async def test_a_protected_package_plays_with_its_key_only(played: Played) -> None:
    seen, report = await played("secret/cenc/manifest.mpd", {KID: KEY})
    assert seen == [number for number, _ in SHOWN], report
    seen, report = await played("secret/cenc/manifest.mpd")
    assert (seen, "error" in report) == ([], True)


@pytest.mark.long
async def test_foreign_sources_play(played: Played, root: Path, thorough: bool) -> None:
    """The option --thorough takes each of twenty sources; otherwise the source unites several of their faults."""
    (root / "in").mkdir()
    hosts = StepProcessPool(media_root=root, allow=[])
    await hosts.start()
    try:
        for name, foreign in (SOURCES if thorough else {"telephone": RISKY["telephone"]}).items():
            foreign.make(root / "in" / foreign.file)
            made = await run(hosts, root, "vod_ingest", content_id=name, file=f"in/{foreign.file}")
            assert not isinstance(made, StepFailure), (name, made)
            shown = moments(foreign, root / name / "clear" / made["renditions"]["videos"][0]["file"])
            for manifest in ("manifest.mpd", "master.m3u8"):
                seen, report = await played(f"{quote(name)}/clear/{manifest}", shown=shown, turned=foreign.turned)
                assert seen == [number for number, _ in shown], (name, manifest, report)
    finally:
        await hosts.stop()


def moments(foreign: Foreign, file: Path) -> list[tuple[int, float]]:
    """Return frames near the start, in the middle and near the end, each shortly before the next one.

    After a seek Chromium shows a frame for the duration in its sample, and with B-frames of variable rate that is the duration of
    another frame.
    """
    packets = probed(file, "-select_streams", "v:0", "-show_entries", "packet=pts_time")["packets"]
    times = [*sorted(float(packet["pts_time"]) for packet in packets), 3.04]
    count = len(foreign.numbers)
    return [
        (foreign.numbers[at], min(times[at + 1], times[at] + 0.12) - 0.01)
        for at in sorted({count // 9, count // 2, count * 8 // 9})
    ]
