"""The presentation of publications, with the details of their targets and the last calls of their callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from api.audit.past_states import Moment, Renderer
from api.http.response import Response, array
from api.media.publication.responses import MediaPublication, VodPublication
from domain.kernel.errors import Malformed
from domain.publication.aggregate import Publication
from domain.publication.ports import PublishedContents, TargetCall
from domain.publication.row import PublicationRow
from domain.record.kinds.destination import Destination
from projections.publication.queries import ListedPublications, PublicationQueries
from projections.record.history import RecordHistory

M = TypeVar("M", bound=MediaPublication)
_MOST_ASKED: Final = 100
"""Publications whose targets one request may query."""
_AT_ONCE: Final = 8
_SECONDS: Final = 15.0
"""Seconds for all queries of one request together. Targets that have not answered by then have no details."""


class PublicationPresenter:
    """Presents publications as of the present or as of any position of the log."""

    def __init__(self, publications: PublicationQueries, contents: PublishedContents, *, history: RecordHistory) -> None:
        self._publications = publications
        self._contents = contents
        self._history = history

    async def shown(self, model: type[M], rows: Sequence[PublicationRow], *, query_target: bool = False) -> list[M]:
        """Return the response models. With `query_target` the details are queried from the targets now."""
        triggered = await self._publications.last_triggered(rows)
        details = await self._asked(rows) if query_target else [row.details for row in rows]
        return [model.of(row, triggered, row_details) for row, row_details in zip(rows, details, strict=True)]

    async def array(
        self, model: type[M], listed: ListedPublications, *, query_target: bool = False, headers: tuple[tuple[str, str], ...] = ()
    ) -> Response:
        """Return all publications of a list."""
        if query_target:
            _check_asked(len(listed.keys))
        parts = self._publications.parts(listed)
        return await array((await self.shown(model, rows, query_target=query_target) async for rows in parts), headers=headers)

    async def of_roots(self, model: type[M], roots: Sequence[Publication], *, as_of: int | None = None) -> list[M]:
        """Return the publications in their states after a write."""
        links = [(Destination.KIND, str(root.destination_id)) for root in roots]
        destinations = await self._history.at(as_of).shown(links)
        names = [destinations[link].details.name if link in destinations else "" for link in links]
        return await self.shown(
            model, [PublicationRow.of(root, destination_name=name) for root, name in zip(roots, names, strict=True)]
        )

    async def _asked(self, rows: Sequence[PublicationRow]) -> list[Mapping[str, Any] | None]:
        _check_asked(len(rows))
        seats = asyncio.Semaphore(_AT_ONCE)
        details: list[Mapping[str, Any] | None] = [None] * len(rows)

        async def ask(index: int, row: PublicationRow) -> None:
            async with seats:
                details[index] = (await self._contents.ask(TargetCall.QUERY, row)).details

        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS):
                await asyncio.gather(*(ask(index, row) for index, row in enumerate(rows)))
        return details


def _check_asked(count: int) -> None:
    if count > _MOST_ASKED:
        raise Malformed.at("queryTarget", f"queries at most {_MOST_ASKED} targets; use a smaller pageSize")


def past_states(presenter: PublicationPresenter) -> Mapping[str, Renderer]:
    async def publication(root: Publication, moment: Moment) -> Any:
        return (await presenter.of_roots(VodPublication, [root], as_of=moment.position))[0]

    return {Publication.KIND: publication}
