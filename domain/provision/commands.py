"""The command that opens the Provision Info of an Event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.kernel.command import Command, DecisionCommand
from domain.kernel.encryption import EncryptedSecret
from domain.provision.aggregate import ProvisionInfo


@dataclass(frozen=True, kw_only=True)
class OpeningCommand(Command[ProvisionInfo]):
    """Make a decision on a Provision Info, and open it for an Event that has none. `decision` is planned for the version from which
    the Event's part of the same append was made, 0 for none. A new Provision Info gets the `infrastructure_key`; `moment` is the
    time that it and the Event show."""

    key: UUID
    decision: DecisionCommand[ProvisionInfo]
    event_id: UUID
    infrastructure_key: str
    moment: datetime

    @property
    def sealed(self) -> Sequence[EncryptedSecret]:
        return self.decision.sealed

    def kind(self) -> type[ProvisionInfo]:
        return ProvisionInfo

    def decide(self, root: ProvisionInfo | None, *, at: datetime) -> ProvisionInfo:
        if root is not None or self.decision.version != 0:
            return self.decision.decide(root, at=at)
        opened = ProvisionInfo.open(self.event_id, at, infrastructure_key=self.infrastructure_key, moment=self.moment)
        self.decision.act(opened, at=at)
        return opened
