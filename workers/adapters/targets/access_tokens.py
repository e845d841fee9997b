"""OAuth 2.0 access tokens from a refresh token: RFC 6749, section 6. They are kept only in the memory of this process."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any, Final
from urllib.parse import urlencode

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import published_names
from workers.adapters.targets.answers import retry_after, translate_client_faults
from workers.adapters.targets.documents import MOST, document
from workers.ports.outbound import Reply
from workers.ports.targets import TargetFailed

_EARLY: Final = 60.0
"""Seconds before its expiry from which a token is no longer used."""
_LIFETIME: Final = 3600
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class AccessTokens:
    """The tokens of one destination, from `yt_clientId`, `yt_clientSecret` and `yt_refreshToken` of its configuration."""

    def __init__(self, config: Mapping[str, Any], *, client: GuardedClient, url: str, seconds: float) -> None:
        self._config = config
        self._client = client
        self._url = url
        self._seconds = seconds
        self._token = ""
        self._until = 0.0
        self.scopes: frozenset[str] = frozenset()
        """The scopes of the last token; empty if the server did not report them."""

    async def current(self) -> str:
        if not self._token or monotonic() >= self._until:
            await self._refresh()
        return self._token

    def forget(self, token: str) -> None:
        """Discard a token that was refused, so that a new one is fetched."""
        if token == self._token:
            self._token = ""

    async def _refresh(self) -> None:
        form = {
            "grant_type": "refresh_token",
            "client_id": published_names.text(self._config, "yt_clientId"),
            "client_secret": published_names.text(self._config, "yt_clientSecret"),
            "refresh_token": published_names.text(self._config, "yt_refreshToken"),
        }
        with translate_client_faults():
            reply = await self._client.request(
                "POST", self._url, headers=_FORM, body=urlencode(form).encode(), seconds=self._seconds, most=MOST
            )
        if reply.status != 200:
            raise _refusal(reply)
        answer = document(reply)
        token, lasts = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(token, str) or not token or not token.isprintable():
            raise TargetFailed("retry", "YouTube's token server answered without a token.")
        self._token = token
        self._until = monotonic() + (lasts if isinstance(lasts, int) else _LIFETIME) - _EARLY
        self.scopes = frozenset(str(answer.get("scope") or "").split())


def _refusal(reply: Reply) -> TargetFailed:
    code = _code(reply)
    if code == "invalid_grant":
        return TargetFailed(
            "destination",
            "YouTube no longer accepts the refresh token: authorize the channel again, and set yt_refreshToken.",
        )
    if code in ("invalid_client", "unauthorized_client"):
        return TargetFailed("destination", "YouTube does not know this client: check yt_clientId and yt_clientSecret.")
    if reply.status == 429 or reply.status >= 500:
        return TargetFailed("retry", f"YouTube issues no token at the moment: status {reply.status}.", after=retry_after(reply))
    return TargetFailed(
        "destination", f"YouTube issues no token: status {reply.status}. Check yt_clientId, yt_clientSecret and yt_refreshToken."
    )


def _code(reply: Reply) -> object:
    try:
        return document(reply).get("error")
    except TargetFailed:
        return None
