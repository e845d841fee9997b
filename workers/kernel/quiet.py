"""Quiet: whether this process may reach anything outside the installation.

Quiet is ordered for the whole installation, and the order is kept in the log. Each process follows it: it stops the worker roles
that reach other systems, and refuses every call of the guarded client.
"""

from __future__ import annotations

from typing import Final

from domain.records.kinds.quiet import Quiet
from projections.records.queries import RecordQueries
from workers.ports import OutboundRefused

REFUSAL: Final = "The installation is quiet: nothing leaves it until somebody runs `medialedger quiet off`."


class QuietMode:
    """Off until the order has been read."""

    def __init__(self) -> None:
        self.on = False

    async def read(self, records: RecordQueries) -> None:
        """Follow the order that counts now."""
        order = await records.find(Quiet.KIND, Quiet.ONLY_KEY)
        self.on = order is not None and order.details.on

    def permit(self) -> None:
        """Raise `OutboundRefused` while the installation is quiet."""
        if self.on:
            raise OutboundRefused(REFUSAL)
