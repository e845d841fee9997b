"""The workflow of captions in real step hosts: texts become the files of a track, or the step fails with a sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.packages import published, run
from tests.support.step_hosts import Listener
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.fork_client import ForkServer

SRT = "1\n00:00:01,000 --> 00:00:03,000\n<i>Hallo</i> <script>x</script>\n\n2\n00:00:05,500 --> 00:00:07,000\nzwei\n"
NAME = "captions/a.de.captions.vtt"


@pytest.fixture(scope="module")
async def hosts(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> AsyncIterator[tuple[StepProcessPool, Path]]:
    root = tmp_path_factory.mktemp("captions") / "media"
    (root / "in").mkdir(parents=True)
    (root / "film").mkdir()
    hosts = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await hosts.start()
    yield hosts, root
    await hosts.stop()


async def test_a_text_becomes_the_files_of_a_track(hosts: tuple[StepProcessPool, Path]) -> None:
    pool, root = hosts
    (root / "film/metadata.json").write_text('{"duration": 13.5}')
    (root / "in/a.srt").write_bytes(SRT.encode("latin-1"))
    listener = Listener()
    made = await run(pool, root, "captions", name=NAME, file="in/a.srt", listener=listener)
    assert not isinstance(made, StepFailure), made
    assert made["convert"] == {"format": "SRT", "cues": 2, "first": 1.0, "last": 7.0}
    assert published(root) == {
        "metadata.json",
        NAME,
        "captions/a.de.captions.segments.vtt",
        "captions/a.de.captions.m3u8",
    }
    assert (root / "film" / NAME).read_text() == (
        "WEBVTT\n\n00:00:01.000 --> 00:00:03.000\n<i>Hallo</i>\n\n00:00:05.500 --> 00:00:07.000\nzwei\n"
    )
    assert (root / "film/captions/a.de.captions.m3u8").read_text().count("#EXTINF") == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The file of the captions is empty."),
        ("<html/>", "The captions are XML, but not TTML."),
        (
            SRT.replace("00:00:0", "01:00:0"),
            "The first cue begins at 01:00:01.000, and the film ends after 00:00:13.500: the times of the cues do not count from "
            "the beginning of the film.",
        ),
    ],
)
async def test_what_cannot_be_used_fails_for_good(hosts: tuple[StepProcessPool, Path], text: str, sentence: str) -> None:
    pool, root = hosts
    (root / "film/metadata.json").write_text('{"duration": 13.5}')
    (root / "in/b.srt").write_text(text)
    assert await run(pool, root, "captions", name=NAME, file="in/b.srt") == StepFailure(sentence, final=True)


async def test_a_file_that_is_not_there(hosts: tuple[StepProcessPool, Path]) -> None:
    pool, root = hosts
    assert await run(pool, root, "captions", name=NAME, file="in/none.srt") == StepFailure(
        "There is no file in/none.srt.", final=True
    )


async def test_a_text_that_is_not_kept_any_more(hosts: tuple[StepProcessPool, Path]) -> None:
    pool, root = hosts
    ended = await run(pool, root, "captions", name=NAME, sent="0f8fad5b-d9cb-469f-a165-70867728950e")
    assert isinstance(ended, StepFailure)
