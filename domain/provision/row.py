"""The result of a look-up of a Provision Info."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.provision.aggregate import ProvisionInfo
from domain.provision.values import ProvisionPlan, ProvisionSummary, Work


@dataclass(frozen=True, slots=True)
class ProvisionRow:
    """A Provision Info as a look-up returns it. `resources` are up, `needed` are those that the Event wants now. `run` is the
    number of the last order; `work` is the running work. `version` belongs to the last change that a GET shows."""

    id: UUID
    version: int
    event_id: UUID
    summary: ProvisionSummary
    run: int
    work: Work | None
    allow_updates: bool
    requested_at: datetime | None
    since: datetime | None
    plan: ProvisionPlan | None
    needed: Sequence[dict[str, Any]]
    resources: Sequence[dict[str, Any]]
    exists: bool
    reason: str

    @property
    def was_made(self) -> bool:
        """True if a run has reported existing resources. Before that, `exists` means only that a run may have begun."""
        before = (self.since, self.summary.provisioned_at) != (self.requested_at, self.requested_at)
        return self.exists and (bool(self.resources) or before)

    @classmethod
    def of(cls, info: ProvisionInfo) -> ProvisionRow:
        return cls(
            id=UUID(info.key),
            version=info.shown_version,
            event_id=info.event_id,
            summary=info.summary,
            run=info.run,
            work=info.work,
            allow_updates=info.allow_updates,
            requested_at=info.requested_at,
            since=info.since,
            plan=info.plan,
            needed=info.needed,
            resources=info.resources,
            exists=info.exists,
            reason=info.reason,
        )
