"""Responses of the provisioning routes. See docs/reference/api/provisioning.md."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field
from pydantic_core import to_json

from api.kernel.wire import Instant, NamedInt, Wire
from domain.provision import values
from domain.provision.aggregate import provision_key
from domain.provision.row import ProvisionRow
from domain.provision.values import ProvisionState

State = Annotated[ProvisionState, NamedInt(ProvisionState)]


class ProvisionSummary(Wire):
    """The infrastructure of an Event as shown in the Event."""

    id: UUID = Field(description="Id of the Provision Info; the audit has its history under this id.")
    infrastructure_key: str = Field(description="The key of the infrastructure. Events with the same key share it.")
    provisioned_at: Instant = Field(
        description="The time when provisioning was last requested or ended; before the first time, when the Provision Info "
        "was made."
    )
    terminated_at: Instant | None = Field(description="The time when the infrastructure was terminated; null while it is not.")
    state: State = Field(description="The state, as a number.")
    state_string: str = Field(description="The state, by name.")

    @classmethod
    def of(cls, event_id: UUID, summary: values.ProvisionSummary) -> ProvisionSummary:
        return cls.model_construct(id=provision_key(event_id), **_shown(summary))


class ProvisionInfo(ProvisionSummary):
    """The infrastructure of an Event, with its resources."""

    resources_json: str = Field(description="The running resources with their discovered attributes, as a text that holds JSON.")

    @classmethod
    def of_row(cls, row: ProvisionRow) -> ProvisionInfo:
        resources = to_json(list(row.resources)).decode()
        return cls.model_construct(id=row.id, resources_json=resources, **_shown(row.summary))


class ProvisionResources(Wire):
    """The resources of an Event: the running resources, or those that its infrastructure profile names."""

    event_id: UUID = Field(description="Id of the Event.")
    state: State = Field(description="The state of the infrastructure, as a number.")
    state_string: str = Field(description="The state, by name.")
    infrastructure_key: str = Field(description="The current or future key of the infrastructure.")
    resources: list[dict[str, Any]] = Field(
        description="The resources, each with the attributes of the profile and those that the provisioner added."
    )


def _shown(summary: values.ProvisionSummary) -> dict[str, Any]:
    return {
        "infrastructure_key": summary.infrastructure_key,
        "provisioned_at": summary.provisioned_at,
        "terminated_at": summary.terminated_at,
        "state": summary.state,
        "state_string": summary.state.name,
    }
