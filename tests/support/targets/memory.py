"""The twin of a target: it stores films in memory, in parts, and receives what is shown and hidden."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from domain.destination.targets import Target
from workers.adapters.targets.published_names import file_name
from workers.ports.live import LIVE, LiveIngest
from workers.ports.targets import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState

PART = 65_536


class MemoryTarget:
    """A target in memory, and the port `Targets`: it is the target of every destination. `part` is how many bytes of a film are
    sent before that is saved; `fault` is raised by every call."""

    capabilities = frozenset({"upload", "resume", "query", "publish", "unpublish", "update", "delete"})

    def __init__(self, *, part: int = PART) -> None:
        self._part = part
        self.fault: TargetFailed | None = None
        self.before: Callable[[], Awaitable[None]] | None = None
        """Called during each call."""
        self.opened: list[tuple[Target, dict[str, Any]]] = []
        self.calls: list[str] = []
        self.files: dict[str, bytes] = {}
        self.unfinished: dict[str, bytes] = {}
        self.more_details: dict[str, dict[str, Any]] = {}
        """Further details of publications, by their ids."""
        self.sent = 0
        """The number of bytes sent, including repeated ones."""

    def __call__(self, target: int, config: Mapping[str, Any]) -> MemoryTarget:
        self.opened.append((Target(target), dict(config)))
        return self

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
        name, content = file_name(order), source.path.read_bytes()
        details = {"link": name, "size": source.size, "sha256": source.sha256}
        resumes = state is not None and state.get("sha256") == source.sha256
        if resumes and self.files.get(name) == content:
            return details
        there = self.unfinished.get(name, b"") if resumes else b""
        while len(there) < source.size:
            piece = content[len(there) : len(there) + self._part]
            there += piece
            self.sent += len(piece)
            self.unfinished[name] = there
            await save({"sha256": source.sha256, "at": len(there)})
            progress(UploadProgress(len(there), source.size))
        self.files[name] = self.unfinished.pop(name)
        return details

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        await self._asked("query")
        content, more = self.files.get(file_name(order)), self.more_details.get(str(order.id))
        size = {} if content is None else {**details, "size": len(content)}
        return {**size, **(more or {})} or None

    async def publish(self, order: PublicationOrder, details: Details) -> None:
        await self._asked("publish")

    async def unpublish(self, order: PublicationOrder, details: Details) -> None:
        await self._asked("unpublish")

    async def update(self, order: PublicationOrder, details: Details) -> None:
        await self._asked("update")

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        await self._asked("delete")
        for contents in (self.files, self.unfinished):
            contents.pop(file_name(order), None)
        self.more_details.pop(str(order.id), None)

    async def close(self) -> None:
        self.calls.append("close")

    async def _asked(self, call: str) -> None:
        self.calls.append(call)
        if self.before is not None:
            await self.before()
        if self.fault is not None:
            raise self.fault


class MemoryLiveTarget(MemoryTarget):
    """A target that takes live streams, with its own ids. `ingest` is the address that they are pushed to."""

    capabilities = frozenset({LIVE, "query", "publish", "unpublish", "delete"})

    def __init__(self, ingest: str = "rtmp://127.0.0.1:9/live") -> None:
        super().__init__()
        self.ingest = ingest
        self.live: dict[str, str] = {}
        """The state of each stream: opened, live or closed."""

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
