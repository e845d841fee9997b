"""The files of removed assets are deleted once no run of the job can publish them any more, by any process."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.asset.aggregate import Asset
from domain.asset.values import FOUND, AssetType, CaptionKind
from domain.job.values import Output
from domain.kernel.errors import Unavailable
from domain.kernel.media_files import MediaFile, MediaFiles
from domain.kernel.ports import Executor, Invocation, Outcome
from projections.asset.queries import AssetQueries, StoredCaptionTexts
from projections.job.queue import QueuedRun
from tests.api.asking import topics
from tests.support.clock import NOON
from tests.support.feeding import do
from tests.workers.media.captions.test_tracks import MANIFEST, MASTER
from workers.adapters.media_directory import MediaDirectory
from workers.asset.caption_packages import CaptionPackages
from workers.asset.removal import Agree, AssetFileRemoval, RemoveJobFolders
from workers.job.caption_answers import CaptionAnswers
from workers.job.workspaces import OutputMissing, Workspaces
from workers.kernel.wakeups import Waker
from workers.media.captions.tracks import TextTrack, in_manifest, in_playlist

EVENT, KEY, OTHER = UUID(int=1), UUID(int=7), UUID(int=8)
PATH = f"{EVENT}/assets/goal.jpg"
OUTPUT = Output(path="image.jpg", name=PATH, size=4, sha256="00")
RUN = QueuedRun(17, 1, 1)


class Interrupted:
    """An executor whose process dies before it releases the path."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._dead = True

    async def execute(self, wanted: Any, *, invocation: Invocation) -> Outcome[Any]:
        if self._dead and wanted == Asset.release_path.on(wanted.key):
            self._dead = False
            raise Unavailable("gone")
        return await self._executor.execute(wanted, invocation=invocation)


def packages(inner: Core, root: Path) -> CaptionPackages:
    answers = CaptionAnswers(StoredCaptionTexts(inner.database), AssetQueries(inner.database))
    return CaptionPackages(inner.database, answers, files=MediaDirectory(root))


def removal(
    inner: Core,
    root: Path,
    *,
    executor: Executor | None = None,
    files: MediaFiles | None = None,
    remove_folders: RemoveJobFolders | None = None,
    agree: Agree | None = None,
) -> AssetFileRemoval:
    return AssetFileRemoval(
        AssetQueries(inner.database),
        executor or inner.executor,
        streams=inner.streams,
        files=files or MediaDirectory(root),
        remove_folders=remove_folders or Workspaces(root).remove,
        agree=agree or packages(inner, root).agree,
        waker=Waker(),
    )


async def requested(inner: Core, key: UUID = KEY, path: str = PATH) -> Asset:
    return await do(inner, Asset.request.on(key, event_id=EVENT, type=AssetType.IMAGE, name="Goal", path=path, job=17))


async def is_there(root: Path) -> bool:
    return await MediaDirectory(root).find(PATH) is not None


@pytest.fixture
def _file(media_root: Path) -> None:
    file = media_root / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(b"goal")


@pytest.mark.usefixtures("_file")
async def test_the_file_goes_and_the_path_is_free(inner: Core, media_root: Path) -> None:
    await requested(inner)
    await do(inner, Asset.remove.on(KEY, running_job=17))
    assert await AssetQueries(inner.database).is_taken(PATH)
    assert await removal(inner, media_root).remove() == 1
    assert not await is_there(media_root)
    assert not await AssetQueries(inner.database).is_taken(PATH)
    assert await topics(inner, f"asset:{KEY}") == ["asset.requested", "asset.removed", "asset.file_deleted"]
    assert await removal(inner, media_root).remove() == 0


