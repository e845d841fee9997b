"""Destination: a platform or a server that receives publications, with its configuration; see
docs/reference/api/destinations.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from domain.channel.secrets import SecretMembers
from domain.destination.targets import FIELD, SECRETS, DestinationConfig, Target
from domain.kernel.errors import Malformed
from domain.kernel.json_document import Section
from domain.record.configured_record import ConfiguredDetails, ConfiguredRecord

_TRIED = ("target", "configuration_json", "secrets")


class DestinationDetails(ConfiguredDetails):
    """Fields of a destination. `active` says that an activation has reached the target with its present configuration."""

    target: Target
    active: bool = False


class Destination(ConfiguredRecord[DestinationDetails]):
    """A destination. Its target determines the schema of its configuration."""

    KIND: ClassVar[str] = "destination"
    SCHEMA: ClassVar[type[Section]] = DestinationConfig
    FIELD: ClassVar[str] = FIELD
    MEMBERS: ClassVar[SecretMembers] = SECRETS

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: DestinationDetails | None) -> Mapping[str, Any]:
        """Drop the secrets if the target changes, and deactivate a destination whose tested configuration changes."""
        if stored is None:
            return super().prepare_values(values, None)
        is_other = values.get("target", stored.target) != stored.target
        if is_other and values.get("configuration_json") is None:
            raise Malformed.at(cls.FIELD, "is required with another target")
        settled = super().prepare_values(values, None if is_other else stored)
        changed = any(name in settled and settled[name] != getattr(stored, name) for name in _TRIED)
        return {**settled, "active": False} if changed else settled
