"""Adding and changing webhooks: what is secret is sealed before anything keeps it, and each family is kept to itself.

decisions.md, "Webhooks": a webhook of an Event is not there for those that ask for a system-wide one, and the reverse. Nor is a
callback for either; those are made by the jobs that name them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.media.resource import Resource
from api.media.webhook.wire import PutWebhookBody, WebhookBody, shaped
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ids import new_id
from domain.kernel.sealed import Sealed
from domain.media_event.aggregate import MediaEvent
from domain.records.kinds.webhook import SIGNING, RotateWebhookSecret, Webhook, check, check_values
from domain.records.record import AmendRecord, Record, RegisterRecord
from domain.webhook import secret as signing
from domain.webhook.address import check_password
from domain.webhook.headers import taken_apart
from projections.log.ledger import Plan
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries, RecordRow
from projections.vault.vault import Vault

WEBHOOKS = Resource(Webhook, "/api/webhook", shaped)

_HEADERS: Final = "additional_properties_json"
_NEVER_STORED: Final = (("cache-control", "no-store"),)


class Webhooks:
    """Writes webhooks. `of_event` says which family is meant: those of one Event, or the system-wide ones."""

    def __init__(self, bus: CommandBus, vault: Vault, events: EventQueries, records: RecordQueries) -> None:
        self._bus = bus
        self._vault = vault
        self._events = events
        self._records = records

    async def put(self, call: Call, body: PutWebhookBody, *, of_event: bool) -> Answer:
        if body.id is not None:
            return await self.amend(call, body.id, body, of_event=of_event)
        return await self._add(call, body)

    async def amend(self, call: Call, key: UUID, body: WebhookBody, *, of_event: bool) -> Answer:
        values, sealed = self._values(key, body)
        if values.get("event_id", ...) is None:
            del values["event_id"]

        async def plan() -> Plan[Record]:
            found = await self._records.known(Webhook.KIND, key)
            if in_family(found, of_event=of_event):
                check(values, found.details)
                await self._event_is_there(values, found.details.event_id)
                still = {"event_id": found.details.event_id}
                return Plan(AmendRecord(key, Webhook, values, still=still, sealed=sealed))
            raise NotFound(Webhook.KIND, str(key))

        return await self._bus.send(call, plan, WEBHOOKS.written)

    async def _add(self, call: Call, body: WebhookBody) -> Answer:
        key = new_id()
        values, sealed = self._values(key, body)
        secret, box = self._new_secret(key)
        values["secrets"] = {**values["secrets"], SIGNING: box.ref}
        command = RegisterRecord(key, Webhook, values, new=True, sealed=[*sealed, box])

        async def plan() -> Plan[Record]:
            if "webhook_url" not in values:
                raise Malformed.at("webhookUrl", "is required")
            check(values, None)
            await self._event_is_there(values, None)
            return Plan(command)

        async def show(webhook: Record) -> Answer:
            return _with_secret(secret, shaped(RecordRow.of(webhook)), etag=webhook.version)

        return await self._bus.send(call, plan, show)

    async def rotate(self, call: Call, key: UUID) -> Answer:
        """A new secret for a webhook of any family."""
        secret, box = self._new_secret(key)

        async def show(_: Webhook) -> Answer:
            return _with_secret(secret, {})

        return await self._bus.send(call, RotateWebhookSecret(key, box), show)

    def _values(self, key: object, body: WebhookBody) -> tuple[dict[str, Any], Sequence[Sealed]]:
        """What the webhook keeps of a body, and the sealed secrets that go along with the command."""
        values, sent = WEBHOOKS.values(body), _credentials(body)
        check_values(values)  # bad input is told before a webhook that is not there
        text = values.get(_HEADERS)
        if text is not None:
            headers = taken_apart(text)
            values[_HEADERS] = headers.text
            sent.update(headers.credentials)
        boxes = {name: self._seal(secret, key) for name, secret in sent.items() if secret}
        secrets = {name: boxes[name].ref if name in boxes else None for name in sent}
        return {**values, "secrets": secrets}, list(boxes.values())

    def _new_secret(self, key: object) -> tuple[str, Sealed]:
        secret = signing.worded(os.urandom(signing.BYTES))
        return secret, self._seal(secret, key)

    def _seal(self, secret: str, key: object) -> Sealed:
        return self._vault.seal(secret, owner=Webhook.stream(key))

    async def _event_is_there(self, values: Mapping[str, Any], stored: UUID | None) -> None:
        """One that was deleted since may stay."""
        wanted = values.get("event_id", stored)
        if wanted != stored and await self._events.by_id(wanted) is None:
            raise NotFound(MediaEvent.KIND, str(wanted))


def in_family(webhook: RecordRow, *, of_event: bool) -> bool:
    details = webhook.details
    return details.job_client is None and (details.event_id is not None) is of_event


def _credentials(body: WebhookBody) -> dict[str, str]:
    """The password, if one was sent. "" clears it, null keeps it."""
    if body.password is None:
        return {}
    check_password(body.password)
    return {"password": body.password}


def _with_secret(secret: str, shown: Mapping[str, Any], *, etag: int | None = None) -> Answer:
    """A repeat under the same Idempotency-Key does not show the secret again."""
    replayed = {**shown, "secret": None}
    return Answer(200, {**shown, "secret": secret}, etag=etag, headers=_NEVER_STORED, replay_body=replayed)
