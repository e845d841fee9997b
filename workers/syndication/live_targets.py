"""The targets of live publications, for the sessions that push to them."""

from __future__ import annotations

import asyncio
from typing import Final

from domain.publication.row import PublicationRow
from workers.live_ports import LiveIngest, live_face
from workers.syndication.contents import TargetContents
from workers.target_ports import Details, TargetFailed

SECONDS: Final = 20.0
_LATE: Final = f"The target did not answer within {SECONDS:g} seconds."


class OpenedLiveTargets:
    """The targets of live publications: implements `workers.sessions.pushes.LiveTargets`. A destination is opened again for each
    call, so that a corrected password applies at once."""

    def __init__(self, contents: TargetContents) -> None:
        self._contents = contents

    async def ingest(self, publication: PublicationRow) -> LiveIngest:
        try:
            async with asyncio.timeout(SECONDS), self._contents.opened(publication) as (target, order):
                return await live_face(target).open_live(order, publication.details)
        except TimeoutError:
            raise TargetFailed("retry", _LATE) from None

    async def show(self, publication: PublicationRow, details: Details) -> Details:
        try:
            async with asyncio.timeout(SECONDS), self._contents.opened(publication) as (target, order):
                return await live_face(target).go_live(order, details)
        except TimeoutError:
            raise TargetFailed("retry", _LATE) from None
