"""Addresses of webhooks as a caller may see them: many a query is a credential, and so is many a path."""

from __future__ import annotations

from dataclasses import replace

from api.kernel.auth import WRITE
from api.kernel.request import Request
from domain.kernel.masking import masked
from domain.records.row import RecordRow


def address_for(request: Request, url: str) -> str:
    """The whole address for callers who may write, since they may change it; for others without user info and query."""
    may_write = WRITE is not None and not WRITE.isdisjoint(request.caller.roles)
    return url if may_write else str(masked(url))


def webhook_for(request: Request, webhook: RecordRow) -> RecordRow:
    """A webhook with the address that the caller may see."""
    shown = address_for(request, webhook.details.webhook_url)
    if shown == webhook.details.webhook_url:
        return webhook
    return replace(webhook, details=webhook.details.model_copy(update={"webhook_url": shown}))
