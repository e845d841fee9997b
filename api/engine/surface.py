"""The errors of the job engine: docs/reference/api/job-engine.md#errors.

400 with `{"error"}` also means that the job does not exist, or that its state does not allow a change. Errors of HTTP, lost races
and an unavailable database keep their status.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, Field
from pydantic_core import from_json

from api.http.errors import Failure
from api.http.request import Request
from api.http.response import Response, encode
from api.http.routing import Route
from api.http.surface import Surface
from domain.kernel.internal_addresses import InternalAddresses
from domain.kernel.masking import masked_for_strangers
from domain.kernel.token_patterns import MASK

# The view of jobs for callers without a key: everything except credentials and internal addresses. docs/reference/api/job-
# engine.md#without-a-key.

_LONG: Final = 32_768
"""Size of an answer in bytes above which it is masked in a thread, because masking takes some milliseconds."""
MOST_PARAMETERS: Final = 256 * 1024
"""Bytes of parameters in one list. Masking costs a hundred times as much as reading."""


class Strangers:
    """Masks answers for callers without a key."""

    def __init__(self, inside: InternalAddresses) -> None:
        self._inside = inside

    async def body(self, answer: Any, *, in_full: bool) -> Any:
        """Return the answer unchanged if `in_full`, otherwise masked."""
        if in_full:
            return answer
        text = encode(answer)
        return await asyncio.to_thread(self._masked, text) if len(text) > _LONG else self._masked(text)

    def _masked(self, text: bytes) -> Any:
        return masked_for_strangers(from_json(text), self._inside)


def machine(name: str, *, in_full: bool) -> str:
    """Return the name of the process that worked on a task, masked unless `in_full`: its host is internal."""
    return name if in_full or not name else MASK


UNAVAILABLE: Final = {503: "The database is not available"}
"""The error of calls without a key that read the database."""
_BAD_REQUEST: Final = ("not-found", "refused")
_SUBMIT: Final = ("POST", "/engine/job")
_UPDATE: Final = ("PUT", "/engine/job/{job_id}")
_HEALTH: Final = "/engine/health"


class EngineError(BaseModel):
    error: str = Field(
        description="A sentence, or <field>: <message> for each error of a field, separated by semicolons.",
        examples=["job.priority: 1 to 10"],
    )
    id: int | None = Field(default=None, description="Number of the job; null when a job is submitted; absent in other answers.")


def render(failure: Failure, request: Request) -> Response:
    """Render a failure as JSON. An unexpected error is one line of plain text, except in the health of the engine."""
    if failure.status == HTTPStatus.INTERNAL_SERVER_ERROR and request.path != _HEALTH:
        return Response(f"{failure.detail}\n".encode(), failure.status, media_type="text/plain; charset=utf-8")
    status = 400 if failure.slug in _BAD_REQUEST else failure.status
    message = "; ".join(f"{error.field}: {error.message}" for error in failure.errors) or failure.detail
    return Response({**_id(request), "error": message}, status, headers=failure.headers)


def _id(request: Request) -> dict[str, int | None]:
    route = (request.method, request.path)
    if route == _SUBMIT:
        return {"id": None}
    if route != _UPDATE:
        return {}
    digits = request.path_params.get("job_id", "")
    return {"id": int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None}


ENGINE: Final = Surface(
    "engine",
    prefix="/engine",
    render=render,
    error_type="application/json",
    error_model=EngineError,
    never=frozenset({404}),
    client_required=True,
    typed_bodies=True,
    stored=False,
    unknown_names="told",
    any_case=True,
)


class EngineRoute(Route):
    """A route of the job engine."""

    surface = ENGINE
