"""The workflow `vod_ingest` in real step hosts: sources of all kinds, hostile ones, and a full disk."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from domain.kernel.errors import Malformed
from tests.support.packages import published, run
from tests.support.sources.numbered_frames import film, numbers, probed
from tests.workers.job.file_host import FileHost
from tests.workers.job.sources import BOTH, FRAMES, H264, RISKY, SOURCES, TONE, ffmpeg
from workers.job.protocol import StepFailure
from workers.job.registry import builtin
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ingest") / "media"
    folder = root / "in"
    folder.mkdir(parents=True)
    film(folder / "film.mkv", *BOTH, *H264, "-c:a", "aac", frames=FRAMES, inputs=TONE)
    ffmpeg("-i", str(folder / "film.mkv"), "-c", "copy", "-movflags", "+faststart", str(folder / "front.mp4"))
    film(folder / "-wide.nut", "-vf", "scale=20000:16", "-c:v", "ffv1", frames=1)
    film(folder / "thin.nut", "-vf", "scale=100:2", "-c:v", "ffv1", frames=1)
    film(folder / "sound.mp4", "-map", "1:a", "-c:a", "aac", inputs=TONE, frames=1)
    film(folder / "bomb.mkv", *("-map", "0:v") * 65, "-c:v", "mpeg4", "-s", "16x16", frames=1)
    front = (folder / "front.mp4").read_bytes()
    (folder / "half.mp4").write_bytes(front[: len(front) // 2])
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "noise.mp4").write_bytes(bytes(range(256)) * 400)
    (folder / "playlist.mp4").write_text(
        f"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nfile://{folder}/film.mkv\n#EXT-X-ENDLIST\n"
    )
    (folder / "concat.mp4").write_text(f"ffconcat version 1.0\nfile {folder}/film.mkv\n")
    (root.parent / "secret.mp4").write_bytes(front)
    (folder / "out.mp4").symlink_to(root.parent / "secret.mp4")
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[ip_network("127.0.0.1/32")], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


async def test_foreign_sources_are_shown_frame_by_frame(hosts: StepProcessPool, root: Path, thorough: bool) -> None:
    """The option --thorough takes each of twenty sources."""
    for name, foreign in (SOURCES if thorough else RISKY).items():
        foreign.make(root / "in" / foreign.file)
        made = await run(hosts, root, "vod_ingest", content_id=name, file=f"in/{foreign.file}")
        assert not isinstance(made, StepFailure), (name, made)
        video = made["renditions"]["videos"][0]
        assert (video["width"], video["height"]) == foreign.size, name
        assert len(made["renditions"]["audios"]) == foreign.sounds, name
        for file in (f"{name}.mp4", f"clear/{video['file']}"):
            assert numbers(root / name / file, turned=foreign.turned) == list(foreign.numbers), (name, file)
        first = probed(root / name / "clear" / video["file"], "-show_entries", "packet=pts_time")["packets"][0]
        assert float(first["pts_time"]) == 0, name
        streams = probed(root / name / "clear" / video["file"])["streams"]
        assert (streams[0]["pix_fmt"], streams[0]["field_order"]) == ("yuv420p", "progressive"), name


async def test_a_url_is_fetched_checked_and_packaged(hosts: StepProcessPool, root: Path) -> None:
    body = (root / "in/film.mkv").read_bytes()
    async with FileHost(body) as host:
        wrong = await run(hosts, root, "vod_ingest", content_id="far", url=host.url, sha256="0" * 64)
        assert isinstance(wrong, StepFailure)
        assert wrong.reason.startswith(f"Expected SHA-256 {'0' * 64}")
        made = await run(hosts, root, "vod_ingest", content_id="far", url=host.url, sha256=sha256(body).hexdigest())
    assert not isinstance(made, StepFailure), made
    described = json.loads((root / "far/metadata.json").read_text())
    assert {file["name"] for file in described["files"]} == published(root, "far") - {"metadata.json"}
    assert numbers(root / "far/far.mp4") == list(range(FRAMES))
    moov, media = ((root / "far/far.mp4").read_bytes().find(box) for box in (b"moov", b"mdat"))
    assert 0 < moov < media, "playback can begin before all of it has come"


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("none.mp4", "There is no file in/none.mp4."),
        ("out.mp4", "The file is outside the media root."),
        ("sound.mp4", "in/sound.mp4 has no video track."),
        ("-wide.nut", "The picture of in/-wide.nut has more than 16384 pixels on a side."),
        ("thin.nut", "The picture of in/thin.nut has less than 16 pixels on a side."),
        ("bomb.mkv", "in/bomb.mkv has 65 tracks; at most 64 are read."),
        ("half.mp4", "in/half.mp4 says that it lasts 3.0 s and ends after 1.4 s: it is incomplete."),
        ("empty.mp4", None),
        ("noise.mp4", None),
        ("playlist.mp4", None),
        ("concat.mp4", "in/concat.mp4 is of a format that is not read."),
    ],
)
async def test_what_cannot_be_packaged_fails_for_good_with_a_sentence(
    hosts: StepProcessPool, root: Path, file: str, reason: str | None
) -> None:
    failed = await run(hosts, root, "vod_ingest", content_id="refused", file=f"in/{file}")
    assert isinstance(failed, StepFailure)
    assert failed.final
    assert reason in (None, failed.reason)
    assert str(root) not in failed.reason
    assert published(root, "refused") == set()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of one megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False).returncode:
        pytest.skip("not found: the right to mount a file system, which root has outside of containers")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_a_full_disk_publishes_nothing(small: Path, root: Path, step_server: ForkServer) -> None:
    """The disk is full for any of the steps. The failure is not final, since files may fit later."""
    folder = small / "media/film"
    folder.mkdir(parents=True)
    (folder / "film.mp4").write_bytes((root / "in/front.mp4").read_bytes())
    hosts = StepProcessPool(media_root=small / "media", allow=[], fork_server=step_server)
    await hosts.start()
    reasons = []
    try:
        for free in range(0, 1_000_000, 24_576):
            with (small / "ballast").open("wb") as ballast:
                ballast.write(bytes(max(_free(small) - free, 0)))
            made = await run(hosts, small / "media", "vod_package")
            (small / "ballast").unlink()
            if not isinstance(made, StepFailure):
                break
            reasons.append(made.reason)
            assert not made.final
            assert published(small / "media") == {"film.mp4"}, reasons
    finally:
        await hosts.stop()
    assert len(reasons) > 3, reasons
    assert set(reasons) == {"The disk is full."}


def _free(place: Path) -> int:
    status = os.statvfs(place)
    return status.f_bavail * status.f_bsize


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "parameters"),
        ({"file": "a.mp4", "url": "https://host.example/a.mp4"}, "parameters"),
        ({"file": "../a.mp4"}, "parameters.file"),
        ({"file": "a.mp4", "sha256": "abc"}, "parameters.sha256"),
        ({"file": "a.mp4", "renditions": []}, "parameters.renditions"),
        ({"file": "a.mp4", "renditions": [720, 720]}, "parameters.renditions"),
        ({"file": "a.mp4", "renditions": [5000]}, "parameters.renditions[0]"),
        ({"file": "a.mp4", "content_id": "x" * 198}, "parameters.content_id"),
    ],
)
def test_wrong_parameters_are_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(Malformed) as refused:
        builtin().checked("vod_ingest", {"content_id": "film", **given})
    assert refused.value.errors[0].field == field
