"""The common part of targets that store a file as it is: the file exists or not, and cannot be changed.

Texts of a film are files next to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from workers.ports.targets import (
    Details,
    PublicationOrder,
    PublishedText,
    TargetFailed,
    UploadProgress,
    UploadSource,
    UploadState,
)


class FileTarget:
    """A target for files. The default `capabilities` are those of a target that resumes interrupted uploads."""

    capabilities: frozenset[str] = frozenset({"upload", "resume", "query", "delete", "texts"})

    async def publish(self, order: PublicationOrder, details: Details) -> None:
        raise self._unable()

    async def unpublish(self, order: PublicationOrder, details: Details) -> None:
        raise self._unable()

    async def update(self, order: PublicationOrder, details: Details) -> None:
        raise self._unable()

    async def upload(
        self,
        source: UploadSource,
        order: PublicationOrder,
        *,
        state: UploadState | None,
        save: Callable[[UploadState], Awaitable[None]],
        progress: Callable[[UploadProgress], None],
    ) -> Details:
        raise NotImplementedError

    async def delete(self, order: PublicationOrder, details: Details | None) -> None:
        raise NotImplementedError

    async def add_text(self, text: PublishedText, order: PublicationOrder, *, details: Details) -> Details:
        async def save(state: UploadState) -> None:
            """Save nothing: an interrupted text is sent again from its beginning."""

        made = await self.upload(
            text.source, replace(order, ending=text.ending), state=None, save=save, progress=lambda progress: None
        )
        return {**made, "ending": text.ending}

    async def remove_text(self, order: PublicationOrder, details: Details) -> None:
        await self.delete(replace(order, ending=str(details["ending"])), details)

    def _unable(self) -> TargetFailed:
        return TargetFailed(
            "publication", "The destination only stores files: a file is published from its upload until its deletion."
        )
