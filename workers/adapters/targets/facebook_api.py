"""Requests to Facebook's Graph API, and the meaning of its refusals for a publication. The token is in a header, never in an
address."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from secrets import token_hex
from typing import Any, Final
from urllib.parse import urlencode

from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets import published_names
from workers.adapters.targets.answers import refusal, retry_after, translate_client_faults
from workers.adapters.targets.documents import MOST, document, entries, error_document, member
from workers.adapters.targets.parts import pieces
from workers.ports.outbound import Reply
from workers.ports.targets import TargetFailed, UploadSource

_LOGIN: Final = frozenset({102, 190, 463, 467})
_BUSY: Final = frozenset({4, 17, 32, 341, 613, 80001, 80006, 80008})
_BUSY_SECONDS: Final = 300.0
_PASSING: Final = frozenset({1, 2, 6000, 1363030, 1363033, 1363037})
_FILE: Final = frozenset({352, 1363022, 1363023, 1363024, 1363025, 1363026, 1363031})
_MISSING: Final = ((100, 33), (803, None), (10, 33))
_PAGES: Final = 4
_PAGE: Final = "50"
_WHO: Final = "Facebook"
_PERMISSIONS: Final = "pages_manage_posts, pages_read_engagement and publish_video"


class FacebookRefused(TargetFailed):
    """Raised when Facebook refused a request. `code` and `subcode` are Facebook's error numbers, `data` is the additional
    information."""

    def __init__(self, failed: TargetFailed, *, code: int, subcode: int, data: Mapping[str, Any]) -> None:
        super().__init__(failed.kind, str(failed), after=failed.after)
        self.code = code
        self.subcode = subcode
        self.data = data

    @property
    def missing(self) -> bool:
        """True if the object does not exist or does not belong to this token."""
        return any(self.code == code and subcode in (None, self.subcode) for code, subcode in _MISSING)


class FacebookApi:
    """Requests to the Graph API. They raise `FacebookRefused`, or `TargetFailed` if there was no answer."""

    def __init__(self, config: Mapping[str, Any], *, client: GuardedClient, base: str, seconds: float) -> None:
        self._config = config
        self._client = client
        self._base = base
        self._seconds = seconds

    async def get(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        return await self._request("GET", f"{path}?{urlencode(query)}")

    async def post(self, path: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._request("POST", path, headers=kind, body=urlencode(form).encode())

    async def remove(self, path: str) -> None:
        """Remove an object. An object that does not exist is no failure."""
        try:
            await self._request("DELETE", path)
        except FacebookRefused as failed:
            if not failed.missing:
                raise

    async def get_or_none(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any] | None:
        try:
            return await self.get(path, query)
        except FacebookRefused as failed:
            if failed.missing:
                return None
            raise

    async def newest(self, path: str, fields: str) -> Sequence[Mapping[str, Any]]:
        """Return the first pages of a list. The addresses of further pages contain the token, so only their cursors are used."""
        listed: list[Mapping[str, Any]] = []
        query = {"fields": fields, "limit": _PAGE}
        for _ in range(_PAGES):
            answer = await self.get(path, query)
            listed += entries(answer, "data")
            after = member(answer, "paging", "cursors").get("after")
            if "next" not in member(answer, "paging") or not isinstance(after, str) or after == query.get("after"):
                break
            query["after"] = after
        return listed

    async def transfer(
        self, path: str, source: UploadSource, *, form: Mapping[str, str], start: int, size: int, sent: Callable[[int], None]
    ) -> Mapping[str, Any]:
        """Send a form with a part of the file, as multipart/form-data."""
        boundary = token_hex(16)
        head, tail = _around(form, boundary)

        async def body() -> AsyncGenerator[bytes, None]:
            yield head
            async for piece in pieces(source.path, start=start, size=size, sent=sent):
                yield piece
            yield tail

        with translate_client_faults():
            reply = await self._client.send(
                *("POST", f"{self._base}/{path}"),
                pieces=body(),
                size=len(head) + size + len(tail),
                headers={**self._login, "Content-Type": f"multipart/form-data; boundary={boundary}"},
                seconds_without_progress=self._seconds,
                most=MOST,
            )
        return _answer(reply)

    async def _request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Mapping[str, Any]:
        all_headers = {**self._login, **(headers or {})}
        with translate_client_faults():
            reply = await self._client.request(
                method, f"{self._base}/{path}", headers=all_headers, body=body, seconds=self._seconds, most=MOST
            )
        return _answer(reply)

    @property
    def _login(self) -> Mapping[str, str]:
        token = published_names.text(self._config, "fb_accessToken")
        if not token.isprintable() or not token.isascii():
            raise TargetFailed(
                "destination", "The fb_accessToken contains characters that are not allowed in a token: set it again."
            )
        return {"Authorization": f"OAuth {token}"}


def _answer(reply: Reply) -> Mapping[str, Any]:
    error = error_document(reply)
    if 200 <= reply.status < 300 and not error:
        return document(reply)
    code, subcode = (value if isinstance(value := error.get(name), int) else 0 for name in ("code", "error_subcode"))
    raise FacebookRefused(_failure(reply, code, subcode), code=code, subcode=subcode, data=member(error, "error_data"))


def _failure(reply: Reply, code: int, subcode: int) -> TargetFailed:
    suffix = f" (error {code}{f'/{subcode}' if subcode else ''})" if code else ""
    if code in _LOGIN:
        return TargetFailed(
            "destination", f"Facebook no longer accepts the access token{suffix}: get a new one, and set fb_accessToken."
        )
    if code in _BUSY:
        return TargetFailed(
            "retry", f"Facebook accepts no more requests at the moment{suffix}.", after=retry_after(reply) or _BUSY_SECONDS
        )
    if {code, subcode} & _FILE:
        return TargetFailed("media", f"Facebook does not accept the file{suffix}: check its format, length and size.")
    if {code, subcode} & _PASSING:
        return TargetFailed("retry", f"Facebook reports a temporary failure{suffix}.", after=retry_after(reply))
    if code == 10 or 200 <= code < 300:
        return TargetFailed(
            "destination",
            f"The access token lacks a permission{suffix}: it needs pages_manage_posts, pages_read_engagement and publish_video.",
        )
    if code == 368:
        return TargetFailed("destination", f"Facebook has blocked the account for a time{suffix}: see its support inbox.")
    if code in (100, 803) or reply.status in (400, 404):
        return TargetFailed("publication", f"Facebook refuses it with status {reply.status}{suffix}.")
    return refusal(reply, what=f"{_WHO}{suffix}", credentials="fb_accessToken")


def _around(form: Mapping[str, str], boundary: str) -> tuple[bytes, bytes]:
    """Return the bytes before and after the content of the file."""
    fields = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in form.items()
    )
    file = 'Content-Disposition: form-data; name="video_file_chunk"; filename="chunk"\r\nContent-Type: application/octet-stream'
    return f"{fields}--{boundary}\r\n{file}\r\n\r\n".encode(), f"\r\n--{boundary}--\r\n".encode()
