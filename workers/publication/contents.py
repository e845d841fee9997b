"""Calls to the targets of publications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from domain.destination.handlers import DestinationHandlers
from domain.kernel.ports import Vault
from domain.publication.aggregate import Publication
from domain.publication.ports import TargetAnswer, TargetCall
from domain.publication.row import PublicationRow
from domain.publication.texts import options_with_secrets
from domain.record.kinds.destination import Destination
from domain.record.ports import RecordLookup
from workers.ports.live import LIVE, live_face
from workers.ports.targets import TEXTS, PublicationOrder, PublishingTarget, TargetFailed, Targets, TextTarget
from workers.publication.trial import close_target

SECONDS: Final = 10.0
"""The longest duration of a call. The client of a request waits for it."""
_ABILITY: Final = {TargetCall.OPEN: LIVE, TargetCall.CLOSE: LIVE}


class TargetContents:
    """Calls to the targets of publications: implements `domain.publication.ports.PublishedContents`."""

    def __init__(
        self,
        targets: Targets,
        records: RecordLookup,
        *,
        destinations: DestinationHandlers,
        vault: Vault,
        seconds: float = SECONDS,
    ) -> None:
        self._targets = targets
        self._records = records
        self._destinations = destinations
        self._vault = vault
        self._seconds = seconds

    async def ask(self, call: TargetCall, publication: PublicationRow) -> TargetAnswer:
        try:
            async with self.opened(publication) as (target, order), asyncio.timeout(self._seconds):
                if _ABILITY.get(call, call.value) not in target.capabilities:
                    return TargetAnswer(able=False)
                return TargetAnswer(details=await _call(target, call, order, publication.details))
        except TargetFailed as failure:
            return TargetAnswer(fault=str(failure), passing=failure.kind == "retry")
        except TimeoutError:
            return TargetAnswer(fault=f"The target did not answer within {self._seconds:g} seconds.", passing=True)

    @asynccontextmanager
    async def opened(self, publication: PublicationRow) -> AsyncIterator[tuple[PublishingTarget, PublicationOrder]]:
        """Open the target of a publication, with its secrets, and its order. Raise `TargetFailed`."""
        destination = await self._records.find(Destination, publication.destination_id)
        if destination is None:
            raise TargetFailed("destination", "the destination no longer exists")
        order = await self._order(publication)
        target = self._targets(destination.details.target, await self._destinations.configuration(destination))
        try:
            yield target, order
        finally:
            await close_target(target)

    async def _order(self, publication: PublicationRow) -> PublicationOrder:
        options = await options_with_secrets(publication.text, self._vault, owner=Publication.stream(publication.id))
        text = publication.text
        return PublicationOrder(publication.name_at_target, publication.content_id, text.title, text.description, options)


async def _remove_texts(target: PublishingTarget, order: PublicationOrder, details: Mapping[str, Any]) -> None:
    """Remove the texts that were published with the film."""
    texts = details.get(TEXTS)
    if isinstance(texts, list) and TEXTS in target.capabilities and isinstance(target, TextTarget):
        for text in texts:
            if isinstance(text, Mapping):
                await target.remove_text(order, text)


async def _call(
    target: PublishingTarget, call: TargetCall, order: PublicationOrder, details: Mapping[str, Any] | None, /
) -> Mapping[str, Any] | None:
    match call:
        case TargetCall.QUERY:
            return await target.query(order, details or {})
        case TargetCall.PUBLISH:
            await target.publish(order, details or {})
        case TargetCall.UNPUBLISH:
            await target.unpublish(order, details or {})
        case TargetCall.UPDATE:
            await target.update(order, details or {})
        case TargetCall.DELETE:
            await _remove_texts(target, order, details or {})
            await target.delete(order, details)
        case TargetCall.OPEN:
            return (await live_face(target).open_live(order, details)).details
        case TargetCall.CLOSE:
            await live_face(target).close_live(order, details or {})
    return None
