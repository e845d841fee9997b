"""Values of provisioning: docs/reference/api/provisioning.md."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class ProvisionState(IntEnum):
    """The states of the infrastructure of an Event. An Event that was never provisioned has none."""

    SCHEDULED = 0
    PROVISIONING = 1
    PROVISIONING_FAILED = 2
    PROVISIONED = 3
    PROVISIONED_PARTIAL = 4
    TERMINATING = 5
    TERMINATING_FAILED = 6
    TERMINATED = 7


UP: Final = frozenset({ProvisionState.PROVISIONED, ProvisionState.PROVISIONED_PARTIAL})
"""The states in which the infrastructure, or a part of it, exists."""
OVER: Final = frozenset({ProvisionState.TERMINATING, ProvisionState.TERMINATING_FAILED, ProvisionState.TERMINATED})
"""The states in which the infrastructure was to be terminated."""

ENDED: Final = (
    ProvisionState.PROVISIONING_FAILED,
    ProvisionState.PROVISIONED,
    ProvisionState.PROVISIONED_PARTIAL,
    ProvisionState.TERMINATING_FAILED,
    ProvisionState.TERMINATED,
)
"""The states in which the requested work has ended."""


class ProvisionSummary(BaseModel):
    """The fields of a Provision Info that its Event shows."""

    model_config = ConfigDict(frozen=True)

    state: ProvisionState
    infrastructure_key: str
    provisioned_at: datetime
    terminated_at: datetime | None = None


class Deployment(StrEnum):
    """The source of the resources: STATIC ones exist already, TEMPLATE ones are made by a provisioner that follows a template."""

    STATIC = "static"
    TEMPLATE = "template"


class Ending(BaseModel):
    """A rule of a profile: an Event that enters one of the `states` no longer needs resources of the types in `select`. Both are
    in lower case."""

    model_config = ConfigDict(frozen=True)

    states: tuple[str, ...]
    select: tuple[str, ...]


class ProvisionPlan(BaseModel):
    """The resources to provision, as the profile listed them at the request. `resources` are as they were sent."""

    model_config = ConfigDict(frozen=True)

    infrastructure_key: str
    profile_id: UUID
    deployment: Deployment
    template: str
    settings: dict[str, str] = Field(default_factory=dict, repr=False)
    resources: tuple[dict[str, Any], ...] = Field(repr=False)
    endings: tuple[Ending, ...] = ()

    @property
    def made_by(self) -> str:
        """The properties that must be equal for all Events that share the infrastructure."""
        how = f"the template {self.template!r}" if self.deployment is Deployment.TEMPLATE else "static resources"
        return f"the key {self.infrastructure_key!r} and {how}"

    def selected_in(self, state: str) -> frozenset[str]:
        """Return the types of the resources that are no longer needed from this state of the Event on."""
        entered = state.casefold()
        return frozenset(kind for ending in self.endings if entered in ending.states for kind in ending.select)


class Work(StrEnum):
    """The running work for the infrastructure of an Event. RELEASE terminates what a reset left behind; no state shows it."""

    PROVISION = "provision"
    TERMINATE = "terminate"
    RELEASE = "release"


class RunEnd(BaseModel):
    """The end of a run. `resources` are those of the Event that are up then, with the reports of the provisioner. `left` says
    that some resources that were to be terminated still exist, or may exist. `reason` explains a difference from the plan."""

    model_config = ConfigDict(frozen=True)

    resources: tuple[dict[str, Any], ...] = Field(default=(), repr=False)
    left: bool = False
    reason: str = ""


def name_of(resource: dict[str, Any]) -> str:
    return str(_member(resource, "name"))


def type_of(resource: dict[str, Any]) -> str:
    """Return the type of a resource in lower case."""
    return str(_member(resource, "type")).casefold()


def _member(resource: dict[str, Any], name: str) -> object:
    """Return a member of a document, whose names may be spelled in any case."""
    return next((value for key, value in resource.items() if key.casefold() == name), "")
