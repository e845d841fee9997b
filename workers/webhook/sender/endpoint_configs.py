"""The address, headers and signing keys of webhooks: read once for each version, with the secrets, and kept in memory only."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from domain.kernel.errors import DecryptionFailed
from domain.webhook.aggregate import Webhook, extra_headers
from domain.webhook.callback import ENDPOINT_KINDS, Callback, split_user_info
from domain.webhook.details import CallbackDetails, EndpointDetails, WebhookDetails
from domain.webhook.endpoint import PREVIOUS, SIGNING, decode_secret
from projections.record.queries import RecordQueries, RecordRow
from projections.vault.vault import Vault

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """The values of one version of a webhook that the sender needs. `headers` are the same for all deliveries. The repr has no
    secret."""

    version: int
    url: str = field(repr=False)
    as_json: bool
    disabled: bool
    headers: Mapping[str, str] = field(repr=False)
    keys: Sequence[bytes] = field(repr=False)
    """The current signing key, then the previous one."""
    previous_until: datetime | None
    consumer: str = "webhooks"
    """The consumer whose fan-out makes its deliveries."""

    def signing_keys(self, now: datetime) -> Sequence[bytes]:
        if self.previous_until is not None and now < self.previous_until:
            return self.keys
        return self.keys[:1]


class EndpointConfigs:
    """Loads configurations. `version` is that of the product, for the user agent."""

    def __init__(self, records: RecordQueries, vault: Vault, *, version: str) -> None:
        self._records = records
        self._vault = vault
        self._agent = f"medialedger/{version}"

    async def load(self, webhooks: Sequence[UUID]) -> dict[UUID, EndpointConfig]:
        """Return the configurations of the webhooks that exist and whose secrets can be decrypted."""
        rows = await self._records.of_kinds(ENDPOINT_KINDS, webhooks)
        configs = await asyncio.gather(*map(self._decrypt, rows))
        return {UUID(row.id): config for row, config in zip(rows, configs, strict=True) if config is not None}

    async def _decrypt(self, row: RecordRow[EndpointDetails]) -> EndpointConfig | None:
        try:
            return await self._config(row)
        except DecryptionFailed:
            _log.error("the secrets of webhook %s cannot be decrypted", row.id)
            return None

    async def _config(self, row: RecordRow[EndpointDetails]) -> EndpointConfig:
        details = row.details
        owner = (Callback if isinstance(details, CallbackDetails) else Webhook).stream(row.id)
        reads = (self._vault.read(ref.reference, owner=owner) for ref in details.secrets.values())
        opened = zip(details.secrets, await asyncio.gather(*reads), strict=True)
        secrets = {name: secret for name, secret in opened if secret is not None}
        return EndpointConfig(
            version=row.version,
            url=details.webhook_url,
            as_json=isinstance(details, CallbackDetails) or details.use_json_body,
            disabled=details.disabled_at is not None,
            headers=headers_of(details, secrets, agent=self._agent),
            keys=[decode_secret(secrets[name]) for name in (SIGNING, PREVIOUS) if name in secrets],
            previous_until=details.previous_until,
            consumer="callback" if isinstance(details, CallbackDetails) else "webhooks",
        )

    async def with_url(self, config: EndpointConfig, sealed_url: UUID, *, job: str) -> EndpointConfig | None:
        """Return the configuration for a delivery with its own address; None if its secret is erased or cannot be decrypted. `job`
        is the stream of the job that owns the secret."""
        try:
            whole = await self._vault.read(sealed_url, owner=job)
        except DecryptionFailed:
            _log.error("the address %s in the vault cannot be decrypted", sealed_url)
            return None
        if whole is None:
            return None
        url, credentials = split_user_info(whole)
        headers = config.headers if credentials is None else {**config.headers, "authorization": basic(credentials)}
        return replace(config, url=url, headers=headers)


def headers_of(details: WebhookDetails | CallbackDetails, secrets: Mapping[str, str], *, agent: str) -> dict[str, str]:
    """Return the headers of all deliveries. Of the product's headers only the user agent can be replaced. A header that is given
    twice is sent as one (RFC 9110, 5.3)."""
    sent = {"user-agent": agent}
    if isinstance(details, CallbackDetails):
        return sent | {"content-type": JSON}
    extra: dict[str, str] = {}
    for name, value in extra_headers(details, secrets):
        first = extra.get(name.lower())
        extra[name.lower()] = value if first is None else f"{first}, {value}"
    sent |= extra
    if details.use_http_basic_authentication:
        sent["authorization"] = basic(f"{details.username or ''}:{secrets.get('password', '')}")
    return sent | {"content-type": JSON if details.use_json_body else FORM}


def basic(credentials: str) -> str:
    """Return the value of `Authorization` (RFC 7617)."""
    return f"Basic {b64encode(credentials.encode()).decode()}"
