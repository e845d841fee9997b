"""Access tokens of OAuth 2.0 from a refresh token: RFC 6749, section 6. They are in the memory of this process alone."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any, Final
from urllib.parse import urlencode

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import named
from workers.adapters.targets.answers import reached, retry_after
from workers.adapters.targets.documents import MOST, document
from workers.ports import Reply
from workers.target_ports import TargetFailed

_EARLY: Final = 60.0
"""Seconds before its end that a token is not used any more."""
_LIFETIME: Final = 3600
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class AccessTokens:
    """Those of one destination: `yt_clientId`, `yt_clientSecret` and `yt_refreshToken` of its configuration."""

    def __init__(self, config: Mapping[str, Any], *, client: GuardedClient, url: str, seconds: float) -> None:
        self._config = config
        self._client = client
        self._url = url
        self._seconds = seconds
        self._token = ""
        self._until = 0.0
        self.scopes: frozenset[str] = frozenset()
        """What the last token was granted; empty where the server did not say."""

    async def current(self) -> str:
        if not self._token or monotonic() >= self._until:
            await self._refresh()
        return self._token

    def forget(self, token: str) -> None:
        """It was refused: the next one is a new one."""
        if token == self._token:
            self._token = ""

    async def _refresh(self) -> None:
        wanted = {
            "grant_type": "refresh_token",
            "client_id": named.text(self._config, "yt_clientId"),
            "client_secret": named.text(self._config, "yt_clientSecret"),
            "refresh_token": named.text(self._config, "yt_refreshToken"),
        }
        with reached():
            reply = await self._client.request(
                "POST", self._url, headers=_FORM, body=urlencode(wanted).encode(), seconds=self._seconds, most=MOST
            )
        if reply.status != 200:
            raise _refusal(reply)
        found = document(reply)
        token, lasts = found.get("access_token"), found.get("expires_in")
        if not isinstance(token, str) or not token or not token.isprintable():
            raise TargetFailed("retry", "The server of YouTube's tokens answers without a token.")
        self._token = token
        self._until = monotonic() + (lasts if isinstance(lasts, int) else _LIFETIME) - _EARLY
        self.scopes = frozenset(str(found.get("scope") or "").split())


def _refusal(reply: Reply) -> TargetFailed:
    code = _code(reply)
    if code == "invalid_grant":
        return TargetFailed(
            "destination",
            "YouTube does not accept the refresh token any more: authorize the channel again, and set yt_refreshToken.",
        )
    if code in ("invalid_client", "unauthorized_client"):
        return TargetFailed("destination", "YouTube does not know this client: check yt_clientId and yt_clientSecret.")
    if reply.status == 429 or reply.status >= 500:
        return TargetFailed("retry", f"YouTube gives no token now: status {reply.status}.", after=retry_after(reply))
    return TargetFailed(
        "destination", f"YouTube gives no token: status {reply.status}. Check yt_clientId, yt_clientSecret and yt_refreshToken."
    )


def _code(reply: Reply) -> object:
    try:
        return document(reply).get("error")
    except TargetFailed:
        return None
