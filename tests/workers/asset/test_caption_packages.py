"""Packages match the captions of their Event after every change, and nothing else in them changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.asset.aggregate import Asset
from domain.asset.values import CaptionKind
from domain.kernel.command import Command
from domain.kernel.media_files import MediaFile
from domain.kernel.ports import Invocation
from projections.asset.queries import AssetQueries, StoredCaptionTexts
from tests.workers.media.captions.test_tracks import MANIFEST, MASTER
from workers.adapters.media_directory import MediaDirectory
from workers.asset.caption_packages import CaptionPackages
from workers.job.caption_answers import CaptionAnswers

EVENT, GERMAN, ENGLISH = UUID(int=1), UUID(int=11), UUID(int=12)


class Busy(MediaDirectory):
    """Files that a job packages again, once, before a file is replaced."""

    def __init__(self, root: Path, *, then: bytes) -> None:
        super().__init__(root)
        self._place, self._then = root, then

    async def replace(self, only: MediaFile, content: bytes) -> bool:
        if self._then:
            (self._place / only.path).write_bytes(self._then)
            self._then = b""
        return await super().replace(only, content)


@pytest.fixture
def packages(media_root: Path) -> Path:
    for folder in ("cbcs", "cenc"):
        (media_root / str(EVENT) / folder).mkdir(parents=True)
        (media_root / str(EVENT) / folder / "master.m3u8").write_text(MASTER)
    (media_root / str(EVENT) / "cenc" / "manifest.mpd").write_bytes(MANIFEST)
    return media_root / str(EVENT)


def packaging(inner: Core, files: MediaDirectory) -> CaptionPackages:
    return CaptionPackages(
        inner.database, CaptionAnswers(StoredCaptionTexts(inner.database), AssetQueries(inner.database)), files=files
    )


async def given(inner: Core, *commands: Command[Any]) -> None:
    for command in commands:
        await inner.executor.execute(command, invocation=Invocation.by("studio"))


def added(key: UUID, language: str, *, job: int) -> Command[Asset]:
    path = f"{EVENT}/captions/{language}.vtt"
    return Asset.request_caption.on(
        key, event_id=EVENT, name=language, path=path, language=language, kind=CaptionKind.SUBTITLES, job=job
    )


def completed(key: UUID, language: str, *, job: int) -> Command[Asset]:
    return Asset.complete.on(key, job, job_version=5, sizes={f"{EVENT}/captions/{language}.vtt": 7})


async def test_those_that_have_a_text_are_named(inner: Core, media_root: Path, packages: Path) -> None:
    await given(inner, added(GERMAN, "de", job=3), added(ENGLISH, "en", job=4), completed(GERMAN, "de", job=3))
    agreeing = packaging(inner, MediaDirectory(media_root))
    await agreeing.agree(EVENT)
    for name in ("cbcs/master.m3u8", "cenc/master.m3u8", "cenc/manifest.mpd"):
        text = (packages / name).read_text()
        assert "../captions/de." in text
        assert "../captions/en." not in text
    before = (packages / "cbcs/master.m3u8").stat()
    await agreeing.agree(EVENT)
    assert (packages / "cbcs/master.m3u8").stat().st_ino == before.st_ino, "nothing was to be written"
    await given(inner, Asset.replace.on(GERMAN, 5, running_job=None).as_planned())
    await agreeing.agree(EVENT)
    assert "../captions/de." in (packages / "cbcs/master.m3u8").read_text(), "the text before is still there"


async def test_many_that_wait_for_each_other_leave_connections_to_others(inner: Core, media_root: Path, packages: Path) -> None:
    """Regression: each held a connection while it waited, and the first needed another one, so no query got any for seconds."""
    await given(inner, added(GERMAN, "de", job=3), completed(GERMAN, "de", job=3))
    agreeing = packaging(inner, MediaDirectory(media_root))
    await asyncio.gather(*(agreeing.agree(UUID(int=number)) for number in [1] * 40 + list(range(2, 42))))
    assert "../captions/de." in (packages / "cbcs/master.m3u8").read_text()


async def test_of_many_that_agree_at_once_none_is_lost(inner: Core, media_root: Path, packages: Path) -> None:
    languages = ["de", "en", "fr", "it", "pl"]
    agreeing = packaging(inner, MediaDirectory(media_root))

    async def add(number: int, language: str) -> None:
        key = UUID(int=100 + number)
        await given(inner, added(key, language, job=number), completed(key, language, job=number))
        await agreeing.agree(EVENT)

    await asyncio.gather(*(add(number, language) for number, language in enumerate(languages, 1)))
    text = (packages / "cenc/manifest.mpd").read_text()
    assert all(f"../captions/{language}.vtt" in text for language in languages)


async def test_a_film_that_is_packaged_meanwhile_is_not_overwritten(inner: Core, media_root: Path, packages: Path) -> None:
    await given(inner, added(GERMAN, "de", job=3), completed(GERMAN, "de", job=3))
    later = MASTER.replace("video-180", "video-1080").encode()
    await packaging(inner, Busy(media_root, then=later)).agree(EVENT)
    text = (packages / "cbcs/master.m3u8").read_text()
    assert "video-1080.m3u8" in text or "video-1080.m3u8" in (packages / "cenc/master.m3u8").read_text()
    assert "../captions/de.m3u8" in text


async def test_what_is_no_manifest_stays(inner: Core, media_root: Path, packages: Path) -> None:
    await given(inner, added(GERMAN, "de", job=3), completed(GERMAN, "de", job=3))
    (packages / "cenc/manifest.mpd").write_bytes(b"<!DOCTYPE x><MPD/>")
    await packaging(inner, MediaDirectory(media_root)).agree(EVENT)
    assert (packages / "cenc/manifest.mpd").read_bytes() == b"<!DOCTYPE x><MPD/>"
    assert "../captions/de.m3u8" in (packages / "cenc/master.m3u8").read_text()
