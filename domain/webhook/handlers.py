"""Use cases of webhooks and callbacks: add, update, disable, delete, and replace the secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from domain.content_key.ports import RandomBytes
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventLookup
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan, Vault
from domain.record.ports import RecordLookup
from domain.record.record import Record, RegisterRecord
from domain.webhook.aggregate import Webhook, check_values, check_webhook
from domain.webhook.basic_auth import check_password
from domain.webhook.callback import Callback
from domain.webhook.details import WebhookFamily
from domain.webhook.endpoint import BYTES, SIGNING, Endpoint, encode_secret
from domain.webhook.headers import split_credentials

_HEADERS: Final = "additional_properties_json"


@dataclass(frozen=True)
class WebhookChanges:
    """Fields of a webhook that a caller sets, including credentials.

    `password` None keeps the stored one, and the empty text clears it. `event_id` None keeps the Event.
    """

    values: Mapping[str, Any] = field(repr=False)
    password: str | None = field(default=None, repr=False)


class WebhookHandlers:
    """Changes webhooks and callbacks. Credentials are encrypted before a command or an event holds them. A webhook of another
    family counts as missing.

    `random` returns as many secret bytes as requested.
    """

    def __init__(
        self, executor: Executor, records: RecordLookup, *, events: EventLookup, vault: Vault, random: RandomBytes
    ) -> None:
        self._executor = executor
        self._records = records
        self._events = events
        self._vault = vault
        self._random = random

    async def add(self, changes: WebhookChanges, *, invocation: Invocation) -> Outcome[Webhook]:
        """Add a webhook, system-wide or of an Event. The outcome has its signing secret, and `added` in its result."""
        key = new_id()
        values, encrypted = self._encrypt(key, changes)
        secret, signing = self._new_secret(Webhook, key)
        values["secrets"] = {**values["secrets"], SIGNING: signing.ref}
        command = RegisterRecord(key, Webhook, values, new=True, sealed=[*encrypted, signing])

        async def plan() -> Plan:
            if "webhook_url" not in values:
                raise Malformed.at("webhookUrl", "is required")
            check_webhook(values, None)
            await self._check_event(values, None)
            return Plan((command,), result={"added": True})

        outcome = await self._executor.execute(plan, invocation=invocation)
        return replace(outcome, secrets={"secret": secret})

    async def update(
        self, key: UUID, changes: WebhookChanges, *, family: WebhookFamily, invocation: Invocation
    ) -> Outcome[Webhook]:
        """Change the fields that are set. A missing webhook is reported after bad input."""
        values, encrypted = self._encrypt(key, changes)

        async def plan() -> Plan:
            stored = await self._records.find(Webhook, key)
            if stored is None or stored.details.family is not family:
                raise NotFound(Webhook.KIND, str(key))
            check_webhook(values, stored.details)
            await self._check_event(values, stored.details.event_id)
            still = {"event_id": stored.details.event_id}
            return Plan((Webhook.amend.on(key, values, still=still).as_planned().with_secrets(encrypted),))

        return await self._executor.execute(plan, invocation=invocation)

    async def disable(self, key: UUID, *, at: datetime, invocation: Invocation) -> Outcome[Endpoint]:
        """Disable an enabled endpoint. Raises `Conflict` if it is already disabled or deleted."""
        kind = await self._kind(key)

        async def plan() -> Plan:
            return Plan((kind.amend.on(key, {"disabled_at": at}, still={"disabled_at": None}).as_planned(),))

        return await self._executor.execute(plan, invocation=invocation)

    async def delete(self, key: UUID, *, invocation: Invocation) -> Outcome[Record]:
        """Delete a webhook of any family, or a callback. The outcome has it as it was."""
        return await self._executor.execute((await self._kind(key)).delete.on(key), invocation=invocation)

    async def keep(self, key: UUID, *, invocation: Invocation) -> None:
        """Keep the endpoint, because its deliveries are to be sent again."""
        if await self._kind(key) is Callback:
            await self._executor.execute(Callback.name.on(key), invocation=invocation)

    async def rotate_secret(self, key: UUID, *, invocation: Invocation) -> Outcome[Endpoint]:
        """Create a new signing secret for a webhook of any family, or a callback. The outcome has it."""
        kind = await self._kind(key)
        secret, encrypted = self._new_secret(kind, key)
        outcome = await self._executor.execute(kind.rotate.on(key, encrypted.ref).with_secrets([encrypted]), invocation=invocation)
        return replace(outcome, secrets={"secret": secret})

    async def _kind(self, key: UUID) -> type[Endpoint]:
        """Return the class of the endpoint with this id. A missing one counts as a webhook."""
        return Webhook if await self._records.find(Callback, key) is None else Callback

    def _encrypt(self, key: UUID, changes: WebhookChanges) -> tuple[dict[str, Any], Sequence[EncryptedSecret]]:
        """Return the values that events may hold, and the encrypted secrets of the command."""
        values = {name: value for name, value in changes.values.items() if name != "event_id" or value is not None}
        credentials: dict[str, str] = {}
        if changes.password is not None:
            check_password(changes.password)
            credentials["password"] = changes.password
        check_values(values)
        text = values.get(_HEADERS)
        if text is not None:
            headers = split_credentials(text)
            values[_HEADERS] = headers.text
            credentials.update(headers.credentials)
        encrypted = {name: self._seal(Webhook, key, secret=secret) for name, secret in credentials.items() if secret}
        secrets = {name: encrypted[name].ref if name in encrypted else None for name in credentials}
        return {**values, "secrets": secrets}, list(encrypted.values())

    def _new_secret(self, kind: type[Endpoint], key: UUID) -> tuple[str, EncryptedSecret]:
        secret = encode_secret(self._random(BYTES))
        return secret, self._seal(kind, key, secret=secret)

    def _seal(self, kind: type[Endpoint], key: UUID, *, secret: str) -> EncryptedSecret:
        return self._vault.encrypt(secret, owner=kind.stream(key))

    async def _check_event(self, values: Mapping[str, Any], stored: UUID | None) -> None:
        """Check that a new Event exists. An Event that was deleted after the webhook was added may remain its Event."""
        event = values.get("event_id", stored)
        if event != stored and await self._events.by_id(event) is None:
            raise NotFound(MediaEvent.KIND, str(event))
