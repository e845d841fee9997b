"""Quiet mode: decides if this process may reach anything outside the installation.

The order to be quiet is for the whole installation and is stored in the log. Each process follows it: it stops the worker roles
that reach other systems, and refuses every call of the guarded client.
"""

from __future__ import annotations

from typing import Final

from domain.record.kinds.quiet import Quiet
from projections.record.queries import RecordQueries
from workers.ports.outbound import OutboundRefused

REFUSAL: Final = "The installation is quiet: nothing leaves it until you run `medialedger quiet off`."


class QuietMode:
    """The quiet mode of this process, off until the order has been read."""

    def __init__(self) -> None:
        self.on = False

    async def read(self, records: RecordQueries) -> None:
        """Follow the current order."""
        order = await records.find(Quiet, Quiet.ONLY_KEY)
        self.on = order is not None and order.details.on

    def permit(self) -> None:
        """Raise `OutboundRefused` while the installation is quiet."""
        if self.on:
            raise OutboundRefused(REFUSAL)
