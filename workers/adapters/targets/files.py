"""What targets that keep a file as it is have in common: it is there, or it is not, and nothing can be done with it."""

from __future__ import annotations

from workers.target_ports import Details, PublicationOrder, TargetFailed


class FileTarget:
    """`capabilities` of a target that goes on where it was cut off."""

    capabilities: frozenset[str] = frozenset({"upload", "resume", "query", "delete"})

    async def publish(self, order: PublicationOrder, details: Details) -> None:
        raise self._unable()

    async def unpublish(self, order: PublicationOrder, details: Details) -> None:
        raise self._unable()

    async def update(self, order: PublicationOrder, details: Details) -> None:
        raise self._unable()

    def _unable(self) -> TargetFailed:
        return TargetFailed("publication", "The destination only keeps files: one is published by its upload until it is deleted.")
