"""Opens the destination for the job that uploads a publication, while the job runs, so that a corrected password applies."""

from __future__ import annotations

from uuid import UUID

from domain.destination.handlers import DestinationHandlers
from domain.kernel.ports import Vault
from domain.publication.aggregate import Publication
from domain.publication.ports import PublicationLookup
from domain.publication.texts import options_with_secrets
from domain.records.kinds.destination import Destination
from domain.records.ports import RecordLookup
from workers.target_ports import OpenedDestination, PublicationOrder, TargetFailed


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
        destination = await self._records.find(Destination.KIND, row.destination_id)
        if destination is None or not destination.details.active:
            raise TargetFailed("destination", "The destination is not active: activate it, and run the job again.")
        if destination.details.target is not row.target:
            raise TargetFailed("destination", "The destination has another target now: create the publication again.")
        options = await options_with_secrets(row.text, self._vault, owner=Publication.stream(publication))
        order = PublicationOrder(row.id, row.content_id, row.text.title, row.text.description, options)
        return OpenedDestination(int(row.target), await self._destinations.configuration(destination), order)
