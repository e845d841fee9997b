"""Use cases of destinations and their custom properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol
from uuid import UUID

from domain.channel.handlers import without_secrets
from domain.channel.secrets import opened, path_of
from domain.destination.targets import Target, config_model, parse_config
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan, Vault
from domain.record.handlers import RecordHandlers
from domain.record.kinds.custom_property import DestinationProperty
from domain.record.kinds.destination import Destination, DestinationDetails
from domain.record.ports import PropertyFilter, PropertyLookup, RecordLookup, RecordRow
from domain.record.property_handlers import PropertyHandlers
from domain.record.property_upserts import PropertyChange, stored_pair
from domain.record.record import Record, RegisterRecord


class TargetTrial(Protocol):
    """Tests targets."""

    async def fault(self, target: Target, config: Mapping[str, Any]) -> str | None:
        """Reach the target as publishing would, and leave nothing there. Return None on success, else one sentence about the
        error and its remedy, without secrets. `config` contains the secrets. The test ends within a time limit."""
        ...

    def refusal(self, target: Target) -> str | None:
        """Return the reason for which this installation cannot have destinations of this target; None if it can."""
        ...


_OWNER: Final = "destinationId"


class DestinationHandlers:
    """Adds, changes, tests and deletes destinations. A configuration is checked against the schema of its target; its secrets
    are encrypted and stored apart."""

    def __init__(
        self, executor: Executor, records: RecordLookup, *, vault: Vault, trial: TargetTrial, deletions: RecordHandlers
    ) -> None:
        self._executor = executor
        self._records = records
        self._vault = vault
        self._trial = trial
        self._deletions = deletions

    async def add(self, values: Mapping[str, Any], *, invocation: Invocation) -> Outcome[Record]:
        """Add a destination. It is not active, whatever the values say."""
        key = new_id()
        stored, secrets = self._checked({"configuration_json": "{}", **_not_activated(values)}, values["target"], key=key)
        return await self._executor.execute(
            RegisterRecord(key, Destination, stored, new=True, sealed=secrets), invocation=invocation
        )

    async def change(self, key: UUID, values: Mapping[str, Any], *, invocation: Invocation) -> Outcome[Record]:
        """Change the fields that `values` names. `active` can only be reset."""
        self._check(values, values.get("target"))

        async def plan() -> Plan:
            before = await self._existing(key)
            target = values.get("target", before.details.target)
            stored, secrets = self._checked(_not_activated(values), target, key=key)
            still = {"target": before.details.target}
            return Plan([Destination.amend.on(key, stored, still=still).as_planned().with_secrets(secrets)])

        return await self._executor.execute(plan, invocation=invocation)

    async def activate(self, key: UUID, *, invocation: Invocation) -> Outcome[Record]:
        """Test the target. The destination becomes active if that succeeds, and stays as it is if not. The result has `fault`,
        which is None on success. Raises `Conflict` if the destination is changed meanwhile."""
        tried = await self._existing(key)
        invocation.check_version(tried.version)
        fault = await self._trial.fault(tried.details.target, await self.configuration(tried))

        async def plan() -> Plan:
            if fault is not None:
                return Plan((), {"fault": fault})
            still = {name: getattr(tried.details, name) for name in ("target", "configuration_json", "secrets")}
            return Plan([Destination.amend.on(key, {"active": True}, still=still).as_planned()], {"fault": None})

        return await self._executor.execute(plan, invocation=invocation)

    async def configuration(self, row: RecordRow[DestinationDetails]) -> dict[str, Any]:
        """Return the configuration with its secrets."""
        details: DestinationDetails = row.details
        owner = Destination.stream(row.id)
        read = {place: await self._vault.read(ref.reference, owner=owner) for place, ref in details.secrets.items()}
        secrets = {place: secret for place, secret in read.items() if secret is not None}
        document = opened(details.configuration_json, secrets, members=Destination.MEMBERS)
        return document if isinstance(document, dict) else {}

    async def delete(self, key: UUID, *, invocation: Invocation) -> Outcome[Record]:
        """Delete the destination and its properties, which come first in the outcome. Raises `InUse` while a publication is
        running."""
        return await self._deletions.delete_with_properties(Destination, key, properties=DestinationProperty, invocation=invocation)

    def _checked(
        self, values: Mapping[str, Any], target: Target, *, key: UUID
    ) -> tuple[Mapping[str, Any], Sequence[EncryptedSecret]]:
        self._check(values, target)
        if values.get("configuration_json") is None:
            return values, ()
        stored, secrets = without_secrets(Destination, values, stream=Destination.stream(key), vault=self._vault)
        required = [path_of((name,)) for name in config_model(target).REQUIRED]
        return {**stored, "configuration_json": replace(stored["configuration_json"], required=required)}, secrets

    def _check(self, values: Mapping[str, Any], target: Target | None) -> None:
        """Check everything that needs no look-up. Without a target the configuration must be valid for any target."""
        if target is not None and (refusal := self._trial.refusal(target)) is not None:
            raise Malformed.at("target", refusal)
        text = values.get("configuration_json")
        if text is not None:
            parse_config(target, text)
            Destination.split(text)

    async def _existing(self, key: UUID) -> RecordRow[DestinationDetails]:
        row = await self._records.find(Destination, key)
        if row is None:
            raise NotFound(Destination.KIND, str(key))
        return row


def _not_activated(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name != "active" or value is False}


class DestinationPropertyHandlers:
    """Adds, changes and deletes properties of destinations. A property records the client that wrote it last."""

    def __init__(
        self, executor: Executor, records: RecordLookup, *, properties: PropertyLookup, handlers: PropertyHandlers
    ) -> None:
        self._executor = executor
        self._records = records
        self._properties = properties
        self._handlers = handlers

    async def put(self, change: PropertyChange, *, destination: UUID | None, invocation: Invocation) -> Outcome[Record]:
        written = replace(change, values={**change.values, "client": invocation.cause.actor})
        return await self._handlers.add_or_change(
            DestinationProperty, written, owner=destination, owner_field=_OWNER, invocation=invocation
        )

    async def delete_pair(self, destination: UUID, *, category: str, key: str, invocation: Invocation) -> Outcome[Record]:
        wanted = PropertyFilter(owner_id=str(destination), category=category, key=key)

        async def plan() -> Plan:
            rows = await self._properties.matching(DestinationProperty, wanted)
            if not rows:
                raise NotFound(DestinationProperty.KIND, f"{category}/{key}")
            return Plan([DestinationProperty.delete.on(rows[0].id, still=stored_pair(rows[0])).as_planned()])

        return await self._executor.execute(plan, invocation=invocation)

    async def delete_matching(self, wanted: PropertyFilter, *, invocation: Invocation) -> Outcome[Record]:
        """Delete the matching properties of one destination. Raises `NotFound` for an unknown destination."""
        if await self._records.find(Destination, wanted.owner_id) is None:
            raise NotFound(Destination.KIND, str(wanted.owner_id))
        return await self._handlers.delete_matching(DestinationProperty, wanted, owner_field=_OWNER, invocation=invocation)
