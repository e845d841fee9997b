"""Use cases of channels, flows and infrastructure profiles: records with a JSON configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from domain.channel.profile import ProfileDocument
from domain.kernel.command import Key
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.json_document import checked
from domain.kernel.ports import Executor, Invocation, Outcome, Vault
from domain.record.configured_record import C, ConfiguredRecord, SentConfiguration
from domain.record.handlers import RecordHandlers
from domain.record.kinds.channel import Channel
from domain.record.kinds.infrastructure_profile import InfrastructureProfile, InfrastructureProfileDetails
from domain.record.record import Record, RegisterRecord


def without_secrets(
    kind: type[ConfiguredRecord], values: Mapping[str, Any], *, stream: str, vault: Vault
) -> tuple[Mapping[str, Any], Sequence[EncryptedSecret]]:
    """Return the values with references instead of the secrets, and the encrypted secrets. Each is encrypted for the record's
    stream, so a new record must have its key before."""
    text = values["configuration_json"]
    split = kind.split(text)
    encrypted = {path: vault.encrypt(secret, owner=stream) for path, secret in split.sent.items() if secret}
    sent = {path: encrypted[path].ref if path in encrypted else None for path in split.sent}
    configuration = SentConfiguration(split.text, sent, split.holders, split.nulls, kind.required_secrets(text))
    return {**values, "configuration_json": configuration}, list(encrypted.values())


class PointOwners(Protocol):
    """Tells which channels send to which publishing points of the built-in origin."""

    async def taken_points(self, text: str, *, channel: object) -> Sequence[str]:
        """Return the points in a channel's configuration to which other channels send, and to which this channel has not sent so
        far."""
        ...


class ConfigurationHandlers:
    """Adds and changes channels and flows. With `shares` the caller may let two channels send to one point of the built-in origin.

    The configuration is checked against its schema; its secrets are encrypted and stored apart from the text. `Malformed` names the
    place inside the configuration.
    """

    def __init__(self, executor: Executor, vault: Vault, owners: PointOwners) -> None:
        self._executor = executor
        self._vault = vault
        self._owners = owners

    async def register(
        self,
        kind: type[ConfiguredRecord[C]],
        values: Mapping[str, Any],
        *,
        invocation: Invocation,
        key: Key | None = None,
        shares: bool = False,
    ) -> Outcome[Record[C]]:
        """Add a record or, with a `key`, add or change the record with this key. Raises `Conflict`."""
        new, key = key is None, key or new_id()
        await self._check_points(kind, values, key=key, shares=shares)
        stored, secrets = self._without_secrets(kind, values, key=key)
        return await self._executor.execute(RegisterRecord(key, kind, stored, new=new, sealed=secrets), invocation=invocation)

    async def amend(
        self,
        kind: type[ConfiguredRecord[C]],
        key: Key,
        *,
        values: Mapping[str, Any],
        invocation: Invocation,
        shares: bool = False,
    ) -> Outcome[Record[C]]:
        """Change the fields that `values` names. Raises `Conflict`."""
        await self._check_points(kind, values, key=key, shares=shares)
        stored, secrets = self._without_secrets(kind, values, key=key)
        return await self._executor.execute(kind.amend.on(key, stored).with_secrets(secrets), invocation=invocation)

    async def _check_points(self, kind: type[ConfiguredRecord], values: Mapping[str, Any], *, key: Key, shares: bool) -> None:
        """Refuse publishing points of other channels. An encoder gets a token of its point, so a channel that names another
        channel's point could write in its place."""
        text = values.get("configuration_json")
        if kind is not Channel or shares or text is None:
            return
        if taken_points := await self._owners.taken_points(text, channel=key):
            points = ", ".join(taken_points)
            raise Conflict(
                f"another channel sends to {points} of the built-in origin; only an admin may let two channels send there"
            )

    def _without_secrets(
        self, kind: type[ConfiguredRecord], values: Mapping[str, Any], *, key: Key
    ) -> tuple[Mapping[str, Any], Sequence[EncryptedSecret]]:
        text = values.get("configuration_json")
        if text is None:
            return values, ()
        checked(kind.SCHEMA, text, is_new=True)
        return without_secrets(kind, values, stream=kind.stream(key), vault=self._vault)


class ProfileHandlers:
    """Adds and changes infrastructure profiles. Nothing in their configuration is secret."""

    def __init__(self, records: RecordHandlers) -> None:
        self._records = records

    async def add_or_update(
        self, key: Key | None, values: Mapping[str, Any], *, invocation: Invocation
    ) -> Outcome[Record[InfrastructureProfileDetails]]:
        """Add a profile or, with a key, change the profile with this key."""
        if (text := values.get("configuration_json")) is not None:
            checked(ProfileDocument, text)
        if key is None:
            return await self._records.register(InfrastructureProfile, values, unique_field="referenceId", invocation=invocation)
        return await self._records.amend(
            InfrastructureProfile, key, values=values, unique_field="referenceId", invocation=invocation
        )
