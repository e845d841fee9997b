"""The origins of the files of items: the media root, the bucket, and external hosts that hang, refuse and change."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from aiohttp import web

from domain.composition.values import Item, ItemType
from domain.event.ports import EventRow
from domain.event.values import EventDetails
from tests.contract.encoder.conftest import client
from tests.contract.encoder.ffmpeg_stage import LOCAL
from tests.projections.log.helpers import until
from tests.support.playout import item
from workers.adapters.item_cache import ItemCache
from workers.adapters.item_files import PlayoutFiles
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient
from workers.ports.playout import ItemLimits, OpenedItem, Unplayable

__all__ = ["LOCAL", "client"]
EVENT = UUID(int=5)
PATIENCE = 30.0


@dataclass
class Host:
    """A host that answers every path with so many bytes; with `hang` it sends the first half of them, until it is `released`."""

    url: str = ""
    size: int = 1_000
    status: int = 200
    hang: bool = False
    asked: list[str] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        response = web.StreamResponse(status=self.status, headers={"Content-Length": str(self.size)})
        await response.prepare(request)
        await response.write(b"x" * (self.size // 2))
        if self.hang:
            await self.released.wait()
        await response.write(b"x" * (self.size - self.size // 2))
        return response


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = Host()
    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", host.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield host
    host.released.set()
    await runner.cleanup()


@dataclass
class Events:
    """An implementation of `EventLookup` with one Event."""

    details: EventDetails

    async def by_id(self, key: UUID) -> EventRow | None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        return EventRow(EVENT, 1, self.details, now, now) if key == EVENT else None

    async def by_reference(self, reference_id: str) -> EventRow | None:
        return None


@dataclass
class World:
    root: Path
    cache: ItemCache
    client: GuardedClient
    events: Events = field(default_factory=lambda: Events(EventDetails(id=EVENT)))

    def files(self, *, bucket: bool = False) -> PlayoutFiles:
        """Return the files. With `bucket` the folder acts as a bucket, whose objects are fetched."""
        media = MediaDirectory(self.root)
        return PlayoutFiles(None if bucket else self.root, media, media, self.events, self.client, self.cache)

    def made(self, path: str, content: bytes = b"film") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)

    def cached(self) -> list[Path]:
        return sorted(path for path in self.cache.root.iterdir() if not path.name.startswith("."))


@pytest.fixture
async def world(tmp_path: Path, client: GuardedClient) -> AsyncIterator[World]:
    (tmp_path / "media").mkdir()
    cache = ItemCache(tmp_path / "cache", ItemLimits(size=3_000, age=3600.0, free=0))
    yield World(tmp_path / "media", cache, client)
    await cache.stop()


def event_item(**properties: str) -> Item:
    return Item(type=ItemType.EVENT, value=str(EVENT), properties=properties)


def content(opened: OpenedItem) -> bytes:
    with os.fdopen(opened.descriptor, "rb") as file:
        return file.read()


@pytest.mark.parametrize("bucket", [False, True])
async def test_films_of_events_and_paths_of_the_media_root(world: World, *, bucket: bool) -> None:
    files = world.files(bucket=bucket)
    world.made(f"{EVENT}/{EVENT}.mp4", b"of the event")
    world.made("clips/one.mp4", b"one")
    assert content(await files.open(event_item(), within=PATIENCE)) == b"of the event"
    assert content(await files.open(item("clips/one.mp4"), within=PATIENCE)) == b"one"
    world.made("clips/one.mp4", b"another one")
    assert content(await files.open(item("clips/one.mp4"), within=PATIENCE)) == b"another one", "a new version is read anew"
    for absent in (Item(type=ItemType.EVENT, value=str(UUID(int=6))), item("clips/two.mp4")):
        with pytest.raises(Unplayable, match="no such file"):
            await files.open(absent, within=PATIENCE)
    if bucket:
        assert {stat.S_IMODE(path.stat().st_mode) for path in world.cached()} == {0o600}
        assert stat.S_IMODE(world.cache.root.stat().st_mode) == 0o700


@pytest.mark.parametrize("bucket", [False, True])
@pytest.mark.parametrize(
    "value", ["../secret", "/etc/passwd", "link.mp4", "linked/x", ".jobs/1/x", "a\0b", "", "ftp://h/x", "folder"]
)
async def test_nothing_out_of_the_media_root_is_read(world: World, value: str, *, bucket: bool) -> None:
    world.made(".jobs/1/x")
    (world.root / "folder").mkdir()
    (world.root.parent / "secret").write_bytes(b"secret")
    (world.root / "link.mp4").symlink_to("/etc/passwd")
    (world.root / "linked").symlink_to("/etc")
    with pytest.raises(Unplayable) as refusal:
        await world.files(bucket=bucket).open(item(value), within=PATIENCE)
    assert "passwd" not in str(refusal.value)


async def test_trims_are_from_the_start_of_the_stream(world: World) -> None:
    files = world.files()
    world.made(f"{EVENT}/{EVENT}.mp4")
    opened = await files.open(event_item(start="00:00:01.500", end="00:01:00"), within=PATIENCE)
    assert (opened.start, opened.end) == (1.5, 60.0)
    os.close(opened.descriptor)
    with pytest.raises(Unplayable, match="carries no timecode"):
        await files.open(event_item(start="2026-01-01T10:00:05Z"), within=PATIENCE)
    world.events.details = EventDetails(id=EVENT, actual_live_start=datetime(2026, 1, 1, 10, tzinfo=UTC))
    opened = await files.open(event_item(start="2026-01-01T10:00:05Z"), within=PATIENCE)
    assert (opened.start, opened.end) == (5.0, None)
    os.close(opened.descriptor)
    for wrong in ({"start": "soon"}, {"start": "00:00:05", "end": "00:00:05"}, {"start": "2026-01-01T09:00:00Z"}):
        with pytest.raises(Unplayable):
            await files.open(event_item(**wrong), within=PATIENCE)


async def test_a_url_is_fetched_once_and_again_when_it_is_old(world: World, host: Host) -> None:
    files, url = world.files(), item(f"{host.url}/a.mp4?key=s3cret")
    files.expect([url, url])
    both = await asyncio.gather(files.open(url, within=PATIENCE), files.open(url, within=PATIENCE))
    assert [len(content(opened)) for opened in both] == [1_000, 1_000]
    assert len(host.asked) == 1
    assert "s3cret" not in str(world.cached())
    [cached] = world.cached()
    os.utime(cached, (cached.stat().st_atime, cached.stat().st_mtime - 3601))
    assert content(await files.open(url, within=PATIENCE))
    assert len(host.asked) == 2


async def test_a_host_that_hangs_keeps_nobody_waiting_and_the_file_comes_later(world: World, host: Host) -> None:
    host.hang, url = True, item(f"{host.url}/a.mp4")
    with pytest.raises(Unplayable, match="still being fetched"):
        await world.files().open(url, within=0.05)
    host.released.set()
    assert len(content(await world.files().open(url, within=PATIENCE))) == 1_000
    assert len(host.asked) == 1


async def test_what_cannot_be_fetched_is_told_without_its_address(world: World, host: Host) -> None:
    async def refusal(url: str) -> str:
        with pytest.raises(Unplayable) as refused:
            await world.files().open(item(url), within=PATIENCE)
        assert "s3cret" not in str(refused.value)
        return str(refused.value)

    host.status = 404
    assert "status 404" in await refusal(f"{host.url}/s3cret")
    host.status, host.size = 200, 4_000
    assert "more than 3000 bytes" in await refusal(f"{host.url}/s3cret")
    assert "user name or a password" in await refusal("http://user:s3cret@example.com/a.mp4")
    assert "not public" in await refusal("http://169.254.169.254/s3cret")
    assert list(world.cache.root.iterdir()) == [], "nothing is left of what was begun"


async def test_what_was_used_longest_ago_makes_way_and_what_is_on_the_air_stays_readable(world: World, host: Host) -> None:
    files, names = world.files(), ["1", "2", "3"]
    opened = [await files.open(item(f"{host.url}/{name}"), within=PATIENCE) for name in names]
    for age, path in enumerate(sorted(world.cached(), key=lambda path: path.stat().st_mtime_ns)):
        os.utime(path, (path.stat().st_mtime - 10 + age, path.stat().st_mtime))
    os.close((await files.open(item(f"{host.url}/1"), within=PATIENCE)).descriptor)
    os.close((await files.open(item(f"{host.url}/4"), within=PATIENCE)).descriptor)
    assert len(world.cached()) == 3
    for name in names:
        os.close((await files.open(item(f"{host.url}/{name}"), within=PATIENCE)).descriptor)
    assert host.asked == ["/1", "/2", "/3", "/4", "/2", "/3"], "the first was used after the others"
    assert [len(content(each)) for each in opened] == [1_000] * 3


async def test_what_a_dead_worker_left_is_removed(world: World, host: Host) -> None:
    world.cache.root.mkdir()
    abandoned, present = world.cache.root / ".a.1", world.cache.root / ".a.2"
    for path in (abandoned, present):
        path.write_bytes(b"half")
    os.utime(abandoned, (0, 0))
    world.files().expect([item(f"{host.url}/a.mp4")])
    await until(lambda: not abandoned.exists(), seconds=PATIENCE)
    assert present.exists(), "another worker may be at it"
