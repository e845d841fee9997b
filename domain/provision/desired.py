"""What is to be there for one infrastructure key: what the Events that have it want now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from domain.provision.credentials import without_credentials
from domain.provision.row import ProvisionRow
from domain.provision.values import Deployment, RunEnd, Work, name_of

_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """`resources` are to be up, and no others; none: everything is to go. `work` are the Events that wait for the end of the run.
    `refused` wait in vain: the infrastructure of the key is made in another way than their profiles say. `number` grows from one
    look at what is wanted to the next, of whichever process. `made`: a run has told that something is there."""

    key: str
    deployment: Deployment
    template: str
    settings: Mapping[str, str] = field(repr=False)
    resources: Sequence[dict[str, Any]] = field(repr=False)
    allow_updates: bool
    work: Sequence[ProvisionRow] = field(repr=False)
    refused: Sequence[ProvisionRow] = field(repr=False)
    number: int = 0
    made: bool = False

    @property
    def names(self) -> frozenset[str]:
        return frozenset(map(name_of, self.resources))

    def is_outdated_by(self, now: Desired | None) -> bool:
        """Whether a run for this makes what nobody wants any more, or destroys what somebody wants. What is wanted in addition
        waits for its end."""
        if now is None:
            return False
        return not self.names <= now.names or bool(not self.names and now.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """What a provisioner has brought about. `resources` are up; `left`: something is there that was to go, or may be; `exists`:
    there is anything at all, or may be; `reason` says why not all is as desired."""

    resources: Sequence[dict[str, Any]] = field(default=(), repr=False)
    left: bool = False
    exists: bool = False
    reason: str = ""


def desired(rows: Iterable[ProvisionRow], *, number: int = 0) -> Desired | None:
    """None without work. Of the Events that share a key the one that has had resources for longest says how they are made; of
    resources with the same name the last request counts."""
    holding = [row for row in rows if row.plan is not None and (row.needed or row.exists or row.work is not None)]
    if not any(row.work is not None for row in holding):
        return None
    first = min(holding, key=lambda row: (not row.resources, row.since or _NEVER, row.event_id)).plan
    assert first is not None
    alike = [row for row in holding if row.plan is not None and row.plan.made_by == first.made_by]
    wanting = sorted((row for row in alike if row.needed), key=lambda row: (row.requested_at or _NEVER, row.event_id))
    last = wanting[-1].plan if wanting else first
    assert last is not None
    work = [row for row in alike if row.work is not None]
    return Desired(
        key=first.infrastructure_key,
        deployment=first.deployment,
        template=first.template,
        settings=last.settings,
        resources=list({name_of(resource): resource for row in wanting for resource in row.needed}.values()),
        allow_updates=any(row.allow_updates for row in work if row.work is Work.PROVISION),
        work=work,
        refused=[row for row in holding if row.work is not None and row not in alike],
        number=number,
        made=any(row.was_made for row in alike),
    )


def end_for(row: ProvisionRow, provided: Provided) -> RunEnd:
    """How the run ended for one Event: other Events may want more. What a provisioner tells under a name that hints at a credential
    is left out."""
    needed = set(map(name_of, row.needed))
    up = tuple(without_credentials(resource) for resource in provided.resources if name_of(resource) in needed)
    left = (provided.exists or bool(up)) if row.work is Work.PROVISION else provided.left
    return RunEnd(resources=up, left=left, reason=provided.reason)


def refusal_of(row: ProvisionRow, key: str) -> RunEnd:
    return RunEnd(reason=f"the infrastructure of the key {key!r} is made in another way than the profile of this Event says")
