"""Destinations for tests, and an in-memory twin of the publishing targets."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from domain.destination.targets import Target
from workers.live_ports import LIVE, LiveIngest
from workers.target_ports import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState

S3 = {"endpoint": "https://s3.example", "bucket": "films", "accessKeyId": "AK", "secretAccessKey": "sk-marked"}


class MemoryTarget:
    """A target that keeps what it gets, by the ids of publications. `fault` is what every call fails with."""

    capabilities = frozenset({"upload", "query", "publish", "unpublish", "update", "delete"})

    def __init__(self) -> None:
        self.fault: TargetFailed | None = None
        self.before: Callable[[], Awaitable[None]] | None = None
        """What happens while it is asked."""
        self.opened: list[tuple[Target, dict[str, Any]]] = []
        self.kept: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []

    def __call__(self, target: int, config: Mapping[str, Any]) -> MemoryTarget:
        self.opened.append((Target(target), dict(config)))
        return self

    async def _asked(self, call: str) -> None:
        self.calls.append(call)
        if self.before is not None:
            await self.before()
        if self.fault is not None:
            raise self.fault

    async def check(self) -> None:
        await self._asked("check")

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        await self._asked("upload")
        self.kept[str(order.id)] = {"sha256": source.sha256, "title": order.title}
        return self.kept[str(order.id)]

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        await self._asked("query")
        return self.kept.get(str(order.id))

    async def publish(self, order: PublicationOrder, details: Details) -> None:
        await self._asked("publish")

    async def unpublish(self, order: PublicationOrder, details: Details) -> None:
        await self._asked("unpublish")

    async def update(self, order: PublicationOrder, details: Details) -> None:
        await self._asked("update")

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        await self._asked("delete")
        self.kept.pop(str(order.id), None)

    async def close(self) -> None:
        self.calls.append("close")


class MemoryLiveTarget(MemoryTarget):
    """A target that takes live streams, by the ids that it knows them by. `ingest` is where they are pushed to."""

    capabilities = frozenset({LIVE, "query", "publish", "unpublish", "delete"})

    def __init__(self, ingest: str = "rtmp://127.0.0.1:9/live") -> None:
        super().__init__()
        self.ingest = ingest
        self.live: dict[str, str] = {}
        """What became of each: opened, live or closed."""

    async def open_live(self, order: PublicationOrder, details: Details | None) -> LiveIngest:
        await self._asked("open")
        self.live.setdefault(str(order.id), "opened")
        return LiveIngest(self.ingest, f"key-marked-{order.id}", {"broadcast": str(order.id), "title": order.title})

    async def go_live(self, order: PublicationOrder, details: Details) -> Details:
        await self._asked("go_live")
        self.live[str(order.id)] = "live"
        return {**details, "status": "live"}

    async def close_live(self, order: PublicationOrder, details: Details) -> None:
        await self._asked("close_live")
        self.live[str(order.id)] = "closed"

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        await super().delete(order, details)
        self.live.pop(str(order.id), None)


async def add_destination(http: httpx.AsyncClient, name: str = "Archive", *, active: bool = False, **fields: Any) -> str:
    body = {"name": name, "target": "S3", "destinationJson": json.dumps(S3), **fields}
    answer = await http.post("/api/media/destination/", json=body)
    assert answer.status_code == 200, answer.text
    key = str(answer.json()["id"])
    if active:
        assert (await http.put(f"/api/media/destination/active/{key}?active=true")).status_code == 200
    return key
