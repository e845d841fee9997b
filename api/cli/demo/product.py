"""The HTTP client of the demo: requests to the API of the product that runs on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from api.wiring.startup import StartError

_SECONDS: Final = 60.0
_SHOWN: Final = 300


class RequestRefused(StartError):
    """Raised when the API refuses a request of the demo."""

    def __init__(self, request: str, status: int, answer: str) -> None:
        super().__init__(f"{request} was answered with {status}: {' '.join(answer.split())[:_SHOWN]}")
        self.status = status


class ProductClient:
    """Sends requests to one address with one key. It follows no redirects."""

    def __init__(self, base: str, key: str, *, client: str) -> None:
        self.base = base
        headers = {"API-KEY": key, "client": client}
        self._session = aiohttp.ClientSession(base, headers=headers, timeout=aiohttp.ClientTimeout(_SECONDS))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._session.close()

    async def get(self, path: str, **query: str | int) -> Any:
        return await self.send("GET", path, query=query)

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the JSON of the answer; None for an empty one. Raise `RequestRefused`, and `StartError` if there is no answer."""
        try:
            async with self._session.request(
                method, path, json=body, params=query, headers=headers, allow_redirects=False
            ) as answer:
                if not 200 <= answer.status < 300:
                    raise RequestRefused(f"{method} {path}", answer.status, _reason(await answer.text()))
                return await answer.json(content_type=None) if answer.status != 204 else None
        except (aiohttp.ClientError, TimeoutError) as fault:
            raise StartError(
                f"the product at {self.base} does not answer ({type(fault).__name__}); start `medialedger up`"
            ) from None


def _reason(text: str) -> str:
    """Return the sentence of a refusal, or the whole text."""
    try:
        refusal = json.loads(text)
    except ValueError:
        return text
    if not isinstance(refusal, dict):
        return text
    faults = "; ".join(f"{error.get('field')} {error.get('message')}" for error in refusal.get("errors", ()))
    return faults or str(refusal.get("detail") or refusal.get("error") or text)
