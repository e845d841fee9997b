"""The look-ups of assets over the view, and their twin in memory: the same answers after the same history."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.asset.aggregate import Asset
from domain.asset.ports import AssetFilter, AssetLookup
from domain.asset.values import AssetState, AssetType, CaptionKind
from domain.kernel.command import Command
from domain.kernel.ports import Invocation
from projections.asset.queries import AssetQueries
from tests.domain.asset.memory_assets import MemoryAssets
from tests.domain.memory import Memory
from tests.support.clock import NOON, HandClock

FIRST, SECOND, THIRD = UUID(int=1), UUID(int=2), UUID(int=9)
CAPTION, OLD, OF_SOURCE = UUID(int=21), UUID(int=22), UUID(int=23)
IMAGE, VIDEO, FOUND, GONE, LEFT, LOST = (UUID(int=number) for number in range(11, 17))
ALL = (IMAGE, VIDEO, FOUND)


def requested(key: UUID, event: UUID, path: str, *, job: int, kind: AssetType = AssetType.IMAGE) -> Command[Asset]:
    return Asset.request.on(key, event_id=event, type=kind, name="Goal", path=path, job=job)


def captioned(key: UUID, path: str, *, job: int, name: str = "Goal") -> Command[Asset]:
    kind = CaptionKind.SUBTITLES
    return Asset.request_caption.on(key, event_id=THIRD, name=name, path=path, language="de", kind=kind, job=job)


HISTORY: tuple[Command[Any], ...] = (
    requested(IMAGE, FIRST, "1/a_Sprite.JPG", job=1),
    Asset.complete.on(IMAGE, 1, job_version=5, sizes={"1/a_Sprite.JPG": 7}),
    requested(VIDEO, SECOND, "2/a.mp4", job=2, kind=AssetType.VIDEO),
    Asset.fail.on(VIDEO, 2, job_version=5, reason="no"),
    Asset.discover.on(FOUND, event_id=FIRST, name="a", path="1/%.ism", size=3, modified=NOON),
    Asset.rename.on(FOUND, "%"),
    requested(GONE, FIRST, "1/gone.jpg", job=3),
    Asset.remove.on(GONE, running_job=3),
    Asset.release_path.on(GONE),
    requested(LEFT, FIRST, "1/left.jpg", job=4),
    Asset.remove.on(LEFT, running_job=4),
    Asset.discover.on(LOST, event_id=FIRST, name="lost", path="1/lost", size=3, modified=NOON),
    Asset.forget.on(LOST),
    Asset.discover_caption.on(
        OF_SOURCE,
        event_id=THIRD,
        name="Goal",
        path="3/subtitles/a.vtt",
        language="de",
        kind=CaptionKind.SUBTITLES,
        size=3,
        modified=NOON,
    ),
    captioned(CAPTION, "3/captions/a.vtt", job=5),
    Asset.complete.on(CAPTION, 5, job_version=5, sizes={"3/captions/a.vtt": 7}),
    captioned(OLD, "3/captions/b.vtt", job=6, name="Old"),
    Asset.remove.on(OLD, running_job=6),
)


@pytest.fixture
async def both(inner: Core, clock: HandClock) -> tuple[AssetLookup, AssetLookup]:
    """The twin and the adapter, after a history of which each step took a second."""
    memory = Memory()
    for command in HISTORY:
        clock.forward(seconds=1)
        memory.now = inner.clock()
        for executor in (memory.executor, inner.executor):
            await executor.execute(command, invocation=Invocation.by("somebody"))
    return MemoryAssets(memory.log), AssetQueries(inner.database)


async def test_an_asset_is_found_unless_it_is_removed(both: tuple[AssetLookup, AssetLookup]) -> None:
    twin, adapter = both
    for key in (*ALL, GONE, LEFT, LOST, UUID(int=99)):
        asset = await adapter.find(key)
        assert asset == await twin.find(key)
        assert (asset is not None) == (key in ALL)


async def test_all_that_hold_a_path_are_those_of_the_event(both: tuple[AssetLookup, AssetLookup]) -> None:
    twin, adapter = both
    for event, keys in ((FIRST, [IMAGE, FOUND, LEFT]), (SECOND, [VIDEO]), (UUID(int=3), [])):
        assets = await adapter.of_event(event)
        assert list(assets) == list(await twin.of_event(event))
        assert [row.id for row in assets] == keys


async def test_a_path_is_taken_until_its_file_is_deleted(both: tuple[AssetLookup, AssetLookup]) -> None:
    paths = {"1/a_Sprite.JPG": True, "1/a_sprite.jpg": False, "1/left.jpg": True, "1/gone.jpg": False, "1/lost": False}
    for lookup in both:
        assert {path: await lookup.is_taken(path) for path in paths} == paths


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        (AssetFilter(), ALL),
        (AssetFilter(event_id=FIRST), (IMAGE, FOUND)),
        (AssetFilter(content_id=str(SECOND)), (VIDEO,)),
        (AssetFilter(content_id="x"), ()),
        (AssetFilter(job=2), (VIDEO,)),
        (AssetFilter(job=3), ()),
        (AssetFilter(name="Goal"), (IMAGE, VIDEO)),
        (AssetFilter(name="%"), (FOUND,)),
        (AssetFilter(name="a"), ()),
        (AssetFilter(states=(AssetState.COMPLETED,)), (IMAGE, FOUND)),
        (AssetFilter(states=(AssetState.GENERATING, AssetState.FAILED)), (VIDEO,)),
        (AssetFilter(event_id=THIRD), ()),
        (AssetFilter(job=5), ()),
        (AssetFilter(event_id=THIRD, types=(AssetType.CAPTION, AssetType.IMAGE)), (OF_SOURCE, CAPTION)),
        (AssetFilter(types=(AssetType.SYSTEM, AssetType.VIDEO)), (VIDEO, FOUND)),
        (AssetFilter(extensions=("_sprite.jpg",)), (IMAGE,)),
        (AssetFilter(extensions=(".ISM", "A.mp4")), (VIDEO, FOUND)),
        (AssetFilter(extensions=("%", "_", "a.mp")), ()),
        (AssetFilter(event_id=FIRST, states=(AssetState.COMPLETED,), types=(AssetType.IMAGE,)), (IMAGE,)),
        (AssetFilter(event_id=FIRST, content_id=str(SECOND)), ()),
    ],
)
async def test_filters_combine(both: tuple[AssetLookup, AssetLookup], wanted: AssetFilter, keys: tuple[UUID, ...]) -> None:
    twin, adapter = both
    assets = await adapter.matching(wanted, limit=10)
    assert list(assets) == list(await twin.matching(wanted, limit=10))
    assert tuple(row.id for row in assets) == keys


async def test_one_more_than_the_limit_is_found(both: tuple[AssetLookup, AssetLookup]) -> None:
    for lookup in both:
        for limit in range(4):
            assets = await lookup.matching(AssetFilter(), limit=limit)
            assert tuple(row.id for row in assets) == ALL[: limit + 1]


async def test_a_caption_is_found_by_what_it_is(both: tuple[AssetLookup, AssetLookup]) -> None:
    for lookup in both:
        asked = partial(lookup.caption, THIRD, language="de", kind=CaptionKind.SUBTITLES)
        captions = await asked(name="Goal")
        assert captions is not None
        assert (captions.id, captions.language, captions.kind, captions.size) == (CAPTION, "de", CaptionKind.SUBTITLES, 7)
        assert await asked(name="Old") is None
        assert await lookup.caption(THIRD, language="de", kind=CaptionKind.FORCED, name="Goal") is None
