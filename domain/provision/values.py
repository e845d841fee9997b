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
"""The infrastructure is there, or a part of it."""
OVER: Final = frozenset({ProvisionState.TERMINATING, ProvisionState.TERMINATING_FAILED, ProvisionState.TERMINATED})
"""It was to be terminated."""

ENDED: Final = (
    ProvisionState.PROVISIONING_FAILED,
    ProvisionState.PROVISIONED,
    ProvisionState.PROVISIONED_PARTIAL,
    ProvisionState.TERMINATING_FAILED,
    ProvisionState.TERMINATED,
)
"""What was asked for has ended."""


class ProvisionSummary(BaseModel):
    """What an Event shows of its Provision Info."""

    model_config = ConfigDict(frozen=True)

    state: ProvisionState
    infrastructure_key: str
    provisioned_at: datetime
    terminated_at: datetime | None = None


class Deployment(StrEnum):
    """Who provides the resources: nobody (they exist already), or a provisioner that follows a template."""

    STATIC = "static"
    TEMPLATE = "template"


class Ending(BaseModel):
    """A rule of a profile: an Event that enters one of the `states` no longer needs resources of the types in `select`. Both in
    lower case."""

    model_config = ConfigDict(frozen=True)

    states: tuple[str, ...]
    select: tuple[str, ...]


class ProvisionPlan(BaseModel):
    """What is provisioned, as the profile said when it was requested. `resources` are as they were sent."""

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
        """What all that share the infrastructure agree on."""
        how = f"the template {self.template!r}" if self.deployment is Deployment.TEMPLATE else "static resources"
        return f"the key {self.infrastructure_key!r} and {how}"

    def selected_in(self, state: str) -> frozenset[str]:
        """The types of the resources that are not needed from this state of the Event on."""
        entered = state.casefold()
        return frozenset(kind for ending in self.endings if entered in ending.states for kind in ending.select)


class Work(StrEnum):
    """What is under way for the infrastructure of an Event. RELEASE: what a reset left behind is terminated, and no state tells."""

    PROVISION = "provision"
    TERMINATE = "terminate"
    RELEASE = "release"


class RunEnd(BaseModel):
    """How a run ended. `resources` are those of the Event that are up then, with what the provisioner knows of them; `left`: some
    that were to go are still there, or may be; `reason` says why not all is as it was to be."""

    model_config = ConfigDict(frozen=True)

    resources: tuple[dict[str, Any], ...] = Field(default=(), repr=False)
    left: bool = False
    reason: str = ""


def name_of(resource: dict[str, Any]) -> str:
    return str(_member(resource, "name"))


def type_of(resource: dict[str, Any]) -> str:
    """In lower case."""
    return str(_member(resource, "type")).casefold()


def _member(resource: dict[str, Any], name: str) -> object:
    """The members of a document may be spelled in any case."""
    return next((value for key, value in resource.items() if key.casefold() == name), "")
