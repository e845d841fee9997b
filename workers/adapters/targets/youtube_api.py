"""Requests to the YouTube Data API, with a token that is renewed, and the meaning of its refusals for a publication."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.access_tokens import AccessTokens
from workers.adapters.targets.answers import refusal, retry_after, translate_client_faults
from workers.adapters.targets.documents import MOST, document, entries, error_document
from workers.ports.outbound import NO_HEADERS, Reply
from workers.ports.targets import PublicationOrder, ServiceAddresses, TargetFailed

PUBLIC: Final = "public"
PRIVATE: Final = "private"
_PRIVACY: Final = (PUBLIC, "unlisted", PRIVATE)
_TITLE: Final = 100
_DESCRIPTION: Final = 5_000
_PEOPLE: Final = "22"
"""The default category of a film: People & Blogs, which exists in every region."""
_BRACKETS: Final = str.maketrans("<>", "()")


def snippet(order: PublicationOrder) -> dict[str, Any]:
    text = words(order)
    return {**text, "categoryId": str(order.options.get("yt_categoryId") or _PEOPLE)}


def words(order: PublicationOrder) -> Mapping[str, str]:
    """Return title and description. YouTube refuses angle brackets, and counts the description in bytes."""
    title = (order.title or order.content_id).translate(_BRACKETS)[:_TITLE]
    description = order.description.translate(_BRACKETS).encode()[:_DESCRIPTION].decode(errors="ignore")
    return {"title": title, "description": description}


def privacy(order: PublicationOrder) -> str:
    chosen = order.options.get("yt_privacyStatus") or PUBLIC
    if chosen not in _PRIVACY:
        raise TargetFailed("publication", f"The publication's yt_privacyStatus must be one of {', '.join(_PRIVACY)}.")
    return str(chosen)


def tag(order: PublicationOrder) -> str:
    """Return the text by which everything that belongs to a publication is found."""
    return f"medialedger-{order.id}"


_PAGES: Final = 20
_PAGE: Final = "50"
_QUOTA: Final = frozenset({"quotaExceeded", "dailyLimitExceeded", "uploadLimitExceeded"})
_QUOTA_SECONDS: Final = 3600.0
_RATE: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "userRequestsExceedRateLimit", "errorExecutingTransition"})
_RATE_SECONDS: Final = 10.0
_INACTIVE: Final = "errorStreamInactive"
_INACTIVE_SECONDS: Final = 2.0
_SCOPE: Final = "insufficientPermissions"
_FAILED: Final = "YouTube"
FULL_SCOPE: Final = "https://www.googleapis.com/auth/youtube"


class YouTubeRefused(TargetFailed):
    """Raised when YouTube refused a request. `reasons` are YouTube's codes."""

    def __init__(self, failed: TargetFailed, *, status: int, reasons: frozenset[str]) -> None:
        super().__init__(failed.kind, str(failed), after=failed.after)
        self.status = status
        self.reasons = reasons


