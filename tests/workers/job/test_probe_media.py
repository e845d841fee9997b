"""The workflow `probe_media` in a real step host with the real ffprobe, on files that a real ffmpeg made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.step_hosts import Listener, order
from tests.workers.test_ffmpeg import script
from workers.adapters.ffmpeg import find
from workers.job.protocol import Finished, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

SOURCE = ["-f", "lavfi", "-i", "testsrc=size=64x36:rate=25:duration=0.2", "-c:v", "mpeg4"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a media root with a film, a file that is not a film, and a playlist that refers to other places."""
    root = tmp_path_factory.mktemp("probed") / "media"
    (root / "film/parts").mkdir(parents=True)
    ffmpeg = find("ffmpeg")
    assert ffmpeg is not None
    subprocess.run([ffmpeg, "-v", "error", *SOURCE, root / "film/parts/tiny film.mp4"], check=True)
    (root / "film/broken.mp4").write_bytes(b"no film at all" * 100)
    (root / "film/list.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n")
    (root.parent / "secret.mp4").write_bytes(b"secret")
    (root / "film/out.mp4").symlink_to(root.parent / "secret.mp4")
    (root / "film/up").symlink_to(root.parent)
    return root


@pytest.fixture(scope="module")
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


async def probed(hosts: StepProcessPool, file: str, listener: Listener | None = None) -> Finished | StepFailure:
    return await hosts.run(order("probe", workflow="probe_media", file=file), listener or Listener())


async def test_output_of_ffprobe_is_metadata_and_a_log_line(hosts: StepProcessPool, root: Path) -> None:
    listener = Listener()
    ended = await probed(hosts, "parts/tiny film.mp4", listener)
    assert isinstance(ended, Finished)
    metadata = ended.result.metadata
    assert metadata["format"]["filename"] == "film/parts/tiny film.mp4"
    assert float(metadata["format"]["duration"]) == pytest.approx(0.2)
    assert [(stream["codec_name"], stream["width"], stream["height"]) for stream in metadata["streams"]] == [("mpeg4", 64, 36)]
    assert metadata["chapters"] == []
    assert [json.loads(message) for _, message in listener.lines] == [metadata]
    assert str(root) not in str(ended)
    assert ended.outputs == ()


async def test_a_missing_file_is_a_final_failure(hosts: StepProcessPool) -> None:
    assert await probed(hosts, "none.mp4") == StepFailure("There is no file film/none.mp4.", final=True)
    assert await probed(hosts, "parts") == StepFailure("There is no file film/parts.", final=True)


async def test_an_unreadable_file_is_a_final_failure_without_local_paths(hosts: StepProcessPool, root: Path) -> None:
    ended = await probed(hosts, "broken.mp4")
    assert isinstance(ended, StepFailure)
    assert ended.final
    assert ended.reason.startswith("ffprobe: film/broken.mp4: ")
    assert str(root.parent) not in ended.reason
    assert await probed(hosts, "list.m3u8") == StepFailure("film/list.m3u8 is of a format that is not read.", final=True)


@pytest.mark.parametrize("file", ["out.mp4", "up/secret.mp4"])
async def test_a_symlink_out_of_the_media_root_is_not_followed(hosts: StepProcessPool, file: str) -> None:
    assert await probed(hosts, file) == StepFailure("The file is outside the media root.", final=True)


ENCODED = {
    "ts": ["-c:v", "mpeg2video", "-f", "mpegts"],
    "mp4": ["-c:v", "mpeg4"],
    "mkv": ["-c:v", "mpeg4"],
    "aac": ["-c:a", "aac", "-f", "adts"],
    "mp3": ["-c:a", "libmp3lame"],
}
TITLE = "title-of-another"


@pytest.fixture(scope="module")
def outside(root: Path) -> Path:
    """Return a folder with media files outside the media root, and copies of them within."""
    ffmpeg, folder = find("ffmpeg"), root.parent / "others"
    assert ffmpeg is not None
    folder.mkdir()
    for kind, options in ENCODED.items():
        source = "sine=duration=0.2" if kind in ("aac", "mp3") else "testsrc=size=64x36:rate=25:duration=0.2"
        made = folder / f"film.{kind}"
        command: list[str | Path] = [
            ffmpeg,
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            source,
            "-metadata",
            f"title={TITLE}",
            *options,
            made,
        ]
        subprocess.run(command, check=True)
        shutil.copy(made, root / "film" / made.name)
    return folder


@pytest.mark.parametrize("kind", ENCODED)
async def test_a_playlist_does_not_lead_to_a_file_outside(hosts: StepProcessPool, root: Path, outside: Path, kind: str) -> None:
    film = outside / f"film.{kind}"
    assert isinstance(await probed(hosts, film.name), Finished), "as a file of its own it is read"
    head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
    for number, body in enumerate(
        (
            f"#EXTINF:2,\n{film}\n",
            f"#EXTINF:2,\nfile://{film}\n",
            f"#EXTINF:2,\n../../others/{film.name}\n",
            f'#EXT-X-MAP:URI="{film}"\n#EXTINF:2,\n{film}\n',
        )
    ):
        (root / f"film/{kind}-{number}.m3u8").write_text(f"{head}{body}#EXT-X-ENDLIST\n")
        listener = Listener()
        ended = await probed(hosts, f"{kind}-{number}.m3u8", listener)
        assert isinstance(ended, StepFailure), body
        assert ended.final
        assert TITLE not in repr((ended, listener.lines))


def test_programs_of_the_operator_come_first(tmp_path: Path) -> None:
    own = script(tmp_path, "exit 0", name="ffprobe")
    assert find("ffprobe", path=f"/nowhere:{tmp_path}") == own
    bundled = find("ffprobe", path="/nowhere")
    assert bundled is not None
    assert bundled.name in ("ffprobe-linux-x64", "ffprobe-linux-arm64")
    assert os.access(bundled, os.X_OK)
    assert find("ffplay", path="/nowhere") is None
