"""Commands of provisioning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import PlanOutdated
from domain.kernel.named_callback import NamedCallback
from domain.provision.aggregate import ProvisionInfo
from domain.provision.values import ProvisionPlan, RunEnd


@dataclass(frozen=True, kw_only=True)
class ProvisionCommand(Command[ProvisionInfo]):
    """Base of the commands. `version` is the version of the Provision Info from which the Event's part of the same append was
    made, 0 for none. `moment` is the time that both show."""

    key: UUID
    version: int
    moment: datetime

    def kind(self) -> type[ProvisionInfo]:
        return ProvisionInfo

    def decide(self, root: ProvisionInfo | None, *, at: datetime) -> ProvisionInfo:
        if self.version != (root.version if root is not None else 0):
            raise PlanOutdated(ProvisionInfo.KIND, str(self.key))
        return super().decide(root, at=at)


@dataclass(frozen=True, kw_only=True)
class OpeningCommand(ProvisionCommand):
    """A command that opens the Provision Info of an Event that has none. `infrastructure_key` is the key that it then gets."""

    event_id: UUID
    infrastructure_key: str

    def decide(self, root: ProvisionInfo | None, *, at: datetime) -> ProvisionInfo:
        if root is None and self.version == 0:
            opened = ProvisionInfo.open(self.event_id, at, infrastructure_key=self.infrastructure_key, moment=self.moment)
            self.act(opened, at=at)
            return opened
        return super().decide(root, at=at)


@dataclass(frozen=True, kw_only=True)
class RequestProvisioning(OpeningCommand):
    """POST /provision/{eventId}."""

    plan: ProvisionPlan
    allow_updates: bool
    client: str
    callbacks: tuple[NamedCallback, ...] = ()
    sealed: Sequence[EncryptedSecret] = field(default=(), repr=False)

    def act(self, root: ProvisionInfo, *, at: datetime) -> None:
        root.provision(
            at, self.plan, allow_updates=self.allow_updates, client=self.client, callbacks=self.callbacks, moment=self.moment
        )


@dataclass(frozen=True, kw_only=True)
class RequestTermination(OpeningCommand):
    """DELETE /provision/{eventId}."""

    def act(self, root: ProvisionInfo, *, at: datetime) -> None:
        root.terminate(at, moment=self.moment)


@dataclass(frozen=True, kw_only=True)
class ResetProvisioning(OpeningCommand):
    """DELETE /provision/reset/{eventId}."""

    def act(self, root: ProvisionInfo, *, at: datetime) -> None:
        root.reset(at)


@dataclass(frozen=True, kw_only=True)
class EndSelectedResources(ProvisionCommand):
    """End resources of these types, which the Event no longer needs in its new state. `request` is the run of the request that
    was valid then."""

    select: frozenset[str]
    request: int

    def act(self, root: ProvisionInfo, *, at: datetime) -> None:
        root.end_selected(at, self.select, request=self.request)


@dataclass(frozen=True, kw_only=True)
class EndRun(ProvisionCommand):
    """Record that a run has ended."""

    run: int
    end: RunEnd

    def act(self, root: ProvisionInfo, *, at: datetime) -> None:
        root.end_run(at, self.run, self.end, moment=self.moment)
