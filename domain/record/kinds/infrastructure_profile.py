"""Infrastructure profile: the resources that an Event is provisioned with; see
docs/reference/api/infrastructure-profiles.md."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from domain.record.record import Record


class InfrastructureProfileDetails(BaseModel):
    """Fields of an infrastructure profile. `configuration_json` is stored as it was sent; its schema is in
    `domain/channel/profile.py`."""

    name: str
    reference_id: str | None = None
    configuration_json: str


class InfrastructureProfile(Record[InfrastructureProfileDetails]):
    KIND: ClassVar[str] = "infrastructure_profile"
    UNIQUE: ClassVar[tuple[str | tuple[str, ...], ...]] = ("reference_id",)
