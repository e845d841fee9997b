"""Where deliveries of a webhook go, and with what: read once per version of the webhook, secrets and all, and kept only in memory.

contract.md, "Webhook delivery"; document 2, "Authentication".
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from domain.kernel.sealed import Unsealable
from domain.records.kinds.webhook import PREVIOUS, SIGNING, URL, Webhook, WebhookDetails, extra_headers
from domain.webhook.callback import parted
from domain.webhook.secret import key_of
from projections.records.queries import RecordQueries, RecordRow
from projections.vault.vault import Vault

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """`headers` are those that do not change from one delivery to the next. The repr has no secret."""

    version: int
    url: str = field(repr=False)
    as_json: bool
    disabled: bool
    headers: Mapping[str, str] = field(repr=False)
    keys: Sequence[bytes] = field(repr=False)
    """The present signing key, then the one before."""
    previous_until: datetime | None

    def signers(self, now: datetime) -> Sequence[bytes]:
        if self.previous_until is not None and now < self.previous_until:
            return self.keys
        return self.keys[:1]


class Targets:
    """Makes targets of webhooks. `version` is the product's, with which we introduce ourselves."""

    def __init__(self, records: RecordQueries, vault: Vault, *, version: str) -> None:
        self._records = records
        self._vault = vault
        self._agent = f"medialedger/{version}"

    async def load(self, webhooks: Sequence[UUID]) -> dict[UUID, Target]:
        """Those that are there and whose secrets can be opened."""
        found = await self._records.linked((Webhook.KIND, str(webhook)) for webhook in webhooks)
        targets: dict[UUID, Target] = {}
        for row in found.values():
            try:
                targets[UUID(row.id)] = await self._target(row)
            except Unsealable:
                _log.error("the secrets of webhook %s cannot be opened", row.id)
        return targets

    async def _target(self, row: RecordRow) -> Target:
        details: WebhookDetails = row.details
        opened = {name: await self._vault.opened(ref.reference) for name, ref in details.secrets.items()}
        secrets = {name: secret for name, secret in opened.items() if secret is not None}
        if URL in details.secrets and URL not in secrets:
            raise Unsealable(URL)  # erased meanwhile; what is shown of the address is not where it leads
        url, credentials = parted(secrets.get(URL, details.webhook_url))
        headers = headers_of(details, secrets, agent=self._agent)
        if credentials is not None:
            headers["authorization"] = basic(credentials)
        return Target(
            version=row.version,
            url=url,
            as_json=details.use_json_body,
            disabled=details.disabled_at is not None,
            headers=headers,
            keys=[key_of(secrets[name]) for name in (SIGNING, PREVIOUS) if name in secrets],
            previous_until=details.previous_until,
        )


def headers_of(details: WebhookDetails, secrets: Mapping[str, str], *, agent: str) -> dict[str, str]:
    """Ours cannot be replaced, but for the user agent. A header that is given twice is sent as one (RFC 9110, 5.3)."""
    sent = {"user-agent": agent}
    given: dict[str, str] = {}
    for name, value in extra_headers(details, secrets):
        known = given.get(name.lower())
        given[name.lower()] = value if known is None else f"{known}, {value}"
    sent |= given
    if details.use_http_basic_authentication:
        sent["authorization"] = basic(f"{details.username or ''}:{secrets.get('password', '')}")
    return sent | {"content-type": JSON if details.use_json_body else FORM}


def basic(credentials: str) -> str:
    """RFC 7617."""
    return f"Basic {b64encode(credentials.encode()).decode()}"
