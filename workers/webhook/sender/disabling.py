"""Disables a webhook whose receiver failed for too long, by its handler, with an entry in the log store for operators."""

from __future__ import annotations

import logging
from contextlib import suppress
from uuid import UUID

from domain.kernel.clock import Clock
from domain.kernel.errors import Conflict, NotFound, Unavailable
from domain.kernel.ports import Invocation
from domain.webhook.handlers import WebhookHandlers
from projections.log_store.log_store import Level, Logbook

_log = logging.getLogger(__name__)


class Disabling:
    """Disables webhooks. A webhook that is already disabled or deleted stays as it is."""

    def __init__(self, handlers: WebhookHandlers, logbook: Logbook, *, clock: Clock) -> None:
        self._handlers = handlers
        self._logbook = logbook
        self._clock = clock

    async def disable(self, webhook: UUID, reason: str) -> None:
        """Disable a webhook. Raise `Unavailable`; the caller may then try again."""
        try:
            await self._handlers.disable(webhook, at=self._clock(), invocation=Invocation.by("system"))
        except (Conflict, NotFound) as fault:
            _log.info("the webhook %s is not disabled: %s", webhook, fault)
            return
        with suppress(Unavailable):
            await self._logbook.note(Level.ERROR, f"The webhook {webhook} was disabled: {reason}", subject=str(webhook))
