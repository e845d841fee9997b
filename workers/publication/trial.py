"""Trials of publishing targets, for the activation of destinations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from domain.destination.handlers import DestinationHandlers
from domain.destination.targets import Target
from domain.kernel.ports import Vault
from domain.publication.aggregate import Publication
from domain.publication.ports import PublicationLookup
from domain.publication.texts import options_with_secrets
from domain.record.kinds.destination import Destination
from domain.record.ports import RecordLookup
from workers.ports.targets import OpenedDestination, PublicationOrder, PublishingTarget, TargetFailed, Targets


class UploadOpening:
    """Opens destinations for jobs. Nothing is opened for a job that is not the current one of its publication."""

    def __init__(
        self,
        publications: PublicationLookup,
        records: RecordLookup,
        *,
        destinations: DestinationHandlers,
        vault: Vault,
    ) -> None:
        self._publications = publications
        self._records = records
        self._destinations = destinations
        self._vault = vault

    async def __call__(self, publication: UUID, *, job: int) -> OpenedDestination:
        """Return the opened destination. Raise `TargetFailed` if the destination is not active, or if the publication is gone or
        has another job now."""
        row = await self._publications.find(publication)
        if row is None or row.running_job != job:
            raise TargetFailed("publication", "The publication was deleted, or another job publishes it.")
        destination = await self._records.find(Destination, row.destination_id)
        if destination is None or not destination.details.active:
            raise TargetFailed("destination", "The destination is not active: activate it, and run the job again.")
        if destination.details.target is not row.target:
            raise TargetFailed("destination", "The destination has another target now: create the publication again.")
        options = await options_with_secrets(row.text, self._vault, owner=Publication.stream(publication))
        order = PublicationOrder(row.id, row.content_id, row.text.title, row.text.description, options)
        return OpenedDestination(int(row.target), await self._destinations.configuration(destination), order)


SECONDS: Final = 30.0
"""The longest duration of a trial, including everything that it writes and removes."""
_CLOSE_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class TargetTrials:
    """Trials of targets: implements `domain.destination.handlers.TargetTrial`.

    `refused` maps the targets that this installation does not accept to the reason.
    """

    def __init__(self, targets: Targets, *, refused: Mapping[Target, str], seconds: float = SECONDS) -> None:
        self._targets = targets
        self._refused = refused
        self._seconds = seconds

    def refusal(self, target: Target) -> str | None:
        return self._refused.get(target)

    async def fault(self, target: Target, config: Mapping[str, Any]) -> str | None:
        opened = self._targets(target, config)
        try:
            async with asyncio.timeout(self._seconds):
                await opened.check()
        except TargetFailed as failure:
            return str(failure)
        except TimeoutError:
            return f"The target did not answer within {self._seconds:g} seconds; see whether it is up and can be reached from here."
        finally:
            await close_target(opened)
        return None


async def close_target(target: PublishingTarget) -> None:
    """Close a target within a bounded time. Its work is already done, so a failure is only logged."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await target.close()
    except (TargetFailed, TimeoutError, OSError) as failure:
        _log.info("a publishing target was not closed in order: %s", type(failure).__name__)
