"""The twin of a target: keeps files in memory, in parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from workers.adapters.targets.files import FileTarget
from workers.adapters.targets.named import file_name
from workers.target_ports import Details, PublicationOrder, TargetFailed, UploadProgress, UploadSource, UploadState


class MemoryStore:
    """What is there after the targets are closed. `sent` counts all bytes that were sent."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.unfinished: dict[str, bytes] = {}
        self.sent = 0
        self.refusal: TargetFailed | None = None


class MemoryTarget(FileTarget):
    """`part` is how many bytes of a file are sent before that is saved."""

    def __init__(self, store: MemoryStore, *, part: int) -> None:
        self._store = store
        self._part = part

    async def check(self) -> None:
        if self._store.refusal is not None:
            raise self._store.refusal

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        await self.check()
        name, content = file_name(order), source.path.read_bytes()
        details = {"link": name, "size": source.size, "sha256": source.sha256}
        known = state is not None and state.get("sha256") == source.sha256
        if known and self._store.files.get(name) == content:
            return details
        there = self._store.unfinished.get(name, b"") if known else b""
        while len(there) < source.size:
            piece = content[len(there) : len(there) + self._part]
            there += piece
            self._store.sent += len(piece)
            self._store.unfinished[name] = there
            await save({"sha256": source.sha256, "at": len(there)})
            progress(UploadProgress(len(there), source.size))
        self._store.files[name] = self._store.unfinished.pop(name)
        return details

    async def query(self, order: PublicationOrder, details: Details) -> Details | None:
        found = self._store.files.get(file_name(order))
        return None if found is None else {**details, "size": len(found)}

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        self._store.files.pop(file_name(order), None)
        self._store.unfinished.pop(file_name(order), None)

    async def close(self) -> None:
        return None