class YouTubeApi:
    """Requests to the API. They raise `YouTubeRefused`, or `TargetFailed` if there was no answer."""

    def __init__(self, tokens: AccessTokens, *, client: GuardedClient, addresses: ServiceAddresses, seconds: float) -> None:
        self._tokens = tokens
        self._client = client
        self._addresses = addresses
        self._seconds = seconds

    async def call(
        self, method: str, resource: str, *, query: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        url = f"{self._addresses.youtube}/youtube/v3/{resource}?{urlencode(query)}"
        reply = await self.request(method, url, body=body)
        if not 200 <= reply.status < 300:
            raise refused(reply)
        return document(reply)

    async def list_items(self, resource: str, query: Mapping[str, str], *, pages: int = _PAGES) -> Sequence[Mapping[str, Any]]:
        """Return the items of all pages, up to a limit of pages."""
        items: list[Mapping[str, Any]] = []
        page_query = dict(query)
        for _ in range(pages):
            answer = await self.call("GET", resource, query=page_query)
            items += entries(answer, "items")
            following = answer.get("nextPageToken")
            if not isinstance(following, str) or not following or following == page_query.get("pageToken"):
                break
            page_query["pageToken"] = following
        return items

    async def list_mine(self, resource: str, query: Mapping[str, str], *, pages: int = _PAGES) -> Sequence[Mapping[str, Any]]:
        return await self.list_items(resource, {**query, "maxResults": _PAGE}, pages=pages)

    async def get_item(self, resource: str, key: str, *, part: str) -> Mapping[str, Any] | None:
        items = entries(await self.call("GET", resource, query={"part": part, "id": key}), "items")
        return next((item for item in items if item.get("id") == key), None)

    async def remove(self, resource: str, key: str) -> None:
        """Remove a resource. A resource that does not exist is no failure."""
        try:
            await self.call("DELETE", resource, query={"id": key})
        except YouTubeRefused as failed:
            if failed.status != 404:
                raise

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: Mapping[str, Any] | None = None,
        pieces: Callable[[], AsyncIterable[bytes]] | None = None,
        size: int = 0,
    ) -> Reply:
        """Send a request with a token, and once more with a new token if it is refused. `pieces` makes a body of `size` bytes."""
        for attempt in range(2):
            token = await self._tokens.current()
            all_headers = {**headers, "Authorization": f"Bearer {token}"}
            with translate_client_faults():
                if pieces is not None:
                    reply = await self._client.send(
                        *(method, url),
                        pieces=pieces(),
                        size=size,
                        headers=all_headers,
                        seconds_without_progress=self._seconds,
                        most=MOST,
                    )
                else:
                    text = b"" if body is None else json.dumps(body).encode()
                    kind = {} if body is None else {"Content-Type": "application/json; charset=UTF-8"}
                    reply = await self._client.request(
                        method, url, headers={**all_headers, **kind}, body=text, seconds=self._seconds, most=MOST
                    )
            if reply.status != 401 or attempt:
                break
            self._tokens.forget(token)
        return reply


def refused(reply: Reply) -> YouTubeRefused:
    reasons = frozenset(str(error["reason"]) for error in entries(error_document(reply), "errors") if "reason" in error)
    return YouTubeRefused(_failure(reply, reasons), status=reply.status, reasons=reasons)


def _failure(reply: Reply, reasons: frozenset[str]) -> TargetFailed:
    suffix = "".join(f" ({reason[:60]})" for reason in sorted(reasons)[:1] if reason.isascii() and reason.isalnum())
    if reasons & _QUOTA:
        return TargetFailed(
            "retry", f"The quota of the YouTube client is used up{suffix}: it is renewed each day.", after=_QUOTA_SECONDS
        )
    if reasons & _RATE:
        return TargetFailed(
            "retry", f"YouTube accepts no more requests at the moment{suffix}.", after=retry_after(reply) or _RATE_SECONDS
        )
    if _INACTIVE in reasons:
        return TargetFailed("retry", "YouTube has not seen the stream yet.", after=_INACTIVE_SECONDS)
    if _SCOPE in reasons:
        return TargetFailed(
            "destination", f"The authorization of the YouTube channel lacks a scope: authorize it again with {FULL_SCOPE}."
        )
    if "youtubeSignupRequired" in reasons:
        return TargetFailed("destination", "The Google account has no YouTube channel: create one.")
    if "liveStreamingNotEnabled" in reasons:
        return TargetFailed("destination", "Live streaming is not enabled for the YouTube channel: enable it in YouTube Studio.")
    if reply.status == 404:
        return TargetFailed("publication", f"YouTube does not have it{suffix}: it may have been deleted there.")
    if reply.status in (400, 409, 412, 422) or (reply.status == 403 and reasons and not reasons & {"forbidden"}):
        return TargetFailed("publication", f"YouTube refuses it with status {reply.status}{suffix}.")
    return refusal(reply, what=f"{_FAILED}{suffix}", credentials="yt_clientId, yt_clientSecret and yt_refreshToken")
