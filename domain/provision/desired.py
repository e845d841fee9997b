"""The desired state of one infrastructure key, computed from the present wishes of its Events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from domain.kernel.credentials import speaks_of_credential
from domain.provision.row import ProvisionRow
from domain.provision.values import Deployment, RunEnd, Work, name_of

# Credentials in provisioned resources. The content of a profile and the reports of a provisioner are stored and shown.


def credentials(node: object) -> list[str]:
    """Return the places below a node whose names hint at a credential and that have a value."""
    if isinstance(node, dict):
        places = []
        for name, value in node.items():
            if _is_credential(name, value):
                places.append(name)
            places += [f"{name}.{place}" for place in credentials(value)]
        return places
    if isinstance(node, list):
        return [f"{index}.{place}" for index, value in enumerate(node) for place in credentials(value)]
    return []


def without_credentials(node: Any) -> Any:
    """Return a copy without the members whose names hint at a credential."""
    if isinstance(node, dict):
        return {name: without_credentials(value) for name, value in node.items() if not _is_credential(name, value)}
    return [without_credentials(value) for value in node] if isinstance(node, list) else node


def _is_credential(name: str, value: object) -> bool:
    return value not in (None, "") and speaks_of_credential(name)


_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The desired state of one infrastructure key. `resources` must be up, and no others; none means that everything is
    terminated. `work` are the Events that wait for the end of the run. `refused` are Events that wait in vain, because the
    infrastructure of the key is made differently from their profiles. `number` grows with each reading of the desired state, in
    any process. `made` says that a run has reported existing resources."""

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
        """Return True if a run for this state makes something that is no longer wanted, or destroys something that is wanted.
        Additional wishes wait for the end of the run."""
        if now is None:
            return False
        return not self.names <= now.names or bool(not self.names and now.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """The result of a provisioner. `resources` are up. `left` says that something exists, or may exist, that was to be
    terminated. `exists` says that anything exists, or may exist. `reason` explains a difference from the desired state."""

    resources: Sequence[dict[str, Any]] = field(default=(), repr=False)
    left: bool = False
    exists: bool = False
    reason: str = ""


def desired(rows: Iterable[ProvisionRow], *, number: int = 0) -> Desired | None:
    """Return the desired state, or None without work. Of the Events that share a key, the one that has had resources for longest
    determines how they are made; of resources with the same name, the last request counts."""
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
    """Return the end of the run for one Event, because other Events may want more. Reported members whose names hint at a
    credential are left out."""
    needed = set(map(name_of, row.needed))
    up = tuple(without_credentials(resource) for resource in provided.resources if name_of(resource) in needed)
    left = (provided.exists or bool(up)) if row.work is Work.PROVISION else provided.left
    return RunEnd(resources=up, left=left, reason=provided.reason)


def refusal_of(row: ProvisionRow, key: str) -> RunEnd:
    return RunEnd(reason=f"the infrastructure with the key {key!r} is made differently from what the profile of this Event says")
