"""Reads the current version of a webhook before each attempt, so that a change applies from the moment its write was answered.

An attempt starts when its row is taken; the version is read after that. Attempts that start at the same moment share the query, and
the configuration itself, with its secrets, is read again only when the version has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from domain.kernel.errors import Unavailable
from projections.webhook.store import DeliveryStore, PendingDelivery
from workers.webhook.sender.endpoint import EndpointSender
from workers.webhook.sender.endpoint_configs import EndpointConfig, EndpointConfigs
from workers.webhook.sender.endpoint_state import DELETED, DISABLED, Configured, Event, Unsendable, WebhookWithdrawn

UNREADABLE_SECONDS: Final = 60.0
_UNAVAILABLE_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class ConfigCheck:
    """Keeps the configurations of endpoints current. `time` is the clock of the scheduler."""

    def __init__(self, store: DeliveryStore, configs: EndpointConfigs, *, time: Callable[[], float]) -> None:
        self._store = store
        self._configs = configs
        self._time = time

    async def current_config(self, endpoint: EndpointSender, row: PendingDelivery) -> EndpointConfig | Event | None:
        """Update the configuration of the endpoint. Return it with the address of the row; None if that address is no longer
        stored, or an event that says why nothing can be sent to the endpoint."""
        try:
            obstacle = await self._configure(endpoint)
            if obstacle is not None or endpoint.config is None or row.sealed_url is None:
                return obstacle or endpoint.config
            return await self._configs.with_url(endpoint.config, row.sealed_url, job=row.ordering_key)
        except Unavailable:
            return Unsendable(_UNAVAILABLE_SECONDS)
        except Exception as fault:  # only the name: a message might repeat a secret
            _log.error("webhook %s cannot be read: %s", endpoint.webhook, type(fault).__name__)
            return Unsendable(UNREADABLE_SECONDS)

    async def is_former(self, webhook: UUID, config: EndpointConfig) -> bool:
        """Return True if the webhook has changed since this configuration was read."""
        try:
            return (await self._store.webhook_status(webhook)).version != config.version
        except Unavailable:
            return False

    async def _configure(self, endpoint: EndpointSender) -> Event | None:
        status = await self._store.webhook_status(endpoint.webhook)
        if status.version is None:
            return WebhookWithdrawn(DELETED)
        if not status.enabled:
            return WebhookWithdrawn(DISABLED)
        if endpoint.config is not None and endpoint.config.version >= status.version:
            return None
        config = (await self._configs.load([endpoint.webhook])).get(endpoint.webhook)
        if config is None:
            return Unsendable(UNREADABLE_SECONDS)
        if endpoint.config is None:  # later the endpoint knows earlier than the table since when it fails
            endpoint.apply(Configured(status.failing_since), self._time())
        if endpoint.config is None or endpoint.config.version < config.version:
            endpoint.config = config
        return WebhookWithdrawn(DISABLED) if config.disabled else None
