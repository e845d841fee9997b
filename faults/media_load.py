"""Clients that request assets, delete some of them at once, and have Events packaged and captured, until all is answered."""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from faults.asking import Answered, Asking
from faults.authors import Act, Authors
from faults.stage import KEY
from tests.support.sources.numbered_frames import tool

CLIENT: Final = "admin"
SIZE: Final = 64
SECONDS: Final = 2
_AUTHORS: Final = 8
_KINDS: Final = ("image", "image", "gif", "video", "video")
_DELETED: Final = 0.3
_TOGETHER: Final = 0.25
_NAMES: Final = ("goal", "attack", "final")
"""A few names, so that most are taken."""
_GONE: Final = (404,)


@dataclass(slots=True)
class MediaTally(Answered):
    """The answers.

    `assets` maps ids to paths; `deleted` holds the ids of the assets that a client has deleted, `generating` the number of those
    that were in progress; `together` counts requests concurrent with another one of the same file name; `owned` maps Events to
    their jobs of packages and captures.
    """

    assets: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    generating: int = 0
    together: int = 0
    sources: set[str] = field(default_factory=set)
    owned: dict[str, int] = field(default_factory=dict)


class MediaLoad(Authors):
    """The clients. `put` writes a file below the media root. `origin` is the address of a playlist of the film."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        put: Callable[[str, bytes], Awaitable[None]],
        film: bytes,
        origin: str,
        per_second: float,
        dice: random.Random,
    ) -> None:
        super().__init__(authors=_AUTHORS, per_second=per_second, dice=dice)
        self.tally = MediaTally()
        self._asking = Asking(addresses, tally=self.tally, dice=dice)
        self._put = put
        self._film = film
        self._origin = origin
        self._numbers = iter(range(1_000_000))
        self._events: list[str] = []

    async def start(self, *, settings: Mapping[str, int], assets: int, events: int, packages: int, captures: int) -> None:
        """Create the Events and begin. The first Events with a source are packaged."""
        for name, value in settings.items():
            await self._ask("POST", "/engine/settings", {"name": name, "setting": value})
        self._events = [await self._event("VOD_PUBLIC") for _ in range(events)]
        for event in self._events:
            source = f"{event}/{event}.mp4"
            await self._put(source, self._film)
            self.tally.sources.add(source)
        stopped = [await self._event("STOPPED") for _ in range(captures)]
        work: list[Act] = [self._assets] * assets
        work += [self._owner_job(event, "vod_package", {}) for event in self._events[:packages]]
        span = {"sources": [self._origin], "start": "00:00:00", "end": f"00:00:0{SECONDS}"}
        work += [self._owner_job(event, "vod_capture", span) for event in stopped]
        self._dice.shuffle(work)
        self._begin(iter(work))

    async def event(self, key: str) -> Any:
        return await self._ask("GET", f"/api/event/{key}")

    async def _event(self, state: str) -> str:
        return str((await self._ask("POST", "/api/event/", {"Title": "Final", "eventState": state}, once=True))["id"])

    async def _assets(self) -> None:
        """Request one asset, or two of the same file name at once, and delete some of them a moment later."""
        event, name = self._dice.choice(self._events), self._dice.choice(_NAMES)
        copies = 2 if self._dice.random() < _TOGETHER else 1
        self.tally.together += copies - 1
        for asset in await asyncio.gather(*(self._asset(event, name) for _ in range(copies))):
            if self._dice.random() < _DELETED:
                await asyncio.sleep(self._dice.choice((0.0, 0.5, 2.0)) * self._dice.random())
                await self._delete(asset)

    async def _asset(self, event: str, name: str) -> str:
        kind = self._dice.choice(_KINDS)
        clip = {"eventId": event, "start": "00:00:00.200", "end": "00:00:01.200"}
        times = {"eventId": event, "time": "00:00:00.500"} if kind == "image" else {"clip": clip}
        more = {"frameAccurate": True} if kind == "video" and self._dice.random() < 0.5 else {}
        answer = await self._ask("POST", f"/api/asset/{kind}/", {**times, **more, "name": name, "filename": name}, once=True)
        self.tally.assets[answer["id"]] = answer["path"]
        return str(answer["id"])

    async def _delete(self, asset: str) -> None:
        """Delete an asset. A repeat of a request that was executed without an answer finds nothing."""
        status, answer = await self._asking.answer("DELETE", f"/api/asset/{asset}", headers=_HEADERS, fine=_GONE)
        self.tally.deleted.add(asset)
        self.tally.generating += status not in _GONE and answer["stateString"] == "GENERATING"

    def _owner_job(self, event: str, workflow: str, parameters: Mapping[str, Any]) -> Act:
        async def submit() -> None:
            given = {"content_id": event, "renditions": [SIZE], **parameters}
            body = {"client": CLIENT, "job": {"workflow": workflow}, "parameters": given}
            self.tally.owned[event] = int((await self._ask("POST", "/engine/job", body, once=True))["id"])

        return submit

    async def _ask(self, method: str, path: str, body: Any = None, *, once: bool = False) -> Any:
        """Send a request and return the JSON of its answer. With `once` it is executed once, however often it is sent."""
        headers = {**_HEADERS, "Idempotency-Key": f"media {next(self._numbers)}"} if once else _HEADERS
        return (await self._asking.answer(method, path, body, headers=headers))[1]


_HEADERS: Final = {"API-KEY": KEY, "client": CLIENT}


def streamed(folder: Path) -> dict[str, bytes]:
    """Return `film.mp4`, and the playlist `live.m3u8` with its segments of a second each. This blocks."""
    picture = ("-f", "lavfi", "-i", f"testsrc2=size={SIZE}x{SIZE}:rate=25:duration={SECONDS}")
    tone = ("-f", "lavfi", "-i", f"sine=duration={SECONDS}")
    coded = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-sc_threshold", "0", "-pix_fmt", "yuv420p", "-c:a", "aac")
    _ffmpeg(folder, *picture, *tone, *coded, "film.mp4")
    _ffmpeg(folder, "-i", "film.mp4", "-c", "copy", "-f", "hls", "-hls_time", "1", "-hls_list_size", "0", "live.m3u8")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def readable(path: Path) -> bool:
    """Return True if the whole file can be decoded. This blocks."""
    command = [tool("ffmpeg"), "-v", "error", "-xerror", "-i", str(path), "-f", "null", "-"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def _ffmpeg(folder: Path, *arguments: str) -> None:
    subprocess.run([tool("ffmpeg"), "-v", "error", *arguments], cwd=folder, check=True)
