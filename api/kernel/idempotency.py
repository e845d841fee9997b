"""`Idempotency-Key`: a POST that is sent twice is carried out once and answered twice."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from api.http.errors import HttpError
from api.http.request import IDEMPOTENCY_KEY, is_token
from api.http.response import Response
from api.kernel.request import Request
from domain.kernel.encryption import KeyedHash
from domain.kernel.errors import Malformed
from domain.kernel.idempotency import IdempotencyKey, IdempotencyKeyUsed, IdempotencyRecord
from domain.kernel.ports import Outcome

Respond = Callable[[Request, Any], Awaitable[Response]]
_logger = logging.getLogger("medialedger.http")


class IdempotencyStore(Protocol):
    """Records of first requests, stored for 24 hours."""

    async def find(self, client: str, key: str) -> IdempotencyRecord | None: ...

    async def record(self, record: IdempotencyRecord) -> None:
        """Store the record of a request that appended nothing to the log; its position is the log's head. Raises
        `IdempotencyKeyUsed`."""
        ...

    async def outcome(self, record: IdempotencyRecord) -> Outcome[Any]:
        """Return the outcome of the first request, with the aggregates as of the record's position."""
        ...


class IdempotentRequests:
    """Runs an endpoint under a key the first time, and answers repeats from the record of the first request."""

    def __init__(self, store: IdempotencyStore, *, fingerprint: KeyedHash) -> None:
        """Set the store and the fingerprint, which is a keyed hash because a body may hold a weak password."""
        self._store = store
        self._fingerprint = fingerprint
        self._running: set[tuple[str, str]] = set()

    async def run(self, request: Request, act: Callable[[], Awaitable[Any]], *, respond: Respond, status: int) -> Response:
        sent = request.fields[IDEMPOTENCY_KEY]
        if not is_token(sent, 255):
            raise Malformed.at("Idempotency-Key", "must be 1 to 255 printable ASCII characters")
        sent_request = _request(request)
        mark = self._fingerprint(sent_request)
        key = IdempotencyKey(request.caller.name, sent.decode("ascii"), mark, status, request.root_url)
        owner = (key.client, key.key)
        if owner in self._running:
            raise _still_running()
        self._running.add(owner)
        try:
            record = await self._store.find(*owner)
            if record is None:
                try:
                    return await self._first(request, act, respond=respond, key=key)
                except IdempotencyKeyUsed:
                    record = await self._store.find(*owner)
            if record is None:
                raise _still_running()
            if not self._fingerprint.matches(record.of.fingerprint, sent_request):
                raise HttpError("This Idempotency-Key belongs to another request.", status=409)
            return await self._repeat(request, record, respond=respond)
        finally:
            self._running.discard(owner)

    async def _first(
        self, request: Request, act: Callable[[], Awaitable[Any]], *, respond: Respond, key: IdempotencyKey
    ) -> Response:
        request.idempotency = key
        outcome = await act()
        if not outcome.recorded:
            await self._record(request, IdempotencyRecord(key, [aggregate.id for aggregate in outcome.aggregates], outcome.result))
        return await respond(request, outcome)

    async def _record(self, request: Request, record: IdempotencyRecord) -> None:
        try:
            await self._store.record(record)
        except IdempotencyKeyUsed:
            raise
        except Exception:
            # The request has been carried out: an error now would make the client repeat it.
            _logger.exception("an idempotency key could not be recorded", extra={"transactionId": request.transaction_id})

    async def _repeat(self, request: Request, record: IdempotencyRecord, *, respond: Respond) -> Response:
        request.reached_as(record.of.base_url)
        response = await respond(request, await self._store.outcome(record))
        response.status_code = record.of.status
        response.headers["idempotency-replayed"] = "true"
        return response


def _request(request: Request) -> bytes:
    query = request.scope["query_string"]
    return b"%s %s?%s\n%s" % (request.method.encode(), request.scope["raw_path"], query, _without_boundary(request))


def _without_boundary(request: Request) -> bytes:
    """Return the body without the boundary of a form, because many clients choose a new boundary each time they send it."""
    media_type, _, boundary = request.fields.get(b"content-type", b"").partition(b"boundary=")
    boundary = boundary.partition(b";")[0].strip(b'" ')
    return request.content.replace(boundary, b"") if boundary and media_type.lower().startswith(b"multipart/") else request.content


def _still_running() -> HttpError:
    return HttpError("The first request with this Idempotency-Key is still running.", status=409, headers=(("retry-after", "1"),))
