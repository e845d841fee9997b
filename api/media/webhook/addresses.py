"""Addresses of webhooks as callers may see them. Queries and paths of addresses often contain credentials."""

from __future__ import annotations

from dataclasses import replace

from api.kernel.auth import WRITE
from api.kernel.request import Request
from domain.kernel.masking import masked
from domain.record.ports import RecordRow
from domain.webhook.details import WebhookDetails


def address_for(request: Request, url: str) -> str:
    """Return the whole address for callers that may write, because they may change it; for other callers without user info and
    query."""
    may_write = not WRITE.roles.isdisjoint(request.caller.roles)
    return url if may_write else str(masked(url))


def webhook_for(request: Request, webhook: RecordRow[WebhookDetails]) -> RecordRow[WebhookDetails]:
    """Return the webhook with the address that the caller may see."""
    shown = address_for(request, webhook.details.webhook_url)
    if shown == webhook.details.webhook_url:
        return webhook
    return replace(webhook, details=webhook.details.model_copy(update={"webhook_url": shown}))
