"""New API keys."""

from __future__ import annotations

import secrets

from domain.client.handlers import PlainApiKey


def new_api_key(text: str | None = None) -> PlainApiKey:
    """Return a key with 256 random bits, or with the `text` that an operator chose."""
    key_id = secrets.token_hex(8)
    return PlainApiKey(key_id, text or f"mlk_{key_id}_{secrets.token_urlsafe(32)}")
