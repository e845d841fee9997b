"""The callbacks of a new job: for the URLs in its parameters, and for those in the flow of its Event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final
from uuid import UUID

from domain.channel.flow import callback_urls
from domain.event.ports import EventLookup
from domain.kernel.clock import Clock
from domain.kernel.errors import Malformed
from domain.kernel.ports import Vault
from domain.record.kinds.flow import Flow
from domain.record.ports import RecordLookup
from domain.webhook.callback import MOST_CALLBACKS, CallbackUrl, callback_key, parse_callback_url
from domain.webhook.callback_naming import CallbackNaming, NewSigningSecret
from domain.webhook.commands import NameCallback

_FLOW_FIELD: Final = "callbackUrls"


class JobCallbacks:
    """Finds and names the callbacks of jobs. `new_signing_secret` draws the secret of a callback that does not exist yet."""

    def __init__(
        self,
        vault: Vault,
        events: EventLookup,
        records: RecordLookup,
        *,
        clock: Clock,
        new_signing_secret: NewSigningSecret,
    ) -> None:
        self._naming = CallbackNaming(vault, records, clock=clock, new_signing_secret=new_signing_secret)
        self._events = events
        self._records = records

    async def of(
        self, client: str, urls: Sequence[tuple[str, str]], *, content_id: str, flow_id: UUID | None = None
    ) -> dict[UUID, CallbackUrl]:
        """Return the addresses by the ids of their callbacks.

        `urls` are those of the parameters, each after the path of its field. Raises `Malformed` with every invalid one. Without a
        `flow_id` the flow of the Event is used.
        """
        addresses = self._naming.checked(client, urls)
        for url in await self._of_flow(flow_id or await self._flow_of(content_id)):
            if len(addresses) < MOST_CALLBACKS:
                addresses.setdefault(callback_key(client=client, url=url.shown), url)
        return addresses

    async def named(self, client: str, urls: Mapping[UUID, str]) -> Sequence[NameCallback]:
        """Return the commands for the append of a job that names these callbacks."""
        return await self._naming.named(client, urls)

    async def _flow_of(self, content_id: str) -> UUID | None:
        try:
            event = await self._events.by_id(UUID(content_id))
        except ValueError:
            return None
        return None if event is None else event.details.flow_id

    async def _of_flow(self, flow_id: UUID | None) -> list[CallbackUrl]:
        """Return the callback URLs of a flow. An invalid one is left out, because the submitter of the job cannot correct the
        flow."""
        flow = None if flow_id is None else await self._records.find(Flow, flow_id)
        urls: list[CallbackUrl] = []
        for text in callback_urls(flow.details.configuration_json) if flow is not None else ():
            with suppress(Malformed):
                urls.append(parse_callback_url(text, field=_FLOW_FIELD))
        return urls
