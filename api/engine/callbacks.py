"""Which webhooks a new job is told to: those that its parameters name, and those of its Event's flow. Document 3, "Job engine" and
"Flow" (`callbackUrls`); issue 7, "Callbacks".

An address whose webhook does not stand gets one in the append that takes the job in. What is secret in it is sealed before anything
keeps it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from domain.configuration.flow import callback_urls
from domain.kernel.errors import FieldError, Malformed
from domain.records.kinds.flow import Flow
from domain.records.kinds.webhook import EnsureCallback, Webhook, callbacks_of
from domain.webhook import secret as signing
from domain.webhook.callback import MOST, CallbackUrl, callback_key, taken_apart
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault

_OF_FLOW = "callbackUrls"


class Callbacks:
    """Finds and makes the webhooks of jobs."""

    def __init__(self, vault: Vault, events: EventQueries, records: RecordQueries) -> None:
        self._vault = vault
        self._events = events
        self._records = records

    async def of(
        self, client: str, urls: Sequence[tuple[str, str]], content_id: str
    ) -> tuple[tuple[UUID, ...], Sequence[EnsureCallback]]:
        """The webhooks of a job, and the commands that make those that do not stand; to be carried out with the job's own.

        `urls` are those of its parameters, each behind the path of its field. `Malformed` names all that cannot be called."""
        wanted = self._named(client, urls)
        for url in await self._of_flow(content_id):
            if len(wanted) < MOST:
                wanted.setdefault(self._key(client, url), url)
        standing = await self._records.linked((Webhook.KIND, str(key)) for key in wanted)
        missing = [key for key in wanted if (Webhook.KIND, str(key)) not in standing]
        return tuple(wanted), [self._command(key, client, wanted[key]) for key in missing]

    def _named(self, client: str, urls: Sequence[tuple[str, str]]) -> dict[UUID, CallbackUrl]:
        wanted: dict[UUID, CallbackUrl] = {}
        faults: list[FieldError] = []
        for field, text in urls:
            try:
                url = taken_apart(text, field=field)
            except Malformed as refusal:
                faults.extend(refusal.errors)
                continue
            wanted[self._key(client, url)] = url
            if len(wanted) > MOST:
                faults.append(FieldError(field, f"is one too many: a job may have {MOST} callbacks"))
                break
        if faults:
            raise Malformed(*faults)
        return wanted

    async def _of_flow(self, content_id: str) -> list[CallbackUrl]:
        """An address of the flow that cannot be called is its owner's business, and never fails a job."""
        try:
            event = await self._events.by_id(UUID(content_id))
        except ValueError:
            return []
        if event is None or event.details.flow_id is None:
            return []
        flow = await self._records.find(Flow.KIND, event.details.flow_id)
        found: list[CallbackUrl] = []
        for text in callback_urls(flow.details.configuration_json) if flow is not None else ():
            with suppress(Malformed):
                found.append(taken_apart(text, field=_OF_FLOW))
        return found

    def _key(self, client: str, url: CallbackUrl) -> UUID:
        mark = self._vault.seal(url.whole, owner=callbacks_of(client)).fingerprint if url.hides else ""
        return callback_key(client=client, url=url.shown, mark=mark)

    def _command(self, key: UUID, client: str, url: CallbackUrl) -> EnsureCallback:
        owner = Webhook.stream(key)
        secret = self._vault.seal(signing.worded(os.urandom(signing.BYTES)), owner=owner)
        whole = self._vault.seal(url.whole, owner=owner) if url.hides else None
        return EnsureCallback(key, client, url.shown, secret, whole)