async def test_a_caption_goes_with_its_parts_after_its_packages_have_forgotten_it(inner: Core, media_root: Path) -> None:
    path, folder = f"{EVENT}/captions/a.vtt", media_root / str(EVENT)
    for name in ("captions/a.vtt", "captions/a.segments.vtt", "captions/a.m3u8", "captions/b.vtt", "clear/master.m3u8"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(MASTER)
    request = Asset.request_caption.on(KEY, event_id=EVENT, name="a", path=path, language="de", kind=CaptionKind.SUBTITLES, job=17)
    await do(inner, request)
    await do(inner, Asset.complete.on(KEY, 17, job_version=5, sizes={path: 4}))
    await packages(inner, media_root).agree(EVENT)
    assert "captions/a.m3u8" in (folder / "clear/master.m3u8").read_text()
    await do(inner, Asset.remove.on(KEY, running_job=None))
    assert await removal(inner, media_root).remove() == 1
    assert (folder / "clear/master.m3u8").read_text() == MASTER
    assert [file.name for file in (folder / "captions").iterdir()] == ["b.vtt"]


async def test_a_text_track_of_the_source_goes_alone(inner: Core, media_root: Path) -> None:
    """The packages keep the other tracks of the source, and those that clients have added."""
    folder = media_root / str(EVENT)
    fields: dict[str, Any] = {"language": "de", "kind": CaptionKind.CAPTIONS, "folder": FOUND}
    tracks = [TextTrack(name=name, stem=stem, **fields) for name, stem in (("a", "de-captions"), ("b", "de-captions-2"))]
    others = tracks[1:]
    for name in [name for track in tracks for name in track.files]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a")
    for name in ("clear", "cenc"):
        (folder / name).mkdir()
        (folder / name / "master.m3u8").write_text(in_playlist(MASTER, tracks, folder=FOUND))
        (folder / name / "manifest.mpd").write_bytes(in_manifest(MANIFEST, tracks, folder=FOUND))
    path = f"{EVENT}/{tracks[0].file}"
    facts: dict[str, Any] = {"language": "de", "kind": CaptionKind.CAPTIONS, "size": 1, "modified": NOON}
    await do(inner, Asset.discover_caption.on(KEY, event_id=EVENT, name="a", path=path, **facts))
    await packages(inner, media_root).agree(EVENT)
    assert "de-captions.m3u8" in (folder / "clear/master.m3u8").read_text()
    await do(inner, Asset.remove.on(KEY, running_job=None))
    assert await removal(inner, media_root).remove() == 1
    for name in ("clear", "cenc"):
        assert (folder / name / "master.m3u8").read_text() == in_playlist(MASTER, others, folder=FOUND)
        assert (folder / name / "manifest.mpd").read_bytes() == in_manifest(MANIFEST, others, folder=FOUND)
    assert sorted(file.name for file in (folder / FOUND).iterdir()) == sorted(name.rpartition("/")[2] for name in others[0].files)
    answers = CaptionAnswers(StoredCaptionTexts(inner.database), AssetQueries(inner.database))
    assert [(entry.file, entry.kind, entry.name) for entry in await answers.removed(str(EVENT))] == [
        (tracks[0].file, tracks[0].kind, "a")
    ]
    await do(inner, Asset.discover_caption.on(OTHER, event_id=EVENT, name="a", path=path, **facts))
    assert await answers.removed(str(EVENT)) == []
    assert await answers.removed("film") == ()


@pytest.mark.usefixtures("_file")
async def test_files_of_others_stay(inner: Core, media_root: Path) -> None:
    await requested(inner)
    await requested(inner, OTHER, f"{EVENT}/assets/other.jpg")
    await do(inner, Asset.complete.on(OTHER, 17, job_version=5, sizes={f"{EVENT}/assets/other.jpg": 4}))
    await do(inner, Asset.forget.on(OTHER))
    assert await removal(inner, media_root).remove() == 0
    assert await is_there(media_root)


@pytest.mark.usefixtures("_file")
async def test_who_dies_on_the_way_leaves_the_rest_to_the_next(inner: Core, media_root: Path) -> None:
    await requested(inner)
    await do(inner, Asset.remove.on(KEY, running_job=17))
    dying = removal(inner, media_root, executor=Interrupted(inner.executor))
    with pytest.raises(Unavailable):
        await dying.remove()
    assert not await is_there(media_root)
    assert await AssetQueries(inner.database).is_taken(PATH)
    assert await dying.remove() == 1
    assert not await AssetQueries(inner.database).is_taken(PATH)


async def test_a_run_that_was_frozen_before_it_published_publishes_nothing(inner: Core, media_root: Path) -> None:
    folder = media_root / ".jobs/17/1/1"
    folder.mkdir(parents=True)
    (folder / "image.jpg").write_bytes(b"goal")
    await requested(inner)
    await do(inner, Asset.remove.on(KEY, running_job=17))
    await removal(inner, media_root).remove()
    with pytest.raises(OutputMissing):
        await Workspaces(media_root).publish(RUN, [OUTPUT], client="studio")
    assert not await is_there(media_root)


@pytest.mark.usefixtures("_file")
async def test_who_is_slow_leaves_the_file_of_the_next_asset(inner: Core, media_root: Path) -> None:
    """Another process may have released the path while this one deletes the folders of the job."""
    in_progress, resume = asyncio.Event(), asyncio.Event()

    async def slowly(jobs: Collection[int]) -> None:
        in_progress.set()
        await resume.wait()

    await requested(inner)
    await do(inner, Asset.remove.on(KEY, running_job=17))
    slow = asyncio.create_task(removal(inner, media_root, remove_folders=slowly).remove())
    await in_progress.wait()
    await removal(inner, media_root).remove()
    await requested(inner, OTHER)
    (media_root / PATH).write_bytes(b"next")
    resume.set()
    await slow
    assert await is_there(media_root)


@pytest.mark.usefixtures("_file")
async def test_who_is_frozen_before_it_deletes_leaves_the_file_of_the_next_asset(inner: Core, media_root: Path) -> None:
    class Frozen(MediaDirectory):
        async def remove(self, path: str, *, only: MediaFile | None = None) -> None:
            await removal(inner, media_root).remove()
            await requested(inner, OTHER)
            (media_root / PATH).write_bytes(b"next")
            await super().remove(path, only=only)

    await requested(inner)
    await do(inner, Asset.remove.on(KEY, running_job=17))
    await removal(inner, media_root, files=Frozen(media_root)).remove()
    assert (media_root / PATH).read_bytes() == b"next"
