"""The callbacks of a new job: for the URLs in its parameters, and those in the flow of its Event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final
from uuid import UUID

from domain.configuration.flow import callback_urls
from domain.kernel.clock import Clock
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.ports import Vault
from domain.media_event.ports import EventLookup
from domain.records.kinds.flow import Flow
from domain.records.ports import RecordLookup
from domain.webhook.callback import Callback, callback_key
from domain.webhook.callback_url import MOST_CALLBACKS, CallbackUrl, parse_callback_url
from domain.webhook.commands import NameCallback

_FLOW_FIELD: Final = "callbackUrls"


class JobCallbacks:
    """`new_signing_secret` draws the secret of a callback that does not exist yet."""

    def __init__(
        self,
        vault: Vault,
        events: EventLookup,
        records: RecordLookup,
        *,
        clock: Clock,
        new_signing_secret: Callable[[], str],
    ) -> None:
        self._vault = vault
        self._events = events
        self._records = records
        self._clock = clock
        self._new_signing_secret = new_signing_secret

    async def of(self, client: str, urls: Sequence[tuple[str, str]], *, content_id: str) -> dict[UUID, CallbackUrl]:
        """The addresses by the ids of their callbacks.

        `urls` are those of the parameters, each after the path of its field. Raises `Malformed` with every one that is invalid."""
        addresses = self._of_parameters(client, urls)
        for url in await self._of_flow(content_id):
            if len(addresses) < MOST_CALLBACKS:
                addresses.setdefault(callback_key(client=client, url=url.shown), url)
        return addresses

    async def named(self, client: str, urls: Mapping[UUID, str]) -> Sequence[NameCallback]:
        """The commands for the append of a job that names these callbacks. None for a callback that was named today."""
        if not urls:
            return ()
        existing = {UUID(row.id): row.details.named_on for row in await self._records.those(Callback.KIND, urls)}
        today = self._clock().date()
        return [self._command(key, client, url, new=key not in existing) for key, url in urls.items() if existing.get(key) != today]

    def _of_parameters(self, client: str, urls: Sequence[tuple[str, str]]) -> dict[UUID, CallbackUrl]:
        addresses: dict[UUID, CallbackUrl] = {}
        errors: list[FieldError] = []
        for path, text in urls:
            try:
                url = parse_callback_url(text, field=path)
            except Malformed as refusal:
                errors.extend(refusal.errors)
                continue
            if addresses.setdefault(callback_key(client=client, url=url.shown), url) != url:
                errors.append(FieldError(path, "differs from another callback of the job in its user info or query only"))
            if len(addresses) > MOST_CALLBACKS:
                errors.append(FieldError(path, f"is one too many: a job may have {MOST_CALLBACKS} callbacks"))
                break
        if errors:
            raise Malformed(*errors)
        return addresses

    async def _of_flow(self, content_id: str) -> list[CallbackUrl]:
        """An invalid URL of the flow is left out: whoever submits the job cannot correct the flow."""
        try:
            event = await self._events.by_id(UUID(content_id))
        except ValueError:
            return []
        if event is None or event.details.flow_id is None:
            return []
        flow = await self._records.find(Flow.KIND, event.details.flow_id)
        urls: list[CallbackUrl] = []
        for text in callback_urls(flow.details.configuration_json) if flow is not None else ():
            with suppress(Malformed):
                urls.append(parse_callback_url(text, field=_FLOW_FIELD))
        return urls

    def _command(self, key: UUID, client: str, url: str, *, new: bool) -> NameCallback:
        signing = self._vault.encrypt(self._new_signing_secret(), owner=Callback.stream(key))
        return NameCallback(key, client, url, signing, new=new)
