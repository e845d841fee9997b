"""Use cases of captions over in-memory twins."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from domain.asset.aggregate import Asset
from domain.asset.caption_handlers import CaptionHandlers, NewCaption, language_tag
from domain.asset.file_names import caption_parts
from domain.asset.ports import AssetFilter
from domain.asset.row import AssetRow
from domain.asset.values import AssetState, AssetType, CaptionKind
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound, Refused
from tests.domain.asset.memory_assets import MemoryAssets
from tests.domain.asset.test_handlers import EVENT, FILM, KEY, ME, OTHER, accepted, handlers
from tests.domain.media_files import MemoryMediaFiles
from tests.domain.memory import Memory

WANTED = NewCaption(event_id=EVENT, language="deu", kind=CaptionKind.CAPTIONS, name="Für Alle", content=b"WEBVTT")
PATH = f"{EVENT}/captions/f-r-alle.de.captions.vtt"


class Texts:
    """The twin of the table of texts."""

    def __init__(self) -> None:
        self.stored: dict[UUID, bytes] = {}

    async def store(self, key: UUID, content: bytes) -> None:
        self.stored.setdefault(key, content)


@pytest.fixture
async def memory() -> Memory:
    memory = Memory()
    await memory.given(AddOrUpdateEvent(EVENT, {"title": "Final"}))
    return memory


@pytest.fixture
def files() -> MemoryMediaFiles:
    files = MemoryMediaFiles()
    files.put(FILM, b"film")
    return files


@pytest.fixture
def texts() -> Texts:
    return Texts()


@pytest.fixture
def captions(memory: Memory, files: MemoryMediaFiles, texts: Texts) -> CaptionHandlers:
    jobs = handlers(memory, files)._jobs
    return CaptionHandlers(memory.executor, MemoryAssets(memory.log), events=memory.events, files=files, jobs=jobs, texts=texts)


def requested(key: UUID = KEY, *, job: int = 3, path: str = PATH) -> Command[Asset]:
    return Asset.request_caption.on(
        key, event_id=EVENT, name=WANTED.name, path=path, language="de", kind=CaptionKind.CAPTIONS, job=job
    )


async def test_the_text_is_stored_and_the_job_and_its_caption_are_one_append(
    memory: Memory, captions: CaptionHandlers, texts: Texts
) -> None:
    asset = (await captions.add(WANTED, invocation=ME)).aggregate
    assert memory.topics == ["job.accepted", "asset.caption_requested"]
    assert (asset.type, asset.state, asset.path, asset.job) == (AssetType.CAPTION, AssetState.GENERATING, PATH, 17)
    assert (asset.language, asset.kind, asset.name) == ("de", CaptionKind.CAPTIONS, "Für Alle")
    [submission] = [entry.facts["submission"] for entry in memory.happened if "submission" in entry.facts]
    [(sent, content)] = texts.stored.items()
    assert content == b"WEBVTT"
    assert submission.parameters == {"content_id": str(EVENT), "name": PATH.removeprefix(f"{EVENT}/"), "sent": str(sent)}
    assert (submission.workflow, submission.owner) == ("captions", asset.id)


@pytest.mark.parametrize(("source", "value"), [("file", "in/a.srt"), ("url", "https://a.example/a.srt")])
async def test_a_text_that_is_elsewhere_is_not_stored(
    memory: Memory, captions: CaptionHandlers, texts: Texts, source: str, value: str
) -> None:
    sources: dict[str, Any] = {"content": None, source: value}
    await captions.add(replace(WANTED, **sources), invocation=ME)
    [submission] = [entry.facts["submission"] for entry in memory.happened if "submission" in entry.facts]
    assert (submission.parameters[source], texts.stored) == (value, {})


async def test_another_text_of_the_same_language_kind_and_name_replaces_it(memory: Memory, captions: CaptionHandlers) -> None:
    await memory.given(accepted(3, KEY), requested(), Asset.complete.on(KEY, 3, job_version=5, sizes={PATH: 7}))
    asset = (await captions.add(WANTED, invocation=ME)).aggregate
    assert memory.topics == ["job.accepted", "asset.caption_replaced"]
    assert (asset.key, asset.path, asset.jobs, asset.state, asset.size) == (str(KEY), PATH, (3, 17), AssetState.GENERATING, 7)
    asset.complete(memory.now, 17, job_version=1, sizes={PATH: 9})
    assert (asset.state, asset.size) == (AssetState.COMPLETED, 9)


async def test_a_job_that_makes_the_text_before_is_broken_off(memory: Memory, captions: CaptionHandlers) -> None:
    await memory.given(accepted(3, KEY), requested())
    await captions.add(WANTED, invocation=ME)
    assert memory.topics == ["job.broken", "job.accepted", "asset.caption_replaced"]


async def test_of_two_that_come_at_once_the_later_replaces_the_earlier(memory: Memory, captions: CaptionHandlers) -> None:
    memory.meanwhile(accepted(3, OTHER), requested(OTHER))
    asset = (await captions.add(WANTED, invocation=ME)).aggregate
    assert (asset.key, asset.jobs) == (str(OTHER), (3, 18)), "17 was the job of the first try"


async def test_other_captions_have_files_of_their_own(memory: Memory, captions: CaptionHandlers) -> None:
    await memory.given(requested())
    other = (await captions.add(replace(WANTED, name="F-r/Alle"), invocation=ME)).aggregate
    assert other.path == f"{EVENT}/captions/f-r-alle.de.captions-{other.key[:8]}.vtt"
    english = (await captions.add(replace(WANTED, language="en-GB", name="日本語"), invocation=ME)).aggregate
    assert english.path == f"{EVENT}/captions/text.en-GB.captions.vtt"


async def test_a_removed_one_makes_room_for_another(memory: Memory, captions: CaptionHandlers) -> None:
    await memory.given(accepted(3, KEY), requested(), Asset.remove.on(KEY, running_job=3))
    assert (await captions.add(WANTED, invocation=ME)).aggregate.key != str(KEY)


async def test_what_is_refused(memory: Memory, files: MemoryMediaFiles, captions: CaptionHandlers, texts: Texts) -> None:
    with pytest.raises(NotFound):
        await captions.add(replace(WANTED, event_id=OTHER), invocation=ME)
    with pytest.raises(Malformed):
        await captions.add(replace(WANTED, language="german"), invocation=ME)
    await files.remove(FILM)
    with pytest.raises(Refused, match="has no VOD file"):
        await captions.add(WANTED, invocation=ME)
    assert texts.stored == {}


async def test_a_caption_is_not_renamed(memory: Memory) -> None:
    await memory.given(requested())
    with pytest.raises(Refused, match="cannot be renamed"):
        await memory.executor.execute(Asset.rename.on(KEY, "x"), invocation=ME)


async def test_a_deletion_takes_captions_only_where_they_are_asked_for(memory: Memory, files: MemoryMediaFiles) -> None:
    await memory.given(accepted(3, KEY), requested())
    assets = handlers(memory, files)
    assert (await assets.delete_matching(AssetFilter(event_id=EVENT), invocation=ME)).result == {"deleted": 0}
    wanted = AssetFilter(event_id=EVENT, types=(AssetType.CAPTION,))
    assert (await assets.delete_matching(wanted, invocation=ME)).result == {"deleted": 1}


async def test_the_parts_of_a_caption_are_no_assets(memory: Memory, files: MemoryMediaFiles) -> None:
    await memory.given(requested(), Asset.complete.on(KEY, 3, job_version=5, sizes={PATH: 7}))
    for ending in (".vtt", ".segments.vtt", ".m3u8"):
        files.put(PATH.replace(".vtt", ending), b"x")
    assert (await handlers(memory, files).sync(EVENT, invocation=ME)).result["created"] == 1, "the film"


SUBTITLES = f"{EVENT}/subtitles/fr-subtitles.vtt"


def ingested(files: MemoryMediaFiles, *tracks: dict[str, object], text: bytes = b"bonjour") -> None:
    """Publish the files of a job for a film whose source has these tracks. Files of earlier jobs stay."""
    for track in tracks:
        for path in (f"{EVENT}/{track['file']}", *caption_parts(f"{EVENT}/{track['file']}")):
            files.put(path, text)
    files.put(f"{EVENT}/metadata.json", json.dumps({"contentId": str(EVENT), "captions": tracks}).encode())


def track(**facts: object) -> dict[str, object]:
    return {"file": "subtitles/fr-subtitles.vtt", "language": "fr", "kind": "subtitles", "name": "Français", **facts}


async def discovered(memory: Memory) -> list[AssetRow]:
    return list(await MemoryAssets(memory.log).matching(AssetFilter(types=(AssetType.CAPTION,)), limit=9))


async def test_text_tracks_of_the_source_become_captions(memory: Memory, files: MemoryMediaFiles) -> None:
    """Their parts are no assets, and a repeat finds nothing new."""
    ingested(files, track(), track(file="subtitles/en-captions.vtt", language="en", kind="captions", name="CC1"))
    assets = handlers(memory, files)
    assert (await assets.sync(EVENT, invocation=ME)).result["created"] == 4, "the film, its metadata and two tracks"
    shown = {(row.language, row.kind, row.name, row.path, row.state, row.size, row.job) for row in await discovered(memory)}
    done = (AssetState.COMPLETED, 7, None)
    assert shown == {
        ("fr", CaptionKind.SUBTITLES, "Français", SUBTITLES, *done),
        ("en", CaptionKind.CAPTIONS, "CC1", f"{EVENT}/subtitles/en-captions.vtt", *done),
    }
    again = (await assets.sync(EVENT, invocation=ME)).result
    assert (again["created"], again["deleted"], memory.topics.count("asset.caption_discovered")) == (0, 0, 2)


async def test_they_follow_the_film_when_it_is_ingested_anew(memory: Memory, files: MemoryMediaFiles) -> None:
    ingested(files, track())
    await handlers(memory, files).sync(EVENT, invocation=ME)
    ingested(files, track(name="French"), text=b"bon")
    await handlers(memory, files).sync(EVENT, invocation=ME)
    [row] = await discovered(memory)
    assert (row.name, row.size, memory.topics.count("asset.caption_discovered")) == ("French", 3, 1)
    ingested(files)
    assert (await handlers(memory, files).sync(EVENT, invocation=ME)).result["deleted"] == 1
    assert await discovered(memory) == []
    assert (await handlers(memory, files).sync(EVENT, invocation=ME)).result["created"] == 0
    await memory.given(Asset.release_path.on(row.id))
    ingested(files, track())
    await handlers(memory, files).sync(EVENT, invocation=ME)
    assert [two.id == row.id for two in await discovered(memory)] == [False]


async def test_a_text_that_is_sent_stands_beside_one_of_the_source(
    memory: Memory, files: MemoryMediaFiles, captions: CaptionHandlers
) -> None:
    """The two texts may have the same language, kind and name, and come in any order."""
    ingested(files, track())
    await handlers(memory, files).sync(EVENT, invocation=ME)
    same = replace(WANTED, language="fr", kind=CaptionKind.SUBTITLES, name="Français")
    asset = (await captions.add(same, invocation=ME)).aggregate
    assert (asset.path, len(await discovered(memory))) == (f"{EVENT}/captions/fran-ais.fr.subtitles.vtt", 2)
    assert (await captions.add(same, invocation=ME)).aggregate.key == asset.key


@pytest.mark.parametrize(
    "facts",
    [
        {"file": "subtitles/../../other/a.vtt"},
        {"file": "captions/a.vtt"},
        {"file": 7},
        {"language": "f r"},
        {"language": None},
        {"kind": "songs"},
        {"name": " "},
        {"name": "a" * 300},
        {"name": "a\n"},
    ],
)
async def test_what_other_hands_write_into_the_metadata_is_left_out(
    memory: Memory, files: MemoryMediaFiles, facts: dict[str, object]
) -> None:
    ingested(files, track(), {**track(file="subtitles/xx.vtt"), **facts})
    await handlers(memory, files).sync(EVENT, invocation=ME)
    assert [row.name for row in await discovered(memory)] == ["Français"]


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"captions": {}}', b"[" * 9_000, b" " * 1_100_000])
async def test_without_a_list_of_tracks_they_are_files_of_the_system(memory: Memory, files: MemoryMediaFiles, text: bytes) -> None:
    files.put(SUBTITLES, b"x")
    files.put(f"{EVENT}/metadata.json", text)
    assert (await handlers(memory, files).sync(EVENT, invocation=ME)).result["created"] == 3
    assert await discovered(memory) == []


@pytest.mark.parametrize(
    ("sent", "tag"),
    [("de", "de"), ("DEU", "de"), ("en-gb", "en-GB"), ("zh-hant-tw", "zh-Hant-TW"), ("es-419", "es-419"), ("mul", "mul")],
)
def test_tags_of_languages(sent: str, tag: str) -> None:
    assert language_tag(sent) == tag


@pytest.mark.parametrize("sent", ["", "xx", "german", "de_DE", "de--x", "en us", "a" * 200, "d\u0435", "de\n", '"', "i"])
def test_what_is_no_tag_of_a_language(sent: str) -> None:
    with pytest.raises(Malformed, match="BCP 47"):
        language_tag(sent)
